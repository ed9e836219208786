//! The whole worker: server, runner and heartbeat around one intake.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use crate::application::{Application, Patience};
use crate::config::Config;
use crate::execute::Execute;
use crate::heartbeat::{self, Contact};
use crate::intake::Intake;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::process::executor::ProcessExecutor;
use crate::purges::Purges;
use crate::runner::Runner;
use crate::server::{self, Desk};
use crate::tables::Tables;

/// How long tasks that were told to stop may take to, before their operations are killed.
const HALT: Duration = Duration::from_secs(12);

/// Why a worker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not this machine's.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// It is not known where the worker's own executable is.
    #[error("can't find the worker's own executable: {0}")]
    Executable(io::Error),
    /// The HTTP client can't be set up.
    #[error("can't set up the HTTP client: {0}")]
    Client(#[from] reqwest::Error),
}

/// A worker that runs.
#[derive(Debug)]
pub struct Service {
    address: SocketAddr,
    worker_id: String,
    grace: Duration,
    /// The places for writes, and how many there are.
    writes: (Arc<Semaphore>, usize),
    intake: Arc<Intake>,
    application: Application,
    /// Tells what runs to stop and to be handed back.
    halt: watch::Sender<bool>,
    stop_server: oneshot::Sender<()>,
    server: JoinHandle<io::Result<()>>,
    runner: JoinHandle<()>,
    heartbeat: JoinHandle<()>,
}

impl Service {
    /// Starts a worker that runs tasks in processes of its own executable, and what it does to tables at
    /// once on the runtime `operations`.
    pub async fn start(config: Config, operations: Handle) -> Result<Self, StartError> {
        let executor = Arc::new(ProcessExecutor {
            program: own_executable()?,
            storage: config.storage.clone(),
            limits: config.limits.operation(),
            task_memory: config.limits.task_memory(),
            log_format: config.log_format,
        });
        Self::start_with(config, executor, operations).await
    }

    /// Starts a worker that does its work with `executor`.
    pub async fn start_with(
        config: Config,
        executor: Arc<dyn Execute>,
        operations: Handle,
    ) -> Result<Self, StartError> {
        let listen = |source| StartError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let worker_id = config
            .worker_id
            .unwrap_or_else(|| default_worker_id(address));
        let application = Application::new(
            config.application_url,
            config.secret.clone(),
            worker_id.clone(),
            Patience::default(),
        )?;
        let intake = Intake::new(config.limits.max_queued_tasks.get());
        let contact = Contact::default();
        let metrics = Metrics::new();
        let memory = MemoryBudget::new(config.limits.memory_budget.as_u64());
        let halt = watch::Sender::new(false);
        let tables = Tables::new(config.storage, config.limits.operation());
        let purges = Purges::new(
            tables.clone(),
            Arc::clone(&intake),
            application.clone(),
            operations.clone(),
        );
        let max_concurrent = config.limits.max_concurrent_tasks.get();
        let writes = Arc::new(Semaphore::new(max_concurrent));
        let router = server::router(Desk {
            intake: Arc::clone(&intake),
            contact: contact.clone(),
            tables,
            purges: Arc::clone(&purges),
            writes: Arc::clone(&writes),
            looks: Arc::new(Semaphore::new(max_concurrent)),
            operations: operations.clone(),
            secret: config.secret,
            metrics: metrics.clone(),
            memory: memory.clone(),
        });
        let (stop_server, stopped) = oneshot::channel();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async {
            // Told to stop, or dropped: both mean to stop.
            let _ = stopped.await;
        });
        let runner = Runner {
            intake: Arc::clone(&intake),
            application: application.clone(),
            executor,
            operations,
            max_concurrent,
            task_timeout: config.limits.task_timeout,
            memory,
            metrics: metrics.clone(),
            halt: halt.subscribe(),
        };
        Ok(Self {
            address,
            worker_id,
            grace: config.shutdown_grace,
            writes: (writes, max_concurrent),
            stop_server,
            server: tokio::spawn(serving.into_future()),
            runner: tokio::spawn(runner.run()),
            heartbeat: tokio::spawn(heartbeat::run(
                application.clone(),
                Arc::clone(&intake),
                purges,
                contact,
                metrics,
            )),
            intake,
            application,
            halt,
        })
    }

    /// Where the worker listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The worker's name.
    pub fn worker_id(&self) -> &str {
        &self.worker_id
    }

    /// Refuses new tasks and writes, gives those that run the time to end, hands back what is left,
    /// and stops. Heartbeats go on in the meantime, so that nobody takes up what still runs here.
    pub async fn stop(mut self) {
        let in_hand = self.intake.close();
        let until = Instant::now() + self.grace;
        if timeout_at(until, &mut self.runner).await.is_err() {
            tracing::warn!("tasks that still run are handed back");
            self.halt.send_replace(true);
            if timeout(HALT, &mut self.runner).await.is_err() {
                self.runner.abort();
                // Aborted, it ends; only then are its operations gone.
                let _ = self.runner.await;
            }
        }
        let (writes, places) = self.writes;
        let places = u32::try_from(places).unwrap_or(u32::MAX);
        if timeout_at(until, writes.acquire_many(places))
            .await
            .is_err()
        {
            tracing::warn!("tables that are still being written are left as they are");
        }
        self.heartbeat.abort();
        if !in_hand.is_empty()
            && let Err(error) = self.application.leave(in_hand).await
        {
            tracing::warn!(%error, "not handed back: others take it up when the lease is over");
        }
        // A receiver that is gone says that the server has ended already.
        let _ = self.stop_server.send(());
        // A client that keeps its connection busy is not waited for.
        if timeout(Duration::from_secs(1), &mut self.server)
            .await
            .is_err()
        {
            self.server.abort();
        }
    }
}

/// The executable that runs, though another may have been put in its place since: the two would not
/// understand each other.
fn own_executable() -> Result<PathBuf, StartError> {
    let running = Path::new("/proc/self/exe");
    match running.exists() {
        true => Ok(running.to_owned()),
        false => std::env::current_exe().map_err(StartError::Executable),
    }
}

/// The host's name and the port: two workers of one host differ by their ports.
fn default_worker_id(address: SocketAddr) -> String {
    let host = hostname::get()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_else(|_| "worker".to_owned());
    format!("{host}-{}", address.port())
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
