//! What a job would do to a table as it is now (health and jobs, "Previews"). The run that follows
//! on an unchanged table does the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::result::CleanupResult;

/// What a job would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Preview {
    /// Of `compact`.
    Compact(CompactPreview),
    /// Of `optimize_indices`.
    OptimizeIndices(OptimizeIndicesPreview),
    /// Of `cleanup`.
    Cleanup(CleanupPreview),
}

/// What a compaction would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactPreview {
    /// Groups of fragments that this run would rewrite.
    pub tasks: u64,
    /// Those that there would be without a budget.
    pub tasks_without_budget: u64,
    /// Budgets that limit the run, by their names.
    pub budgets: BTreeMap<String, Budget>,
    /// Fragments that would be rewritten.
    pub fragments_rewritten: u64,
    /// Rows that would be rewritten.
    pub rows_rewritten: u64,
    /// Deleted rows that would be gone.
    pub deleted_rows_dropped: u64,
    /// Bytes of the data files that would be rewritten; null if the table does not note them.
    pub bytes_rewritten: Option<u64>,
    /// The table's version that was looked at.
    pub version: u64,
    /// Bytes of a row in the data files; null if the table does not note them.
    pub bytes_per_row: Option<u64>,
    /// The table's fragments as it is.
    pub fragments_before: u64,
    /// And afterwards.
    pub fragments_after: u64,
    /// Bytes that the compaction itself frees: none, since older versions need the files.
    pub bytes_freed: u64,
    /// Bytes of the replaced files, which a cleanup of the older versions frees; null if the table does
    /// not note them. What is written instead takes about `bytes_rewritten` without the share of the
    /// deleted rows.
    pub bytes_freed_after_cleanup: Option<u64>,
    /// Indices that would no longer cover the rewritten rows, and need an update afterwards.
    pub indices_losing_coverage: Vec<String>,
    /// Whether what is gained is worth what is rewritten.
    pub is_worthwhile: bool,
    /// Options that are better for this table than those of the job: to be written into the job as
    /// they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
}

/// A limit of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Budget {
    /// How much one run may take on.
    pub value: u64,
    /// Where that is said.
    pub source: String,
}

/// What an update of indices would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptimizeIndicesPreview {
    /// The indices that the job is for.
    pub indices: Vec<IndexPreview>,
    /// The table's version that was looked at.
    pub version: u64,
    /// Options that are better for this table than those of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
}

/// What would become of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexPreview {
    /// Its name.
    pub name: String,
    /// Its segments as it is.
    pub num_segments: u64,
    /// Rows that it does not cover, and would.
    pub num_unindexed_rows: u64,
    /// Its segments afterwards.
    pub num_segments_after: u64,
    /// Rows that would be written into the new segment, those of merged segments among them.
    pub rows_written: u64,
}

/// What a cleanup would remove.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CleanupPreview {
    /// The numbers that the run would have as its result.
    #[serde(flatten)]
    pub removed: CleanupResult,
    /// Always 0: what can't be removed turns out when it is tried.
    pub failed_deletes: u64,
    /// The table's version that was looked at.
    pub version: u64,
    /// Versions that would stay.
    pub versions_kept: u64,
    /// Tags that keep versions which would be removed otherwise.
    pub tags_kept: BTreeMap<String, u64>,
    /// Options that are better for this table than those of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
}
