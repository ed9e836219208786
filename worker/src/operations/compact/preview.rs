//! What a compaction would do.

use lance::Dataset;
use lance_maintenance_api::TaskError;
use lance_maintenance_api::health::worth::better_target;
use lance_maintenance_api::jobs::request::options;
use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_maintenance_api::preview::{Budget, CompactPreview};
use lance_table::format::Fragment;
use serde_json::{Map, Value};

use super::plan::{Compaction, effective};
use crate::operations::OperationContext;
use crate::operations::errors::to_task_error;
use crate::operations::meter::Work;
use crate::operations::redact::Redactor;
use crate::operations::table::{loses_coverage, user_indices};

/// What the task would do to the version that `dataset` is at.
pub async fn preview(
    params: &CompactParams,
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<CompactPreview, TaskError> {
    let compaction = Compaction::plan(dataset, params, ctx).await?;
    let outlook = compaction.outlook();
    let fragments = dataset.fragments();
    let before = fragments.len() as u64;
    let bytes_per_row = known_bytes(fragments.iter())
        .and_then(|bytes| bytes.checked_div(Work::of(fragments.iter()).rows));
    let bytes_rewritten = known_bytes(compaction.fragments());
    let failed = |error| to_task_error(&error, &Redactor::new(ctx));
    let segments = user_indices(dataset).await.map_err(failed)?;
    let target = effective(params, dataset)
        .map_err(failed)?
        .target_rows_per_fragment;
    let mut losing: Vec<String> = segments
        .iter()
        .filter(|segment| loses_coverage(segment, compaction.fragments()))
        .map(|segment| segment.name.clone())
        .collect();
    losing.sort();
    losing.dedup();
    Ok(CompactPreview {
        tasks: outlook.tasks,
        tasks_without_budget: compaction.tasks_without_budget as u64,
        budgets: compaction
            .budgets
            .iter()
            .map(|(name, value)| {
                let budget = Budget {
                    value: *value,
                    source: format!("the table's configuration, lance.compaction.{name}"),
                };
                ((*name).to_owned(), budget)
            })
            .collect(),
        fragments_rewritten: outlook.fragments_rewritten,
        rows_rewritten: outlook.rows_rewritten,
        deleted_rows_dropped: outlook.deleted_rows_dropped,
        bytes_rewritten,
        version: dataset.version_id(),
        bytes_per_row,
        fragments_before: before,
        fragments_after: before - outlook.fragments_rewritten + outlook.fragments_added,
        bytes_freed: 0,
        bytes_freed_after_cleanup: bytes_rewritten,
        indices_losing_coverage: losing,
        is_worthwhile: outlook.is_worthwhile,
        options: better_options(params, target, bytes_per_row),
    })
}

/// A target by bytes, where rows are wide.
fn better_options(
    params: &CompactParams,
    target: Option<i64>,
    bytes_per_row: Option<u64>,
) -> Option<Map<String, Value>> {
    let better = better_target(u64::try_from(target?).ok()?, bytes_per_row?)?;
    let better = CompactParams {
        target_rows_per_fragment: Some(i64::try_from(better).ok()?),
        ..params.clone()
    };
    Some(options(&TaskParams::Compact(better)))
}

/// The bytes of the fragments' data files; none if the table does not note those of one.
fn known_bytes<'a>(fragments: impl Iterator<Item = &'a Fragment>) -> Option<u64> {
    let files = fragments.flat_map(|fragment| &fragment.files);
    files
        .map(|file| file.file_size_bytes.get().map(u64::from))
        .sum()
}
