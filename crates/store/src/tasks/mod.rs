//! Tasks as clients see them: submit, get, list, delete.

mod all;
mod record;

pub use all::{TasksPage, TasksPlace};
pub use record::{End, Run, SubmittedTask, Task};

use lance_maintenance_api::listing::{ListTasksQuery, ListTasksResponse, Marker};
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::{Progress, TaskId, TaskInfo, TaskStatus, TaskType};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{MAX_ATTEMPTS, TableRef};

use crate::fence::Clock;
use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::places::SUBMIT_MICROS;
use crate::{keys, log, places};

fn quota_exceeded(quota: u64) -> ApiError {
    ApiError::new(
        ErrorName::TaskQuotaExceeded,
        format!(
            "The table keeps {quota} tasks of this type. Delete records of tasks that have \
             ended, then submit again."
        ),
    )
}

/// The tasks of one table.
pub struct Tasks<'a, S> {
    pub(crate) store: &'a S,
    pub(crate) table_id: &'a str,
}

impl<'a, S: KeyValue> Tasks<'a, S> {
    /// The tasks of the table with this UUID.
    pub fn new(store: &'a S, table_id: &'a str) -> Self {
        Self { store, table_id }
    }

    /// Stores a new task durably, unless the table has `quota` tasks of its type. However many
    /// there are, it costs one read, one increment and one write. `now` tells the time in microseconds.
    /// What took too long is taken back, since its place may have been given up for lost.
    pub fn submit(
        &self,
        table: &TableRef,
        params: TaskParams,
        request_id: &str,
        random: [u8; 10],
        quota: u64,
        now: impl Fn() -> i64,
    ) -> Result<Task, ApiError> {
        let began = now();
        let task_type = params.task_type();
        let slot = match self.take_place(task_type, quota, &now)? {
            Some(slot) => slot,
            None => self
                .take_place(task_type, quota, &now)?
                .ok_or_else(|| quota_exceeded(quota))?,
        };
        let submitted = SubmittedTask {
            task_id: TaskId::new(task_type, slot, random),
            params,
            table: table.clone(),
            created_at: began,
            request_id: request_id.to_owned(),
            status: None,
        };
        let key = keys::task(self.table_id, task_type, slot);
        set_json(self.store, &key, &submitted)?;
        if now() - began > SUBMIT_MICROS {
            self.store.delete_many(std::slice::from_ref(&key))?;
            let log = keys::task_log(self.table_id, task_type);
            places::free(self.store, &log, &key, &now)?;
            return Err(ApiError::new(
                ErrorName::ServiceUnavailable,
                "Storing the task took too long, and it was not submitted; try again.",
            ));
        }
        Ok(Task {
            submitted,
            runs: Vec::new(),
            end: None,
            canceled: false,
        })
    }

    /// Takes a slot in the quota. None if the quota was met for the first time: once more tells.
    ///
    /// Which slots were freed is looked at before a slot is taken. After it, slots may be among them
    /// that were taken later and refused, and two would count the same place as theirs.
    fn take_place(
        &self,
        task_type: TaskType,
        quota: u64,
        now: Clock<'_>,
    ) -> Result<Option<u64>, ApiError> {
        let log = keys::task_log(self.table_id, task_type);
        let full = keys::task_log_full(&log);
        let freed_log = keys::task_log_freed(&log);
        let is_met = |used: u64, freed: u64| used.saturating_sub(freed) >= quota;
        let mut freed = None;
        // Once the quota was met, look before taking a slot: refusals must not use slots up.
        if let Some(used) = get_json::<u64>(self.store, &full)? {
            let before = log::slots(self.store, &freed_log)?;
            if is_met(used, before) {
                return Err(quota_exceeded(quota));
            }
            freed = Some(before);
        }
        let slot = log::take_slot(self.store, &log)?;
        if slot <= quota || freed.is_some_and(|freed| !is_met(slot - 1, freed)) {
            return Ok(Some(slot));
        }
        // The slot itself counts as used here, and as freed from the next line on.
        set_json(self.store, &full, &slot)?;
        let key = keys::task(self.table_id, task_type, slot);
        places::free(self.store, &log, &key, now)?;
        match freed {
            Some(_) => Err(quota_exceeded(quota)),
            None => Ok(None),
        }
    }

    /// The task with this id.
    pub fn get(&self, id: &TaskId) -> Result<Task, ApiError> {
        self.read(id)?.ok_or_else(TaskId::not_found)
    }

    /// The task with this id, if there is one.
    pub(crate) fn read(&self, id: &TaskId) -> Result<Option<Task>, StoreError> {
        let keys = Task::keys(self.table_id, id.task_type(), id.slot());
        let values = self.store.get_many(&keys)?;
        let task = Task::read(self.store, &keys, &values)?;
        Ok(task.filter(|task| task.submitted.task_id == *id))
    }

    /// How far a task is: what its attempt said last, and all of it once it is done. Nothing is known of
    /// one that waits.
    pub fn progress(&self, task: &Task) -> Result<Option<Progress>, StoreError> {
        match task.status() {
            TaskStatus::Submitted => Ok(None),
            TaskStatus::Completed => Ok(Some(Progress {
                percent: 100,
                message: "done".to_owned(),
            })),
            _ => {
                let key = self.key(&task.submitted.task_id);
                get_json(self.store, &keys::task_progress(&key))
            }
        }
    }

    /// A page of the tasks of one type, newest first; `with_progress`: and how far each is.
    pub fn list(
        &self,
        query: &ListTasksQuery,
        with_progress: bool,
    ) -> Result<ListTasksResponse, ApiError> {
        let task_type = query.task_type;
        let page = self.page(task_type, query.below, query.max_results)?;
        let info = |task: Task| -> Result<TaskInfo, StoreError> {
            let progress = match with_progress {
                true => self.progress(&task)?,
                false => None,
            };
            Ok(TaskInfo {
                progress,
                ..task.info()
            })
        };
        let marker = Marker::new(self.table_id, task_type.as_str());
        Ok(ListTasksResponse {
            tasks: page
                .entries
                .into_iter()
                .map(|(_, task)| info(task))
                .collect::<Result<_, _>>()?,
            next_marker: page
                .next
                .map(|slot| marker.encode(slot))
                .unwrap_or_default(),
        })
    }

    /// At most `limit` tasks of one type with slots below one, newest first, with their slots.
    pub(crate) fn page(
        &self,
        task_type: TaskType,
        below: Option<u64>,
        limit: usize,
    ) -> Result<log::Page<Task>, StoreError> {
        let keys_of = |slot| Task::keys(self.table_id, task_type, slot);
        log::page(
            self.store,
            &keys::task_log(self.table_id, task_type),
            below,
            limit,
            keys_of,
            |slot, values| Task::read(self.store, &keys_of(slot), values),
        )
    }

    /// Removes the records of a task that has ended, and frees its place in the quota. `now` tells the
    /// time in microseconds.
    pub fn delete(&self, id: &TaskId, now: impl Fn() -> i64) -> Result<(), ApiError> {
        let task = self.get(id)?;
        let status = task.status();
        if !status.is_terminal() {
            return Err(ApiError::new(
                ErrorName::TaskStateConflict,
                format!(
                    "The task is {}; only a completed or failed task can be deleted.",
                    status.as_str()
                ),
            ));
        }
        let key = self.key(id);
        let log = keys::task_log(self.table_id, id.task_type());
        // Before the records go: cut short in between, the deletion is repeated.
        let owner = places::free(self.store, &log, &key, &now)?;
        // The task goes first: a claim that is held up and gets a fence anew looks whether it is there.
        let mut records = vec![key];
        records.extend(self.rest(id, task.runs.len() as u32));
        // Whoever comes second finishes what the first may have left.
        self.store.delete_many(&records)?;
        if owner {
            Ok(())
        } else {
            Err(TaskId::not_found())
        }
    }

    /// The keys of a task of so many attempts, but for that of the task as submitted and the fence of its
    /// place. Where the task is deleted, they are left over.
    pub(crate) fn rest(&self, id: &TaskId, attempts: u32) -> Vec<String> {
        let key = self.key(id);
        let mut rest = Task::keys(self.table_id, id.task_type(), id.slot());
        rest.retain(|of_task| *of_task != key);
        rest.push(keys::task_progress(&key));
        if attempts > MAX_ATTEMPTS {
            rest.extend(Task::more_keys(self.table_id, id.task_type(), id.slot()));
        }
        let fences = (1..=attempts)
            .map(|attempt| keys::task_claim_fence(&key, attempt))
            .chain(keys::task_end_fences(&key));
        rest.extend(fences.flat_map(|fence| [keys::waiting(&fence), fence]));
        rest
    }

    pub(crate) fn key(&self, id: &TaskId) -> String {
        keys::task(self.table_id, id.task_type(), id.slot())
    }
}
