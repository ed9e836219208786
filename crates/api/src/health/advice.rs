//! What to do about a table, and why.
//!
//! Indices come before a compaction, which merges neighbours only where the same index segments cover
//! them, and a compaction before a cleanup, which frees the files that it replaced.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{HealthReport, rules};
use crate::jobs::JobOperation;

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The rule that led to it.
    pub rule: Rule,
    /// What is wrong and what helps, for a person.
    pub reason: String,
    /// The numbers that the rule looked at.
    pub numbers: Map<String, Value>,
    /// The job that does it, ready to be submitted; none where no job does.
    pub job: Option<AdvisedJob>,
    /// The job that is needed once the first is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<AdvisedJob>,
}

/// A job that can be submitted as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdvisedJob {
    /// What it does.
    pub operation: JobOperation,
    /// How.
    pub options: Map<String, Value>,
}

/// What leads to an advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Files that the newest version refers to are not there.
    MissingFiles,
    /// An index consists of several segments.
    IndexSegments,
    /// Rows are not covered by an index.
    UnindexedRows,
    /// A compaction would leave fewer fragments, or drop deleted rows.
    Compaction,
    /// Fragments consist of many data files.
    ColumnFiles,
    /// Bytes could be freed, and whoever asks wants that.
    OldVersions,
}

/// What to do about a table, in this order. Nothing that one of its tasks waits or runs for. Old versions
/// are left alone unless somebody wants their space.
pub fn advise(report: &HealthReport, wants_space: bool) -> Vec<Advice> {
    let mut advice = Vec::new();
    advice.extend(rules::missing_files(report));
    advice.extend(rules::indices(report));
    advice.extend(rules::compaction(report));
    advice.extend(rules::column_files(report));
    if wants_space {
        advice.extend(rules::old_versions(report));
    }
    let tasks = report.tasks.as_deref().unwrap_or_default();
    advice.retain(|advice| match &advice.job {
        Some(job) => !tasks.iter().any(|task| task.operation == job.operation),
        None => true,
    });
    advice
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
