//! What a completed task reports: the `result` of its task info. Names are Lance's own metrics
//! (API facts, section 8).

use serde::{Deserialize, Serialize};

/// Result of `lance_compact`; all counts are 0 where there was nothing to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactResult {
    /// Fragments that were rewritten.
    pub fragments_removed: u64,
    /// Fragments that took their place.
    pub fragments_added: u64,
    /// Files of the removed fragments, deletion files among them.
    pub files_removed: u64,
    /// Files of the added fragments.
    pub files_added: u64,
    /// The table's version afterwards.
    pub version: u64,
}

/// Result of `lance_cleanup`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CleanupResult {
    /// Bytes freed.
    pub bytes_removed: u64,
    /// Versions removed.
    pub old_versions: u64,
    /// Data files removed.
    pub data_files_removed: u64,
    /// Transaction files removed.
    pub transaction_files_removed: u64,
    /// Index files removed.
    pub index_files_removed: u64,
    /// Deletion files removed.
    pub deletion_files_removed: u64,
    /// Files that could not be removed: the next cleanup finds them again. Absent where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_deletes: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Result of `lance_scalar_index` and `lance_vector_index`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexResult {
    /// The index's name.
    pub index_name: String,
    /// The indexed column.
    pub column: String,
    /// The index's type.
    pub index_type: String,
    /// The UUID of the index's segment.
    pub index_uuid: String,
    /// Rows that the index covers.
    pub num_indexed_rows: u64,
    /// The table's version afterwards.
    pub version: u64,
}

/// Result of `lance_backfill_column`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackfillColumnResult {
    /// The column.
    pub column: String,
    /// Rows that were computed and are in the table.
    pub rows_filled: u64,
    /// Those of them that an earlier attempt had computed.
    pub rows_resumed: u64,
    /// Fragments that got a new file of the column.
    pub fragments_filled: u64,
    /// Fragments that others changed meanwhile, or that were not to be filled, with rows that are still to
    /// be.
    pub fragments_left: u64,
    /// Rows of the newest version that are still to be computed.
    pub rows_left: u64,
    /// The table's version afterwards.
    pub version: u64,
}

/// How much of the table an index covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexCoverage {
    /// The index's name.
    pub name: String,
    /// Rows that the index covers.
    pub num_indexed_rows: u64,
    /// Rows that it does not.
    pub num_unindexed_rows: u64,
}

/// Result of `lance_optimize_indices`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptimizeIndicesResult {
    /// The indices that were asked for, as they are now.
    pub indices: Vec<IndexCoverage>,
    /// The table's version afterwards.
    pub version: u64,
}
