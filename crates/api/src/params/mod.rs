//! The parameters of the tasks.
//!
//! Each type parses from a request body with `parse`: defaults are filled in, values are checked as
//! far as that is possible without looking at the table, unknown fields are ignored. What parses is
//! what is stored, shown and run.

mod backfill;
mod cleanup;
mod compact;
mod optimize_indices;
mod scalar_index;
mod vector_index;

pub use backfill::BackfillColumnParams;
pub use cleanup::CleanupParams;
pub use compact::{CompactParams, CompactionMode};
pub use optimize_indices::OptimizeIndicesParams;
pub use scalar_index::{ScalarIndexParams, ScalarIndexType};
pub use vector_index::{MetricType, VectorIndexParams, VectorIndexType};

use serde::{Deserialize, Serialize};

use crate::task::TaskType;

/// The effective parameters of a task, with its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "task_type", content = "params")]
pub enum TaskParams {
    /// Merges small fragments and drops deleted rows.
    #[serde(rename = "lance_compact")]
    Compact(CompactParams),
    /// Creates a scalar or text index.
    #[serde(rename = "lance_scalar_index")]
    ScalarIndex(ScalarIndexParams),
    /// Creates a vector index.
    #[serde(rename = "lance_vector_index")]
    VectorIndex(VectorIndexParams),
    /// Brings indices up to date with the rows written since.
    #[serde(rename = "lance_optimize_indices")]
    OptimizeIndices(OptimizeIndicesParams),
    /// Removes old versions and the files that only they need.
    #[serde(rename = "lance_cleanup")]
    Cleanup(CleanupParams),
    /// Fills a computed column.
    #[serde(rename = "lance_backfill_column")]
    BackfillColumn(BackfillColumnParams),
}

impl TaskParams {
    /// The type of the task that these parameters are for.
    pub fn task_type(&self) -> TaskType {
        match self {
            Self::Compact(_) => TaskType::Compact,
            Self::ScalarIndex(_) => TaskType::ScalarIndex,
            Self::VectorIndex(_) => TaskType::VectorIndex,
            Self::OptimizeIndices(_) => TaskType::OptimizeIndices,
            Self::Cleanup(_) => TaskType::Cleanup,
            Self::BackfillColumn(_) => TaskType::BackfillColumn,
        }
    }
}
