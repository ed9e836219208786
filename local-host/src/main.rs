//! `lance-local-host`: see the library's documentation.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{IsTerminal, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use lance_local_host::application::{Application, Settings};
use lance_local_host::manifest::Manifest;
use lance_local_host::runtime_config::RuntimeConfig;
use lance_local_host::server;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Runs the components of a spin.toml. The first line on standard output says where it listens, once
/// it does; the log goes to standard error (RUST_LOG sets how much).
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The manifest.
    #[arg(long, default_value = "spin.toml", value_name = "FILE")]
    manifest: PathBuf,
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Folder for compiled code and the key-value store; made if it is not there.
    #[arg(long, value_name = "DIR")]
    state_dir: PathBuf,
    /// Spin's runtime configuration: a TOML file that says where the key-value store is, Redis or, as
    /// without the file, SQLite in the state folder.
    #[arg(long, value_name = "FILE")]
    runtime_config_file: Option<PathBuf>,
    /// JSON object of strings with values for application variables. Environment variables
    /// SPIN_VARIABLE_<NAME> go before it, the manifest's defaults come after it.
    #[arg(long, value_name = "FILE")]
    variables_file: Option<PathBuf>,
    /// Environment variable for every component: NAME=VALUE, or NAME alone to pass on the value it
    /// has here.
    #[arg(long, value_name = "NAME", value_parser = parse_environment)]
    env: Vec<(String, String)>,
    /// Stop, as on SIGTERM, when standard input ends. A parent that holds the other end of a pipe
    /// takes this process with it, however the parent ends.
    #[arg(long)]
    stop_with_stdin: bool,
}

fn parse_environment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => {
            let value = std::env::var(text).map_err(|error| error.to_string())?;
            Ok((text.to_owned(), value))
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let manifest = Manifest::load(&arguments.manifest)
        .map_err(|error| format!("{}: {error}", arguments.manifest.display()))?;
    let variables = match &arguments.variables_file {
        Some(path) => read_variables(path)?,
        None => BTreeMap::new(),
    };
    let runtime_config = match &arguments.runtime_config_file {
        Some(path) => {
            RuntimeConfig::load(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => RuntimeConfig::default(),
    };
    let name = manifest.application.clone();
    let application = Application::load(
        manifest,
        Settings {
            state_folder: arguments.state_dir,
            key_value_store: runtime_config.key_value_store,
            variables,
            environment: arguments.env,
        },
    )?;
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| format!("{}: {error}", arguments.listen))?;
    let address = listener.local_addr()?;
    let shutdown = stop_on_signal()?;
    if arguments.stop_with_stdin {
        stop_on_end_of_stdin(shutdown.clone());
    }
    tracing::info!(%address, "serving {name}");
    {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "listening on http://{address}")?;
        stdout.flush()?;
    }
    server::serve(listener, application, shutdown).await;
    tracing::info!("stopped");
    Ok(())
}

/// The error names the file and the place, never a value: these are secrets.
fn read_variables(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| {
        format!(
            "{}: not a JSON object of strings (line {}, column {})",
            path.display(),
            error.line(),
            error.column()
        )
    })
}

/// Cancelled by Ctrl-C or SIGTERM.
fn stop_on_signal() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.cancel();
    });
    Ok(stop)
}

fn stop_on_end_of_stdin(stop: CancellationToken) {
    // A thread of its own: the runtime would wait for the read before it ends.
    std::thread::spawn(move || {
        let mut ignored = [0; 256];
        while matches!(std::io::stdin().read(&mut ignored), Ok(1..)) {}
        stop.cancel();
    });
}
