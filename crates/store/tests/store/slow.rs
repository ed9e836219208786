//! A slow store: what is decided is decided by the time at which it is, not by that of the request.

use std::cell::Cell;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{Finish, Outcome};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;
use lance_maintenance_store::{KeyValue, StoreError};

use crate::support::{SECOND, TABLE, address, claim, compact, name, table};

/// A store of which every operation takes so long.
#[derive(Default)]
struct Slow {
    store: MemoryStore,
    clock: Cell<i64>,
    takes: Cell<i64>,
}

impl Slow {
    fn pass(&self) -> &MemoryStore {
        self.clock.set(self.clock.get() + self.takes.get());
        &self.store
    }

    fn submit(&self, params: lance_maintenance_api::params::TaskParams) -> TaskId {
        let tasks = Tasks::new(&self.store, TABLE);
        let task = tasks.submit(&table(TABLE), params, "R", [7; 10], 10, || self.clock.get());
        task.unwrap().submitted.task_id
    }
}

impl KeyValue for Slow {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.pass().get(key)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.pass().set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.pass().increment(key, delta)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.pass().get_many(keys)
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.pass().delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.pass().keys()
    }
}

#[test]
fn what_happened_is_noted_with_the_time_at_which_it_did() {
    let store = Slow::default();
    let execution = Execution::new(&store);
    let now = || store.clock.get();
    let id = store.submit(compact());
    store.takes.set(SECOND);
    execution.claim(&claim(&id, "a", 1), now).unwrap();
    // The grant and a last look at the end come after it was written.
    let granted = store.clock.get() - 2 * SECOND;
    let finish = Finish {
        claim: claim(&id, "a", 1),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    execution.finish(finish, now).unwrap();
    let ended = store.clock.get() - SECOND;
    let task = Tasks::new(&store, TABLE).get(&id).unwrap();
    assert_eq!(task.runs[0].as_ref().unwrap().started_at, granted);
    assert_eq!(task.end.unwrap().completed_at, ended);
}

/// Whoever is late with what it owns leaves it to others, who may have given it up.
#[test]
fn who_is_too_slow_is_told_to_try_again() {
    let store = Slow::default();
    let execution = Execution::new(&store);
    let now = || store.clock.get();
    let id = store.submit(compact());
    store.takes.set(11 * SECOND);
    let late = execution.claim(&claim(&id, "a", 1), now).unwrap();
    assert!(late.wait, "it has not got the turn");
    store.takes.set(0);
    store.clock.set(store.clock.get() + 31 * SECOND);
    // Whoever asks first finds the turn's change abandoned, and whoever asks next may make another.
    for (pause, expected) in [(0, true), (31, false)] {
        store.clock.set(store.clock.get() + pause * SECOND);
        let claimed = execution.claim(&claim(&id, "a", 1), now).unwrap();
        assert_eq!(claimed.wait, expected, "{pause}");
    }
    store.takes.set(11 * SECOND);
    let finish = || Finish {
        claim: claim(&id, "a", 1),
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    assert_eq!(
        name(execution.finish(finish(), now)),
        ErrorName::ServiceUnavailable
    );
    store.takes.set(0);
    for (pause, expected) in [(0, false), (31, true)] {
        store.clock.set(store.clock.get() + pause * SECOND);
        let ended = execution.finish(finish(), now);
        assert_eq!(ended.is_ok(), expected, "{pause}");
    }
}

/// A turn counts from when it was given, however long ago it was asked for.
#[test]
fn a_turn_is_not_over_before_its_time() {
    let store = Slow::default();
    let execution = Execution::new(&store);
    let now = || store.clock.get();
    let first = store.submit(compact());
    store.takes.set(4 * SECOND);
    let arrived = store.clock.get();
    execution.claim(&claim(&first, "a", 1), now).unwrap();
    let granted = store.clock.get();
    assert!(granted - arrived > 20 * SECOND);
    store.takes.set(0);
    for (second_after, waits) in [(20, true), (30, false)] {
        // Nobody hears of the first worker.
        let at = granted + second_after * SECOND;
        let claim = claim(&first, "b", 2);
        let claimed = execution.claim(&claim, || at).unwrap();
        assert_eq!(claimed.wait, waits, "{second_after}");
    }
}

/// The place of a submit that took long may have been given up: it is not answered as if it had one.
#[test]
fn a_slow_submit_is_taken_back() {
    let store = MemoryStore::default();
    let tasks = Tasks::new(&store, TABLE);
    let submit = |took: i64| {
        // It looks at the clock when it begins, and when the task is stored.
        let begun = Cell::new(false);
        let now = || took * i64::from(begun.replace(true));
        tasks.submit(&table(TABLE), compact(), "R", [7; 10], 1, now)
    };
    assert_eq!(name(submit(31 * SECOND)), ErrorName::ServiceUnavailable);
    submit(30 * SECOND).unwrap();
    assert_eq!(name(submit(0)), ErrorName::TaskQuotaExceeded);
    let there = store.keys().unwrap();
    let is_task = |key: &&String| key.starts_with("task/") && key.split('/').count() == 4;
    assert_eq!(there.iter().filter(is_task).count(), 1);
}

/// A store in which something happens right after a key of this kind was read for the first time, alone
/// or with others.
struct Meanwhile<'a> {
    store: &'a MemoryStore,
    after: &'static str,
    happens: Cell<Option<&'a dyn Fn()>>,
}

impl Meanwhile<'_> {
    fn was_read(&self, key: &str) {
        if key.starts_with(self.after)
            && let Some(happens) = self.happens.take()
        {
            happens();
        }
    }
}

impl KeyValue for Meanwhile<'_> {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.store.get(key);
        self.was_read(key);
        value
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.store.set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.store.increment(key, delta)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let values = self.store.get_many(keys);
        keys.iter().for_each(|key| self.was_read(key));
        values
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.store.delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.store.keys()
    }
}

#[test]
fn a_claim_held_up_while_its_task_ends_and_is_deleted_is_not_granted() {
    let store = MemoryStore::default();
    let tasks = Tasks::new(&store, TABLE);
    let submitted = tasks.submit(&table(TABLE), compact(), "R", [7; 10], 10, || 0);
    let id = submitted.unwrap().submitted.task_id;
    let execution = Execution::new(&store);
    execution.claim(&claim(&id, "one", 1), || 1).unwrap();
    let ends_and_goes = || {
        let finish = Finish {
            claim: claim(&id, "one", 1),
            outcome: Outcome::Completed(Default::default()),
            params: None,
        };
        execution.finish(finish, || 2).unwrap();
        tasks.delete(&id, || 3).unwrap();
    };
    let slow = Meanwhile {
        store: &store,
        after: "dropped/",
        happens: Cell::new(Some(&ends_and_goes)),
    };
    let error = Execution::new(&slow)
        .claim(&claim(&id, "two", 1), || 4)
        .unwrap_err();
    assert_eq!(error.name, ErrorName::ConcurrentModification);
    assert_eq!(tasks.get(&id).unwrap_err().name, ErrorName::TaskNotFound);
}

/// The fences go with the task, so that a claim gets one anew, and so does a cancel.
#[test]
fn what_is_held_up_while_a_task_is_canceled_and_deleted_leaves_nothing() {
    type Call = fn(&Execution<'_, Meanwhile<'_>>, &TaskId) -> ErrorName;
    let claims: Call = |execution, id| name(execution.claim(&claim(id, "one", 1), || 4));
    let cancels: Call = |execution, id| name(execution.cancel(&address(id), || 4));
    let cases = [
        ("dropped/", claims, ErrorName::ConcurrentModification),
        ("task/", cancels, ErrorName::TaskNotFound),
    ];
    for (after, call, expected) in cases {
        let store = MemoryStore::default();
        let tasks = Tasks::new(&store, TABLE);
        let submitted = tasks.submit(&table(TABLE), compact(), "R", [7; 10], 10, || 0);
        let id = submitted.unwrap().submitted.task_id;
        let ends_and_goes = || {
            let canceled = Execution::new(&store).cancel(&address(&id), || 2).unwrap();
            assert!(canceled.status().is_terminal());
            tasks.delete(&id, || 3).unwrap();
        };
        let slow = Meanwhile {
            store: &store,
            after,
            happens: Cell::new(Some(&ends_and_goes)),
        };
        assert_eq!(call(&Execution::new(&slow), &id), expected);
        let keys = store.keys().unwrap().into_iter();
        let left: Vec<String> = keys.filter(|key| key.starts_with("task/")).collect();
        assert_eq!(left, [format!("task/{TABLE}/lance_compact/1/freeing")]);
    }
}
