//! Tasks as workers see them: attempts, progress, ends, and what waits to be taken up.

use lance_maintenance_api::task::{Progress, TaskStatus};
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{
    Claim, Dispatch, Finish, Heartbeat, LEASE_SECONDS, MAX_ATTEMPTS, Outcome, Report, TakeUp,
};

use crate::key_value::{KeyValue, StoreError, get_json, set_json, take_fence};
use crate::keys;
use crate::outbox::Outbox;
use crate::tasks::{End, Run, SubmittedTask, Task, Tasks};

/// What workers ask of the store. All times are in microseconds since the Unix epoch.
pub struct Execution<'a, S> {
    store: &'a S,
}

impl<'a, S: KeyValue> Execution<'a, S> {
    /// The execution side of a store.
    pub fn new(store: &'a S) -> Self {
        Self { store }
    }

    /// Grants an attempt to the first worker that claims it, and again to the same worker if it
    /// asks twice.
    pub fn claim(&self, claim: &Claim, now: i64) -> Result<(), ApiError> {
        let tasks = Tasks::new(self.store, &claim.task.table_id);
        let task = tasks.get(&claim.task.task_id)?;
        if !matches!(task.status(), TaskStatus::Submitted | TaskStatus::Running) {
            return Err(lost("The task has ended."));
        }
        if !(1..=MAX_ATTEMPTS).contains(&claim.attempt) {
            return Err(ApiError::invalid(format!(
                "Attempts are 1 to {MAX_ATTEMPTS}."
            )));
        }
        if get_json::<i64>(self.store, &keys::dropped(&claim.task.table_id))?.is_some() {
            let error = TaskError::new(ErrorName::TableNotFound, "The table has been dropped.");
            self.end(&tasks, &task, now, Outcome::Failed(error))?;
            return Err(lost("The table has been dropped."));
        }
        let key = tasks.key(&claim.task.task_id);
        if take_fence(self.store, &keys::task_claim_fence(&key, claim.attempt))? {
            let run = Run {
                worker_id: claim.worker_id.clone(),
                started_at: now,
            };
            set_json(self.store, &keys::task_run(&key, claim.attempt), &run)?;
            return Ok(());
        }
        self.holds(&task, claim)
    }

    /// Keeps how far an attempt is, for its holder.
    pub fn progress(&self, report: &Report) -> Result<(), ApiError> {
        let tasks = Tasks::new(self.store, &report.claim.task.table_id);
        let task = tasks.get(&report.claim.task.task_id)?;
        self.holds(&task, &report.claim)?;
        let progress = Progress {
            percent: report.percent.min(100),
            message: report.message.clone(),
        };
        let key = keys::task_progress(&tasks.key(&report.claim.task.task_id));
        set_json(self.store, &key, &progress)?;
        Ok(())
    }

    /// Ends a task, once, for the holder of its last attempt; the same end again is no error.
    pub fn finish(&self, finish: Finish, now: i64) -> Result<(), ApiError> {
        let tasks = Tasks::new(self.store, &finish.claim.task.table_id);
        let task = tasks.get(&finish.claim.task.task_id)?;
        if let Some(end) = &task.end {
            return if same_outcome(end, &finish.outcome) {
                Ok(())
            } else {
                Err(lost("The task has ended otherwise."))
            };
        }
        self.holds(&task, &finish.claim)?;
        if self.end(&tasks, &task, now, finish.outcome)? {
            Ok(())
        } else {
            Err(lost("The task has ended."))
        }
    }

    /// Notes that a worker lives, and lists what it should take up.
    pub fn heartbeat(&self, heartbeat: &Heartbeat, now: i64) -> Result<TakeUp, ApiError> {
        set_json(self.store, &keys::worker(&heartbeat.worker_id), &now)?;
        let outbox = Outbox::new(self.store);
        if heartbeat.starting {
            self.reconcile(&outbox)?;
        }
        let mut tasks = Vec::new();
        outbox.drain(now, |address| {
            let Some(task) = self.find(address)? else {
                return Ok(false);
            };
            if heartbeat.in_hand.contains(address) {
                // Noted until it is claimed: an answer to a heartbeat may be lost.
                return Ok(true);
            }
            let (attempt, waits) = match task.last_run() {
                None => (1, task.status() == TaskStatus::Submitted),
                Some((attempt, run)) => {
                    let lost = task.status() == TaskStatus::Running
                        && (run.worker_id == heartbeat.worker_id || self.is_silent(run, now)?);
                    (attempt + 1, lost)
                }
            };
            if !waits {
                // Claimed by somebody who lives keeps its note until its end; ended drops it.
                return Ok(task.status() == TaskStatus::Running);
            }
            if attempt > MAX_ATTEMPTS {
                self.give_up(&task, now)?;
                return Ok(false);
            }
            if tasks.len() < heartbeat.room {
                tasks.push(task.dispatch(attempt));
            }
            Ok(true)
        })?;
        Ok(TakeUp { tasks })
    }

    /// Leaves a note that a task waits for a worker.
    pub fn note(&self, dispatch: &Dispatch) -> Result<(), StoreError> {
        Outbox::new(self.store).note(&dispatch.address())
    }

    /// Looks through every key for tasks that have not ended, and notes them. The last resort
    /// after a loss: a worker asks for it when it starts and rarely after.
    fn reconcile(&self, outbox: &Outbox<'_, S>) -> Result<(), ApiError> {
        let noted = outbox.noted()?;
        let mut found: Vec<SubmittedTask> = Vec::new();
        for key in self.store.keys()?.iter().filter(|key| keys::is_task(key)) {
            found.extend(get_json::<SubmittedTask>(self.store, key)?);
        }
        found.sort_by_key(|task| task.created_at);
        for submitted in found {
            let tasks = Tasks::new(self.store, &submitted.table.id);
            let task = tasks.get(&submitted.task_id)?;
            let address = task.dispatch(1).address();
            let open = matches!(task.status(), TaskStatus::Submitted | TaskStatus::Running);
            if open && !noted.contains(&address) {
                outbox.note(&address)?;
            }
        }
        Ok(())
    }

    fn find(
        &self,
        address: &lance_maintenance_dispatch::TaskAddress,
    ) -> Result<Option<Task>, ApiError> {
        match Tasks::new(self.store, &address.table_id).get(&address.task_id) {
            Ok(task) => Ok(Some(task)),
            Err(error) if error.name == ErrorName::TaskNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a worker has not been heard of for longer than the lease.
    fn is_silent(&self, run: &Run, now: i64) -> Result<bool, StoreError> {
        let heard: i64 =
            get_json(self.store, &keys::worker(&run.worker_id))?.unwrap_or(run.started_at);
        Ok(now - heard > LEASE_SECONDS as i64 * 1_000_000)
    }

    fn give_up(&self, task: &Task, now: i64) -> Result<(), ApiError> {
        let error = TaskError::new(
            ErrorName::InternalError,
            format!(
                "The worker was lost in each of {MAX_ATTEMPTS} attempts. If the task needs more \
                 memory than the worker has, give it more, or a smaller task."
            ),
        );
        let tasks = Tasks::new(self.store, &task.submitted.table.id);
        self.end(&tasks, task, now, Outcome::Failed(error))?;
        Ok(())
    }

    /// Refuses unless the claim is the task's last attempt and its worker's.
    fn holds(&self, task: &Task, claim: &Claim) -> Result<(), ApiError> {
        match task.last_run() {
            Some((attempt, run))
                if attempt == claim.attempt
                    && run.worker_id == claim.worker_id
                    && task.end.is_none() =>
            {
                Ok(())
            }
            _ => Err(lost("The attempt is not this worker's, or no longer.")),
        }
    }

    /// Writes the task's end if nobody has; whether it was this call.
    fn end(
        &self,
        tasks: &Tasks<'_, S>,
        task: &Task,
        now: i64,
        outcome: Outcome,
    ) -> Result<bool, ApiError> {
        let key = tasks.key(&task.submitted.task_id);
        if !take_fence(self.store, &keys::task_end_fence(&key))? {
            return Ok(false);
        }
        let end = match outcome {
            Outcome::Completed(result) => End {
                completed_at: now,
                result,
                error: None,
            },
            Outcome::Failed(error) => End {
                completed_at: now,
                result: Default::default(),
                error: Some(error),
            },
        };
        set_json(self.store, &keys::task_end(&key), &end)?;
        Ok(true)
    }
}

fn same_outcome(end: &End, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Completed(result) => end.error.is_none() && end.result == *result,
        Outcome::Failed(error) => end.error.as_ref() == Some(error),
    }
}

fn lost(why: &str) -> ApiError {
    ApiError::new(ErrorName::ConcurrentModification, why)
}
