//! What to do about a table, and why: the rules.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
