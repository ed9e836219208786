//! The tasks of a table, of all types, newest first.

use lance_maintenance_api::ApiError;
use lance_maintenance_api::task::TaskType;

use super::{Task, Tasks};
use crate::key_value::KeyValue;

/// How many types there are, and so logs of a table's tasks.
const TYPES: usize = TaskType::ALL.len();
/// The place before the newest task.
const NEWEST: u64 = u64::MAX;

/// A place in the listing: of each type only slots below.
pub type TasksPlace = [u64; TYPES];

/// One page of a table's tasks, newest first.
pub struct TasksPage {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Where the next page starts; none if this is the last.
    pub next: Option<TasksPlace>,
}

impl<S: KeyValue> Tasks<'_, S> {
    /// A page of at most `limit` tasks of all types, from a place on, or from the newest.
    pub fn all(&self, from: Option<TasksPlace>, limit: usize) -> Result<TasksPage, ApiError> {
        let mut place = from.unwrap_or([NEWEST; TYPES]);
        let mut found = Vec::new();
        let mut is_more = false;
        for (at, task_type) in TaskType::ALL.into_iter().enumerate() {
            let below = place.get(at).copied().filter(|below| *below != NEWEST);
            let page = self.page(task_type, below, limit)?;
            is_more |= page.next.is_some();
            let tasks = page.entries.into_iter();
            found.extend(tasks.map(|(slot, task)| (at, slot, task)));
        }
        // Slots of one type come newest first, and stay so.
        found.sort_by_key(|(at, slot, task)| {
            std::cmp::Reverse((task.submitted.created_at, *at, *slot))
        });
        is_more |= found.len() > limit;
        found.truncate(limit);
        for (at, slot, _) in &found {
            if let Some(below) = place.get_mut(*at) {
                *below = (*below).min(*slot);
            }
        }
        Ok(TasksPage {
            tasks: found.into_iter().map(|(_, _, task)| task).collect(),
            next: is_more.then_some(place),
        })
    }
}
