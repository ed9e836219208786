//! Of each table one task at a time, whoever asks, and in the order of the submits.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{Claim, Finish, Heartbeat, Outcome, TaskAddress};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

use crate::failing::Failing;
use crate::support::{TABLE, cleanup, compact, name, submit, table};

const SECOND: i64 = 1_000_000;
const OTHER: &str = "0d5e6c0e-6f0b-4c7e-9b0a-0123456789ab";

fn claim(id: &TaskId, worker: &str, attempt: u32) -> Claim {
    Claim {
        worker_id: worker.to_owned(),
        task: TaskAddress {
            table_id: TABLE.to_owned(),
            task_id: id.clone(),
        },
        attempt,
    }
}

/// Whether a worker may begin an attempt now.
fn begins(store: &impl KeyValue, id: &TaskId, worker: &str, attempt: u32, now: i64) -> bool {
    let claimed = Execution::new(store).claim(&claim(id, worker, attempt), || now);
    !claimed.unwrap().wait
}

fn end(store: &MemoryStore, id: &TaskId, worker: &str, attempt: u32, now: i64) {
    let finish = Finish {
        claim: claim(id, worker, attempt),
        outcome: Outcome::Completed(Default::default()),
    };
    Execution::new(store).finish(finish, || now).unwrap();
}

fn beat(store: &impl KeyValue, worker: &str, now: i64) {
    let heartbeat = Heartbeat {
        worker_id: worker.to_owned(),
        starting: false,
        in_hand: Vec::new(),
        room: 0,
    };
    Execution::new(store).heartbeat(&heartbeat, || now).unwrap();
}

/// Tasks of one table, of two types, submitted one after the other.
fn submitted(store: &MemoryStore, count: i64) -> Vec<TaskId> {
    let params = |at: i64| -> TaskParams { if at % 2 == 0 { compact() } else { cleanup() } };
    (0..count)
        .map(|at| submit(store, params(at), 100, at).unwrap())
        .collect()
}

#[test]
fn tasks_of_a_table_run_one_after_the_other() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 3);
    assert!(begins(&store, &ids[0], "a", 1, SECOND));
    // Asked again, it is still the worker's own.
    assert!(begins(&store, &ids[0], "a", 1, SECOND));
    for (id, worker) in [(&ids[2], "b"), (&ids[1], "c")] {
        assert!(!begins(&store, id, worker, 1, 2 * SECOND));
    }
    // Another worker that wants the same attempt is told that it is lost, and does not wait.
    let lost = Execution::new(&store).claim(&claim(&ids[0], "b", 1), || 2 * SECOND);
    assert_eq!(name(lost), ErrorName::ConcurrentModification);

    end(&store, &ids[0], "a", 1, 3 * SECOND);
    // The older one comes first, though the younger one asks first.
    assert!(!begins(&store, &ids[2], "b", 1, 4 * SECOND));
    assert!(begins(&store, &ids[1], "c", 1, 4 * SECOND));
    assert!(!begins(&store, &ids[2], "b", 1, 5 * SECOND));
    end(&store, &ids[1], "c", 1, 6 * SECOND);
    assert!(begins(&store, &ids[2], "b", 1, 7 * SECOND));
}

#[test]
fn tables_do_not_wait_for_each_other() {
    let store = MemoryStore::default();
    let here = submit(&store, compact(), 10, 0).unwrap();
    let there = Tasks::new(&store, OTHER)
        .submit(&table(OTHER), compact(), "R", [8; 10], 10, || 0)
        .unwrap();
    assert!(begins(&store, &here, "a", 1, 0));
    let mut claim = claim(&there.submitted.task_id, "b", 1);
    claim.task.table_id = OTHER.to_owned();
    assert!(!Execution::new(&store).claim(&claim, || 0).unwrap().wait);
}

#[test]
fn a_silent_worker_s_turn_is_over() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    beat(&store, "a", 0);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    let cases = [(1, false), (30, false), (31, true)];
    for (second, expected) in cases {
        assert_eq!(
            begins(&store, &ids[1], "b", 1, second * SECOND),
            expected,
            "{second}"
        );
    }
    // The lost task's next attempt waits for the one that has the table now.
    assert!(!begins(&store, &ids[0], "a", 2, 32 * SECOND));
    beat(&store, "b", 40 * SECOND);
    end(&store, &ids[1], "b", 1, 41 * SECOND);
    assert!(begins(&store, &ids[0], "a", 2, 42 * SECOND));
}

#[test]
fn a_worker_that_started_again_goes_on_with_its_task() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    beat(&store, "a", 0);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    beat(&store, "a", 5 * SECOND);
    // It lives, so the turn is still the first task's, and that is its to try again.
    assert!(!begins(&store, &ids[1], "b", 1, 6 * SECOND));
    assert!(begins(&store, &ids[0], "a", 2, 6 * SECOND));
}

/// Its lost task may wait behind another of the table in its own queue.
#[test]
fn a_worker_that_started_again_does_not_wait_for_itself() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 4);
    beat(&store, "a", 0);
    assert!(begins(&store, &ids[0], "a", 1, SECOND));
    beat(&store, "a", 5 * SECOND);
    assert!(!begins(&store, &ids[1], "b", 1, 6 * SECOND));
    // A claim from before it got the turn comes late.
    assert!(!begins(&store, &ids[2], "a", 1, SECOND));
    // Though an older one waits: only this worker can tell that the turn is over.
    assert!(begins(&store, &ids[2], "a", 1, 6 * SECOND));
    assert!(!begins(&store, &ids[1], "b", 1, 8 * SECOND));
    end(&store, &ids[2], "a", 1, 9 * SECOND);
    // Not over and over: who waits comes first again.
    assert!(!begins(&store, &ids[3], "a", 1, 10 * SECOND));
    assert!(begins(&store, &ids[1], "b", 1, 10 * SECOND));
}

/// A claim that was cut short took the turn; repeated late, it must not lose it on its way.
#[test]
fn a_repeated_claim_takes_its_turn_anew() {
    let store = Failing::default();
    let of_table = |params, at| {
        let tasks = Tasks::new(&store, TABLE);
        let task = tasks.submit(&table(TABLE), params, "R", [7; 10], 10, || at);
        task.unwrap().submitted.task_id
    };
    let (first, second) = (of_table(compact(), 0), of_table(cleanup(), 1));
    // The turn is taken, and the attempt not yet granted.
    let turn = || store.get(&format!("turn/{TABLE}")).unwrap();
    let taken = |at: i64| {
        let before = turn();
        // To the write of the turn and no further.
        let (cut_short, _) = store.cut(6, |store| {
            Execution::new(store).claim(&claim(&first, "a", 1), || at)
        });
        assert!(cut_short.is_err());
        assert_ne!(turn(), before, "{at}");
    };
    taken(0);
    taken(29 * SECOND + 1);
    assert!(!begins(&store, &second, "b", 1, 31 * SECOND));
    assert!(begins(&store, &second, "b", 1, 60 * SECOND));
}

#[test]
fn who_stopped_asking_is_not_waited_for() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 3);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    assert!(!begins(&store, &ids[1], "b", 1, SECOND));
    assert!(!begins(&store, &ids[2], "c", 1, SECOND));
    end(&store, &ids[0], "a", 1, 2 * SECOND);
    // Nobody hears of b any more.
    for (second, expected) in [(3, false), (16, false), (17, true)] {
        assert_eq!(
            begins(&store, &ids[2], "c", 1, second * SECOND),
            expected,
            "{second}"
        );
    }
}

/// Whoever dies on the way to a turn holds it up for half a minute at the most.
#[test]
fn a_claim_that_was_cut_short() {
    for operations in 0..40 {
        let store = Failing::default();
        let first = Tasks::new(&store, TABLE)
            .submit(&table(TABLE), compact(), "R", [7; 10], 10, || 0)
            .unwrap();
        let second = Tasks::new(&store, TABLE)
            .submit(&table(TABLE), cleanup(), "R", [7; 10], 10, || 1)
            .unwrap();
        let (_, whole) = store.cut(operations, |store| {
            Execution::new(store).claim(&claim(&first.submitted.task_id, "a", 1), || 0)
        });
        let mut began = false;
        for minute in 1..4 {
            began = begins(
                &store,
                &second.submitted.task_id,
                "b",
                1,
                minute * 60 * SECOND,
            );
            if began {
                break;
            }
        }
        assert!(began, "{operations}");
        if whole {
            return;
        }
    }
    panic!("a claim takes more than 40 operations");
}

#[test]
fn asking_again_is_cheap() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    assert!(!begins(&store, &ids[1], "b", 1, SECOND));
    let before = store.operations();
    assert!(!begins(&store, &ids[1], "b", 1, 3 * SECOND));
    // The task, the turn, and of the one that has it the task and its worker.
    assert!(
        store.operations() - before <= 5,
        "{}",
        store.operations() - before
    );
}
