//! The records of a task, and the task that is put together from them.

use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::{TaskId, TaskInfo, TaskStatus, TaskType};
use lance_maintenance_api::time::format_micros;
use lance_maintenance_dispatch::{Dispatch, MAX_ATTEMPTS, MOST_ATTEMPTS, TableRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::key_value::{KeyValue, StoreError, from_json};
use crate::keys;

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

/// The worker of an attempt that nobody makes. No worker has an empty name.
const NOBODY: &str = "";

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
    /// An attempt that nobody makes, of which that was found at this time.
    pub(crate) fn nobody_s(found: i64, handed_back: u32) -> Self {
        Self {
            worker_id: NOBODY.to_owned(),
            incarnation: String::new(),
            started_at: found,
            handed_back,
        }
    }

    /// Whether somebody was granted the attempt.
    pub(crate) fn is_somebody_s(&self) -> bool {
        self.worker_id != NOBODY
    }

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
    /// The parameters with which it ran, if its worker told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<TaskParams>,
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
    /// Whether it is to be stopped, or was.
    pub canceled: bool,
}

impl Task {
    /// The keys of the records that make up the task in a slot.
    pub(super) fn keys(table_id: &str, task_type: TaskType, slot: u64) -> Vec<String> {
        let task = keys::task(table_id, task_type, slot);
        let mut keys = vec![
            task.clone(),
            keys::task_end(&task),
            keys::task_cancel(&task),
        ];
        keys.extend((1..=MAX_ATTEMPTS).map(|attempt| keys::task_run(&task, attempt)));
        keys
    }

    /// The keys of the attempts that few tasks have: there are any only after all of `Task::keys`.
    pub(super) fn more_keys(table_id: &str, task_type: TaskType, slot: u64) -> Vec<String> {
        let task = keys::task(table_id, task_type, slot);
        (MAX_ATTEMPTS + 1..=MOST_ATTEMPTS)
            .map(|attempt| keys::task_run(&task, attempt))
            .collect()
    }

    /// Puts the records under `Task::keys` together.
    pub(super) fn read(
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
        let canceled = record(2).is_some();
        let pairs = keys.iter().zip(values).skip(3);
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
            canceled,
        }))
    }

    /// The last attempt that was started, and its number.
    pub fn last_run(&self) -> Option<(u32, &Run)> {
        (1..)
            .zip(&self.runs)
            .filter_map(|(attempt, run)| Some((attempt, run.as_ref()?)))
            .last()
    }

    /// Whether somebody was granted an attempt.
    pub(crate) fn was_granted(&self) -> bool {
        self.runs.iter().flatten().any(Run::is_somebody_s)
    }

    /// Whether it may still be run: it has not ended, and is not another version's.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status(), TaskStatus::Submitted | TaskStatus::Running)
    }

    /// Where the task stands.
    pub fn status(&self) -> TaskStatus {
        match (&self.submitted.status, &self.end) {
            (Some(status), _) => status.clone(),
            (None, Some(End { error: Some(_), .. })) => TaskStatus::Failed,
            (None, Some(End { error: None, .. })) => TaskStatus::Completed,
            (None, None) if self.was_granted() => TaskStatus::Running,
            (None, None) => TaskStatus::Submitted,
        }
    }

    /// The task as clients read it.
    pub fn info(self) -> TaskInfo {
        let status = self.status();
        let made = self.runs.iter().flatten().filter(|run| run.is_somebody_s());
        let started_at = made.map(|run| run.started_at).min();
        let (completed_at, result, error, params) = match self.end {
            Some(end) => (Some(end.completed_at), end.result, end.error, end.params),
            None => (None, Map::new(), None, None),
        };
        TaskInfo {
            task_id: self.submitted.task_id,
            params: params.unwrap_or(self.submitted.params),
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
