//! Takes tasks out of the queue and sees each of them through: claim, run, report, finish.
//!
//! Operations run in processes of their own: see [`crate::process`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{Claim, Dispatch, MOST_ATTEMPTS, Outcome};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::application::{Application, CallError};
use crate::execute::Execute;
use crate::intake::{Held, Intake};
use crate::logging::task_span;
use crate::memory::MemoryBudget;
use crate::metrics::{Ended, Metrics};
use crate::operations::supervisor::Stop;
use crate::progress::{Progress, Report};
use crate::supervision::Supervision;

/// The shortest time between two reports of progress of one task.
const REPORT_PAUSE: Duration = Duration::from_secs(1);
/// How long an operation that was told to stop may take to do so, before its table is given to the
/// next task all the same.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same while the worker stops: whoever told it to does not wait for ever.
const HALT: Duration = Duration::from_secs(10);
/// How long the answer to a claim is waited for while the worker stops.
const ANSWER: Duration = Duration::from_secs(2);

/// What runs tasks.
#[derive(Clone)]
pub struct Runner {
    /// Where tasks come from.
    pub intake: Arc<Intake>,
    /// Whom they are claimed from and reported to.
    pub application: Application,
    /// What does the work.
    pub executor: Arc<dyn Execute>,
    /// The runtime on which the work is done.
    pub operations: Handle,
    /// How many tasks run at the same time.
    pub max_concurrent: usize,
    /// How long a task may run.
    pub task_timeout: Duration,
    /// The memory that operations share.
    pub memory: MemoryBudget,
    /// Where it is counted how they end.
    pub metrics: Metrics,
    /// Whether what runs has to stop and be handed back.
    pub halt: watch::Receiver<bool>,
}

/// What came of a claim.
enum Claiming {
    /// The attempt is this worker's to make.
    Granted,
    /// It is, and its task is to be stopped.
    Canceled,
    /// Another worker is at the table.
    Waits,
    /// The attempt is not this worker's, or not any more.
    Lost,
}

impl Runner {
    /// Runs tasks until the intake closes, then waits until those that run have ended. Dropping
    /// the future stops them.
    pub async fn run(self) {
        let places = Arc::new(Semaphore::new(self.max_concurrent));
        let mut attempts = JoinSet::new();
        while let Some((place, held)) = self.next(&places).await {
            let span = task_span(held.dispatch());
            let runner = self.clone();
            let attempt = async move {
                let again = match runner.claim(&held).await {
                    Claiming::Granted => runner.attempt(&held, false).await,
                    Claiming::Canceled => runner.attempt(&held, true).await,
                    Claiming::Lost => None,
                    Claiming::Waits => {
                        // The place is for others meanwhile; the table is busy.
                        drop(place);
                        return runner.wait(held).await;
                    }
                };
                drop((held, place));
                if let Some(next) = again {
                    // Where it is not taken, somebody else comes to it.
                    let _ = runner.intake.offer(next);
                }
            };
            attempts.spawn(attempt.instrument(span));
            while attempts.try_join_next().is_some() {}
        }
        while attempts.join_next().await.is_some() {}
    }

    /// Waits for a place and then a task for it, in this order: so a task that is taken out of the
    /// queue has nothing more to wait for.
    async fn next(&self, places: &Arc<Semaphore>) -> Option<(OwnedSemaphorePermit, Held)> {
        let place = tokio::select! {
            place = Arc::clone(places).acquire_owned() => place.ok()?,
            () = self.intake.closed() => return None,
        };
        Some((place, self.intake.next().await?))
    }

    /// Claims a task.
    async fn claim(&self, held: &Held) -> Claiming {
        let claim = self.application.claim_of(held.dispatch());
        let mut asked = std::pin::pin!(self.application.claim(&claim));
        let claimed = tokio::select! {
            claimed = &mut asked => claimed,
            () = self.intake.closed() => {
                // It is handed back; but not before it is known whether it was granted.
                let _ = timeout(ANSWER, asked).await;
                return Claiming::Lost;
            }
        };
        match claimed {
            Ok(claimed) if claimed.wait => {
                tracing::debug!("waits for another worker's task on the table");
                Claiming::Waits
            }
            Ok(claimed) if claimed.canceled => Claiming::Canceled,
            Ok(_) => Claiming::Granted,
            Err(error) => {
                tracing::info!(%error, "not claimed");
                Claiming::Lost
            }
        }
    }

    /// Puts a task back into the queue, when it is time to claim it again.
    async fn wait(&self, held: Held) {
        tokio::select! {
            () = sleep(self.application.turn_pause()) => held.put_back(),
            () = self.intake.closed() => {}
        }
    }

    /// Makes an attempt. One that was canceled before only finds out what those before it did. Returns the
    /// next attempt, if it is for this worker to make: one that was canceled and can't tell what it did.
    async fn attempt(&self, held: &Held, only_looks: bool) -> Option<Dispatch> {
        let dispatch = held.dispatch();
        let claim = self.application.claim_of(dispatch);
        let started = Instant::now();
        tracing::info!(attempt = dispatch.attempt, canceled = only_looks, "started");
        let progress = Progress::new();
        let supervision = Supervision::new(
            self.application.clone(),
            claim.clone(),
            only_looks,
            progress.subscribe(),
            self.memory.clone(),
            self.metrics.of(dispatch.params.task_type()),
        );
        let outcome = self.operate(dispatch, &claim, progress, &supervision).await;
        let took = started.elapsed();
        let ended = match &outcome {
            Some(Outcome::Completed(_)) => Ended::Completed,
            Some(Outcome::Failed(_)) => Ended::Failed,
            None => Ended::Lost,
        };
        let metrics = self.metrics.of(dispatch.params.task_type());
        metrics.ended(ended, took);
        let Some(outcome) = outcome else {
            tracing::warn!("stopped: the attempt was lost or is handed back");
            let looks_again = supervision.was_canceled() && !supervision.is_lost();
            return (looks_again && dispatch.attempt < MOST_ATTEMPTS).then(|| Dispatch {
                attempt: dispatch.attempt + 1,
                ..dispatch.clone()
            });
        };
        let seconds = took.as_secs_f64();
        match &outcome {
            Outcome::Completed(_) => tracing::info!(seconds, "completed"),
            Outcome::Failed(error) => tracing::warn!(seconds, %error, "failed"),
        }
        let params = supervision.params();
        if let Err(error) = self.application.finish(&claim, outcome, params).await {
            tracing::error!(%error, "the end could not be reported");
        }
        None
    }

    /// Runs the operation to its end, or until its time is over, or the attempt lost or handed back
    /// (none).
    async fn operate(
        &self,
        dispatch: &Dispatch,
        claim: &Claim,
        progress: Progress,
        supervision: &Arc<Supervision>,
    ) -> Option<Outcome> {
        let reports = progress.subscribe();
        let supervisor = Arc::clone(supervision);
        let operation = self.executor.execute(dispatch, progress, supervisor);
        // A set, since it stops its task when it is dropped.
        let mut running = JoinSet::new();
        running.spawn_on(operation.in_current_span(), &self.operations);
        let (stop, why, patience) = tokio::select! {
            ended = running.join_next() => {
                let outcome = outcome(ended, dispatch);
                return (!supervision.is_lost()).then_some(outcome);
            }
            () = sleep(self.task_timeout) => (Stop::Told, Some(self.over_time()), PATIENCE),
            () = self.forward(reports, claim, supervision) => (Stop::Told, None, PATIENCE),
            () = supervision.lost() => (Stop::Told, None, PATIENCE),
            () = self.halted() => (Stop::Told, None, HALT),
            () = self.canceled(dispatch, supervision) => (Stop::Canceled, None, PATIENCE),
        };
        supervision.stop(stop);
        let Ok(ended) = timeout(patience, running.join_next()).await else {
            tracing::error!("the operation does not stop; it is left behind");
            return why.map(Outcome::Failed);
        };
        // It may have ended just then, or have been about to commit.
        match outcome(ended, dispatch) {
            completed @ Outcome::Completed(_) if !supervision.is_lost() => Some(completed),
            // Any other end leaves open whether it has committed, and another attempt has to look.
            Outcome::Failed(error)
                if error.error == ErrorName::Canceled && !supervision.is_lost() =>
            {
                Some(Outcome::Failed(error))
            }
            _ => why.map(Outcome::Failed),
        }
    }

    /// Returns when the task is to be stopped, whoever says so.
    async fn canceled(&self, dispatch: &Dispatch, supervision: &Supervision) {
        tokio::select! {
            () = supervision.canceled() => {}
            () = self.intake.canceled(&dispatch.task_id) => {
                supervision.cancel();
                supervision.canceled().await;
            }
        }
    }

    /// Returns when what runs has to be handed back.
    async fn halted(&self) {
        // An error says that nobody can say so any more.
        if self.halt.clone().wait_for(|halt| *halt).await.is_err() {
            std::future::pending().await
        }
    }

    /// Passes reports on; returns when the attempt is lost.
    async fn forward(
        &self,
        mut reports: watch::Receiver<Report>,
        claim: &Claim,
        supervision: &Supervision,
    ) {
        while reports.changed().await.is_ok() {
            let report = reports.borrow_and_update().clone();
            match self.application.progress(claim, report).await {
                Err(CallError::Lost(_)) => return,
                Err(error) => tracing::debug!(%error, "progress not reported"),
                Ok(claimed) if claimed.canceled => supervision.cancel(),
                Ok(_) => {}
            }
            sleep(REPORT_PAUSE).await;
        }
        // The operation has let go of its progress: it is about to end.
        std::future::pending().await
    }

    fn over_time(&self) -> TaskError {
        let limit = humantime::format_duration(self.task_timeout);
        TaskError::new(
            ErrorName::ServiceUnavailable,
            format!(
                "The task reached the worker's time limit of {limit} and was stopped: the table's \
                 store may be stuck, or the task needs a higher task_timeout."
            ),
        )
    }
}

fn outcome(
    ended: Option<Result<Result<Value, TaskError>, JoinError>>,
    dispatch: &Dispatch,
) -> Outcome {
    let internal =
        |detail: String| Outcome::Failed(TaskError::new(ErrorName::InternalError, detail));
    match ended {
        Some(Ok(Ok(Value::Object(result)))) => Outcome::Completed(result),
        Some(Ok(Ok(_))) => internal("The operation's result is no JSON object.".to_owned()),
        Some(Ok(Err(error))) => Outcome::Failed(error),
        // The panic's text may hold anything: it went to the log, and stays there.
        Some(Err(_)) | None => internal(format!(
            "The operation broke off unexpectedly; the worker's log has more on task {}.",
            dispatch.task_id
        )),
    }
}

#[cfg(test)]
#[path = "runner_canceling_tests.rs"]
mod canceling_tests;
#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
