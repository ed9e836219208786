//! Tasks as workers see them: attempts, progress, ends, and what waits to be taken up.
//!
//! | module | what it holds |
//! |---|---|
//! | `cancel` | what stops a task |
//! | `heartbeat` | what waits for a worker; what nobody is at any more |
//! | `leave` | what a worker hands back that stops in order |

mod cancel;
mod heartbeat;
mod leave;

use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::{Progress, TaskStatus};
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{
    Claim, Claimed, Finish, MOST_ATTEMPTS, Outcome, Report, TaskAddress,
};

use crate::catalog::is_dropped;
use crate::fence::Clock;
use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::names::OWNER_MICROS;
use crate::outbox::Outbox;
use crate::tasks::{End, Run, Task, Tasks};
use crate::turn::{self, Holder, Standing};
use crate::{fence, keys, workers};

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
    /// asks twice in one life, once it is the turn of its table. A task that was canceled before anybody
    /// was granted it ends instead.
    pub fn claim(&self, claim: &Claim, now: impl Fn() -> i64) -> Result<Claimed, ApiError> {
        self.claim_by(claim, &now)
    }

    fn claim_by(&self, claim: &Claim, now: Clock<'_>) -> Result<Claimed, ApiError> {
        let arrived = now();
        let tasks = Tasks::new(self.store, &claim.task.table_id);
        let task = tasks.get(&claim.task.task_id)?;
        if !task.is_open() {
            return Err(lost("The task has ended."));
        }
        if !(1..=MOST_ATTEMPTS).contains(&claim.attempt) {
            return Err(ApiError::invalid(format!(
                "Attempts are 1 to {MOST_ATTEMPTS}."
            )));
        }
        if task.canceled && !task.was_granted() {
            return match self.end_canceled(&tasks, &task, now)? {
                Ending::Underway => Err(unsettled()),
                _ => Err(lost("The task was canceled.")),
            };
        }
        if is_dropped(self.store, &claim.task.table_id)? {
            let error = TaskError::new(ErrorName::TableNotFound, "The table has been dropped.");
            return match self.end(&tasks, &task, now, Outcome::Failed(error), None)? {
                Ending::Underway => Err(unsettled()),
                _ => Err(lost("The table has been dropped.")),
            };
        }
        let granted = task
            .last_run()
            .is_some_and(|(attempt, _)| attempt >= claim.attempt);
        let standing = |holder: &Holder| self.standing(&tasks, holder, now);
        let note = |holder: &Holder| {
            Outbox::tasks(self.store).note(&TaskAddress {
                table_id: claim.task.table_id.clone(),
                task_id: holder.task_id.clone(),
            })
        };
        let mut since = None;
        if !granted {
            since = turn::take(self.store, claim, &task, arrived, now, standing, note)?;
            if since.is_none() {
                return Ok(Claimed {
                    wait: true,
                    canceled: task.canceled,
                });
            }
        }
        let canceled = self.grant(&tasks, &task, claim, since, now)?;
        Ok(Claimed {
            wait: false,
            canceled,
        })
    }

    /// Grants an attempt whose turn it is, since this time if it was not granted before: whether the task
    /// is to be stopped.
    fn grant(
        &self,
        tasks: &Tasks<'_, S>,
        task: &Task,
        claim: &Claim,
        since: Option<i64>,
        now: Clock<'_>,
    ) -> Result<bool, ApiError> {
        let is_granted = |task: &Task| {
            task.last_run()
                .is_some_and(|(last, _)| last >= claim.attempt)
        };
        // Before the fence is asked: where the task has been deleted meanwhile, it would say yes.
        if is_granted(task) {
            return self.claims_again(task, claim);
        }
        let key = tasks.key(&claim.task.task_id);
        let fence = keys::task_claim_fence(&key, claim.attempt);
        let handed_back = match task.last_run() {
            Some((attempt, run)) if attempt < claim.attempt => {
                let standing = workers::standing(self.store, &run.worker_id)?;
                run.handed_back + u32::from(standing.has_left(run))
            }
            _ => 0,
        };
        let asked = now();
        if since.is_some_and(|since| asked - since > OWNER_MICROS) {
            // The turn may be over for want of use before use is made of it.
            return Err(unsettled());
        }
        if fence::take(self.store, &fence)? {
            if now() - since.unwrap_or(asked) > OWNER_MICROS {
                return Err(unsettled());
            }
            let run = Run {
                worker_id: claim.worker_id.clone(),
                incarnation: claim.incarnation.clone(),
                started_at: now(),
                handed_back,
            };
            set_json(self.store, &keys::task_run(&key, claim.attempt), &run)?;
            return self.look_again(tasks, claim);
        }
        let waited = now();
        let task = tasks.get(&claim.task.task_id)?;
        if is_granted(&task) {
            return self.claims_again(&task, claim);
        }
        if task.end.is_some() {
            return Err(lost("The task has ended."));
        }
        if !fence::is_abandoned(self.store, &fence, waited)? {
            return Err(unsettled());
        }
        // Nobody's attempt: like any whose worker is silent, it is lost, and the next is offered.
        Outbox::tasks(self.store).note(&claim.task)?;
        set_json(
            self.store,
            &keys::task_run(&key, claim.attempt),
            &Run::nobody_s(now(), handed_back),
        )?;
        Err(lost(
            "The attempt was granted to somebody who never learned of it.",
        ))
    }

    /// Looks at a task once more, of which an attempt was granted just now: whether it is to be stopped. Who
    /// cancels it writes that down before it looks whether an attempt was granted, so one sees the other.
    fn look_again(&self, tasks: &Tasks<'_, S>, claim: &Claim) -> Result<bool, ApiError> {
        let id = &claim.task.task_id;
        match tasks.read(id)? {
            // Until the grant the holder of the attempt before, silent for long, could still end it.
            Some(Task { end: Some(_), .. }) => Err(lost("The task has ended.")),
            Some(task) => Ok(task.canceled),
            // It ended and was deleted, and its fences with it: that was how this claim got one.
            None => {
                self.store.delete_many(&tasks.rest(id, MOST_ATTEMPTS))?;
                Err(lost("The task has been deleted."))
            }
        }
    }

    /// Grants an attempt again to the worker that has it, in the same life: whether the task is to be
    /// stopped.
    fn claims_again(&self, task: &Task, claim: &Claim) -> Result<bool, ApiError> {
        self.holds(task, claim)?;
        match task.last_run() {
            Some((_, run)) if !workers::standing(self.store, &run.worker_id)?.has_left(run) => {
                Ok(task.canceled)
            }
            _ => Err(lost("The worker has handed the attempt back.")),
        }
    }

    /// Keeps how far an attempt is, for its holder. The answer says whether the task is to be stopped.
    pub fn progress(&self, report: &Report) -> Result<Claimed, ApiError> {
        let tasks = Tasks::new(self.store, &report.claim.task.table_id);
        let task = tasks.get(&report.claim.task.task_id)?;
        self.holds(&task, &report.claim)?;
        let progress = Progress {
            percent: report.percent.min(100),
            message: report.message.clone(),
        };
        let key = keys::task_progress(&tasks.key(&report.claim.task.task_id));
        set_json(self.store, &key, &progress)?;
        Ok(Claimed {
            wait: false,
            canceled: task.canceled,
        })
    }

    /// Ends a task, once, for the holder of its last attempt; the same end again is no error.
    pub fn finish(&self, finish: Finish, now: impl Fn() -> i64) -> Result<(), ApiError> {
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
        let task_type = task.submitted.params.task_type();
        let params = finish.params.filter(|it| it.task_type() == task_type);
        match self.end(&tasks, &task, &now, finish.outcome, params)? {
            Ending::Written => Ok(()),
            Ending::WrittenBefore => Err(lost("The task has ended.")),
            Ending::Underway => Err(unsettled()),
        }
    }

    /// The task at an address, if there is one and this version can read it.
    fn find(&self, address: &TaskAddress) -> Result<Option<Task>, ApiError> {
        match Tasks::new(self.store, &address.table_id).read(&address.task_id) {
            Ok(task) => Ok(task),
            Err(StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the holder of a table's turn stands.
    fn standing(
        &self,
        tasks: &Tasks<'_, S>,
        holder: &Holder,
        now: Clock<'_>,
    ) -> Result<Standing, StoreError> {
        // Before what is looked at: whoever lives may write just afterwards.
        let now = now();
        let task = match tasks.read(&holder.task_id) {
            Ok(Some(task)) => task,
            // Deleted, so ended; or another version's, which runs it no longer.
            Ok(None) | Err(StoreError::Corrupt(_)) => return Ok(Standing::Over),
            Err(error) => return Err(error),
        };
        if task.end.is_some() {
            return Ok(Standing::Over);
        }
        let is_left = match task.last_run() {
            Some((attempt, run)) if task.is_open() && attempt >= holder.attempt => {
                workers::standing(self.store, &run.worker_id)?.is_silent(run, now)
            }
            _ => turn::is_unused(holder, now),
        };
        let may_have_committed = task.status() == TaskStatus::Running;
        Ok(match (is_left, may_have_committed) {
            (false, _) => Standing::Busy,
            (true, true) => Standing::Lost,
            (true, false) => Standing::Over,
        })
    }

    /// Refuses unless the claim is the task's last attempt and its worker's, in the life that was granted
    /// it.
    fn holds(&self, task: &Task, claim: &Claim) -> Result<(), ApiError> {
        match task.last_run() {
            Some((attempt, run))
                if attempt == claim.attempt
                    && run.worker_id == claim.worker_id
                    && run.incarnation == claim.incarnation
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
        now: Clock<'_>,
        outcome: Outcome,
        params: Option<TaskParams>,
    ) -> Result<Ending, ApiError> {
        let key = tasks.key(&task.submitted.task_id);
        // Of those who find an owner dead one goes on, too: they may not agree on the end.
        for fence in keys::task_end_fences(&key) {
            let asked = now();
            if fence::take(self.store, &fence)? {
                if now() - asked > OWNER_MICROS {
                    return Ok(Ending::Underway);
                }
                break;
            }
            let waited = now();
            if get_json::<End>(self.store, &keys::task_end(&key))?.is_some() {
                return Ok(Ending::WrittenBefore);
            }
            if !fence::is_abandoned(self.store, &fence, waited)? {
                return Ok(Ending::Underway);
            }
        }
        let (result, error) = match outcome {
            Outcome::Completed(result) => (result, None),
            Outcome::Failed(error) => (Default::default(), Some(error)),
        };
        let end = End {
            completed_at: now(),
            result,
            error,
            params,
        };
        set_json(self.store, &keys::task_end(&key), &end)?;
        Ok(Ending::Written)
    }
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
