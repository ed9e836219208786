//! Many tasks that wait: a heartbeat costs the same, and nobody is forgotten.

use std::collections::BTreeSet;

use lance_maintenance_api::task::{TaskId, TaskStatus};
use lance_maintenance_dispatch::{
    Claim, Dispatch, Finish, Heartbeat, InHand, MAX_ATTEMPTS, Outcome, TaskAddress,
};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

use crate::support::{compact, table};

const SECOND: i64 = 1_000_000;
/// More than a heartbeat makes: a read for each of 192 notes, a write for each that is done with, and
/// some more.
const MOST_OPERATIONS: u64 = 420;

fn address(number: usize, id: &TaskId) -> TaskAddress {
    TaskAddress {
        table_id: format!("T{number}"),
        task_id: id.clone(),
    }
}

fn claim(address: &TaskAddress, attempt: u32) -> Claim {
    Claim {
        worker_id: "a".to_owned(),
        incarnation: String::new(),
        task: address.clone(),
        attempt,
    }
}

fn complete(store: &MemoryStore, address: &TaskAddress, now: i64) {
    let execution = Execution::new(store);
    let claim = claim(address, 1);
    execution.claim(&claim, || now).unwrap();
    let finish = Finish {
        claim,
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    execution.finish(finish, || now).unwrap();
}

/// Tasks of tables of their own that were noted.
fn noted(store: &MemoryStore, count: usize) -> Vec<TaskAddress> {
    let submitted = (0..count).map(|number| {
        let table = table(&format!("T{number}"));
        let tasks = Tasks::new(store, &table.id);
        let task = tasks.submit(&table, compact(), "R", [7; 10], 10, || number as i64);
        let task = task.unwrap();
        Execution::new(store).note(&task.dispatch(1)).unwrap();
        address(number, &task.submitted.task_id)
    });
    submitted.collect()
}

fn beat(
    store: &MemoryStore,
    worker: &str,
    in_hand: &[TaskAddress],
    room: usize,
    now: i64,
) -> Vec<Dispatch> {
    let heartbeat = Heartbeat {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        starting: false,
        in_hand: in_hand
            .iter()
            .map(|task| InHand {
                task: task.clone(),
                attempt: Some(1),
            })
            .collect(),
        room,
    };
    let before = store.operations();
    let answer = Execution::new(store).heartbeat(&heartbeat, || now);
    let operations = store.operations() - before;
    assert!(operations < MOST_OPERATIONS, "{operations}");
    answer.unwrap().tasks
}

#[test]
fn thousands_of_tasks_are_taken_up_in_their_order() {
    let store = MemoryStore::default();
    let tasks = noted(&store, 5000);
    assert!(beat(&store, "a", &[], 0, 0).is_empty());
    let mut ended = Vec::new();
    for now in 1.. {
        let offered = beat(&store, "a", &[], 50, now);
        if offered.is_empty() {
            break;
        }
        for task in offered {
            complete(&store, &task.address(), now);
            ended.push(task.address());
        }
    }
    assert!(ended == tasks);
}

/// The oldest notes are those of what runs for long, and of what waits in a worker for its turn.
#[test]
fn what_is_noted_behind_many_others_has_its_turn() {
    let store = MemoryStore::default();
    let tasks = noted(&store, 2000);
    let (held, others) = tasks.split_at(600);
    for task in &held[..300] {
        Execution::new(&store).claim(&claim(task, 1), || 0).unwrap();
    }
    let mut seen = BTreeSet::new();
    for beats in 0..60 {
        // Nobody takes any of them up.
        for task in beat(&store, "a", held, 1000, beats) {
            let at = others.iter().position(|other| *other == task.address());
            seen.insert(at.unwrap());
        }
    }
    assert_eq!(seen.len(), others.len());
}

/// A task whose worker is lost is given up though nobody has room.
#[test]
fn what_was_lost_behind_many_others_is_given_up() {
    let store = MemoryStore::default();
    let tasks = noted(&store, 2000);
    let lost = &tasks[1500];
    for attempt in 1..=MAX_ATTEMPTS {
        Execution::new(&store)
            .claim(&claim(lost, attempt), || 0)
            .unwrap();
    }
    for _ in 0..2000 / 64 {
        beat(&store, "b", &[], 0, 40 * SECOND);
    }
    let task = Tasks::new(&store, &lost.table_id).get(&lost.task_id);
    assert_eq!(task.unwrap().status(), TaskStatus::Failed);
}

/// What ended behind a task that runs for long holds up nothing once that has ended.
#[test]
fn what_ended_before_older_ones_is_done_with() {
    let store = MemoryStore::default();
    let tasks = noted(&store, 500);
    let (first, others) = tasks.split_first().unwrap();
    Execution::new(&store)
        .claim(&claim(first, 1), || 0)
        .unwrap();
    for task in others {
        complete(&store, task, 0);
    }
    for now in 0..10 {
        assert!(beat(&store, "a", std::slice::from_ref(first), 10, now).is_empty());
    }
    complete(&store, first, 10);
    for now in 10..20 {
        beat(&store, "a", &[], 10, now);
    }
    let before = store.operations();
    assert!(beat(&store, "a", &[], 10, 20).is_empty());
    assert!(store.operations() - before < 10);
}

/// Notes that were never written hold up others for a minute, all of them together.
#[test]
fn slots_without_notes_are_passed_over() {
    use lance_maintenance_store::KeyValue;
    let store = MemoryStore::default();
    store.increment("outbox", 300).unwrap();
    let tasks = noted(&store, 1);
    for now in [0, 1, 59, 61, 61, 61, 61, 61] {
        // Those behind are seen all the while.
        beat(&store, "a", &[], 0, now * SECOND);
    }
    let offered = beat(&store, "a", &[], 10, 61 * SECOND);
    assert_eq!(offered.len(), 1);
    complete(&store, &tasks[0], 61 * SECOND);
    beat(&store, "a", &[], 10, 61 * SECOND);
    let before = store.operations();
    beat(&store, "a", &[], 10, 61 * SECOND);
    assert!(store.operations() - before < 10);
}
