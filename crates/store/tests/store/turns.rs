//! Of each table one task at a time, whoever asks, and in the order of the submits.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{
    Claim, Finish, Heartbeat, InHand, MAX_ATTEMPTS, Outcome, TaskAddress,
};
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
        incarnation: String::new(),
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
        params: None,
    };
    Execution::new(store).finish(finish, || now).unwrap();
}

fn heartbeat(worker: &str, in_hand: &[(&TaskId, u32)]) -> Heartbeat {
    let held = in_hand.iter().map(|(id, attempt)| InHand {
        task: claim(id, worker, *attempt).task,
        attempt: Some(*attempt),
    });
    Heartbeat {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        starting: false,
        in_hand: held.collect(),
        room: 0,
    }
}

fn beat(store: &impl KeyValue, worker: &str, now: i64) {
    offered(store, worker, &[], 0, now);
}

/// The attempts that a worker is offered.
fn offered(
    store: &impl KeyValue,
    worker: &str,
    in_hand: &[(&TaskId, u32)],
    room: usize,
    now: i64,
) -> Vec<(TaskId, u32)> {
    let heartbeat = Heartbeat {
        room,
        ..heartbeat(worker, in_hand)
    };
    let answer = Execution::new(store).heartbeat(&heartbeat, || now).unwrap();
    let tasks = answer.tasks.into_iter();
    tasks.map(|task| (task.task_id, task.attempt)).collect()
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

/// It may have committed, and another task could remove the version that tells.
#[test]
fn a_lost_task_s_next_attempt_comes_before_all_others() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 3);
    beat(&store, "a", 0);
    assert!(begins(&store, &ids[1], "a", 1, 0));
    for second in [1, 30, 31, 3600] {
        assert!(!begins(&store, &ids[0], "b", 1, second * SECOND));
    }
    for (second, expected) in [(30, false), (31, true)] {
        let began = begins(&store, &ids[1], "c", 2, second * SECOND);
        assert_eq!(began, expected, "{second}");
    }
    beat(&store, "c", 40 * SECOND);
    assert!(!begins(&store, &ids[0], "b", 1, 41 * SECOND));
    end(&store, &ids[1], "c", 2, 42 * SECOND);
    assert!(begins(&store, &ids[0], "b", 1, 43 * SECOND));
}

/// It was handed to its worker directly, and nobody else would learn of it.
#[test]
fn who_waits_for_a_lost_task_leaves_a_note() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    beat(&store, "a", 0);
    beat(&store, "b", 0);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    for (second, offers) in [(30, vec![]), (31, vec![(ids[0].clone(), 2)])] {
        for _ in 0..2 {
            assert!(!begins(&store, &ids[1], "b", 1, second * SECOND));
        }
        let in_hand = [(&ids[1], 1)];
        assert_eq!(
            offered(&store, "b", &in_hand, 0, second * SECOND),
            offers,
            "{second}"
        );
    }
    assert_eq!(store.increment("outbox", 0).unwrap(), 1, "one note");
    assert!(begins(&store, &ids[0], "b", 2, 32 * SECOND));
}

/// Nobody may take the turn, and everybody waits for it.
#[test]
fn a_task_that_was_lost_for_the_last_time_lets_go_of_its_table() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    let mut now = 0;
    for attempt in 1..=MAX_ATTEMPTS {
        assert!(begins(&store, &ids[0], "a", attempt, now), "{attempt}");
        now += 31 * SECOND;
        assert!(!begins(&store, &ids[1], "b", 1, now));
    }
    assert_eq!(offered(&store, "b", &[(&ids[1], 1)], 0, now), []);
    assert!(begins(&store, &ids[1], "b", 1, now));
}

/// Nobody ever learned of the grant.
#[test]
fn an_attempt_that_nobody_made_lets_go_of_its_table() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    let key = format!("task/{TABLE}/{}/{}", ids[0].task_type(), ids[0].slot());
    store.increment(&format!("{key}/claim/1"), 1).unwrap();
    for second in [0, 31] {
        let refused = Execution::new(&store).claim(&claim(&ids[0], "a", 1), || second * SECOND);
        assert!(refused.is_err());
    }
    for (second, expected) in [(32, false), (62, true)] {
        let began = begins(&store, &ids[1], "b", 1, second * SECOND);
        assert_eq!(began, expected, "{second}");
    }
}

/// What another version of the service stored is not this one's to run.
#[test]
fn a_task_that_nobody_can_read_lets_go_of_its_table() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    let key = format!("task/{TABLE}/{}/{}", ids[0].task_type(), ids[0].slot());
    store.set(&key, b"{\"task_type\":\"x\"}").unwrap();
    assert!(begins(&store, &ids[1], "b", 1, SECOND));
}

#[test]
fn attempts_above_1_are_offered_first_and_beyond_the_room() {
    let store = MemoryStore::default();
    let tables: Vec<String> = (0..20).map(|number| format!("T{number}")).collect();
    let lost = tables.iter().map(|id| {
        let tasks = Tasks::new(&store, id);
        let [fresh, lost] = [0, 1].map(|at| {
            let task = tasks.submit(&table(id), compact(), "R", [7; 10], 10, || at);
            let dispatch = task.unwrap().dispatch(1);
            Execution::new(&store).note(&dispatch).unwrap();
            dispatch.task_id
        });
        let mut claim = claim(&lost, "a", 1);
        claim.task.table_id = id.clone();
        Execution::new(&store).claim(&claim, || 0).unwrap();
        (fresh, lost)
    });
    assert_eq!(lost.count(), 20);
    for (room, unfinished, fresh) in [(0, 8, 0), (5, 13, 0), (12, 20, 0), (23, 20, 3)] {
        let heartbeat = Heartbeat {
            room,
            ..heartbeat("b", &[])
        };
        let answer = Execution::new(&store).heartbeat(&heartbeat, || 31 * SECOND);
        let attempts: Vec<u32> = answer.unwrap().tasks.iter().map(|t| t.attempt).collect();
        let expected = [vec![2; unfinished], vec![1; fresh]].concat();
        assert_eq!(attempts, expected, "{room}");
    }
}

/// A first attempt that waits in a worker is behind what waits for the second.
#[test]
fn a_lost_task_is_offered_to_whoever_has_a_lower_attempt_in_hand() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    beat(&store, "b", 0);
    assert!(begins(&store, &ids[0], "a", 1, 0));
    assert!(!begins(&store, &ids[1], "b", 1, 31 * SECOND));
    let next = vec![(ids[0].clone(), 2)];
    for (attempt, offers) in [(1, next), (2, vec![])] {
        let in_hand = [(&ids[1], 1), (&ids[0], attempt)];
        let offered = offered(&store, "b", &in_hand, 0, 31 * SECOND);
        assert_eq!(offered, offers, "{attempt}");
    }
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

/// It has another task of the table in hand, is full of such, and has forgotten the one with the turn.
#[test]
fn a_worker_that_started_again_does_not_wait_for_itself() {
    let store = MemoryStore::default();
    let ids = submitted(&store, 2);
    beat(&store, "a", 0);
    assert!(begins(&store, &ids[0], "a", 1, SECOND));
    let in_hand = [(&ids[1], 1)];
    // A claim from before it got the turn comes late.
    assert!(!begins(&store, &ids[1], "a", 1, SECOND));
    assert_eq!(offered(&store, "a", &in_hand, 0, 2 * SECOND), []);
    assert!(!begins(&store, &ids[1], "a", 1, 6 * SECOND));
    assert_eq!(
        offered(&store, "a", &in_hand, 0, 7 * SECOND),
        [(ids[0].clone(), 2)]
    );
    assert!(begins(&store, &ids[0], "a", 2, 8 * SECOND));
    end(&store, &ids[0], "a", 2, 9 * SECOND);
    assert!(begins(&store, &ids[1], "a", 1, 10 * SECOND));
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
        let first = &first.submitted.task_id;
        // Granted, the turn is its next attempt's.
        let granted = Tasks::new(&store, TABLE)
            .get(first)
            .unwrap()
            .last_run()
            .is_some();
        let (id, attempt) = match granted {
            true => (first, 2),
            false => (&second.submitted.task_id, 1),
        };
        let mut minutes = 1..4;
        let began = minutes.any(|minute| begins(&store, id, "b", attempt, minute * 60 * SECOND));
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
