//! Bringing indices up to date: rows written since an index was built are added to it.
//!
//! An index consists of segments. New rows become a new segment, merged with some of the newest ones
//! or with none; a query looks into every segment, so few are better, and merging costs in
//! proportion to what is merged. A task may say how many to merge. If it does not, we choose:
//! from the newest segment backwards, a segment is merged as long as it is at most twice as large
//! as all that is merged into it so far, so that a row is rewritten a few times in its life and not
//! by every task; and at most [`MOST_SEGMENTS`] stay. An index on values or texts always takes its newest
//! segment in, which is what Lance does too.
//!
//! Segments of an index on vectors can be merged only if they share their partitions. So partitions
//! are split and joined only where one segment is left in the end. Other tools may have done
//! otherwise: then we add a segment, or where there are enough, build the index anew.
//!
//! | module | what it holds |
//! |---|---|
//! | [`choice`] | which segments are merged |
//! | [`preview`] | what would come of it |

pub mod choice;
pub mod preview;

use lance::index::optimize::{IndexSegmentResult, commit_optimize_indices, plan_optimize_indices};
use lance::{Dataset, Error};
use lance_index::optimize::OptimizeOptions;
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::OptimizeIndicesParams;
use lance_maintenance_api::result::OptimizeIndicesResult;
use lance_table::format::IndexMetadata;
use serde_json::Value;

use self::choice::{Merge, Sizes, instead_of_merging, is_vector, merge};
use super::commit::{
    Lost, Retries, begin_commit, committed, earlier_commit, settle, task_properties,
};
use super::errors::to_task_error;
use super::redact::Redactor;
use super::supervisor::Phase;
use super::table::{Table, coverage, index_names, no_such_index, user_indices};
use super::{Operation, OperationContext, memory, to_result, unreadable};

const BUILDING: (u8, u8) = (5, 90);

impl Operation for OptimizeIndicesParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        if let Some(own) = earlier_commit(&table.dataset, ctx).await.map_err(failed)? {
            return describe(&table.dataset, &self.index_names, own.version)
                .await
                .map_err(failed)
                .and_then(|result| to_result(&result));
        }
        let mut retries = Retries::new(&ctx.limits);
        let version = loop {
            match optimize_once(self, table, ctx).await? {
                Ok(()) => break table.dataset.version_id(),
                Err(Lost::Committed(own)) => {
                    table.dataset.checkout_latest().await.map_err(failed)?;
                    break own.version;
                }
                Err(Lost::Failed(error)) => return Err(failed(error)),
                Err(Lost::Conflict(error)) => {
                    if !retries.another(&*ctx.supervisor).await {
                        return Err(failed(error));
                    }
                    table.refresh(ctx).await?;
                }
            }
        };
        let result = describe(&table.dataset, &self.index_names, version)
            .await
            .map_err(failed)?;
        ctx.progress.report(100, "done");
        to_result(&result)
    }
}

async fn describe(
    dataset: &Dataset,
    names: &[String],
    version: u64,
) -> Result<OptimizeIndicesResult, Error> {
    let segments = user_indices(dataset).await?;
    let mut indices = Vec::new();
    for name in chosen(names, &segments) {
        indices.push(coverage(dataset, &segments, &name).await?);
    }
    Ok(OptimizeIndicesResult { indices, version })
}

/// The indices that the names stand for, each once: none is all.
fn chosen(names: &[String], segments: &[IndexMetadata]) -> Vec<String> {
    let mut names = match names {
        [] => index_names(segments),
        names => names.to_vec(),
    };
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The indices that a task is for, all of which exist.
fn existing(
    params: &OptimizeIndicesParams,
    segments: &[IndexMetadata],
) -> Result<Vec<String>, TaskError> {
    let existing = index_names(segments);
    let names = chosen(&params.index_names, segments);
    match names.iter().find(|name| !existing.contains(name)) {
        Some(missing) => Err(no_such_index(missing, &existing)),
        None => Ok(names),
    }
}

/// Whether an index is left out where none is named: Lance has no builder for these yet, and refuses
/// one that is.
fn is_passed_over(params: &OptimizeIndicesParams, segments: &[&IndexMetadata]) -> bool {
    params.index_names.is_empty() && segments.iter().any(|s| !s.covering_fields.is_empty())
}

async fn optimize_once(
    params: &OptimizeIndicesParams,
    table: &mut Table,
    ctx: &OperationContext,
) -> Result<Result<(), Lost>, TaskError> {
    let redactor = Redactor::new(ctx);
    let failed = |error: Error| to_task_error(&error, &redactor);
    ctx.enter(Phase::Plan);
    ctx.progress.report(0, "planning");
    let dataset = &table.dataset;
    let segments = user_indices(dataset).await.map_err(failed)?;
    let names = existing(params, &segments)?;

    let rows = dataset.count_rows(None).await.map_err(failed)?;
    ctx.reserve(memory::indices(rows as u64)).await;
    ctx.enter(Phase::Work);
    let mut results = Vec::new();
    for (done, name) in names.iter().enumerate() {
        let message = format!("optimizing '{name}', {} of {}", done + 1, names.len());
        ctx.progress
            .report_part(BUILDING, done as u64, names.len() as u64, message);
        let own: Vec<&IndexMetadata> = segments.iter().filter(|s| s.name == *name).collect();
        if is_passed_over(params, &own) {
            continue;
        }
        match optimize_index(params, dataset, name, &own, ctx).await {
            Ok(built) => results.extend(built),
            Err(error) => {
                let fragments = dataset.fragments().clone();
                let column = own
                    .first()
                    .and_then(|segment| segment.fields.first())
                    .and_then(|field| dataset.schema().field_path(*field).ok());
                let column = column.as_deref();
                return Err(
                    unreadable::explain(dataset, &fragments, column, &error, &redactor).await,
                );
            }
        }
    }

    let read_version = dataset.version_id();
    if results.is_empty() {
        return Ok(Ok(()));
    }
    ctx.progress.report(BUILDING.1, "committing");
    let options = OptimizeOptions::default().transaction_properties(task_properties(ctx));
    begin_commit(table, ctx).await?;
    match commit_optimize_indices(&mut table.dataset, results, &options).await {
        Ok(()) => {
            committed(table, ctx).await;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err(settle(table, ctx, read_version, error).await)),
    }
}

async fn optimize_index(
    params: &OptimizeIndicesParams,
    dataset: &Dataset,
    name: &str,
    segments: &[&IndexMetadata],
    ctx: &OperationContext,
) -> Result<Vec<IndexSegmentResult>, Error> {
    let sizes = Sizes::of(dataset, segments).await?;
    let is_vector = is_vector(segments);
    let merge = merge(params, &sizes, is_vector);
    let rebalance = is_vector
        && params.num_indices_to_merge.is_none()
        && merge == Merge::Newest(segments.len());
    let build = |merge| build(merge, rebalance, dataset, name, ctx);
    match build(merge).await {
        Err(Error::Index { .. }) if is_vector && is_chosen(params) => {
            build(instead_of_merging(&sizes)).await
        }
        built => built,
    }
}

fn is_chosen(params: &OptimizeIndicesParams) -> bool {
    !params.retrain && params.num_indices_to_merge.is_none()
}

async fn build(
    merge: Merge,
    rebalance: bool,
    dataset: &Dataset,
    name: &str,
    ctx: &OperationContext,
) -> Result<Vec<IndexSegmentResult>, Error> {
    let mut options = OptimizeOptions::default()
        .index_names(vec![name.to_owned()])
        .transaction_properties(task_properties(ctx));
    match merge {
        Merge::Nothing => return Ok(Vec::new()),
        Merge::Retrain => options.retrain = true,
        Merge::Newest(segments) => {
            options = options.num_indices_to_merge(Some(segments));
            if rebalance && segments > 0 {
                options = options.with_partition_rebalancing();
            }
        }
    }
    let plan = plan_optimize_indices(dataset, &options).await?;
    let mut built = Vec::with_capacity(plan.tasks.len());
    for task in &plan.tasks {
        built.extend(task.execute(dataset).await?);
    }
    let mut merged = Vec::with_capacity(plan.merges.len());
    for merge in &plan.merges {
        merged.extend(merge.execute(dataset, &built).await?);
    }
    Ok(merged)
}
