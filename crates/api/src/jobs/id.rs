//! Job ids: the table's id and the task's, so that a job is found without its table being named.

use crate::error::{ApiError, ErrorName};
use crate::task::TaskId;

/// A job's id: `{table id}.{task id}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobId {
    /// The table's UUID.
    pub table_id: String,
    /// The task's id.
    pub task_id: TaskId,
}

impl JobId {
    /// The id of a table's task.
    pub fn new(table_id: &str, task_id: &TaskId) -> Self {
        Self {
            table_id: table_id.to_owned(),
            task_id: task_id.clone(),
        }
    }

    /// The id in this text; whatever is none names no job.
    pub fn parse(text: &str) -> Option<Self> {
        let (table_id, task_id) = text.split_once('.')?;
        let is_plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        if table_id.len() != 36 || !table_id.bytes().all(is_plain) {
            return None;
        }
        Some(Self {
            table_id: table_id.to_owned(),
            task_id: TaskId::parse(task_id)?,
        })
    }

    /// The error for an id that names no job.
    pub fn not_found() -> ApiError {
        ApiError::new(
            ErrorName::TaskNotFound,
            "There is no job with this id: there never was one, or its record was deleted.",
        )
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.table_id, self.task_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskType;

    #[test]
    fn what_is_a_job_id() {
        let task_id = TaskId::new(TaskType::Cleanup, 7, [3; 10]);
        let id = JobId::new("5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab", &task_id);
        assert_eq!(JobId::parse(&id.to_string()), Some(id.clone()));
        // The skill's rule for ids.
        let text = id.to_string();
        assert!(
            text.len() <= 128
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        );
        for other in [
            "",
            "no-such-job-0000",
            task_id.as_str(),
            &format!(".{task_id}"),
            &format!("5d0e6c0e/6f0b-4c7e-9b0a-0123456789ab.{task_id}"),
            &format!("{text}.{task_id}"),
            &text[..60],
        ] {
            assert_eq!(JobId::parse(other), None, "{other}");
        }
    }
}
