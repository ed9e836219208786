//! `lance-worker`: runs maintenance tasks on Lance tables.

use std::error::Error;
use std::io::{Read, Write};
use std::process::ExitCode;

use clap::Parser;
use lance_worker::cli::Cli;
use lance_worker::config::Config;
use lance_worker::logging;
use lance_worker::process;
use lance_worker::service::Service;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|flag| flag == process::FLAG)
    {
        return process::operation::run();
    }
    let cli = Cli::parse();
    logging::start(cli.log_format);
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("lance-worker can't run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Box<dyn Error>> {
    let config = Config::load(cli, |name| std::env::var(name).ok())?;
    let operations = Builder::new_multi_thread()
        .thread_name("operation")
        .enable_all()
        .build()?;
    let service = Builder::new_multi_thread()
        .thread_name("service")
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = service.block_on(serve(
        config,
        operations.handle().clone(),
        cli.stop_with_stdin,
    ));
    // An operation that computes can't be interrupted, and is not waited for.
    operations.shutdown_background();
    service.shutdown_background();
    served
}

async fn serve(
    config: Config,
    operations: Handle,
    stop_with_stdin: bool,
) -> Result<(), Box<dyn Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let service = Service::start(config, operations).await?;
    let address = service.address();
    // Whoever started the worker may have closed the pipe: no reason to stop.
    let _ = writeln!(
        std::io::stdout(),
        "lance-worker listening on http://{address}"
    );
    tracing::info!(%address, worker_id = service.worker_id(), "listening");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = end_of_stdin(), if stop_with_stdin => {}
    }
    tracing::info!("stopping");
    service.stop().await;
    Ok(())
}

async fn end_of_stdin() {
    let (ended, end) = oneshot::channel();
    // A thread of its own: a runtime would wait for the read before it ends.
    std::thread::spawn(move || {
        let mut ignored = [0; 256];
        while matches!(std::io::stdin().read(&mut ignored), Ok(1..)) {}
        // Nobody listens any more when a signal came first.
        let _ = ended.send(());
    });
    // The sender goes only when it has sent.
    let _ = end.await;
}
