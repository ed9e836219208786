//! Tasks as workers see them: attempts, progress, ends, and what waits to be taken up.

use lance_maintenance_api::task::{Progress, TaskStatus};
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{
    Claim, Claimed, Dispatch, Finish, Heartbeat, LEASE_SECONDS, MAX_ATTEMPTS, Outcome, Report,
    TakeUp, TaskAddress,
};

use crate::catalog::{Purges, is_dropped};
use crate::fence::ABANDONED_MICROS;
use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::outbox::Outbox;
use crate::tasks::{End, Run, SubmittedTask, Task, Tasks};
use crate::turn::{self, Holder};
use crate::{fence, keys};

/// The worker of an attempt that nobody makes. No worker has an empty name.
const NOBODY: &str = "";

/// How often all keys are looked through, in microseconds, while no worker starts. A task that was
/// handed to a worker directly has no note: if that worker never comes back, nobody else would learn
/// of it.
const LOOK_MICROS: i64 = 600_000_000;

/// What became of the end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It was written just now.
    Written,
    /// It was written before.
    WrittenBefore,
    /// Somebody else is about to write it, or died before.
    Underway,
}

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
    /// asks twice, once it is the turn of its table.
    pub fn claim(&self, claim: &Claim, now: i64) -> Result<Claimed, ApiError> {
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
        if is_dropped(self.store, &claim.task.table_id)? {
            let error = TaskError::new(ErrorName::TableNotFound, "The table has been dropped.");
            return match self.end(&tasks, &task, now, Outcome::Failed(error))? {
                Ending::Underway => Err(unsettled()),
                _ => Err(lost("The table has been dropped.")),
            };
        }
        let granted = task
            .last_run()
            .is_some_and(|(attempt, _)| attempt >= claim.attempt);
        let is_over = |holder: &Holder| self.is_over(&tasks, holder, now);
        if !granted && !turn::take(self.store, claim, &task, now, is_over)? {
            return Ok(Claimed { wait: true });
        }
        self.grant(&tasks, &task, claim, now)?;
        Ok(Claimed::default())
    }

    /// Grants an attempt whose turn it is.
    fn grant(
        &self,
        tasks: &Tasks<'_, S>,
        task: &Task,
        claim: &Claim,
        now: i64,
    ) -> Result<(), ApiError> {
        let key = tasks.key(&claim.task.task_id);
        let fence = keys::task_claim_fence(&key, claim.attempt);
        let started = |worker_id: &str| {
            let run = Run {
                worker_id: worker_id.to_owned(),
                started_at: now,
            };
            set_json(self.store, &keys::task_run(&key, claim.attempt), &run)
        };
        if fence::take(self.store, &fence)? {
            started(&claim.worker_id)?;
            // Until then the holder of the attempt before, silent for long, could still end the task.
            if self.store.get(&keys::task_end(&key))?.is_some() {
                return Err(lost("The task has ended."));
            }
            return Ok(());
        }
        if task
            .last_run()
            .is_some_and(|(last, _)| last >= claim.attempt)
        {
            return self.holds(task, claim);
        }
        if !fence::is_abandoned(self.store, &fence, now)? {
            return Err(unsettled());
        }
        // Nobody's attempt: like any whose worker is silent, it is lost, and the next is offered.
        Outbox::tasks(self.store).note(&claim.task)?;
        started(NOBODY)?;
        Err(lost(
            "The attempt was granted to somebody who never learned of it.",
        ))
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
        match self.end(&tasks, &task, now, finish.outcome)? {
            Ending::Written => Ok(()),
            Ending::WrittenBefore => Err(lost("The task has ended.")),
            Ending::Underway => Err(unsettled()),
        }
    }

    /// Notes that a worker lives, and lists what it should take up.
    pub fn heartbeat(&self, heartbeat: &Heartbeat, now: i64) -> Result<TakeUp, ApiError> {
        set_json(self.store, &keys::worker(&heartbeat.worker_id), &now)?;
        let outbox = Outbox::tasks(self.store);
        let purges = Purges::new(self.store);
        if heartbeat.starting || self.is_look_due(now)? {
            // Before the look, which may take long: the next heartbeat must not begin another.
            set_json(self.store, keys::LOOKED, &now)?;
            let keys = self.store.keys()?;
            self.reconcile(&outbox, &keys)?;
            purges.reconcile(&keys)?;
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
                        && (is_forgotten(heartbeat, attempt, run, now)
                            || self.is_silent(run, now)?);
                    (attempt + 1, lost)
                }
            };
            if !waits {
                // Claimed by somebody who lives keeps its note until its end; ended drops it.
                return Ok(task.status() == TaskStatus::Running);
            }
            if attempt > MAX_ATTEMPTS {
                return Ok(self.give_up(&task, now)? == Ending::Underway);
            }
            if tasks.len() < heartbeat.room {
                tasks.push(task.dispatch(attempt));
            }
            Ok(true)
        })?;
        Ok(TakeUp {
            tasks,
            purges: purges.waiting(now)?,
        })
    }

    /// Leaves a note that a task waits for a worker.
    pub fn note(&self, dispatch: &Dispatch) -> Result<(), StoreError> {
        Outbox::tasks(self.store).note(&dispatch.address())
    }

    /// Whether it is long ago that all keys were looked through.
    fn is_look_due(&self, now: i64) -> Result<bool, StoreError> {
        match get_json::<i64>(self.store, keys::LOOKED)? {
            Some(looked) => Ok(now - looked > LOOK_MICROS),
            // The time counts from now on.
            None => {
                set_json(self.store, keys::LOOKED, &now)?;
                Ok(false)
            }
        }
    }

    /// Looks through every key for tasks that have not ended, and notes them. The last resort
    /// after a loss: it is done when a worker starts and rarely after.
    fn reconcile(
        &self,
        outbox: &Outbox<'_, S, TaskAddress>,
        keys: &[String],
    ) -> Result<(), ApiError> {
        let noted = outbox.noted()?;
        let mut found: Vec<SubmittedTask> = Vec::new();
        for key in keys.iter().filter(|key| keys::is_task(key)) {
            match get_json::<SubmittedTask>(self.store, key) {
                Ok(task) => found.extend(task),
                // Not this version's to run; the others must not wait for it.
                Err(StoreError::Corrupt(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        found.sort_by_key(|task| task.created_at);
        for submitted in found {
            let address = TaskAddress {
                table_id: submitted.table.id,
                task_id: submitted.task_id,
            };
            // Deleted meanwhile, it needs nothing.
            let Some(task) = self.find(&address)? else {
                continue;
            };
            let open = matches!(task.status(), TaskStatus::Submitted | TaskStatus::Running);
            if open && !noted.contains(&address) {
                outbox.note(&address)?;
            }
        }
        Ok(())
    }

    /// The task at an address, if there is one and this version can read it.
    fn find(&self, address: &TaskAddress) -> Result<Option<Task>, ApiError> {
        match Tasks::new(self.store, &address.table_id).read(&address.task_id) {
            Ok(task) => Ok(task),
            Err(StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the turn of an attempt is over.
    fn is_over(&self, tasks: &Tasks<'_, S>, holder: &Holder, now: i64) -> Result<bool, StoreError> {
        let task = match tasks.read(&holder.task_id) {
            Ok(Some(task)) => task,
            // Deleted, so ended; or another version's, which runs it no longer.
            Ok(None) | Err(StoreError::Corrupt(_)) => return Ok(true),
            Err(error) => return Err(error),
        };
        if task.status() != TaskStatus::Running {
            return Ok(task.end.is_some() || turn::is_unused(holder, now));
        }
        match task.last_run() {
            Some((attempt, run)) if attempt == holder.attempt => self.is_silent(run, now),
            _ => Ok(turn::is_unused(holder, now)),
        }
    }

    /// Whether a worker has not been heard of for longer than the lease. Its claim counts: one that
    /// started again may claim before its first heartbeat is answered, and the last one from before
    /// is old.
    fn is_silent(&self, run: &Run, now: i64) -> Result<bool, StoreError> {
        let heard: Option<i64> = get_json(self.store, &keys::worker(&run.worker_id))?;
        let heard = heard.map_or(run.started_at, |heard| heard.max(run.started_at));
        Ok(now - heard > LEASE_SECONDS as i64 * 1_000_000)
    }

    fn give_up(&self, task: &Task, now: i64) -> Result<Ending, ApiError> {
        let error = TaskError::new(
            ErrorName::InternalError,
            format!(
                "The worker was lost in each of {MAX_ATTEMPTS} attempts. If the task needs more \
                 memory than the worker has, give it more, or a smaller task."
            ),
        );
        let tasks = Tasks::new(self.store, &task.submitted.table.id);
        self.end(&tasks, task, now, Outcome::Failed(error))
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

    /// Writes the task's end if nobody has.
    fn end(
        &self,
        tasks: &Tasks<'_, S>,
        task: &Task,
        now: i64,
        outcome: Outcome,
    ) -> Result<Ending, ApiError> {
        let key = tasks.key(&task.submitted.task_id);
        // Of those who find an owner dead one goes on, too: they may not agree on the end.
        for fence in keys::task_end_fences(&key) {
            if fence::take(self.store, &fence)? {
                break;
            }
            if get_json::<End>(self.store, &keys::task_end(&key))?.is_some() {
                return Ok(Ending::WrittenBefore);
            }
            if !fence::is_abandoned(self.store, &fence, now)? {
                return Ok(Ending::Underway);
            }
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
        Ok(Ending::Written)
    }
}

/// Whether a worker that sends this heartbeat no longer has the attempt that it was granted: it was
/// restarted. A heartbeat from before the grant that comes late looks the same. What it offers then
/// the worker has in hand and leaves, but after the last attempt it would end a task that runs.
fn is_forgotten(heartbeat: &Heartbeat, attempt: u32, run: &Run, now: i64) -> bool {
    run.worker_id == heartbeat.worker_id
        && (attempt < MAX_ATTEMPTS || now - run.started_at > ABANDONED_MICROS)
}

fn same_outcome(end: &End, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Completed(result) => end.error.is_none() && end.result == *result,
        Outcome::Failed(error) => end.error.as_ref() == Some(error),
    }
}

/// A worker asks again after this.
fn unsettled() -> ApiError {
    ApiError::new(
        ErrorName::ServiceUnavailable,
        "Another request about this task was not finished yet; try again.",
    )
}

fn lost(why: &str) -> ApiError {
    ApiError::new(ErrorName::ConcurrentModification, why)
}
