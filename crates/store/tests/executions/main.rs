//! The execution of tasks under faults: what clients were told holds, whatever workers and the
//! application went through, and everything comes to its end.
//!
//! | module | what it holds |
//! |---|---|
//! | `simulation` | the store, the clock, and the scheduler that says who goes on |
//! | `plan` | how much goes wrong in a schedule |
//! | `schedule` | one schedule, and what must hold at its end |
//! | `scene` | what the scripts have in common: calls, and when all is quiet |
//! | `client` | clients: submit and hand over, get, list, cancel, delete, drop a table |
//! | `worker` | workers: heartbeat, queue, claim, finish |
//! | `operation` | what they do at the table: run, commit, stop |
//! | `trouble` | their calls, and what happens to them on the way |
//! | `model` | what everybody was told and has in hand |
//! | `known` | what is known of a task |
//! | `planted` | mistakes in some of the calls, that must be found |
//!
//! **What varies.** Two clients make up to 8 requests each about tasks of five types and two tables,
//! with quotas from 1. One to three workers go by the real one's rules: a heartbeat every 5 s, one
//! task of a table at a time, attempts above 1 before others and beyond the room, claims repeated until answered and every 2 s while they wait, an end
//! repeated for 10 minutes. Before each operation on the store the scheduler picks who makes it.
//! Operations fail before or after they were done; the machine that makes a request dies between any
//! two; a request is held up, by up to 12 s at a time. Workers die, or leave and hand back what they have in hand,
//! which may arrive when they are back; they start again under their names or never, stand still or are cut off for up to a minute; calls and answers are late, lost, or made twice at
//! a time. A submit's hand-over is late or lost, or comes again after a restart, or its answer is, or the worker's queue is full.
//! Up to half of the requests cancel a task, again and again, as any other request is cut short, held up and
//! made twice at a time. A worker learns of that from a heartbeat or the answer to a claim or a report, of
//! which it makes the last when it has noted at the table that it is about to commit; right after that it
//! may be held up. Canceled, it commits nothing, unless an attempt before has, or is about to.
//!
//! **What is checked**, all along:
//! - Of a table no two tasks run at a time on workers that were heard of (a heartbeat, or the claim)
//!   within the lease, ever since they claimed; unless one of the tasks was ended, by a worker that
//!   had been silent, at the moment it was granted again.
//! - An attempt is made in one life of one worker.
//! - Between two attempts at a task no other task of its table runs.
//! - An attempt is granted after the one before was really lost: its worker died, was silent for
//!   longer than the lease, handed it back, or nobody learned of the grant; none after the third, if
//!   no worker leaves, after the task's end, or, for the first time, after the table's drop was
//!   answered.
//! - Who makes an attempt and how a task ended is written once. A finish that is answered is the
//!   task's end: who lost its attempt is refused.
//! - Where nothing goes wrong: a task is not granted before an older one of its table that was asked
//!   for three times within 8 s. (More is not promised: who asks is noted every 5 s, and forgotten
//!   after 15 s. After a loss a worker that was restarted may pass others once.)
//! - A task that ended as canceled has had no effect. One that nobody had been granted when a cancel was
//!   answered has none any more, and if it had ended by then, it never began.
//! - Once a cancel was answered, a claim or report is told, and a heartbeat of who has the task in hand; no
//!   heartbeat offers its first attempt.
//! - A list shows each task once, newest first, those that must be there and none that was deleted; a
//!   deleted task stays deleted and is deleted once; no more tasks are kept than the quota allows.
//!
//! And at the end, when faults have stopped and the workers that are left have been at it for at most
//! 25 minutes: what was answered has ended or was deleted; completed tasks were committed; tasks failed
//! by their operation, by a cancel, by their table's drop, or after three attempts that were really lost; the
//! outboxes are drained; nobody has anything in hand; and, after two looks through all keys, no place of
//! the quota was won, and none is lost.
//!
//! **What is not.** A stop of 20 s between a look at the clock and the write that it allows: after 30 s
//! what a fence is for is given up. Clocks that differ. A first attempt that opens its table only after its worker was taken for dead and the
//! next attempt committed: here every attempt finds an earlier one's commit,
//! or its note that it is about to be made. A worker that runs fewer
//! tasks at a time than it has tables; more than one folder per table; more notes than one heartbeat looks at.
//!
//! `EXECUTIONS=100000 EXECUTIONS_FROM=20000` runs more schedules, from this seed on;
//! `EXECUTIONS_SEED=7` runs one and shows its operations; `EXECUTIONS_FAULTS` says how many faults are
//! enough.

mod client;
mod known;
mod model;
mod operation;
mod plan;
mod planted;
mod scene;
mod schedule;
#[path = "../simulation/mod.rs"]
mod simulation;
mod trouble;
mod worker;

use simulation::world::Plant;
use simulation::{check, faults, rng, world};

/// How many schedules run where nothing else is said.
const SCHEDULES: u64 = 3000;

#[test]
fn what_is_answered_holds_and_everything_ends() {
    check("EXECUTIONS", SCHEDULES, |seed, traced| {
        schedule::run(seed, Plant::Nothing, traced)
    });
}

fn is_found(plant: Plant) -> bool {
    !faults(0..SCHEDULES, 1, |seed| schedule::run(seed, plant, false)).is_empty()
}

/// Whether it is found, and so.
fn is_found_as(plant: Plant, text: &str) -> bool {
    let run = |seed| match schedule::run(seed, plant, false) {
        Err(fault) if fault.wrong.iter().any(|wrong| wrong.contains(text)) => Err(fault),
        _ => Ok(()),
    };
    !faults(0..SCHEDULES, 1, run).is_empty()
}

/// It goes to others once its holder may be lost.
#[test]
fn a_turn_that_does_not_stay_with_a_lost_task_is_found() {
    let alter = |key: &str, value: &[u8], now: i64| -> Option<Vec<u8>> {
        if !key.starts_with("turn/") || key.contains("/change/") {
            return None;
        }
        let mut head: serde_json::Value = serde_json::from_slice(value).ok()?;
        let since = head["value"]["holder"]["since"].as_i64()?;
        head["value"] = serde_json::Value::Null;
        (now - since > 31 * world::SECOND).then(|| head.to_string().into_bytes())
    };
    assert!(is_found_as(Plant::Alters(alter), "between two attempts"));
}

#[test]
fn a_worker_that_does_not_know_its_lives_apart_is_found() {
    assert!(is_found_as(Plant::NoLives, "in two lives"));
}

#[test]
fn a_fence_left_out_is_found() {
    assert!(is_found(Plant::Owns("task/")));
}

#[test]
fn a_turn_s_fence_left_out_is_found() {
    assert!(is_found(Plant::Owns("turn/")));
}

#[test]
fn a_turn_that_is_never_looked_at_is_found() {
    assert!(is_found(Plant::Hides("turn/")));
}

#[test]
fn heartbeats_that_are_never_looked_at_are_found() {
    assert!(is_found(Plant::Hides("worker/")));
}

#[test]
fn places_that_are_never_settled_are_found() {
    assert!(is_found(Plant::Loses(|key| key == "look")));
}

#[test]
fn a_cancel_that_takes_no_fence_is_found() {
    assert!(is_found_as(Plant::UnfencedCancels, "canceled"));
}

#[test]
fn a_claim_that_does_not_see_cancels_is_found() {
    assert!(is_found_as(Plant::BlindClaims, "not told"));
}

/// It was allowed to commit, and may yet when the next attempt has looked.
#[test]
fn a_canceled_attempt_that_forgets_the_one_before_is_found() {
    assert!(is_found_as(Plant::NoNotes, "was canceled, but"));
}

#[test]
fn a_lost_note_is_found() {
    let is_note = |key: &str| key.starts_with("outbox/") && key != "outbox/done";
    assert!(is_found(Plant::Loses(is_note)));
}
