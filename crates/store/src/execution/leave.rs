//! What a worker hands back that stops in order.

use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::Leave;

use super::Execution;
use crate::key_value::KeyValue;
use crate::outbox::Outbox;
use crate::workers;

impl<S: KeyValue> Execution<'_, S> {
    /// Takes back what a worker has in hand, for others to take up: what it was granted is over at once.
    /// That is to be said after the worker's last claim was answered and when it runs nothing any more.
    /// Repeated, or late, it takes away nothing that the worker was granted after it started again.
    pub fn leave(&self, leave: &Leave) -> Result<(), ApiError> {
        let outbox = Outbox::tasks(self.store);
        let noted = outbox.noted()?;
        let mut last_start = None;
        for held in &leave.in_hand {
            let Some(task) = self.find(&held.task)? else {
                continue;
            };
            let runs = (1..).zip(&task.runs);
            let starts = runs.filter_map(|(attempt, run)| {
                let run = run.as_ref()?;
                let is_its = Some(attempt) == held.attempt && run.worker_id == leave.worker_id;
                is_its.then_some(run.started_at)
            });
            last_start = starts.max().max(last_start);
            if task.is_open() && !noted.contains(&held.task) {
                outbox.note(&held.task)?;
            }
        }
        // Last: cut short before, all of it is repeated, or the lease runs out.
        if let Some(start) = last_start {
            workers::leave(self.store, &leave.worker_id, start)?;
        }
        Ok(())
    }
}
