use lance_maintenance_api::task::{TaskId, TaskStatus};
use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{Claim, Dispatch, Finish, Heartbeat, InHand, Outcome, Report};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

use crate::support::{
    SECOND, TABLE, address, catalog, claim, compact, identifier, name, record, submit,
};

fn completed(id: &TaskId, worker: &str, attempt: u32) -> Finish {
    Finish {
        claim: claim(id, worker, attempt),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    }
}

fn failed(id: &TaskId, worker: &str, attempt: u32) -> Finish {
    Finish {
        claim: claim(id, worker, attempt),
        outcome: Outcome::Failed(TaskError::new(ErrorName::InvalidInput, "no such thing")),
        params: None,
    }
}

fn beat(
    store: &MemoryStore,
    worker: &str,
    starting: bool,
    in_hand: &[&TaskId],
    now: i64,
) -> Vec<Dispatch> {
    let heartbeat = Heartbeat {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        starting,
        in_hand: in_hand
            .iter()
            .map(|id| InHand {
                task: address(id),
                attempt: Some(1),
            })
            .collect(),
        room: 10,
    };
    Execution::new(store)
        .heartbeat(&heartbeat, || now)
        .unwrap()
        .tasks
}

fn status(store: &MemoryStore, id: &TaskId) -> TaskStatus {
    Tasks::new(store, TABLE).get(id).unwrap().status()
}

#[test]
fn an_attempt_is_granted_once_and_ends_once() {
    let store = MemoryStore::default();
    let execution = Execution::new(&store);
    let id = submit(&store, compact(), 10, 1).unwrap();

    assert_eq!(
        name(execution.finish(completed(&id, "a", 1), || 2)),
        ErrorName::ConcurrentModification
    );
    execution.claim(&claim(&id, "a", 1), || 2).unwrap();
    execution.claim(&claim(&id, "a", 1), || 3).unwrap();
    assert_eq!(
        name(execution.claim(&claim(&id, "b", 1), || 3)),
        ErrorName::ConcurrentModification
    );
    assert_eq!(status(&store, &id), TaskStatus::Running);

    let report = |worker| Report {
        claim: claim(&id, worker, 1),
        percent: 40,
        message: "half".to_owned(),
    };
    execution.progress(&report("a")).unwrap();
    assert_eq!(
        name(execution.progress(&report("b"))),
        ErrorName::ConcurrentModification
    );
    let progress = || {
        let tasks = Tasks::new(&store, TABLE);
        let found = tasks.progress(&tasks.get(&id).unwrap()).unwrap();
        found.map(|progress| (progress.percent, progress.message))
    };
    assert_eq!(progress(), Some((40, "half".to_owned())));

    assert_eq!(
        name(execution.finish(completed(&id, "b", 1), || 4)),
        ErrorName::ConcurrentModification
    );
    execution.finish(completed(&id, "a", 1), || 4).unwrap();
    assert_eq!(progress(), Some((100, "done".to_owned())));
    // The answer was lost: the same end again is no error, another is.
    execution.finish(completed(&id, "a", 1), || 5).unwrap();
    assert_eq!(
        name(execution.finish(failed(&id, "a", 1), || 5)),
        ErrorName::ConcurrentModification
    );
    assert_eq!(
        name(execution.claim(&claim(&id, "a", 2), || 5)),
        ErrorName::ConcurrentModification
    );

    let info = Tasks::new(&store, TABLE).get(&id).unwrap().info();
    assert_eq!(info.status, TaskStatus::Completed);
    assert_eq!(info.created_at, "1970-01-01T00:00:00.000001+00:00");
    assert_eq!(info.started_at, "1970-01-01T00:00:00.000002+00:00");
    assert_eq!(info.completed_at, "1970-01-01T00:00:00.000004+00:00");
}

fn claim_in(life: &str, id: &TaskId, attempt: u32) -> Claim {
    Claim {
        incarnation: life.to_owned(),
        ..claim(id, "a", attempt)
    }
}

/// In the life before, the attempt may have committed: only the next one looks for that.
#[test]
fn an_attempt_is_one_life_s() {
    let store = MemoryStore::default();
    let execution = Execution::new(&store);
    let id = submit(&store, compact(), 10, 0).unwrap();
    for _ in 0..2 {
        execution.claim(&claim_in("1", &id, 1), || 0).unwrap();
    }
    for life in ["2", ""] {
        let claim = claim_in(life, &id, 1);
        let report = Report {
            claim: claim.clone(),
            percent: 1,
            message: String::new(),
        };
        let finish = Finish {
            claim: claim.clone(),
            outcome: Outcome::Completed(Default::default()),
            params: None,
        };
        for refused in [
            execution.claim(&claim, || 0).map(drop),
            execution.progress(&report).map(drop),
            execution.finish(finish, || 0),
        ] {
            assert_eq!(name(refused), ErrorName::ConcurrentModification, "{life}");
        }
    }
    // An end that was sent before is the attempt's all the same.
    let finish = Finish {
        claim: claim_in("1", &id, 1),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    execution.finish(finish, || 1).unwrap();
    assert_eq!(status(&store, &id), TaskStatus::Completed);
}

/// Even while an old dispatch of it waits there.
#[test]
fn a_worker_that_started_again_is_offered_the_next_attempt() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    let execution = Execution::new(&store);
    execution.claim(&claim_in("1", &id, 1), || 0).unwrap();
    let cases = [
        ("1", vec![1], vec![]),
        ("2", vec![1], vec![2]),
        ("2", vec![], vec![2]),
        ("2", vec![2], vec![]),
    ];
    for (life, in_hand, offers) in cases {
        let held = in_hand.iter().map(|attempt| InHand {
            task: address(&id),
            attempt: Some(*attempt),
        });
        let heartbeat = Heartbeat {
            worker_id: "a".to_owned(),
            incarnation: life.to_owned(),
            starting: true,
            in_hand: held.collect(),
            room: 0,
        };
        let answer = execution.heartbeat(&heartbeat, || SECOND).unwrap();
        let attempts: Vec<u32> = answer.tasks.iter().map(|task| task.attempt).collect();
        assert_eq!(attempts, offers, "{life} {in_hand:?}");
    }
}

#[test]
fn a_failure_is_told() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    Execution::new(&store)
        .claim(&claim(&id, "a", 1), || 1)
        .unwrap();
    Execution::new(&store)
        .finish(failed(&id, "a", 1), || 2)
        .unwrap();
    let info = Tasks::new(&store, TABLE).get(&id).unwrap().info();
    assert_eq!(info.status, TaskStatus::Failed);
    assert_eq!(info.error.unwrap().code, 13);
    assert!(info.result.is_empty());
}

#[test]
fn a_note_is_offered_until_the_task_ends() {
    let store = MemoryStore::default();
    let execution = Execution::new(&store);
    let id = submit(&store, compact(), 10, 0).unwrap();
    let task = Tasks::new(&store, TABLE).get(&id).unwrap();
    execution.note(&task.dispatch(1)).unwrap();

    let offered = beat(&store, "a", false, &[], 0);
    assert_eq!(offered, [task.dispatch(1)]);
    // The answer was lost: it is offered again.
    assert_eq!(beat(&store, "a", false, &[], 0), [task.dispatch(1)]);
    assert!(beat(&store, "a", false, &[&id], 0).is_empty());
    execution.claim(&claim(&id, "a", 1), || 0).unwrap();
    assert!(beat(&store, "a", false, &[&id], 0).is_empty());
    execution.finish(completed(&id, "a", 1), || 0).unwrap();
    assert!(beat(&store, "a", false, &[], 0).is_empty());
    // Drained: the next note does not stand behind it.
    let before = store.operations();
    beat(&store, "a", false, &[], 0);
    assert!(store.operations() - before < 8);
}

#[test]
fn what_a_restarted_worker_was_running_is_tried_again_three_times() {
    let store = MemoryStore::default();
    let execution = Execution::new(&store);
    let id = submit(&store, compact(), 10, 0).unwrap();
    for attempt in 1..=3 {
        let offered = beat(&store, "a", true, &[], 0);
        assert_eq!(offered.len(), 1, "attempt {attempt}");
        assert_eq!(offered[0].attempt, attempt);
        execution.claim(&claim(&id, "a", attempt), || 0).unwrap();
        // The attempt before has lost the task.
        if attempt > 1 {
            let late = execution.finish(completed(&id, "a", attempt - 1), || 0);
            assert_eq!(name(late), ErrorName::ConcurrentModification);
        }
    }
    // The last attempt is given up late: this may be a heartbeat from before it was taken up.
    assert!(beat(&store, "a", true, &[], 30 * SECOND).is_empty());
    assert_eq!(status(&store, &id), TaskStatus::Running);
    assert!(beat(&store, "a", true, &[], 31 * SECOND).is_empty());
    let info = Tasks::new(&store, TABLE).get(&id).unwrap().info();
    assert_eq!(info.status, TaskStatus::Failed);
    assert!(info.error.unwrap().detail.contains("3 attempts"));
}

/// A task that was handed to a worker directly has no note.
#[test]
fn what_a_worker_left_that_never_comes_back_is_found_in_the_end() {
    let store = MemoryStore::default();
    beat(&store, "b", true, &[], 0);
    let id = submit(&store, compact(), 10, 0).unwrap();
    Execution::new(&store)
        .claim(&claim(&id, "a", 1), || SECOND)
        .unwrap();
    for (second, attempts) in [(60, 0), (600, 0), (601, 1)] {
        let offered = beat(&store, "b", false, &[], second * SECOND);
        assert_eq!(offered.len(), attempts, "{second}");
    }
}

/// It may claim before its first heartbeat is answered, and the one from before is old.
#[test]
fn a_worker_that_claimed_a_moment_ago_is_not_silent() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    beat(&store, "a", true, &[], 0);
    Execution::new(&store)
        .claim(&claim(&id, "a", 1), || 100 * SECOND)
        .unwrap();
    for (second, attempts) in [(101, 0), (130, 0), (131, 1)] {
        let offered = beat(&store, "b", true, &[], second * SECOND);
        assert_eq!(offered.len(), attempts, "{second}");
    }
}

/// An end whose owner died is written by one of those who find it so.
#[test]
fn an_end_is_written_once_though_its_owner_died() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    let execution = Execution::new(&store);
    execution.claim(&claim(&id, "a", 1), || 0).unwrap();
    let ending = format!("task/{TABLE}/lance_compact/1/ending");
    store.increment(&ending, 1).unwrap();
    let unsettled = execution.finish(completed(&id, "a", 1), || SECOND);
    assert_eq!(name(unsettled), ErrorName::ServiceUnavailable);
    // Somebody else who found it so at the same time.
    store.increment(&format!("{ending}/2"), 1).unwrap();
    let unsettled = execution.finish(completed(&id, "a", 1), || 32 * SECOND);
    assert_eq!(name(unsettled), ErrorName::ServiceUnavailable);
    execution
        .finish(completed(&id, "a", 1), || 63 * SECOND)
        .unwrap();
    assert_eq!(status(&store, &id), TaskStatus::Completed);
}

#[test]
fn another_worker_takes_over_after_the_lease() {
    let store = MemoryStore::default();
    let execution = Execution::new(&store);
    let id = submit(&store, compact(), 10, 0).unwrap();
    beat(&store, "a", true, &[], 0);
    execution.claim(&claim(&id, "a", 1), || 0).unwrap();
    assert!(beat(&store, "b", true, &[], 30 * SECOND).is_empty());
    let offered = beat(&store, "b", false, &[], 31 * SECOND);
    assert_eq!(
        offered.iter().map(|task| task.attempt).collect::<Vec<_>>(),
        [2]
    );
    execution
        .claim(&claim(&id, "b", 2), || 31 * SECOND)
        .unwrap();
    assert_eq!(
        name(execution.finish(completed(&id, "a", 1), || 32 * SECOND)),
        ErrorName::ConcurrentModification
    );
    execution
        .finish(completed(&id, "b", 2), || 33 * SECOND)
        .unwrap();
    assert_eq!(status(&store, &id), TaskStatus::Completed);
}

#[test]
fn a_record_that_can_not_be_read_holds_up_no_other_task() {
    let store = MemoryStore::default();
    let unreadable = submit(&store, compact(), 10, 0).unwrap();
    let noted = Tasks::new(&store, TABLE).get(&unreadable).unwrap();
    Execution::new(&store).note(&noted.dispatch(1)).unwrap();
    let id = submit(&store, compact(), 10, 1).unwrap();
    let key = format!("task/{TABLE}/lance_compact/{}", unreadable.slot());
    store
        .set(&key, b"{\"task_type\":\"lance_defragment\"}")
        .unwrap();

    for starting in [true, false] {
        let offered = beat(&store, "a", starting, &[], 0);
        let ids: Vec<&TaskId> = offered.iter().map(|task| &task.task_id).collect();
        assert_eq!(ids, [&id], "starting: {starting}");
    }
    let found = Tasks::new(&store, TABLE).get(&unreadable);
    assert_eq!(name(found), ErrorName::InternalError);
}

#[test]
fn a_worker_is_offered_what_it_has_room_for() {
    let store = MemoryStore::default();
    let ids: Vec<TaskId> = (0..25)
        .map(|now| submit(&store, compact(), 100, now).unwrap())
        .collect();
    let offered = beat(&store, "a", true, &[], 0);
    let first: Vec<&TaskId> = offered.iter().map(|task| &task.task_id).collect();
    assert_eq!(first, ids[..10].iter().collect::<Vec<_>>());
    let rest = beat(&store, "a", false, &first, 0);
    assert_eq!(rest.len(), 10);
    assert_eq!(rest[0].task_id, ids[10]);
}

#[test]
fn tasks_of_a_dropped_table_fail_when_they_would_start() {
    let store = MemoryStore::default();
    let catalog = catalog(&store);
    let name_pair = identifier("ns$t");
    catalog
        .create_table(&name_pair, &record("ns$t", TABLE), || 0)
        .unwrap();
    let id = submit(&store, compact(), 10, 0).unwrap();
    catalog.drop_table(&name_pair, TABLE, true, || 0).unwrap();

    let refused = Execution::new(&store).claim(&claim(&id, "a", 1), || 0);
    assert_eq!(name(refused), ErrorName::ConcurrentModification);
    let info = Tasks::new(&store, TABLE).get(&id).unwrap().info();
    assert_eq!(info.status, TaskStatus::Failed);
    assert_eq!(info.error.unwrap().error, ErrorName::TableNotFound);
    assert_eq!(info.started_at, "");
}
