use std::cell::Cell;
use std::collections::BTreeMap;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::listing::{ListTasksQuery, Marker};
use lance_maintenance_api::task::{TaskId, TaskStatus, TaskType};
use lance_maintenance_dispatch::{Claim, Finish, Outcome, TaskAddress};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;
use lance_maintenance_store::{KeyValue, StoreError};
use proptest::prelude::*;

use crate::support::{TABLE, cleanup, compact, name, submit, table};

/// Runs a task to its end.
fn complete(store: &MemoryStore, id: &TaskId) {
    let claim = Claim {
        worker_id: "w".to_owned(),
        incarnation: String::new(),
        task: TaskAddress {
            table_id: TABLE.to_owned(),
            task_id: id.clone(),
        },
        attempt: 1,
    };
    Execution::new(store).claim(&claim, || 5).unwrap();
    let finish = Finish {
        claim,
        outcome: Outcome::Completed(Default::default()),
        params: None,
    };
    Execution::new(store).finish(finish, || 6).unwrap();
}

fn page(store: &MemoryStore, max_results: usize, below: Option<u64>) -> (Vec<TaskId>, Option<u64>) {
    let query = ListTasksQuery {
        task_type: TaskType::Compact,
        max_results,
        below,
    };
    let page = Tasks::new(store, TABLE).list(&query, false).unwrap();
    let next = match page.next_marker.as_str() {
        "" => None,
        marker => Some(Marker::new(TABLE, "lance_compact").decode(marker).unwrap()),
    };
    (
        page.tasks.into_iter().map(|task| task.task_id).collect(),
        next,
    )
}

fn all_pages(store: &MemoryStore, max_results: usize) -> Vec<TaskId> {
    let mut seen = Vec::new();
    let mut below = None;
    loop {
        let (tasks, next) = page(store, max_results, below);
        assert!(tasks.len() <= max_results);
        seen.extend(tasks);
        match next {
            Some(slot) => below = Some(slot),
            None => return seen,
        }
    }
}

#[test]
fn a_submit_costs_the_same_with_one_task_as_with_a_thousand() {
    let store = MemoryStore::default();
    let mut costs = BTreeMap::new();
    for now in 0..1000 {
        let before = store.operations();
        submit(&store, compact(), 1000, now).unwrap();
        *costs.entry(store.operations() - before).or_insert(0) += 1;
    }
    // One read, one increment, one write.
    assert_eq!(costs, BTreeMap::from([(3, 1000)]));
}

#[test]
fn a_get_costs_one_read() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 1000, 0).unwrap();
    let before = store.operations();
    Tasks::new(&store, TABLE).get(&id).unwrap();
    assert_eq!(store.operations() - before, 1);
}

#[test]
fn the_quota_counts_each_type_and_is_freed_by_deletion_only() {
    let store = MemoryStore::default();
    let tasks = Tasks::new(&store, TABLE);
    let ids: Vec<TaskId> = (0..3)
        .map(|now| submit(&store, compact(), 3, now).unwrap())
        .collect();
    for _ in 0..5 {
        assert_eq!(
            name(submit(&store, compact(), 3, 9)),
            ErrorName::TaskQuotaExceeded
        );
    }
    submit(&store, cleanup(), 3, 9).unwrap();
    complete(&store, &ids[1]);
    assert_eq!(
        name(submit(&store, compact(), 3, 9)),
        ErrorName::TaskQuotaExceeded
    );
    tasks.delete(&ids[1], || 0).unwrap();
    submit(&store, compact(), 3, 9).unwrap();
    assert_eq!(
        name(submit(&store, compact(), 3, 9)),
        ErrorName::TaskQuotaExceeded
    );
}

#[test]
fn refusals_for_the_quota_use_no_slots_up() {
    let store = MemoryStore::default();
    submit(&store, compact(), 1, 0).unwrap();
    for _ in 0..100 {
        assert_eq!(
            name(submit(&store, compact(), 1, 0)),
            ErrorName::TaskQuotaExceeded
        );
    }
    let next = submit(&store, compact(), 1000, 0).unwrap();
    assert!(next.slot() <= 3, "{}", next.slot());
}

#[test]
fn delete_takes_ended_tasks_once() {
    let store = MemoryStore::default();
    let tasks = Tasks::new(&store, TABLE);
    let id = submit(&store, compact(), 10, 0).unwrap();
    assert_eq!(name(tasks.delete(&id, || 0)), ErrorName::TaskStateConflict);
    complete(&store, &id);
    assert_eq!(tasks.get(&id).unwrap().status(), TaskStatus::Completed);
    tasks.delete(&id, || 0).unwrap();
    assert_eq!(name(tasks.delete(&id, || 0)), ErrorName::TaskNotFound);
    assert_eq!(name(tasks.get(&id)), ErrorName::TaskNotFound);
    assert!(all_pages(&store, 10).is_empty());
}

#[test]
fn ids_that_do_not_say_what_the_record_says_name_no_task() {
    let store = MemoryStore::default();
    let id = submit(&store, compact(), 10, 0).unwrap();
    let tasks = Tasks::new(&store, TABLE);
    for other in [
        TaskId::new(TaskType::Compact, id.slot(), [8; 10]),
        TaskId::new(TaskType::Cleanup, id.slot(), [7; 10]),
        TaskId::new(TaskType::Compact, id.slot() + 1, [7; 10]),
    ] {
        assert_eq!(name(tasks.get(&other)), ErrorName::TaskNotFound);
        assert_eq!(name(tasks.delete(&other, || 0)), ErrorName::TaskNotFound);
    }
    assert_eq!(
        name(Tasks::new(&store, "another table").get(&id)),
        ErrorName::TaskNotFound
    );
}

#[test]
fn a_page_that_meets_many_deleted_tasks_is_cut_short_and_leads_on() {
    let store = MemoryStore::default();
    let oldest = submit(&store, compact(), u64::MAX, 0).unwrap();
    for now in 0..10_000 {
        let id = submit(&store, compact(), u64::MAX, now).unwrap();
        complete(&store, &id);
        Tasks::new(&store, TABLE).delete(&id, || 0).unwrap();
    }
    let before = store.operations();
    let (first, next) = page(&store, 10, None);
    assert!(first.is_empty());
    assert!(next.is_some());
    assert!(store.operations() - before < 1000);
    assert_eq!(all_pages(&store, 10), [oldest]);
}

#[derive(Clone, Debug)]
enum Step {
    Submit,
    Delete(usize),
    Page(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Submit),
        2 => any::<usize>().prop_map(Step::Delete),
        3 => (1_usize..6).prop_map(Step::Page),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Whatever is submitted and deleted between two pages: no task comes twice, and none is left
    /// out that was there from the first page to the last.
    #[test]
    fn paging_while_others_submit_and_delete(steps in steps()) {
        let store = MemoryStore::default();
        let mut alive: Vec<TaskId> = Vec::new();
        let mut seen: Vec<TaskId> = Vec::new();
        let mut throughout: Vec<TaskId> = Vec::new();
        let mut below = None;
        for step in steps {
            match step {
                Step::Submit => alive.push(submit(&store, compact(), 1000, 0).unwrap()),
                Step::Delete(index) if !alive.is_empty() => {
                    let id = alive.remove(index % alive.len());
                    complete(&store, &id);
                    Tasks::new(&store, TABLE).delete(&id, || 0).unwrap();
                    throughout.retain(|task| *task != id);
                }
                Step::Delete(_) => {}
                Step::Page(size) => {
                    if below.is_none() {
                        seen.clear();
                        throughout = alive.clone();
                    }
                    let (tasks, next) = page(&store, size, below);
                    for task in tasks {
                        prop_assert!(!seen.contains(&task), "twice: {task}");
                        seen.push(task);
                    }
                    below = next;
                    if below.is_none() {
                        for task in &throughout {
                            prop_assert!(seen.contains(task), "left out: {task}");
                        }
                    }
                }
            }
        }
        let listed = all_pages(&store, 3);
        alive.reverse();
        prop_assert_eq!(listed, alive);
    }
}

/// A store in which another submit comes right after the first slot was taken.
struct Overtaken {
    store: MemoryStore,
    other: Cell<bool>,
}

impl KeyValue for Overtaken {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.store.set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        let counted = self.store.increment(key, delta)?;
        if self.other.take() {
            assert!(submit(&self.store, compact(), 1, 3).is_err());
        }
        Ok(counted)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.store.get_many(keys)
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.store.delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.store.keys()
    }
}

/// The place that a refused submit gives back is not one for a submit that came before it.
#[test]
fn a_refusal_makes_no_room() {
    let store = MemoryStore::default();
    submit(&store, compact(), 1, 0).unwrap();
    let overtaken = Overtaken {
        store,
        other: Cell::new(true),
    };
    let tasks = Tasks::new(&overtaken, TABLE);
    let refused = tasks.submit(&table(TABLE), compact(), "R", [9; 10], 1, || 1);
    assert_eq!(name(refused), ErrorName::TaskQuotaExceeded);
    assert_eq!(all_pages(&overtaken.store, 10).len(), 1);
}
