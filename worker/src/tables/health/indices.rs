//! What indices cover.

use lance::index::DatasetIndexExt;
use lance::{Dataset, Error};
use lance_maintenance_api::health::IndexHealth;

/// How indices are called that Lance keeps for itself.
const LANCES_OWN: &str = "__lance_";
/// Types that no longer cover the rows that a compaction rewrites.
const LOSE_COVERAGE: [&str; 4] = ["ZoneMap", "BloomFilter", "RTree", "Fm"];

/// All indices; `num_rows` are the table's, if they are known.
pub async fn describe(dataset: &Dataset, num_rows: Option<u64>) -> Result<Vec<IndexHealth>, Error> {
    let found = dataset.describe_indices(None).await?;
    let indices = found
        .iter()
        .filter(|index| !index.name().starts_with(LANCES_OWN));
    let health = indices.map(|index| IndexHealth {
        name: index.name().to_owned(),
        index_type: index.index_type().to_owned(),
        num_segments: index.segments().len() as u64,
        num_rows_indexed: index.rows_indexed(),
        num_unindexed_rows: num_rows.map(|rows| {
            // Segments that overlap cover more than there is.
            i64::try_from(i128::from(rows) - i128::from(index.rows_indexed())).unwrap_or(i64::MIN)
        }),
        loses_coverage_in_compaction: LOSE_COVERAGE.contains(&index.index_type()),
    });
    Ok(health.collect())
}
