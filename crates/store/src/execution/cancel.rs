//! What stops a task.
//!
//! Who cancels a task writes that down, then asks for the fence of its next attempt, unless somebody was
//! granted one before; who is granted one looks after that whether the task is canceled. So the fence is
//! the cancel's, or the other sees it:
//!
//! - **Somebody has it**: the answers to its claims, reports and heartbeats tell, and it ends the task.
//!   So does the worker of an attempt that comes later: the one before may have committed.
//! - **Nobody was granted one**: the task ends here. Nobody is granted the attempt whose fence was taken
//!   for that, nor one after it, so an ended task has no attempts after its end.
//!
//! Whoever meets a canceled task that nobody was granted, a claim or a heartbeat, ends it in the same
//! way: who canceled it may have died before. An attempt whose fence was taken by one that died is
//! nobody's, as in a claim, and the next one's fence is taken.

use lance_maintenance_api::task::TaskId;
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{Heartbeat, MOST_ATTEMPTS, Outcome, TaskAddress};

use super::{Ending, Execution};
use crate::fence::{self, Clock};
use crate::key_value::{KeyValue, set_json};
use crate::keys;
use crate::names::OWNER_MICROS;
use crate::tasks::{Run, Task, Tasks};

impl<S: KeyValue> Execution<'_, S> {
    /// Asks that a task be stopped, and returns it as it stands then. It has ended if nobody had begun; if
    /// somebody has, or is about to, it ends soon, as canceled unless it has had its effect. One that has
    /// ended stays as it is. To ask again does no harm. `now` tells the time in microseconds.
    pub fn cancel(&self, address: &TaskAddress, now: impl Fn() -> i64) -> Result<Task, ApiError> {
        let tasks = Tasks::new(self.store, &address.table_id);
        let id = &address.task_id;
        let task = tasks.get(id)?;
        if !task.is_open() {
            return Ok(task);
        }
        if !task.canceled {
            set_json(self.store, &keys::task_cancel(&tasks.key(id)), &now())?;
        }
        // Where somebody was granted an attempt since that was read, its fence tells.
        if !task.was_granted() {
            self.end_canceled(&tasks, &task, &now)?;
        }
        self.get_or_clear(&tasks, id)
    }

    /// The task with this id; if it has been deleted meanwhile, what was written since goes, too.
    fn get_or_clear(&self, tasks: &Tasks<'_, S>, id: &TaskId) -> Result<Task, ApiError> {
        let found = tasks.read(id)?;
        if found.is_none() {
            self.store.delete_many(&tasks.rest(id, MOST_ATTEMPTS))?;
        }
        found.ok_or_else(TaskId::not_found)
    }

    /// Those of the tasks that a worker has in hand that are to be stopped and have not ended.
    pub(super) fn canceled(
        &self,
        heartbeat: &Heartbeat,
        now: Clock<'_>,
    ) -> Result<Vec<TaskAddress>, ApiError> {
        let held = || heartbeat.in_hand.iter().map(|held| &held.task);
        let key_of = |address: &TaskAddress| {
            let tasks = Tasks::new(self.store, &address.table_id);
            keys::task_cancel(&tasks.key(&address.task_id))
        };
        let keys: Vec<String> = held().map(key_of).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut canceled = Vec::new();
        for (address, record) in held().zip(self.store.get_many(&keys)?) {
            if record.is_none() {
                continue;
            }
            let Some(task) = self.find(address)?.filter(Task::is_open) else {
                continue;
            };
            if task.was_granted() || self.end_canceled_at(address, &task, now)? == Ending::Underway
            {
                canceled.push(address.clone());
            }
        }
        Ok(canceled)
    }

    /// `end_canceled` of the task at an address.
    pub(super) fn end_canceled_at(
        &self,
        address: &TaskAddress,
        task: &Task,
        now: Clock<'_>,
    ) -> Result<Ending, ApiError> {
        self.end_canceled(&Tasks::new(self.store, &address.table_id), task, now)
    }

    /// Ends a task that was found canceled and that nobody was granted by then.
    pub(super) fn end_canceled(
        &self,
        tasks: &Tasks<'_, S>,
        task: &Task,
        now: Clock<'_>,
    ) -> Result<Ending, ApiError> {
        let id = &task.submitted.task_id;
        let key = tasks.key(id);
        let mut attempt = task.last_run().map_or(1, |(last, _)| last + 1);
        while attempt <= MOST_ATTEMPTS {
            let fence = keys::task_claim_fence(&key, attempt);
            let asked = now();
            if fence::take(self.store, &fence)? {
                if now() - asked > OWNER_MICROS {
                    return Ok(Ending::Underway);
                }
                break;
            }
            let waited = now();
            let Some(task @ Task { end: None, .. }) = tasks.read(id)? else {
                return Ok(Ending::WrittenBefore);
            };
            match task.last_run() {
                Some((last, run)) if last >= attempt && run.is_somebody_s() => {
                    return Ok(Ending::Underway);
                }
                Some((last, _)) if last >= attempt => attempt = last,
                _ if !fence::is_abandoned(self.store, &fence, waited)? => {
                    return Ok(Ending::Underway);
                }
                _ => set_json(
                    self.store,
                    &keys::task_run(&key, attempt),
                    &Run::nobody_s(now(), 0),
                )?,
            }
            attempt += 1;
        }
        let error = TaskError::new(
            ErrorName::Canceled,
            "The task was canceled before it began.",
        );
        self.end(tasks, task, now, Outcome::Failed(error), None)
    }
}
