//! What an update of indices would do.

use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_maintenance_api::jobs::request::options;
use lance_maintenance_api::params::{OptimizeIndicesParams, TaskParams};
use lance_maintenance_api::preview::{IndexPreview, OptimizeIndicesPreview};
use lance_table::format::IndexMetadata;

use super::choice::{Merge, Sizes, is_vector, merge};
use super::{existing, is_passed_over};
use crate::operations::OperationContext;
use crate::operations::errors::to_task_error;
use crate::operations::redact::Redactor;
use crate::operations::table::user_indices;

/// What the task would do to the version that `dataset` is at.
pub async fn preview(
    params: &OptimizeIndicesParams,
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<OptimizeIndicesPreview, TaskError> {
    let redactor = Redactor::new(ctx);
    let failed = |error: Error| to_task_error(&error, &redactor);
    let segments = user_indices(dataset).await.map_err(failed)?;
    let mut indices = Vec::new();
    for name in existing(params, &segments)? {
        let own: Vec<&IndexMetadata> = segments.iter().filter(|s| s.name == name).collect();
        let sizes = Sizes::of(dataset, &own).await.map_err(failed)?;
        let merge = match is_passed_over(params, &own) {
            true => Merge::Nothing,
            false => merge(params, &sizes, is_vector(&own)),
        };
        indices.push(of_index(name, &sizes, merge));
    }
    Ok(OptimizeIndicesPreview {
        options: better_options(params, &indices),
        indices,
        version: dataset.version_id(),
    })
}

fn of_index(name: String, sizes: &Sizes, merge: Merge) -> IndexPreview {
    let count = sizes.segments.len();
    let (merged, has_new) = match merge {
        Merge::Nothing => (0, false),
        Merge::Retrain => (count, true),
        Merge::Newest(newest) => (newest.min(count), true),
    };
    let (num_segments_after, rows_written) = match has_new {
        true => {
            let rows: u64 = sizes.segments.iter().rev().take(merged).sum();
            (count - merged + 1, rows + sizes.unindexed)
        }
        false => (count, 0),
    };
    IndexPreview {
        name,
        num_segments: count as u64,
        num_unindexed_rows: sizes.unindexed,
        num_segments_after: num_segments_after as u64,
        rows_written,
    }
}

/// Where a task does not say what to merge and leaves several segments: all of them into one.
fn better_options(
    params: &OptimizeIndicesParams,
    indices: &[IndexPreview],
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let is_silent = params.num_indices_to_merge.is_none() && !params.retrain;
    let most = indices
        .iter()
        .filter(|index| index.num_segments_after > 1)
        .map(|index| index.num_segments)
        .max()
        .filter(|_| is_silent)?;
    let better = OptimizeIndicesParams {
        num_indices_to_merge: i64::try_from(most.max(2)).ok(),
        ..params.clone()
    };
    Some(options(&TaskParams::OptimizeIndices(better)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_of_an_index() {
        let sizes = Sizes {
            segments: vec![1000, 100, 50],
            unindexed: 10,
            has_unindexed: true,
        };
        for (merge, after, written) in [
            (Merge::Nothing, 3, 0),
            (Merge::Newest(0), 4, 10),
            (Merge::Newest(2), 2, 160),
            (Merge::Retrain, 1, 1160),
        ] {
            let index = of_index("i".to_owned(), &sizes, merge);
            assert_eq!((index.num_segments, index.num_unindexed_rows), (3, 10));
            assert_eq!(
                (index.num_segments_after, index.rows_written),
                (after, written)
            );
        }
    }
}
