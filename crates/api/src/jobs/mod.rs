//! Jobs: maintenance tasks as the door `/maintenance/v1` takes and shows them, with the names and
//! meanings of the published maintenance skill (health and jobs, "Jobs").
//!
//! A job is a task. The two doors differ in what they call things, and in what is left out: a job
//! keeps it left out, so that the table's configuration decides when it runs, else Lance.
//!
//! | module | what it holds |
//! |---|---|
//! | [`request`] | a job as it is submitted or previewed |
//! | [`id`] | job ids |
//! | [`status`] | a job as it is shown |
//! | [`listing`] | the jobs of a table |

pub mod id;
pub mod listing;
pub mod request;
pub mod status;

pub use id::JobId;
pub use request::JobRequest;
pub use status::{JobState, JobStatus};

use serde::{Deserialize, Serialize};

use crate::task::TaskType;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobOperation {
    /// Merges small fragments and drops deleted rows.
    Compact,
    /// Brings indices up to date.
    OptimizeIndices,
    /// Removes old versions.
    Cleanup,
    /// Creates an index on values or texts. Shown, and submitted through the OSS API only.
    CreateScalarIndex,
    /// Creates an index on vectors. Shown, and submitted through the OSS API only.
    CreateVectorIndex,
    /// Fills a computed column. Shown, and submitted through the namespace only.
    BackfillColumn,
}

impl JobOperation {
    /// The name in jobs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::OptimizeIndices => "optimize_indices",
            Self::Cleanup => "cleanup",
            Self::CreateScalarIndex => "create_scalar_index",
            Self::CreateVectorIndex => "create_vector_index",
            Self::BackfillColumn => "backfill_column",
        }
    }
}

impl From<TaskType> for JobOperation {
    fn from(task_type: TaskType) -> Self {
        match task_type {
            TaskType::Compact => Self::Compact,
            TaskType::OptimizeIndices => Self::OptimizeIndices,
            TaskType::Cleanup => Self::Cleanup,
            TaskType::ScalarIndex => Self::CreateScalarIndex,
            TaskType::VectorIndex => Self::CreateVectorIndex,
            TaskType::BackfillColumn => Self::BackfillColumn,
        }
    }
}
