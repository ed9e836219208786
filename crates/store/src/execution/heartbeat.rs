//! What waits for a worker, and what nobody is at any more.

use std::collections::HashMap;

use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{
    BEYOND_ROOM, Dispatch, Heartbeat, MAX_ATTEMPTS, MOST_ATTEMPTS, Outcome, TakeUp, TaskAddress,
};
use serde::{Deserialize, Serialize};

use super::{Ending, Execution};
use crate::catalog::Purges;
use crate::fence::{ABANDONED_MICROS, Clock};
use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::outbox::Outbox;
use crate::places::Missing;
use crate::tasks::{Run, SubmittedTask, Task, Tasks};
use crate::workers::Standing;
use crate::{keys, workers};

/// How often all keys are looked through, in microseconds, while no worker starts. A task that was
/// handed to a worker directly has no note: if that worker never comes back, nobody else would learn
/// of it.
const LOOK_MICROS: i64 = 600_000_000;

/// A look through all keys.
#[derive(Serialize, Deserialize)]
struct Look {
    /// When it was, in microseconds.
    at: i64,
    /// What it found missing and was not settled yet.
    #[serde(default)]
    missing: Missing,
}

impl<S: KeyValue> Execution<'_, S> {
    /// Notes that a worker lives, and lists what it should take up.
    pub fn heartbeat(
        &self,
        heartbeat: &Heartbeat,
        now: impl Fn() -> i64,
    ) -> Result<TakeUp, ApiError> {
        let arrived = now();
        workers::heard(self.store, &heartbeat.worker_id, arrived)?;
        let outbox = Outbox::tasks(self.store);
        let purges = Purges::new(self.store);
        let look = self.last_look(arrived)?;
        if heartbeat.starting || arrived - look.at > LOOK_MICROS {
            // Before the look, which may take long: the next heartbeat must not begin another.
            self.looked(arrived, Missing::default())?;
            let keys = self.store.keys()?;
            self.reconcile(&outbox, &keys)?;
            purges.reconcile(&keys)?;
            let missing = Missing::find(self.store, &keys)?;
            if !missing.is_empty() {
                self.looked(now(), missing)?;
            }
        } else if look.missing.settle(self.store, look.at, arrived, &now)? {
            self.looked(look.at, Missing::default())?;
        }
        let mut offers = Offers::new(heartbeat.room);
        let in_hand: HashMap<&TaskAddress, Option<u32>> = heartbeat
            .in_hand
            .iter()
            .map(|held| (&held.task, held.attempt))
            .collect();
        // One read for each worker, and the time before it.
        let mut known: HashMap<String, (i64, Standing)> = HashMap::new();
        outbox.drain(now(), |address| {
            let Some(task) = self.find(address)? else {
                return Ok(false);
            };
            if !task.is_open() {
                return Ok(false);
            }
            if task.canceled && !task.was_granted() {
                return Ok(self.end_canceled_at(address, &task, &now)? == Ending::Underway);
            }
            let held = in_hand.get(address).copied();
            let attempt = match task.last_run() {
                None => 1,
                Some((attempt, run)) => {
                    let (asked, standing) = match known.get(&run.worker_id) {
                        Some(found) => *found,
                        None => {
                            let found = (now(), workers::standing(self.store, &run.worker_id)?);
                            known.insert(run.worker_id.clone(), found);
                            found
                        }
                    };
                    let is_last = run.is_last(attempt, standing.has_left(run));
                    let is_over = standing.is_silent(run, asked)
                        || is_forgotten(heartbeat, held.is_some(), run, is_last, arrived);
                    if !is_over {
                        // Claimed by somebody who lives, it keeps its note until its end.
                        return Ok(true);
                    }
                    if is_last {
                        return Ok(self.give_up(&task, &now)? == Ending::Underway);
                    }
                    attempt + 1
                }
            };
            // What it has in hand it was offered, but an attempt before that may be lost by now. It is
            // noted until its end: an answer to a heartbeat may be lost, too.
            let has_it = held.is_some_and(|held| held.is_none_or(|held| held >= attempt));
            if !has_it {
                offers.add(task.dispatch(attempt));
            }
            Ok(true)
        })?;
        Ok(TakeUp {
            tasks: offers.list(),
            purges: purges.waiting(now())?,
            canceled: self.canceled(heartbeat, &now)?,
        })
    }

    /// Leaves a note that a task waits for a worker.
    pub fn note(&self, dispatch: &Dispatch) -> Result<(), StoreError> {
        Outbox::tasks(self.store).note(&dispatch.address())
    }

    /// The last look through all keys.
    fn last_look(&self, now: i64) -> Result<Look, StoreError> {
        if let Some(look) = get_json(self.store, keys::LOOK)? {
            return Ok(look);
        }
        // The time counts from now on.
        self.looked(now, Missing::default())
    }

    fn looked(&self, at: i64, missing: Missing) -> Result<Look, StoreError> {
        let look = Look { at, missing };
        set_json(self.store, keys::LOOK, &look)?;
        Ok(look)
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
            if task.is_open() && !noted.contains(&address) {
                outbox.note(&address)?;
            }
        }
        Ok(())
    }

    fn give_up(&self, task: &Task, now: Clock<'_>) -> Result<Ending, ApiError> {
        let error = TaskError::new(
            ErrorName::InternalError,
            format!(
                "The worker was lost in {MAX_ATTEMPTS} attempts, or stopped in {MOST_ATTEMPTS}. If \
                 the task needs more memory than the worker has, give it more, or a smaller task."
            ),
        );
        let tasks = Tasks::new(self.store, &task.submitted.table.id);
        self.end(&tasks, task, now, Outcome::Failed(error), None)
    }
}

/// What a worker is offered.
struct Offers {
    room: usize,
    /// Attempts above 1. All others of their tables wait for them, and may be what fills the worker.
    unfinished: Vec<Dispatch>,
    fresh: Vec<Dispatch>,
}

impl Offers {
    fn new(room: usize) -> Self {
        Self {
            room,
            unfinished: Vec::new(),
            fresh: Vec::new(),
        }
    }

    fn add(&mut self, dispatch: Dispatch) {
        let (offers, most) = match dispatch.attempt {
            1 => (&mut self.fresh, self.room),
            _ => (&mut self.unfinished, self.room.saturating_add(BEYOND_ROOM)),
        };
        // There may be two notes of a task.
        let is_new = || {
            offers
                .iter()
                .all(|other| other.address() != dispatch.address())
        };
        if offers.len() < most && is_new() {
            offers.push(dispatch);
        }
    }

    fn list(mut self) -> Vec<Dispatch> {
        let room = self.room.saturating_sub(self.unfinished.len());
        self.fresh.truncate(room);
        self.unfinished.append(&mut self.fresh);
        self.unfinished
    }
}

/// Whether a worker that sends this heartbeat no longer has the attempt that it was granted: it was in
/// another life, or is not in hand. A heartbeat from before the grant that comes late looks the same. What
/// it offers then the worker has in hand and leaves, or it reaches nobody, but after the last attempt it
/// would end a task that runs.
fn is_forgotten(heartbeat: &Heartbeat, in_hand: bool, run: &Run, is_last: bool, now: i64) -> bool {
    run.worker_id == heartbeat.worker_id
        && (!in_hand || run.incarnation != heartbeat.incarnation)
        && (!is_last || now - run.started_at > ABANDONED_MICROS)
}
