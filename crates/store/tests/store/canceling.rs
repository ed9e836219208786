//! Tasks that are canceled: while they wait, run, or are over, and by somebody who dies on the way.

use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_maintenance_api::task::{TaskId, TaskInfo, TaskStatus, TaskType};
use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{Finish, Heartbeat, InHand, Outcome, Report, TakeUp};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

use crate::failing::Failing;
use crate::support::{
    SECOND, TABLE, address, catalog, claim, cleanup, compact, identifier, name, record, submit,
    table,
};

const LOST: ErrorName = ErrorName::ConcurrentModification;

fn cancel(store: &impl KeyValue, id: &TaskId, now: i64) -> TaskStatus {
    let task = Execution::new(store).cancel(&address(id), || now).unwrap();
    assert_eq!(task, Tasks::new(store, TABLE).get(id).unwrap());
    task.status()
}

fn info(store: &impl KeyValue, id: &TaskId) -> TaskInfo {
    Tasks::new(store, TABLE).get(id).unwrap().info()
}

/// Whether a claim is told to wait, and that the task is canceled.
fn told(
    store: &impl KeyValue,
    id: &TaskId,
    worker: &str,
    attempt: u32,
    now: i64,
) -> Result<(bool, bool), ErrorName> {
    let claimed = Execution::new(store).claim(&claim(id, worker, attempt), || now);
    let claimed = claimed.map_err(|error| error.name)?;
    Ok((claimed.wait, claimed.canceled))
}

fn reports(store: &impl KeyValue, id: &TaskId, worker: &str) -> bool {
    let report = Report {
        claim: claim(id, worker, 1),
        percent: 1,
        message: String::new(),
    };
    let claimed = Execution::new(store).progress(&report).unwrap();
    assert!(!claimed.wait);
    claimed.canceled
}

fn beat(store: &impl KeyValue, worker: &str, in_hand: &[&TaskId], now: i64) -> TakeUp {
    let held = in_hand.iter().map(|id| InHand {
        task: address(id),
        attempt: Some(1),
    });
    let heartbeat = Heartbeat {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        starting: false,
        in_hand: held.collect(),
        room: 10,
    };
    Execution::new(store).heartbeat(&heartbeat, || now).unwrap()
}

fn finish(id: &TaskId, attempt: u32, outcome: Outcome) -> Finish {
    Finish {
        claim: claim(id, "a", attempt),
        outcome,
        params: None,
    }
}

fn canceled() -> Outcome {
    Outcome::Failed(TaskError::new(
        ErrorName::Canceled,
        "The task was canceled.",
    ))
}

/// It ended as canceled, and nobody ever began it.
fn assert_never_began(store: &impl KeyValue, id: &TaskId, context: &str) {
    let info = info(store, id);
    let error = info.error.map(|error| error.error);
    assert_eq!(error, Some(ErrorName::Canceled), "{context}");
    assert_eq!(info.status, TaskStatus::Failed, "{context}");
    assert_eq!(info.started_at, "", "{context}");
    assert_ne!(info.completed_at, "", "{context}");
}

#[test]
fn a_waiting_task_ends_at_once() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    let next = submit(&store, cleanup(), 10, 1).unwrap();
    let noted = Tasks::new(&store, TABLE).get(&id).unwrap();
    Execution::new(&store).note(&noted.dispatch(1)).unwrap();

    assert_eq!(cancel(&store, &id, 2), TaskStatus::Failed);
    assert_never_began(&store, &id, "");
    let ended = info(&store, &id);
    // Nobody is offered it, whoever has it is refused, and it keeps nobody waiting.
    assert_eq!(told(&store, &id, "a", 1, 3), Err(LOST));
    assert_eq!(beat(&store, "a", &[&id], 3), TakeUp::default());
    assert_eq!(told(&store, &next, "a", 1, 3), Ok((false, false)));
    assert_eq!(cancel(&store, &id, 4), TaskStatus::Failed);
    assert_eq!(info(&store, &id), ended);

    Tasks::new(&store, TABLE).delete(&id, || 5).unwrap();
    let of_task = format!("task/{TABLE}/lance_compact/1/");
    let keys = store.keys().unwrap().into_iter();
    let left: Vec<String> = keys.filter(|key| key.starts_with(&of_task)).collect();
    assert_eq!(left, [format!("{of_task}freeing")]);
}

#[test]
fn a_running_task_is_told_and_ends_itself() {
    let completed = || Outcome::Completed(Default::default());
    let cases = [
        (canceled(), TaskStatus::Failed),
        // Its commit was allowed before.
        (completed(), TaskStatus::Completed),
    ];
    for (outcome, status) in cases {
        let store = MemoryStore::default();
        let id = submit(&store, compact(), 10, 0).unwrap();
        let other = submit(&store, cleanup(), 10, 1).unwrap();
        assert_eq!(told(&store, &id, "a", 1, 1), Ok((false, false)));
        assert!(!reports(&store, &id, "a"));
        for _ in 0..2 {
            assert_eq!(cancel(&store, &id, 2), TaskStatus::Running);
        }
        assert_eq!(told(&store, &id, "a", 1, 3), Ok((false, true)));
        assert_eq!(told(&store, &id, "b", 1, 3), Err(LOST));
        assert!(reports(&store, &id, "a"));
        assert_eq!(
            beat(&store, "a", &[&other, &id], 3).canceled,
            [address(&id)]
        );
        assert!(beat(&store, "b", &[&other], 3).canceled.is_empty());
        // The table is its own until it ends.
        assert_eq!(told(&store, &other, "b", 1, 3), Ok((true, false)));

        let execution = Execution::new(&store);
        execution.finish(finish(&id, 1, outcome), || 4).unwrap();
        assert_eq!(cancel(&store, &id, 5), status);
        assert!(beat(&store, "a", &[&id], 5).canceled.is_empty());
        assert_eq!(told(&store, &other, "b", 1, 5), Ok((false, false)));
    }
}

/// It may have committed in an attempt that was lost: only the next one looks for that.
#[test]
fn a_canceled_task_is_tried_again_once_it_was_granted() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    beat(&store, "a", &[], 0);
    let noted = Tasks::new(&store, TABLE).get(&id).unwrap();
    Execution::new(&store).note(&noted.dispatch(1)).unwrap();
    told(&store, &id, "a", 1, 0).unwrap();
    assert_eq!(cancel(&store, &id, 1), TaskStatus::Running);
    let offered = beat(&store, "b", &[], 31 * SECOND).tasks;
    assert_eq!(offered, [noted.dispatch(2)]);
    assert_eq!(told(&store, &id, "b", 2, 31 * SECOND), Ok((false, true)));
    let late = Execution::new(&store).finish(finish(&id, 1, canceled()), || 32 * SECOND);
    assert_eq!(name(late), LOST);
    assert_eq!(cancel(&store, &id, 33 * SECOND), TaskStatus::Running);
}

#[test]
fn what_has_ended_stays_as_it_is() {
    let store = MemoryStore::default();
    let ended = submit(&store, compact(), 10, 0).unwrap();
    told(&store, &ended, "a", 1, 1).unwrap();
    let completed = Outcome::Completed([("n".to_owned(), 1.into())].into_iter().collect());
    let execution = Execution::new(&store);
    execution
        .finish(finish(&ended, 1, completed), || 2)
        .unwrap();
    let of_another_version = submit(&store, compact(), 10, 3).unwrap();
    let key = format!("task/{TABLE}/lance_compact/{}", of_another_version.slot());
    let stored = String::from_utf8(store.get(&key).unwrap().unwrap()).unwrap();
    let paused = stored.replacen('{', r#"{"status":"paused","#, 1);
    store.set(&key, paused.as_bytes()).unwrap();

    for (id, status) in [
        (&ended, TaskStatus::Completed),
        (&of_another_version, TaskStatus::from("paused".to_owned())),
    ] {
        let (before, keys) = (info(&store, id), store.keys().unwrap());
        assert_eq!(cancel(&store, id, 4), status);
        assert_eq!((info(&store, id), store.keys().unwrap()), (before, keys));
    }
}

#[test]
fn what_is_not_there_is_not_canceled() {
    let store = MemoryStore::default();
    let deleted = submit(&store, compact(), 10, 0).unwrap();
    cancel(&store, &deleted, 1);
    Tasks::new(&store, TABLE).delete(&deleted, || 2).unwrap();
    let there = submit(&store, compact(), 10, 3).unwrap();
    let unknown = TaskId::new(TaskType::Compact, 7, [7; 10]);
    // The same slot.
    let another = TaskId::new(TaskType::Compact, there.slot(), [8; 10]);
    let keys = store.keys().unwrap();
    for id in [deleted, unknown, another] {
        let refused = Execution::new(&store).cancel(&address(&id), || 4);
        assert_eq!(name(refused), ErrorName::TaskNotFound);
    }
    assert_eq!(store.keys().unwrap(), keys);
    assert_eq!(info(&store, &there).status, TaskStatus::Submitted);
}

#[test]
fn tasks_of_a_dropped_table_are_canceled() {
    for (is_running, status) in [(false, TaskStatus::Failed), (true, TaskStatus::Running)] {
        let store = MemoryStore::default();
        let catalog = catalog(&store);
        let name = identifier("ns$t");
        let created = catalog.create_table(&name, &record("ns$t", TABLE), || 0);
        created.unwrap();
        let id = submit(&store, compact(), 10, 0).unwrap();
        if is_running {
            told(&store, &id, "a", 1, 0).unwrap();
        }
        catalog.drop_table(&name, TABLE, true, || 0).unwrap();
        assert_eq!(cancel(&store, &id, 1), status);
        if is_running {
            assert!(reports(&store, &id, "a"));
        } else {
            assert_never_began(&store, &id, "dropped");
        }
    }
}

/// Who meets a task that somebody died canceling.
#[derive(Clone, Copy, Debug)]
enum Meets {
    /// A claim.
    Claims,
    /// A claim that would have to wait for its turn.
    ClaimsInTurn,
    /// A heartbeat to which it would be offered.
    WouldBeOffered,
    /// A heartbeat of a worker that has it in hand.
    HasIt,
    /// A client that cancels it again.
    Cancels,
}

#[test]
fn a_cancel_that_was_cut_short_holds_once_it_was_written() {
    const MOST: u64 = 20;
    use Meets::*;
    let meets = |store: &Failing, id: &TaskId, how: Meets, now: i64| match how {
        Claims | ClaimsInTurn => {
            let refused = told(store, id, "a", 1, now);
            assert!(refused.is_err(), "{how:?} {refused:?}");
        }
        WouldBeOffered => assert!(beat(store, "a", &[], now).tasks.is_empty()),
        HasIt => drop(beat(store, "a", &[id], now)),
        Cancels => drop(cancel(store, id, now)),
    };
    for how in [Claims, ClaimsInTurn, WouldBeOffered, HasIt, Cancels] {
        for operations in 0..=MOST {
            assert!(operations < MOST, "a cancel takes {MOST} operations");
            let store = Failing::default();
            let tasks = Tasks::new(&store, TABLE);
            let submit = |params, now| {
                let task = tasks.submit(&table(TABLE), params, "R", [7; 10], 10, || now);
                task.unwrap()
            };
            if let ClaimsInTurn = how {
                let first = submit(cleanup(), 0).submitted.task_id;
                told(&store, &first, "z", 1, 0).unwrap();
            }
            let task = submit(compact(), 1);
            let id = &task.submitted.task_id;
            if let WouldBeOffered = how {
                Execution::new(&store).note(&task.dispatch(1)).unwrap();
            }
            let (outcome, whole) = store.cut(operations, |store| {
                Execution::new(store).cancel(&address(id), || 2)
            });
            assert_eq!(outcome.is_ok(), whole);
            let is_written = tasks.get(id).unwrap().canceled;
            assert_eq!(is_written, operations > 1);
            let context = format!("{how:?} after {operations} operations");
            if is_written {
                // A fence whose owner died is waited for, and there are two.
                for second in [1, 32, 33, 64, 65, 96] {
                    meets(&store, id, how, second * SECOND);
                }
                assert_never_began(&store, id, &context);
                assert_eq!(
                    told(&store, id, "b", 2, 100 * SECOND),
                    Err(LOST),
                    "{context}"
                );
            } else if !matches!(how, ClaimsInTurn) {
                assert_eq!(told(&store, id, "a", 1, 3), Ok((false, false)), "{context}");
            }
            if whole {
                break;
            }
        }
    }
}

/// Whoever claimed the first attempt died before it was granted.
#[test]
fn a_canceled_task_whose_claim_was_cut_short_ends() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    let fence = format!("task/{TABLE}/lance_compact/1/claim/1");
    store.increment(&fence, 1).unwrap();
    assert_eq!(cancel(&store, &id, 0), TaskStatus::Submitted);
    let cases = [
        (1, vec![address(&id)], TaskStatus::Submitted),
        (30, vec![address(&id)], TaskStatus::Submitted),
        (31, vec![], TaskStatus::Failed),
    ];
    for (second, canceled, status) in cases {
        let answer = beat(&store, "a", &[&id], second * SECOND);
        assert_eq!(answer.canceled, canceled, "{second}");
        assert_eq!(info(&store, &id).status, status, "{second}");
    }
    assert_never_began(&store, &id, "");
}

#[test]
fn a_heartbeat_asks_once_for_all_that_is_in_hand() {
    let store = MemoryStore::default();
    let ids: Vec<TaskId> = (0..50)
        .map(|now| submit(&store, compact(), 100, now).unwrap())
        .collect();
    let operations = |in_hand: &[&TaskId]| {
        let before = store.operations();
        beat(&store, "a", in_hand, SECOND);
        store.operations() - before
    };
    operations(&[]);
    let all: Vec<&TaskId> = ids.iter().collect();
    assert_eq!(operations(&all), operations(&[]) + 1);
}

#[test]
fn a_task_that_has_ended_shows_what_it_ran_with() {
    let left_out = || {
        TaskParams::Compact(CompactParams {
            target_rows_per_fragment: None,
            ..CompactParams::parse(b"", "reencode").unwrap()
        })
    };
    let completed = || Outcome::Completed(Default::default());
    let cases = [
        (completed(), Some(compact()), compact()),
        (canceled(), Some(compact()), compact()),
        (completed(), None, left_out()),
        // Not this task's.
        (completed(), Some(cleanup()), left_out()),
    ];
    for (outcome, params, shown) in cases {
        let store = MemoryStore::default();
        let id = submit(&store, left_out(), 10, 0).unwrap();
        told(&store, &id, "a", 1, 1).unwrap();
        assert_eq!(info(&store, &id).params, left_out());
        let execution = Execution::new(&store);
        let end = |params| Finish {
            params,
            ..finish(&id, 1, outcome.clone())
        };
        execution.finish(end(params), || 2).unwrap();
        // Whatever it says of that, the same end again is no error.
        execution.finish(end(None), || 3).unwrap();
        let task = Tasks::new(&store, TABLE).get(&id).unwrap();
        assert_eq!(task.submitted.params, left_out());
        assert_eq!(task.info().params, shown);
    }
}
