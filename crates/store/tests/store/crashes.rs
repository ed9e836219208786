//! The application dies between any two operations on the store. What was answered holds, and what
//! was not can be tried again.

use lance_maintenance_api::ApiError;
use lance_maintenance_api::task::{TaskId, TaskStatus};
use lance_maintenance_dispatch::{Claim, Finish, Heartbeat, MAX_ATTEMPTS, Outcome, TaskAddress};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::Tasks;

use crate::failing::Failing;
use crate::support::{TABLE, compact, table};

const SECOND: i64 = 1_000_000;
/// More operations than any call makes.
const MOST: u64 = 40;

fn submit(store: &Failing, quota: u64) -> Result<TaskId, ApiError> {
    Tasks::new(store, TABLE)
        .submit(&table(TABLE), compact(), "R", [7; 10], quota, || 0)
        .map(|task| task.submitted.task_id)
}

fn claim(id: &TaskId, attempt: u32) -> Claim {
    Claim {
        worker_id: "w".to_owned(),
        incarnation: String::new(),
        task: TaskAddress {
            table_id: TABLE.to_owned(),
            task_id: id.clone(),
        },
        attempt,
    }
}

fn finish(id: &TaskId, attempt: u32) -> Finish {
    Finish {
        claim: claim(id, attempt),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    }
}

/// A worker that has just started, and ends whatever it gets; until there is nothing left.
fn work_until_done(store: &Failing, id: &TaskId) -> TaskStatus {
    let execution = Execution::new(store);
    for second in 0..600 {
        let now = second * SECOND;
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting: second == 0,
            in_hand: Vec::new(),
            room: 10,
        };
        let Ok(offered) = execution.heartbeat(&heartbeat, || now) else {
            continue;
        };
        for task in offered.tasks {
            if execution
                .claim(&claim(&task.task_id, task.attempt), || now)
                .is_ok()
            {
                // One that is answered with a failure is not repeated here: the worker died too.
                let _ = execution.finish(finish(&task.task_id, task.attempt), || now);
            }
        }
    }
    Tasks::new(store, TABLE).get(id).unwrap().status()
}

#[test]
fn a_claim_that_was_cut_short() {
    for operations in 0..MOST {
        let store = Failing::default();
        let id = submit(&store, 10).unwrap();
        let cut = |store: &Failing| Execution::new(store).claim(&claim(&id, 1), || 0);
        let (outcome, whole) = store.cut(operations, cut);
        assert_eq!(outcome.is_ok(), whole);
        let status = work_until_done(&store, &id);
        assert_eq!(
            status,
            TaskStatus::Completed,
            "after {operations} operations"
        );
        if whole {
            return;
        }
    }
    panic!("a claim takes more than {MOST} operations");
}

#[test]
fn an_end_that_was_cut_short() {
    for operations in 0..MOST {
        let store = Failing::default();
        let id = submit(&store, 10).unwrap();
        Execution::new(&store).claim(&claim(&id, 1), || 0).unwrap();
        let cut = |store: &Failing| Execution::new(store).finish(finish(&id, 1), || 0);
        let (outcome, whole) = store.cut(operations, cut);
        assert_eq!(outcome.is_ok(), whole);
        let status = work_until_done(&store, &id);
        assert!(
            status.is_terminal(),
            "{status:?} after {operations} operations"
        );
        Tasks::new(&store, TABLE).delete(&id, || 0).unwrap();
        if whole {
            return;
        }
    }
    panic!("an end takes more than {MOST} operations");
}

/// The worker lives, and repeats an end until it is told that it was taken.
#[test]
fn an_end_that_was_cut_short_and_is_repeated() {
    for operations in 0..MOST {
        let store = Failing::default();
        let id = submit(&store, 10).unwrap();
        let execution = Execution::new(&store);
        execution.claim(&claim(&id, 1), || 0).unwrap();
        let cut = |store: &Failing| Execution::new(store).finish(finish(&id, 1), || 0);
        let (_, whole) = store.cut(operations, cut);
        let taken = (1..600).any(|second| {
            match execution.finish(finish(&id, 1), || second * SECOND) {
                Ok(()) => true,
                // What a worker does not repeat is an answer that it has lost the task.
                Err(error) => {
                    assert!(error.name.status() >= 500, "{operations}: {error}");
                    false
                }
            }
        });
        assert!(taken, "after {operations} operations");
        let task = Tasks::new(&store, TABLE).get(&id).unwrap();
        assert_eq!(task.status(), TaskStatus::Completed);
        if whole {
            return;
        }
    }
    panic!("an end takes more than {MOST} operations");
}

/// The last attempt was lost, and so is the answer to the heartbeat that gives the task up.
#[test]
fn giving_up_that_was_cut_short() {
    for operations in 0..MOST {
        let store = Failing::default();
        let id = submit(&store, 10).unwrap();
        let execution = Execution::new(&store);
        for attempt in 1..=MAX_ATTEMPTS {
            execution.claim(&claim(&id, attempt), || 0).unwrap();
        }
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting: true,
            in_hand: Vec::new(),
            room: 10,
        };
        let cut = |store: &Failing| Execution::new(store).heartbeat(&heartbeat, || 0);
        let (_, whole) = store.cut(operations, cut);
        let status = work_until_done(&store, &id);
        assert_eq!(status, TaskStatus::Failed, "after {operations} operations");
        if whole {
            return;
        }
    }
    panic!("a heartbeat takes more than {MOST} operations");
}

/// Lets what was lost be found by a look through all keys, and settled.
fn settle(store: &Failing, from: i64) {
    for (starting, now) in [(true, from), (false, from + 61 * SECOND)] {
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting,
            in_hand: Vec::new(),
            room: 0,
        };
        Execution::new(store).heartbeat(&heartbeat, || now).unwrap();
    }
}

/// How many tasks can be submitted.
fn room(store: &Failing, quota: u64) -> usize {
    (0..3).filter(|_| submit(store, quota).is_ok()).count()
}

/// However a deletion is cut short, it can be repeated, and the task's place is freed once: at the
/// latest when it is found that it was not.
#[test]
fn a_deletion_that_was_cut_short() {
    const QUOTA: u64 = 2;
    for operations in 0..MOST {
        for repeated in [true, false] {
            let store = Failing::default();
            let ids = [
                submit(&store, QUOTA).unwrap(),
                submit(&store, QUOTA).unwrap(),
            ];
            for id in &ids {
                let execution = Execution::new(&store);
                execution.claim(&claim(id, 1), || 0).unwrap();
                execution.finish(finish(id, 1), || 0).unwrap();
            }
            let cut = |store: &Failing| Tasks::new(store, TABLE).delete(&ids[0], || 0);
            let (_, whole) = store.cut(operations, cut);
            for looked in [SECOND, 700 * SECOND] {
                settle(&store, looked);
                if repeated {
                    // Gone already, or now.
                    let _ = Tasks::new(&store, TABLE).delete(&ids[0], || 0);
                }
            }
            let is_there = Tasks::new(&store, TABLE).get(&ids[0]).is_ok();
            assert!(!repeated || !is_there, "{operations}");
            // One that was never begun still has its place.
            let freed = store.increment(&format!("task/{TABLE}/lance_compact/1/freeing"), 0);
            let expected = usize::from(freed.unwrap() > 0);
            assert!(!repeated || expected == 1);
            assert_eq!(room(&store, QUOTA), expected, "{operations} {repeated}");
            if whole && !repeated {
                return;
            }
        }
    }
    panic!("a deletion takes more than {MOST} operations");
}

/// A submit that is cut short takes a place, if it stored the task, or loses one for a while.
#[test]
fn a_submit_that_was_cut_short() {
    const QUOTA: u64 = 2;
    for tasks in [0, 1, 2, 3] {
        for operations in 0..=MOST {
            assert!(operations < MOST, "a submit takes more than {MOST}");
            let store = Failing::default();
            for _ in 0..tasks {
                let _ = submit(&store, QUOTA);
            }
            let (_, whole) = store.cut(operations, |store| submit(store, QUOTA));
            settle(&store, 0);
            let stored = store.keys().unwrap();
            let is_task = |key: &&String| key.starts_with("task/") && key.split('/').count() == 4;
            let stored = stored.iter().filter(is_task).count();
            let context = format!("{tasks} tasks, {operations} operations");
            assert_eq!(room(&store, QUOTA) + stored, 2, "{context}");
            // Nothing more is found later.
            settle(&store, 700 * SECOND);
            assert_eq!(room(&store, QUOTA), 0, "{context}");
            if whole {
                break;
            }
        }
    }
}

/// Settling is cut short, and made up for by the next look.
#[test]
fn settling_that_was_cut_short() {
    const QUOTA: u64 = 4;
    for operations in 0..MOST {
        let store = Failing::default();
        let id = submit(&store, QUOTA).unwrap();
        let execution = Execution::new(&store);
        execution.claim(&claim(&id, 1), || 0).unwrap();
        execution.finish(finish(&id, 1), || 0).unwrap();
        // A place whose fence was taken and nothing more, and two slots without a record.
        let freeing = format!("task/{TABLE}/lance_compact/1/freeing");
        store.increment(&freeing, 1).unwrap();
        let _ = Tasks::new(&store, TABLE).delete(&id, || 0);
        store
            .increment(&format!("tasks/{TABLE}/lance_compact"), 2)
            .unwrap();
        let heartbeat = |starting| Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting,
            in_hand: Vec::new(),
            room: 0,
        };
        execution.heartbeat(&heartbeat(true), || 0).unwrap();
        let (_, whole) = store.cut(operations, |store| {
            Execution::new(store).heartbeat(&heartbeat(false), || 61 * SECOND)
        });
        if !whole {
            settle(&store, 700 * SECOND);
            settle(&store, 1400 * SECOND);
        }
        let places = (0..9).filter(|_| submit(&store, QUOTA).is_ok()).count();
        assert_eq!(places, 4, "{operations}");
        if whole {
            return;
        }
    }
    panic!("settling takes more than {MOST} operations");
}

/// What is not old yet may still be on its way.
#[test]
fn places_are_not_settled_at_once() {
    let store = Failing::default();
    let log = format!("tasks/{TABLE}/lance_compact");
    store.increment(&log, 1).unwrap();
    let heartbeat = |starting, now| {
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            incarnation: String::new(),
            starting,
            in_hand: Vec::new(),
            room: 0,
        };
        Execution::new(&store)
            .heartbeat(&heartbeat, || now)
            .unwrap();
    };
    heartbeat(true, 0);
    for (second, expected) in [(30, 0), (60, 0), (61, 1), (62, 1), (1000, 1)] {
        heartbeat(false, second * SECOND);
        let freed = store.increment(&format!("{log}/freed"), 0).unwrap();
        assert_eq!(freed, expected, "{second}");
    }
}
