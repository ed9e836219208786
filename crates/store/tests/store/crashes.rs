//! The application dies between any two operations on the store. What was answered holds, and what
//! was not can be tried again.

use std::cell::Cell;

use lance_maintenance_api::ApiError;
use lance_maintenance_api::identifier::{Delimiter, NamespaceName, TableIdentifier};
use lance_maintenance_api::task::{TaskId, TaskStatus};
use lance_maintenance_dispatch::{Claim, Finish, Heartbeat, MAX_ATTEMPTS, Outcome, TaskAddress};
use lance_maintenance_store::catalog::{Catalog, NamespaceRecord, Origin, TableRecord};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;
use lance_maintenance_store::{KeyValue, StoreError};

use crate::support::{TABLE, compact, table};

const SECOND: i64 = 1_000_000;
/// More operations than any call makes.
const MOST: u64 = 40;

/// A store that can be reached for so many more operations.
#[derive(Default)]
struct Failing {
    store: MemoryStore,
    left: Cell<Option<u64>>,
    refused: Cell<bool>,
}

impl Failing {
    /// Lets `call` make `operations` operations, then none. Whether it got through.
    fn cut<T>(&self, operations: u64, call: impl FnOnce(&Self) -> T) -> (T, bool) {
        self.left.set(Some(operations));
        self.refused.set(false);
        let outcome = call(self);
        self.left.set(None);
        (outcome, !self.refused.get())
    }

    fn pass(&self) -> Result<&MemoryStore, StoreError> {
        match self.left.get() {
            Some(0) => {
                self.refused.set(true);
                Err(StoreError::Unavailable("cut".to_owned()))
            }
            left => {
                self.left.set(left.map(|left| left - 1));
                Ok(&self.store)
            }
        }
    }
}

impl KeyValue for Failing {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.pass()?.get(key)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.pass()?.set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.pass()?.increment(key, delta)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.pass()?.get_many(keys)
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.pass()?.delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.pass()?.keys()
    }
}

fn submit(store: &Failing, quota: u64) -> Result<TaskId, ApiError> {
    Tasks::new(store, TABLE)
        .submit(&table(TABLE), compact(), "R", [7; 10], quota, 0)
        .map(|task| task.submitted.task_id)
}

fn claim(id: &TaskId, attempt: u32) -> Claim {
    Claim {
        worker_id: "w".to_owned(),
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
    }
}

/// A worker that has just started, and ends whatever it gets; until there is nothing left.
fn work_until_done(store: &Failing, id: &TaskId) -> TaskStatus {
    let execution = Execution::new(store);
    for second in 0..600 {
        let now = second * SECOND;
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            starting: second == 0,
            in_hand: Vec::new(),
            room: 10,
        };
        let Ok(offered) = execution.heartbeat(&heartbeat, now) else {
            continue;
        };
        for task in offered.tasks {
            if execution
                .claim(&claim(&task.task_id, task.attempt), now)
                .is_ok()
            {
                // One that is answered with a failure is not repeated here: the worker died too.
                let _ = execution.finish(finish(&task.task_id, task.attempt), now);
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
        let cut = |store: &Failing| Execution::new(store).claim(&claim(&id, 1), 0);
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
        Execution::new(&store).claim(&claim(&id, 1), 0).unwrap();
        let cut = |store: &Failing| Execution::new(store).finish(finish(&id, 1), 0);
        let (outcome, whole) = store.cut(operations, cut);
        assert_eq!(outcome.is_ok(), whole);
        let status = work_until_done(&store, &id);
        assert!(
            status.is_terminal(),
            "{status:?} after {operations} operations"
        );
        Tasks::new(&store, TABLE).delete(&id).unwrap();
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
        execution.claim(&claim(&id, 1), 0).unwrap();
        let cut = |store: &Failing| Execution::new(store).finish(finish(&id, 1), 0);
        let (_, whole) = store.cut(operations, cut);
        let taken = (1..600).any(|second| {
            match execution.finish(finish(&id, 1), second * SECOND) {
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
            execution.claim(&claim(&id, attempt), 0).unwrap();
        }
        let heartbeat = Heartbeat {
            worker_id: "w".to_owned(),
            starting: true,
            in_hand: Vec::new(),
            room: 10,
        };
        let cut = |store: &Failing| Execution::new(store).heartbeat(&heartbeat, 0);
        let (_, whole) = store.cut(operations, cut);
        let status = work_until_done(&store, &id);
        assert_eq!(status, TaskStatus::Failed, "after {operations} operations");
        if whole {
            return;
        }
    }
    panic!("a heartbeat takes more than {MOST} operations");
}

/// However a deletion is cut short, it can be repeated, and the task's place is freed once.
#[test]
fn a_deletion_that_was_cut_short() {
    const QUOTA: u64 = 2;
    let mut lost = 0;
    for operations in 0..MOST {
        let store = Failing::default();
        let ids = [
            submit(&store, QUOTA).unwrap(),
            submit(&store, QUOTA).unwrap(),
        ];
        for id in &ids {
            let execution = Execution::new(&store);
            execution.claim(&claim(id, 1), 0).unwrap();
            execution.finish(finish(id, 1), 0).unwrap();
        }
        let cut = |store: &Failing| Tasks::new(store, TABLE).delete(&ids[0]);
        let (_, whole) = store.cut(operations, cut);
        // Gone already, or now.
        let _ = Tasks::new(&store, TABLE).delete(&ids[0]);
        assert!(
            Tasks::new(&store, TABLE).get(&ids[0]).is_err(),
            "{operations}"
        );
        let room = (0..3).filter(|_| submit(&store, QUOTA).is_ok()).count();
        // Its place is lost where the fence was taken and nothing more, and never freed twice.
        lost += 1 - room;
        if whole {
            assert!(lost <= 1, "{lost}");
            return;
        }
    }
    panic!("a deletion takes more than {MOST} operations");
}

/// Whatever is cut short, a table's name stands for the table or for nothing, and can be changed
/// again later.
#[test]
fn a_table_whose_creation_or_dropping_was_cut_short() {
    let namespace = NamespaceName::parse("ns").unwrap();
    let id = TableIdentifier::parse("ns$t", &Delimiter::default()).unwrap();
    let record = |id: &str| TableRecord {
        id: id.to_owned(),
        namespace: "ns".to_owned(),
        name: "t".to_owned(),
        location: format!("file:///w/{id}.lance"),
        origin: Origin::Declared,
        format: "LANCE".to_owned(),
        properties: Default::default(),
        slot: 0,
    };
    let later = || 3600 * SECOND;
    for dropping in [false, true] {
        for operations in 0..MOST {
            let store = Failing::default();
            let catalog = Catalog::new(&store, "b");
            let properties = Default::default();
            let name = "ns".to_owned();
            catalog
                .create_namespace(&NamespaceRecord { name, properties }, || 0)
                .unwrap();
            if dropping {
                catalog
                    .create_table(&namespace, &record("1"), || 0)
                    .unwrap();
            }
            let cut = |store: &Failing| {
                let catalog = Catalog::new(store, "b");
                match dropping {
                    true => catalog.drop_table(&id, "1", || 0),
                    false => catalog.create_table(&namespace, &record("1"), || 0),
                }
            };
            let (_, whole) = store.cut(operations, cut);

            let listed = catalog.tables(&namespace, None, 10).unwrap().entries.len();
            assert_eq!(
                listed,
                usize::from(catalog.table(&id).is_ok()),
                "{operations}"
            );
            // The first time it may be told to wait for whoever was cut short.
            for minute in 0..3 {
                let now = || minute * 60 * SECOND;
                let _ = catalog.drop_table(&id, "1", now);
                let _ = catalog.create_table(&namespace, &record("2"), now);
            }
            let _ = catalog.drop_table(&id, "1", later);
            assert_eq!(
                catalog.table(&id).unwrap().id,
                "2",
                "{dropping} {operations}"
            );
            let listed = catalog.tables(&namespace, None, 10).unwrap().entries;
            assert_eq!(listed.len(), 1, "{dropping} {operations}");
            if whole {
                break;
            }
        }
    }
}
