//! A job as it is shown.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{JobId, JobOperation};
use crate::error::{ErrorName, TaskError};
use crate::task::{Progress, TaskInfo, TaskStatus};

/// Where a job stands; the last three are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Stored, not started.
    Queued,
    /// A worker is at it.
    Running,
    /// Done.
    Succeeded,
    /// Ended without success.
    Failed,
    /// Stopped on request, before it had an effect.
    Canceled,
}

impl JobState {
    /// The state of a task. One in a state that this version does not know has not ended.
    pub fn of(task: &TaskInfo) -> Self {
        match (&task.status, &task.error) {
            (TaskStatus::Submitted, _) => Self::Queued,
            (TaskStatus::Running | TaskStatus::Other(_), _) => Self::Running,
            (TaskStatus::Completed, _) => Self::Succeeded,
            (TaskStatus::Failed, Some(error)) if error.error == ErrorName::Canceled => {
                Self::Canceled
            }
            (TaskStatus::Failed, _) => Self::Failed,
        }
    }
}

/// A job as it is shown: what the skill asks for, and more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobStatus {
    /// The job's id.
    pub job_id: String,
    /// Where it stands.
    pub state: JobState,
    /// What it does.
    pub operation: JobOperation,
    /// Whether it is to be stopped. It goes on to the next point where it can be, and then ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancel_requested: bool,
    /// How: what was given at submit, and nothing that was left out.
    pub options: Map<String, Value>,
    /// The id under which the OSS API knows it.
    pub task_id: String,
    /// When it was submitted.
    pub created_at: String,
    /// When a worker first started it; empty until then.
    pub started_at: String,
    /// When it ended; empty until then.
    pub completed_at: String,
    /// How far it is; absent until a worker has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// What it did; absent unless it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
    /// The table's version afterwards; absent where the job makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Why it failed or was stopped; absent unless it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<JobError>,
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobError {
    /// What kind of failure it is.
    pub code: JobErrorCode,
    /// What is wrong and what to do.
    pub message: String,
}

/// The kinds of failure that the skill tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobErrorCode {
    /// The service does not do this.
    Unsupported,
    /// Something is wrong with the job.
    InvalidInput,
    /// There is no such table.
    TableNotFound,
    /// There is no such job.
    JobNotFound,
    /// The caller, or the worker, may not do this.
    PermissionDenied,
    /// Another writer changed the table.
    Conflict,
    /// The job was stopped on request.
    Canceled,
    /// Anything else.
    Internal,
}

impl From<ErrorName> for JobErrorCode {
    fn from(name: ErrorName) -> Self {
        use ErrorName as Name;
        match name {
            Name::Unsupported | Name::NoSuchOperation | Name::MethodNotAllowed => Self::Unsupported,
            Name::TableNotFound
            | Name::NamespaceNotFound
            | Name::NoSuchTableBucket
            | Name::LanceThirdLevelDomainRequired => Self::TableNotFound,
            Name::TaskNotFound => Self::JobNotFound,
            Name::PermissionDenied
            | Name::AccessDenied
            | Name::SignatureDoesNotMatch
            | Name::InvalidAccessKeyId
            | Name::RequestTimeTooSkewed
            | Name::InvalidSecurityToken => Self::PermissionDenied,
            Name::ConcurrentModification => Self::Conflict,
            Name::Canceled => Self::Canceled,
            // What is named in the job and is not there is a mistake in the job.
            Name::TableIndexNotFound
            | Name::TableIndexAlreadyExists
            | Name::TableTagNotFound
            | Name::TableVersionNotFound
            | Name::TableBranchNotFound
            | Name::TableColumnNotFound
            | Name::TableSchemaValidationError
            | Name::InvalidInput
            | Name::InvalidDigest
            | Name::RequestTooLarge
            | Name::MalformedPolicy => Self::InvalidInput,
            Name::NamespaceAlreadyExists
            | Name::NamespaceNotEmpty
            | Name::TableAlreadyExists
            | Name::ServiceUnavailable
            | Name::InternalError
            | Name::InvalidTableState
            | Name::TaskStateConflict
            | Name::TaskQuotaExceeded
            | Name::NoSuchPolicy
            | Name::NoSuchCredential => Self::Internal,
        }
    }
}

impl From<TaskError> for JobError {
    fn from(error: TaskError) -> Self {
        Self {
            code: error.error.into(),
            message: error.detail,
        }
    }
}

impl JobStatus {
    /// The status of a table's task that was submitted with these options.
    pub fn new(table_id: &str, task: TaskInfo, options: Map<String, Value>) -> Self {
        let state = JobState::of(&task);
        let operation = task.params.task_type().into();
        let mut result = task.result;
        if operation == JobOperation::Cleanup {
            result.entry("failed_deletes").or_insert(0.into());
        }
        let version = result
            .remove("version")
            .and_then(|version| version.as_u64());
        Self {
            job_id: JobId::new(table_id, &task.task_id).to_string(),
            state,
            operation,
            cancel_requested: false,
            options,
            task_id: task.task_id.to_string(),
            created_at: task.created_at,
            started_at: task.started_at,
            completed_at: task.completed_at,
            progress: task.progress,
            result: (state == JobState::Succeeded).then_some(result),
            version,
            error: task.error.map(JobError::from),
        }
    }
}
