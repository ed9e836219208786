//! Workers that stop in order: what they hand back is anybody's at once.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::task::{TaskId, TaskStatus};
use lance_maintenance_dispatch::{Finish, Heartbeat, InHand, Leave, MOST_ATTEMPTS, Outcome};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

use crate::failing::Failing;
use crate::support::{SECOND, TABLE, address, claim, cleanup, compact, name, submit, table};

fn begins(store: &impl KeyValue, id: &TaskId, worker: &str, attempt: u32, now: i64) -> bool {
    let claimed = Execution::new(store).claim(&claim(id, worker, attempt), || now);
    !claimed.unwrap().wait
}

fn leave(worker: &str, in_hand: &[(&TaskId, Option<u32>)]) -> Leave {
    let held = |(id, attempt): &(&TaskId, Option<u32>)| InHand {
        task: address(id),
        attempt: *attempt,
    };
    Leave {
        worker_id: worker.to_owned(),
        in_hand: in_hand.iter().map(held).collect(),
    }
}

fn leaves(store: &impl KeyValue, worker: &str, in_hand: &[(&TaskId, Option<u32>)]) {
    Execution::new(store)
        .leave(&leave(worker, in_hand))
        .unwrap();
}

/// The attempts that a worker is offered.
fn offered(store: &impl KeyValue, worker: &str, starting: bool, now: i64) -> Vec<(TaskId, u32)> {
    let heartbeat = Heartbeat {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        starting,
        in_hand: Vec::new(),
        room: 10,
    };
    let answer = Execution::new(store).heartbeat(&heartbeat, || now).unwrap();
    let tasks = answer.tasks.into_iter();
    tasks.map(|task| (task.task_id, task.attempt)).collect()
}

#[test]
fn what_is_handed_back_is_anybody_s_at_once() {
    let store = MemoryStore::default();
    let running = submit(&store, compact(), 10, 0).unwrap();
    let waiting = submit(&store, cleanup(), 10, 1).unwrap();
    // All of it was handed to the worker directly, so that nobody else knows of it.
    offered(&store, "a", true, 0);
    offered(&store, "b", true, 0);
    let running = [running, waiting];
    let [first, second] = &running;
    let store = &store;
    assert!(begins(store, first, "a", 1, SECOND));
    assert!(!begins(store, second, "b", 1, 2 * SECOND));
    leaves(store, "a", &[(first, Some(1)), (second, None)]);
    assert_eq!(
        offered(store, "b", false, 2 * SECOND),
        [(first.clone(), 2), (second.clone(), 1)]
    );
    // The turn is over, too.
    assert!(begins(store, first, "b", 2, 2 * SECOND));
    let late = Finish {
        claim: claim(first, "a", 1),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    let refused = Execution::new(store).finish(late, || 2 * SECOND);
    assert_eq!(name(refused), ErrorName::ConcurrentModification);
}

/// Whoever left may come back: it has what it is granted from then on, and nothing of before.
#[test]
fn a_worker_that_left_comes_back() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    offered(&store, "a", true, 0);
    assert!(begins(&store, &id, "a", 1, SECOND));
    let message = [(&id, Some(1))];
    leaves(&store, "a", &message);
    // A claim that was made twice arrives now.
    let again = Execution::new(&store).claim(&claim(&id, "a", 1), || SECOND);
    assert_eq!(name(again), ErrorName::ConcurrentModification);

    assert_eq!(
        offered(&store, "a", true, 2 * SECOND),
        [(id.clone(), 2)],
        "back"
    );
    // Though it lives, the old attempt is not its any more.
    assert_eq!(
        offered(&store, "b", false, 2 * SECOND),
        [(id.clone(), 2)],
        "another"
    );
    assert!(begins(&store, &id, "a", 2, 3 * SECOND));
    // The message comes again, late.
    leaves(&store, "a", &message);
    assert_eq!(offered(&store, "b", false, 4 * SECOND), []);
    // It names the old attempt only, or none at all.
    leaves(&store, "a", &[(&id, None), (&id, Some(3))]);
    assert_eq!(offered(&store, "b", false, 4 * SECOND), []);
    // Nobody hands back what is another's.
    leaves(&store, "b", &[(&id, Some(2))]);
    assert_eq!(offered(&store, "b", false, 4 * SECOND), []);
}

/// It claimed twice, since an answer was late, and left after both.
#[test]
fn what_was_claimed_again_can_be_handed_back() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    offered(&store, "a", true, 0);
    offered(&store, "b", true, 0);
    assert!(begins(&store, &id, "a", 1, SECOND));
    assert!(begins(&store, &id, "a", 1, 3 * SECOND));
    leaves(&store, "a", &[(&id, Some(1))]);
    assert_eq!(offered(&store, "b", false, 4 * SECOND), [(id, 2)]);
}

#[test]
fn attempts_that_were_handed_back_are_not_lost_ones() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    offered(&store, "a", true, 0);
    // Lost, and so on: three of them are one too many.
    let handed_back = [true, false, true, true, false, true, false];
    let mut now = SECOND;
    for (attempt, back) in (1..).zip(handed_back) {
        assert_eq!(offered(&store, "a", true, now), [(id.clone(), attempt)]);
        assert!(begins(&store, &id, "a", attempt, now));
        if back {
            leaves(&store, "a", &[(&id, Some(attempt))]);
        }
        now += 31 * SECOND;
    }
    assert_eq!(offered(&store, "b", true, now), []);
    let task = Tasks::new(&store, TABLE).get(&id).unwrap();
    assert_eq!(task.status(), TaskStatus::Failed);
    assert_eq!(task.runs.iter().flatten().count(), handed_back.len());
    Tasks::new(&store, TABLE).delete(&id, || 0).unwrap();
    let left = store.keys().unwrap();
    let of_task = left.iter().filter(|key| key.starts_with("task/"));
    assert_eq!(of_task.count(), 1, "its fence: {left:?}");
}

#[test]
fn a_task_is_not_handed_back_for_ever() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    for attempt in 1..=MOST_ATTEMPTS {
        let now = i64::from(attempt) * SECOND;
        assert_eq!(offered(&store, "a", true, now), [(id.clone(), attempt)]);
        assert!(begins(&store, &id, "a", attempt, now));
        leaves(&store, "a", &[(&id, Some(attempt))]);
    }
    assert_eq!(offered(&store, "a", true, 60 * SECOND), []);
    let task = Tasks::new(&store, TABLE).get(&id).unwrap();
    assert_eq!(task.status(), TaskStatus::Failed);
}

/// What was not answered can be said again.
#[test]
fn a_leave_that_was_cut_short() {
    for operations in 0..40 {
        let store = Failing::default();
        let tasks = Tasks::new(&store, TABLE);
        let submitted = [compact(), cleanup()].map(|params| {
            let task = tasks.submit(&table(TABLE), params, "R", [7; 10], 10, || 0);
            task.unwrap().submitted.task_id
        });
        let [first, second] = &submitted;
        assert!(begins(&store, first, "a", 1, SECOND));
        let message = leave("a", &[(first, Some(1)), (second, None)]);
        let (_, whole) = store.cut(operations, |store| Execution::new(store).leave(&message));
        Execution::new(&store).leave(&message).unwrap();
        // At once, but for a note that was never written: whatever is behind it is there.
        let offers = offered(&store, "b", false, 2 * SECOND);
        assert_eq!(offers, [(first.clone(), 2), (second.clone(), 1)]);
        if whole {
            return;
        }
    }
    panic!("a leave takes more than 40 operations");
}
