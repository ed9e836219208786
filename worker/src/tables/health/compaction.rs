//! What a compaction would do.

use std::collections::BTreeMap;

use lance::dataset::optimize::{CompactionOptions, plan_compaction};
use lance::{Dataset, Error};
use lance_maintenance_api::ApiError;
use lance_maintenance_api::health::CompactionOutlook;
use lance_maintenance_api::health::worth::better_target;
use lance_maintenance_api::params::CompactParams;

use super::of_task;
use crate::operations::compact::Compaction;
use crate::operations::compact::plan::effective;
use crate::tables::place::Place;

/// The table's settings of compaction.
const PREFIX: &str = "lance.compaction.";
/// Those of them that limit a run.
const BUDGETS: [&str; 3] = [
    "max_source_fragments",
    "max_source_rows",
    "max_source_bytes",
];

/// The tasks of Lance's own planner without a budget, and the table's budgets.
pub async fn tasks(dataset: &Dataset) -> Result<(u64, BTreeMap<String, String>), Error> {
    let mut options = CompactionOptions::from_dataset_config(dataset.config())?;
    options.max_source_fragments = None;
    options.max_source_rows = None;
    options.max_source_bytes = None;
    let plan = plan_compaction(dataset, &options).await?;
    Ok((plan.num_tasks() as u64, budgets(dataset)))
}

fn budgets(dataset: &Dataset) -> BTreeMap<String, String> {
    let budgets = BUDGETS.iter().filter_map(|name| {
        let value = dataset.config().get(&format!("{PREFIX}{name}"))?;
        Some(((*name).to_owned(), value.clone()))
    });
    budgets.collect()
}

/// What a job would do that leaves everything to the table, but for fragments that are too large with
/// rows as wide as these.
pub async fn outlook(
    place: &Place,
    dataset: &Dataset,
    row_bytes: Option<u64>,
) -> Result<CompactionOutlook, ApiError> {
    let mut params = CompactParams::left_out();
    let table = effective(&params, dataset).map_err(|error| place.error(&error))?;
    let target = table
        .target_rows_per_fragment
        .and_then(|rows| u64::try_from(rows).ok());
    let better = target
        .zip(row_bytes)
        .and_then(|(target, row_bytes)| better_target(target, row_bytes));
    params.target_rows_per_fragment = better.and_then(|rows| i64::try_from(rows).ok());
    let compaction = Compaction::plan(dataset, &params, &place.ctx)
        .await
        .map_err(of_task)?;
    params.table_budgets = true;
    // What else could be wrong with a plan was so without a budget.
    let is_over_budget = !budgets(dataset).is_empty()
        && Compaction::plan(dataset, &params, &place.ctx)
            .await
            .is_err();
    Ok(CompactionOutlook {
        target_rows_per_fragment: better,
        is_over_budget,
        ..compaction.outlook()
    })
}
