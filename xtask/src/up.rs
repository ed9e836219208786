//! `cargo xtask up`: the application and one worker, until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::build;
use crate::data::Data;
use crate::instance::{Instance, Place};
use crate::stop::Stop;
use crate::workspace::Workspace;

/// What `up` is told.
#[derive(Args)]
pub struct Options {
    /// Where the application listens; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Where everything is kept: tables, tasks, credentials and logs.
    #[arg(long, default_value = ".data", value_name = "DIR")]
    data: PathBuf,
    /// Start what was built before.
    #[arg(long)]
    no_build: bool,
    /// A variable of the application (spin.toml lists them); may be given more than once.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    variable: Vec<(String, String)>,
    /// Spin's runtime configuration, which says where the key-value store is: runtime-config/redis.toml
    /// is one. Without it, the store is a SQLite file in the data folder.
    #[arg(long, value_name = "FILE")]
    runtime_config_file: Option<PathBuf>,
    /// Stop, as on SIGTERM, when standard input ends.
    #[arg(long)]
    stop_with_stdin: bool,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "it looks like NAME=VALUE".to_owned())
}

/// Runs until it is told to stop.
pub fn run(workspace: &Workspace, stop: &Stop, options: Options) -> anyhow::Result<()> {
    if options.stop_with_stdin {
        stop.on_end_of_stdin();
    }
    let runtime_config = options
        .runtime_config_file
        .map(|path| {
            path.canonicalize()
                .with_context(|| format!("can't read {}", path.display()))
        })
        .transpose()?;
    let place = Place::take(Data::open(&options.data)?, options.listen)?;
    if !options.no_build {
        build::run(workspace, stop)?;
    }
    let mut instance = Instance::start(
        workspace,
        stop,
        place,
        &options.variable,
        runtime_config.as_deref(),
    )?;
    let facts = instance.facts();
    println!("endpoint     {}", facts.endpoint);
    println!("bucket       {}", facts.bucket);
    println!("credentials  {}", facts.credentials.display());
    println!("logs         {}", facts.logs.display());
    println!("ready; Ctrl-C stops it");
    instance.look_after(stop, || Ok(false))?;
    println!("stopping");
    drop(instance);
    println!("stopped");
    Ok(())
}
