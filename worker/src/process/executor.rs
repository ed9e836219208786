//! The worker's side of a process that runs an operation.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, OptionFuture};
use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::Dispatch;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::FLAG;
use super::messages::{FromOperation, Order, ToOperation};
use crate::cli::LogFormat;
use crate::config::SECRET_VARIABLE;
use crate::execute::Execute;
use crate::memory;
use crate::operations;
use crate::operations::supervisor::Supervisor;
use crate::progress::Progress;
use crate::storage::StorageOptions;

/// How long an operation may take to hear that it has to stop: one that computes hears nothing.
const HEAR: Duration = Duration::from_secs(5);
/// How long it may take then to remove what it has written.
const STOP: Duration = Duration::from_secs(45);
/// How long a process may take to end after its last line.
const EXIT: Duration = Duration::from_secs(5);
/// How often its memory is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Runs each operation in a process of its own.
#[derive(Clone, Debug)]
pub struct ProcessExecutor {
    /// The executable: the worker's own.
    pub program: PathBuf,
    /// The options of the stores that the tables lie in.
    pub storage: StorageOptions,
    /// How far operations may go.
    pub limits: operations::Limits,
    /// How much memory one of them may use, in bytes.
    pub task_memory: u64,
    /// How their log lines look.
    pub log_format: LogFormat,
}

impl Execute for ProcessExecutor {
    fn execute(
        &self,
        dispatch: &Dispatch,
        progress: Progress,
        supervisor: Arc<dyn Supervisor>,
    ) -> BoxFuture<'static, Result<Value, TaskError>> {
        let order = Order {
            dispatch: dispatch.clone(),
            storage_options: self.storage.for_location(&dispatch.table.location),
            limits: self.limits.clone(),
            log_format: self.log_format,
            is_canceled: supervisor.is_canceled(),
        };
        let executor = self.clone();
        async move {
            let mut operation = Operation::start(&executor)?;
            operation.say(&ToOperation::Run(Box::new(order))).await;
            operation.see_through(&progress, &*supervisor).await
        }
        .boxed()
    }
}

/// A process that runs an operation. It is killed when this is dropped.
struct Operation {
    child: Child,
    input: ChildStdin,
    task_memory: u64,
}

impl Operation {
    fn start(executor: &ProcessExecutor) -> Result<Self, TaskError> {
        let started = Command::new(&executor.program)
            .arg0("lance-worker")
            .arg(FLAG)
            .env_remove(SECRET_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for the worker, which then tells its operations.
            .process_group(0)
            .spawn();
        let mut child = started.map_err(|error| {
            tracing::error!(%error, program = %executor.program.display(), "can't start");
            unavailable("The worker could not start a process for the operation.".to_owned())
        })?;
        let input = child.stdin.take();
        Ok(Self {
            input: input.ok_or_else(broken_off)?,
            child,
            task_memory: executor.task_memory,
        })
    }

    /// Tells it something. One that is gone does not hear it, which the end of its output says.
    async fn say(&mut self, message: &ToOperation) {
        let Ok(mut line) = serde_json::to_vec(message) else {
            return;
        };
        line.push(b'\n');
        let _ = self.input.write_all(&line).await;
    }

    async fn see_through(
        mut self,
        progress: &Progress,
        supervisor: &dyn Supervisor,
    ) -> Result<Value, TaskError> {
        let output = self.child.stdout.take().ok_or_else(broken_off)?;
        let mut lines = BufReader::new(output).lines();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answer: OptionFuture<BoxFuture<'_, ToOperation>> = None.into();
        let mut stopped: OptionFuture<_> = Some(supervisor.stopped()).into();
        let mut kill_at = None;
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => match serde_json::from_str(&line) {
                        Ok(FromOperation::Progress(report)) => {
                            progress.report(report.percent, report.message);
                        }
                        Ok(FromOperation::Stopping) => kill_at = Some(Instant::now() + STOP),
                        Ok(FromOperation::RunsWith(params)) => supervisor.runs_with(*params),
                        Ok(FromOperation::Measure(measure)) => supervisor.measure(measure),
                        Ok(FromOperation::Confirm) => {
                            let asked = async move {
                                ToOperation::Confirmed(supervisor.confirm().await)
                            };
                            answer = Some(asked.boxed()).into();
                        }
                        Ok(FromOperation::Reserve(bytes)) => {
                            let asked = async move {
                                supervisor.reserve(bytes).await;
                                ToOperation::Reserved
                            };
                            answer = Some(asked.boxed()).into();
                        }
                        Ok(FromOperation::End(outcome)) => {
                            // Killed, if it does not end by itself.
                            let _ = timeout(EXIT, self.child.wait()).await;
                            return outcome;
                        }
                        // Some library's.
                        Err(_) => tracing::debug!(line, "an operation said"),
                    },
                    Ok(None) | Err(_) => return Err(self.died().await),
                },
                Some(told) = &mut answer => {
                    answer = None.into();
                    self.say(&told).await;
                }
                Some(why) = &mut stopped => {
                    stopped = None.into();
                    kill_at = Some(Instant::now() + HEAR);
                    self.say(&ToOperation::Stop(why)).await;
                }
                () = sleep_until(kill_at.unwrap_or_else(Instant::now)), if kill_at.is_some() => {
                    tracing::warn!("the operation does not stop; it is killed");
                    self.kill().await;
                    return Err(unavailable("The operation was told to stop.".to_owned()));
                }
                _ = looks.tick() => {
                    if let Some(used) = self.child.id().and_then(memory::of_process)
                        && used > self.task_memory
                    {
                        tracing::warn!(used, limit = self.task_memory, "killed for its memory");
                        self.kill().await;
                        return Err(over_memory(self.task_memory));
                    }
                }
            }
        }
    }

    async fn kill(&mut self) {
        if let Err(error) = self.child.kill().await {
            tracing::error!(%error, "an operation can't be killed");
        }
    }

    /// Why a process ended without a last line.
    async fn died(&mut self) -> TaskError {
        let Ok(Ok(status)) = timeout(EXIT, self.child.wait()).await else {
            return broken_off();
        };
        tracing::error!(%status, "an operation's process ended before its time");
        match signal(status) {
            // What the system kills when memory runs out.
            Some(9) => unavailable(
                "The operation's process was killed, as systems do that run out of memory: give the \
                 worker more, or lower its memory_budget, task_memory or max_concurrent_tasks."
                    .to_owned(),
            ),
            _ => broken_off(),
        }
    }
}

fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

fn over_memory(limit: u64) -> TaskError {
    unavailable(format!(
        "The task reached the worker's limit of {} MiB of memory for a task and was stopped: give it a \
         smaller task, or the worker a higher task_memory.",
        limit >> 20
    ))
}

fn unavailable(detail: String) -> TaskError {
    TaskError::new(ErrorName::ServiceUnavailable, detail)
}

fn broken_off() -> TaskError {
    TaskError::new(
        ErrorName::InternalError,
        "The operation broke off unexpectedly; the worker's log has more.",
    )
}
