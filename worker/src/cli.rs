//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};

/// Runs maintenance tasks on Lance tables for the application that hands them over.
///
/// The secret that is shared with the application comes from the environment's
/// LANCE_WORKER_SECRET or from the configuration file. RUST_LOG chooses what is logged (default:
/// info).
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "lance-worker", version)]
pub struct Cli {
    /// The configuration file; worker.toml of the repository shows every key
    #[arg(long, env = "LANCE_WORKER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:3100]
    #[arg(long, env = "LANCE_WORKER_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where the application is [default: http://127.0.0.1:3000]
    #[arg(long, env = "LANCE_WORKER_APPLICATION_URL", value_name = "URL")]
    pub application_url: Option<String>,
    /// The worker's name, its own and the same after a restart [default: host name and port]
    #[arg(long, env = "LANCE_WORKER_ID", value_name = "NAME")]
    pub worker_id: Option<String>,
    /// How log lines look, on standard error
    #[arg(long, env = "LANCE_WORKER_LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Stop, as on SIGTERM, when standard input ends: a parent that holds the other end of a pipe
    /// takes the worker with it, however the parent ends
    #[arg(long)]
    pub stop_with_stdin: bool,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
