//! Tasks as clients see them: submit, get, list, delete.

use lance_maintenance_api::listing::{ListTasksQuery, ListTasksResponse, Marker};
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::{Progress, TaskId, TaskInfo, TaskStatus, TaskType};
use lance_maintenance_api::time::format_micros;
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::{Dispatch, MAX_ATTEMPTS, MOST_ATTEMPTS, TableRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fence::Clock;
use crate::key_value::{KeyValue, StoreError, from_json, get_json, set_json};
use crate::places::SUBMIT_MICROS;
use crate::{keys, log, places};

/// A task as it was submitted. Written once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmittedTask {
    /// The task's id.
    pub task_id: TaskId,
    /// `task_type` and `params`.
    #[serde(flatten)]
    pub params: TaskParams,
    /// The table that it works on.
    pub table: TableRef,
    /// When it was submitted, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// The request that submitted it.
    pub request_id: String,
    /// A status that is neither of the known four and not derived: what a later version of the
    /// service may have stored. It is shown as it is, and such a task is never run or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TaskStatus>,
}

/// Who makes an attempt. Written once, by the owner of the attempt's fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The worker's name.
    pub worker_id: String,
    /// Which of the worker's lives.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub incarnation: String,
    /// When the attempt started, in microseconds since the Unix epoch.
    pub started_at: i64,
    /// How many of the attempts before were handed back by workers that left.
    #[serde(default, skip_serializing_if = "is_none")]
    pub handed_back: u32,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

impl Run {
    /// Whether the task is not to be tried again once this attempt is over: too many were lost, or
    /// handed back. `left`: whether this one was handed back.
    pub(crate) fn is_last(&self, attempt: u32, left: bool) -> bool {
        let lost = attempt.saturating_sub(self.handed_back + u32::from(left));
        lost >= MAX_ATTEMPTS || attempt >= MOST_ATTEMPTS
    }
}

/// How a task ended. Written once, by the owner of the task's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// When it ended, in microseconds since the Unix epoch.
    pub completed_at: i64,
    /// What it did.
    #[serde(default)]
    pub result: Map<String, Value>,
    /// Why it failed; none if it completed.
    pub error: Option<TaskError>,
}

/// A task, put together from its records.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The task as it was submitted.
    pub submitted: SubmittedTask,
    /// Its attempts, from the first: [`MAX_ATTEMPTS`], or [`MOST_ATTEMPTS`] if more may be there.
    pub runs: Vec<Option<Run>>,
    /// How it ended.
    pub end: Option<End>,
}

impl Task {
    /// The keys of the records that make up the task in a slot.
    fn keys(table_id: &str, task_type: TaskType, slot: u64) -> Vec<String> {
        let task = keys::task(table_id, task_type, slot);
        let mut keys = vec![task.clone(), keys::task_end(&task)];
        keys.extend((1..=MAX_ATTEMPTS).map(|attempt| keys::task_run(&task, attempt)));
        keys
    }

    /// The keys of the attempts that few tasks have: there are any only after all of `Task::keys`.
    fn more_keys(table_id: &str, task_type: TaskType, slot: u64) -> Vec<String> {
        let task = keys::task(table_id, task_type, slot);
        (MAX_ATTEMPTS + 1..=MOST_ATTEMPTS)
            .map(|attempt| keys::task_run(&task, attempt))
            .collect()
    }

    /// Puts the records under `Task::keys` together.
    fn read(
        store: &impl KeyValue,
        keys: &[String],
        values: &[Option<Vec<u8>>],
    ) -> Result<Option<Self>, StoreError> {
        let record = |index: usize| -> Option<(&str, &[u8])> {
            Some((keys.get(index)?, values.get(index)?.as_deref()?))
        };
        let Some((key, bytes)) = record(0) else {
            return Ok(None);
        };
        let submitted: SubmittedTask = from_json(key, bytes)?;
        let end = record(1)
            .map(|(key, bytes)| from_json(key, bytes))
            .transpose()?;
        let run_of = |key: &String, value: &Option<Vec<u8>>| -> Result<Option<Run>, StoreError> {
            let run = value.as_deref().map(|bytes| from_json(key, bytes));
            run.transpose()
        };
        let pairs = keys.iter().zip(values).skip(2);
        let mut runs: Vec<Option<Run>> = pairs
            .map(|(key, value)| run_of(key, value))
            .collect::<Result<_, _>>()?;
        if runs.last().is_some_and(Option::is_some) {
            let id = &submitted.task_id;
            let keys = Self::more_keys(&submitted.table.id, id.task_type(), id.slot());
            for (key, value) in keys.iter().zip(store.get_many(&keys)?) {
                runs.push(run_of(key, &value)?);
            }
        }
        Ok(Some(Self {
            submitted,
            runs,
            end,
        }))
    }

    /// The last attempt that was started, and its number.
    pub fn last_run(&self) -> Option<(u32, &Run)> {
        (1..)
            .zip(&self.runs)
            .filter_map(|(attempt, run)| Some((attempt, run.as_ref()?)))
            .last()
    }

    /// Where the task stands.
    pub fn status(&self) -> TaskStatus {
        match (&self.submitted.status, &self.end) {
            (Some(status), _) => status.clone(),
            (None, Some(End { error: Some(_), .. })) => TaskStatus::Failed,
            (None, Some(End { error: None, .. })) => TaskStatus::Completed,
            (None, None) if self.last_run().is_some() => TaskStatus::Running,
            (None, None) => TaskStatus::Submitted,
        }
    }

    /// The task as clients read it.
    pub fn info(self) -> TaskInfo {
        let status = self.status();
        let started_at = self.runs.iter().flatten().map(|run| run.started_at).min();
        let (completed_at, result, error) = match self.end {
            Some(end) => (Some(end.completed_at), end.result, end.error),
            None => (None, Map::new(), None),
        };
        TaskInfo {
            task_id: self.submitted.task_id,
            params: self.submitted.params,
            status,
            created_at: format_micros(self.submitted.created_at),
            started_at: started_at.map(format_micros).unwrap_or_default(),
            completed_at: completed_at.map(format_micros).unwrap_or_default(),
            result,
            error,
            progress: None,
        }
    }

    /// The message that hands the task to a worker for this attempt.
    pub fn dispatch(&self, attempt: u32) -> Dispatch {
        Dispatch {
            task_id: self.submitted.task_id.clone(),
            attempt,
            table: self.submitted.table.clone(),
            params: self.submitted.params.clone(),
            request_id: self.submitted.request_id.clone(),
        }
    }
}

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

    /// How far the task's current attempt is.
    pub fn progress(&self, id: &TaskId) -> Result<Option<Progress>, StoreError> {
        get_json(self.store, &keys::task_progress(&self.key(id)))
    }

    /// A page of the tasks of one type, newest first.
    pub fn list(&self, query: &ListTasksQuery) -> Result<ListTasksResponse, ApiError> {
        let task_type = query.task_type;
        let page = self.page(task_type, query.below, query.max_results)?;
        let marker = Marker::new(self.table_id, task_type.as_str());
        Ok(ListTasksResponse {
            tasks: page
                .entries
                .into_iter()
                .map(|(_, task)| task.info())
                .collect(),
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
        let mut records = Task::keys(self.table_id, id.task_type(), id.slot());
        records.push(keys::task_progress(&key));
        let attempts = task.runs.len() as u32;
        if attempts > MAX_ATTEMPTS {
            records.extend(Task::more_keys(self.table_id, id.task_type(), id.slot()));
        }
        let fences = (1..=attempts)
            .map(|attempt| keys::task_claim_fence(&key, attempt))
            .chain(keys::task_end_fences(&key));
        records.extend(fences.flat_map(|fence| [keys::waiting(&fence), fence]));
        // Whoever comes second finishes what the first may have left.
        self.store.delete_many(&records)?;
        if owner {
            Ok(())
        } else {
            Err(TaskId::not_found())
        }
    }

    pub(crate) fn key(&self, id: &TaskId) -> String {
        keys::task(self.table_id, id.task_type(), id.slot())
    }
}
