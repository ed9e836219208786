//! Turns: of each table one task at a time, across all workers.
//!
//! A table's **turn** is one task's attempt. Nobody has to give it back: it is over when the task has
//! ended, or when the attempt was not granted within half a minute. Who asks while it is another's is
//! noted as waiting; when it is over it goes to the task that was submitted first of those that were
//! asked for lately.
//!
//! **Once granted, the turn stays with the task until that ends.** An attempt whose worker was lost may
//! have committed, and the next one finds that commit in the table's versions: a task in between could
//! remove the version, and the work would be done a second time. So only the task's next attempt, whoever
//! makes it, takes the turn from a lost one. An attempt that was never granted, or to somebody who never
//! learned of it, has touched nothing.
//!
//! **Everybody comes to the table in the end**, since a task with the turn comes to its end:
//!
//! - While its worker is heard of and has it, the attempt is on its way.
//! - Lost, a task that has a note is offered by every heartbeat until it is taken up, before those that
//!   have not begun, to workers that are full too. A task that was handed to its worker directly has no
//!   note, so whoever waits for it and finds it lost leaves one.
//! - A worker has the attempts above 1 of a table claim before the others that it has, so nothing that
//!   waits for a task stands before it. Not every attempt above 1 has the turn: none of those before may
//!   have been made, and a first attempt be granted by a claim whose answer was lost. So those that are
//!   told to wait let the first of the others ask.
//! - A worker that waits with a lower attempt at the task is offered the next one in its place.
//! - A worker that forgot the task, in another life as a rule, lives, and only its own heartbeats offer
//!   the next attempt: at the latest after it asked for another task of the table, which leaves a note.
//! - After the last attempt a heartbeat gives the task up. It needs no turn for that.

use lance_maintenance_api::ApiError;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::Claim;
use serde::{Deserialize, Serialize};

use crate::fence::{ABANDONED_MICROS, Clock};
use crate::key_value::{KeyValue, StoreError};
use crate::keys;
use crate::names::{self, Change, OWNER_MICROS};
use crate::tasks::Task;

/// How long after it last asked a task still waits for its turn, in microseconds. A worker asks
/// every few seconds.
const WAITS_MICROS: i64 = 15_000_000;
/// How often it is noted that a task waits, in microseconds.
const NOTED_MICROS: i64 = 5_000_000;
/// How many tasks are noted as waiting: one for each worker, if there are not more of them.
const MOST_WAITING: usize = 64;

/// Whose turn a table is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    holder: Holder,
    waiting: Vec<Waiting>,
    /// Somebody who waits has left a note of the holder's task, since nobody seems to be at it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    noted: bool,
}

/// Where the holder of a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is at the table, or about to be.
    Busy,
    /// Nobody is at the attempt, and the task may have committed: its next attempt is due.
    Lost,
    /// The task has ended, or has touched nothing.
    Over,
}

/// An attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// Who makes it.
    pub worker_id: String,
    /// Since when it has the turn, in microseconds.
    pub since: i64,
}

/// A task that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    created_at: i64,
    task_id: TaskId,
    asked: i64,
}

impl Waiting {
    /// Who was submitted first comes first.
    fn order(&self) -> (i64, &str) {
        (self.created_at, self.task_id.as_str())
    }
}

/// Takes the turn of a task's table for a claim that arrived at this time: since when it has it, if it
/// has. `standing` says where the holder stands, and `note` leaves a note for its task to be taken up.
pub(crate) fn take<S: KeyValue>(
    store: &S,
    claim: &Claim,
    task: &Task,
    arrived: i64,
    clock: Clock<'_>,
    standing: impl Fn(&Holder) -> Result<Standing, StoreError>,
    note: impl Fn(&Holder) -> Result<(), StoreError>,
) -> Result<Option<i64>, ApiError> {
    let now = clock();
    let key = keys::turn(&claim.task.table_id);
    let mine = |turn: &Turn| {
        turn.holder.task_id == claim.task.task_id && turn.holder.worker_id == claim.worker_id
    };
    let next = |held: Option<&Turn>| -> Result<Turn, StoreError> {
        let mut waiting = held.map(|held| held.waiting.clone()).unwrap_or_default();
        waiting.retain(|other| {
            other.task_id != claim.task.task_id && now - other.asked <= WAITS_MICROS
        });
        let me = Waiting {
            created_at: task.submitted.created_at,
            task_id: claim.task.task_id.clone(),
            asked: now,
        };
        let is_first = waiting.iter().all(|other| me.order() < other.order());
        if let Some(held) = held.filter(|held| !mine(held)) {
            let its = held.holder.task_id == claim.task.task_id;
            let found = match its || is_first {
                true => standing(&held.holder)?,
                // Who comes first looks.
                false => Standing::Busy,
            };
            let free = match found {
                Standing::Busy => false,
                Standing::Lost => its,
                Standing::Over => its || is_first,
            };
            if !free {
                if waiting.len() < MOST_WAITING {
                    waiting.push(me);
                }
                let is_left = found == Standing::Lost || is_forgotten(&held.holder, claim, arrived);
                return Ok(Turn {
                    holder: held.holder.clone(),
                    waiting,
                    noted: held.noted || (is_left && !its),
                });
            }
        }
        Ok(Turn {
            holder: Holder {
                task_id: claim.task.task_id.clone(),
                attempt: claim.attempt,
                worker_id: claim.worker_id.clone(),
                since: now,
            },
            waiting,
            noted: false,
        })
    };
    let held = names::read::<Turn>(store, &key)?;
    let mut wanted = next(held.as_ref())?;
    let settled = held.as_ref().is_some_and(|held| {
        held.holder == wanted.holder
            && held.noted == wanted.noted
            && is_noted(held, &claim.task.task_id, now)
    });
    let is_granted = |turn: &Turn| mine(turn) && turn.holder.attempt == claim.attempt;
    // A turn from a claim that was cut short a while ago is taken anew: it may be over for want of
    // use before this claim has made use of it.
    let is_fresh = |turn: &Turn| now - turn.holder.since <= OWNER_MICROS;
    if let Some(turn) = held.as_ref().filter(|t| is_granted(t) && is_fresh(t)) {
        return Ok(Some(turn.holder.since));
    }
    if settled {
        return Ok(None);
    }
    let is_new = held
        .as_ref()
        .is_none_or(|held| held.holder != wanted.holder);
    let change = names::change(
        store,
        &key,
        clock,
        None,
        |held_now: Option<&Turn>| Ok(held_now == held.as_ref()),
        |_, _| {
            if is_new {
                // Not since it was asked for: others count its time from here.
                wanted.holder.since = clock();
            } else if wanted.noted && !held.as_ref().is_some_and(|held| held.noted) {
                note(&wanted.holder)?;
            }
            Ok(Some(wanted.clone()))
        },
    )?;
    // Whoever comes in between decides anew.
    let is_mine = matches!(change, Change::Done(_)) && is_granted(&wanted);
    Ok(is_mine.then_some(wanted.holder.since))
}

/// Whether the holder's worker has forgotten it, since it asks for another task. A worker is at one task
/// of a table at a time, so it was restarted, or gave up.
fn is_forgotten(holder: &Holder, claim: &Claim, arrived: i64) -> bool {
    // A claim from before the holder's is a late one.
    holder.worker_id == claim.worker_id && holder.since < arrived
}

/// Whether it was noted a short while ago that a task waits.
fn is_noted(turn: &Turn, task_id: &TaskId, now: i64) -> bool {
    turn.waiting.len() >= MOST_WAITING
        || turn
            .waiting
            .iter()
            .any(|waiting| waiting.task_id == *task_id && now - waiting.asked <= NOTED_MICROS)
}

/// Whether a turn that was not made use of is not going to be: its holder may have died before it began.
pub(crate) fn is_unused(holder: &Holder, now: i64) -> bool {
    now - holder.since > ABANDONED_MICROS
}
