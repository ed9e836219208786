//! The health of a table: what its newest version says about it, and what to do.
//!
//! The keys up to `indices` are those of the published health check (health and jobs, "Health
//! report"), with the same names and values; the others show what that check does not see.
//!
//! Sections are computed one by one. One that fails is absent, and `errors` says why under its name:
//! `num_rows`, `fragments` (the numbers of fragments and deleted rows), `compaction` (tasks and budget),
//! `versions`, `tags`, `indices`, and of the others `branches`, `oldest_version`, `bytes`,
//! `fragment_sizes`, `outlook` (what a compaction would do) and `missing`. Under `reclaimable` it says
//! that this number of bytes is there and may be too high.

pub mod advice;
mod rules;
#[cfg(test)]
mod samples;
pub mod worth;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::jobs::{JobOperation, JobState};
use advice::Advice;

/// Rows below which a fragment is small where the table's configuration says nothing.
pub const DEFAULT_TARGET_ROWS: u64 = 1024 * 1024;

/// The health of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthReport {
    /// The URI of the table's folder.
    pub table: String,
    /// Why sections are missing, by their names.
    #[serde(default)]
    pub errors: BTreeMap<String, String>,
    /// The version that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Rows that are not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_rows: Option<u64>,
    /// Fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_fragments: Option<u64>,
    /// Rows that are deleted and still stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_deleted_rows: Option<u64>,
    /// Rows below which a fragment is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub small_fragment_threshold_rows: Option<u64>,
    /// Fragments that are small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_small_fragments: Option<u64>,
    /// Tasks of Lance's planner with the table's targets and without a budget: above 0, a compaction
    /// would change the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_tasks: Option<u64>,
    /// The table's budgets per run: `max_source_fragments`, `max_source_rows`, `max_source_bytes`,
    /// as they stand in its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction_budget: Option<BTreeMap<String, String>>,
    /// Versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_versions: Option<u64>,
    /// Tags, and the versions they stand for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, u64>>,
    /// The table's `lance.auto_cleanup.*` settings; none: automatic cleanup is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_cleanup: Option<BTreeMap<String, String>>,
    /// Indices, those that Lance keeps for itself left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indices: Option<Vec<IndexHealth>>,

    /// The branches' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<Vec<String>>,
    /// The oldest version that is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_version: Option<VersionAge>,
    /// How much the table takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Bytes of a row in the data files, deleted rows among them; absent where there are none, or the
    /// table does not note the sizes of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_row_bytes: Option<u64>,
    /// Fragments by the rows they hold, deleted ones among them. Sizes that no fragment has are left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fragment_sizes: Option<Vec<FragmentSizes>>,
    /// Data files per fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_files: Option<ColumnFiles>,
    /// What a compaction as it is advised would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<CompactionOutlook>,
    /// Files that the newest version refers to and that are not there. Looked for on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    /// Tasks of the table that wait or run, newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<OpenTask>>,
    /// What to do, in this order. Nothing for a healthy table, and nothing that a task already waits or
    /// runs for.
    #[serde(default)]
    pub advice: Vec<Advice>,
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexHealth {
    /// Its name.
    pub name: String,
    /// Its type, as Lance calls it: `BTree`, `ZoneMap`, `IVF_PQ`.
    pub index_type: String,
    /// The segments that it consists of.
    pub num_segments: u64,
    /// Rows that it covers.
    pub num_rows_indexed: u64,
    /// Rows that it does not; null if the number of rows is not known.
    pub num_unindexed_rows: Option<i64>,
    /// Whether it no longer covers the rows that a compaction rewrites.
    #[serde(default)]
    pub loses_coverage_in_compaction: bool,
}

/// A version, and how old it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionAge {
    /// The version.
    pub version: u64,
    /// When it was made.
    pub created_at: String,
    /// How long ago that is, in seconds.
    pub age_seconds: u64,
}

/// How much a table takes, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bytes {
    /// All files in the table's folder that Lance writes, branches included.
    pub total: u64,
    /// Those that the newest version needs.
    pub live: u64,
    /// Those that neither the newest version needs, nor one that a tag or a branch holds: what a
    /// cleanup of everything else frees at most. Files of writes that are under way, or that broke off
    /// less than seven days ago, are among them and stay.
    pub reclaimable: u64,
}

/// Fragments that hold about as many rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FragmentSizes {
    /// Rows from which a fragment is counted here.
    pub from_rows: u64,
    /// Rows from which it no longer is; absent for the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_rows: Option<u64>,
    /// The fragments.
    pub num_fragments: u64,
    /// Their rows, deleted ones among them.
    pub num_rows: u64,
    /// Bytes of their data files, as far as the table notes them.
    pub bytes: u64,
}

/// Data files per fragment: each column that is added later is a file of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColumnFiles {
    /// Data files of all fragments.
    pub num_files: u64,
    /// Of the fragment that has most.
    pub most_per_fragment: u64,
    /// Fragments that have several.
    pub num_fragments_with_several: u64,
}

/// What a compaction would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactionOutlook {
    /// The rows that a fragment should have, if that is less than what the table is set to, since its
    /// rows are wide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_rows_per_fragment: Option<u64>,
    /// Groups of fragments that would be rewritten, those left out that would not become fewer.
    pub tasks: u64,
    /// Fragments in them.
    pub fragments_rewritten: u64,
    /// Fragments that would take their place.
    pub fragments_added: u64,
    /// Rows that would be rewritten.
    pub rows_rewritten: u64,
    /// Deleted rows that would be gone.
    pub deleted_rows_dropped: u64,
    /// Bytes that would be rewritten, as far as the table notes them.
    pub bytes_rewritten: u64,
    /// Whether that is little enough for what is gained.
    pub is_worthwhile: bool,
    /// Whether the table's budget for one run is too small for the first group, so that a job fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over_budget: bool,
}

/// Files that the newest version refers to and that are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// How many there are.
    pub num_files: u64,
    /// Data files and deletion files, relative to the table's folder: the first hundred.
    pub data_files: Vec<String>,
    /// Folders of index segments: the first hundred.
    pub index_folders: Vec<String>,
}

/// A task that waits or runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenTask {
    /// The job's id.
    pub job_id: String,
    /// What it does.
    pub operation: JobOperation,
    /// Whether it waits or runs.
    pub state: JobState,
    /// When it was submitted.
    pub created_at: String,
}
