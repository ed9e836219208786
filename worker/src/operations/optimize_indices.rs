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

use lance::index::optimize::{IndexSegmentResult, commit_optimize_indices, plan_optimize_indices};
use lance::{Dataset, Error};
use lance_index::optimize::OptimizeOptions;
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::OptimizeIndicesParams;
use lance_maintenance_api::result::OptimizeIndicesResult;
use lance_table::format::IndexMetadata;
use serde_json::Value;

use super::commit::{
    Lost, Retries, begin_commit, committed, earlier_commit, settle, task_properties,
};
use super::errors::to_task_error;
use super::redact::Redactor;
use super::supervisor::Phase;
use super::table::{Table, coverage, covers, index_names, no_such_index, rows_of, user_indices};
use super::{Operation, OperationContext, memory, to_result, unreadable};

/// How many segments of an index stay where we choose what is merged.
const MOST_SEGMENTS: usize = 4;
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
    let existing = index_names(&segments);
    let names = chosen(&params.index_names, &segments);
    if let Some(missing) = names.iter().find(|name| !existing.contains(name)) {
        return Err(no_such_index(missing, &existing));
    }

    let rows = dataset.count_rows(None).await.map_err(failed)?;
    ctx.reserve(memory::indices(rows as u64)).await;
    ctx.enter(Phase::Work);
    let mut results = Vec::new();
    for (done, name) in names.iter().enumerate() {
        let message = format!("optimizing '{name}', {} of {}", done + 1, names.len());
        ctx.progress
            .report_part(BUILDING, done as u64, names.len() as u64, message);
        let own: Vec<&IndexMetadata> = segments.iter().filter(|s| s.name == *name).collect();
        // Lance has no builder for these yet, and refuses one that is named.
        if params.index_names.is_empty() && own.iter().any(|s| !s.covering_fields.is_empty()) {
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
    let is_vector = segments.iter().any(|segment| is_vector(segment));
    let merge = match (params.retrain, params.num_indices_to_merge) {
        (true, _) if is_vector => Merge::Retrain,
        // There is nothing to train: one segment is what is left to ask for.
        (true, _) => asked_for(i64::MAX, &sizes),
        (false, Some(asked)) => asked_for(asked, &sizes),
        (false, None) => choose(&sizes, is_vector),
    };
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
        Merge::Lance => {}
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

fn is_vector(segment: &IndexMetadata) -> bool {
    segment
        .index_details
        .as_ref()
        .is_some_and(|details| details.type_url.ends_with("VectorIndexDetails"))
}

/// Rows of an index's segments, oldest first, and of the table outside of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sizes {
    segments: Vec<u64>,
    unindexed: u64,
    /// Whether any fragment is outside; it may have no rows left.
    has_unindexed: bool,
}

impl Sizes {
    async fn of(dataset: &Dataset, segments: &[&IndexMetadata]) -> Result<Self, Error> {
        let mut sizes = Self {
            segments: vec![0; segments.len()],
            ..Default::default()
        };
        for fragment in dataset.fragments().iter() {
            let rows = rows_of(dataset, fragment).await?;
            match segments
                .iter()
                .position(|segment| covers(segment, fragment))
            {
                Some(segment) => sizes.segments[segment] += rows,
                None => {
                    sizes.unindexed += rows;
                    sizes.has_unindexed = true;
                }
            }
        }
        Ok(sizes)
    }
}

/// Which segments are merged with the new rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// There is nothing to do.
    Nothing,
    /// What Lance does without a number.
    Lance,
    /// All, into one that is built anew.
    Retrain,
    /// So many of the newest.
    Newest(usize),
}

/// What a task asked for, unless it would only copy a segment.
fn asked_for(asked: i64, sizes: &Sizes) -> Merge {
    let asked = usize::try_from(asked).unwrap_or(usize::MAX);
    match asked.min(sizes.segments.len()) {
        0 | 1 if !sizes.has_unindexed => Merge::Nothing,
        segments => Merge::Newest(segments),
    }
}

/// What we choose where a task does not say.
fn choose(sizes: &Sizes, is_vector: bool) -> Merge {
    let count = sizes.segments.len();
    // Without new rows, the newest segment is what the next older one is compared with. One segment
    // comes out of those that are merged and the new rows.
    let least = match (sizes.has_unindexed, is_vector) {
        (true, true) => 0,
        (true, false) | (false, _) => 1,
    };
    let least = least.max((count + 1).saturating_sub(MOST_SEGMENTS));
    let mut merged = 0;
    let mut rows = sizes.unindexed;
    for segment in sizes.segments.iter().rev() {
        if merged >= least && *segment > rows.saturating_mul(2) {
            break;
        }
        merged += 1;
        rows += segment;
    }
    match merged {
        // Split partitions would keep one of several segments from ever being merged.
        0 | 1 if !sizes.has_unindexed && is_vector && count > 1 => Merge::Nothing,
        // Lance may still want to split a partition; if not, it writes nothing.
        0 | 1 if !sizes.has_unindexed => Merge::Lance,
        merged => Merge::Newest(merged),
    }
}

/// What is left to do with segments on vectors that can't be merged.
fn instead_of_merging(sizes: &Sizes) -> Merge {
    match sizes.segments.len() {
        few if few < MOST_SEGMENTS && sizes.has_unindexed => Merge::Newest(0),
        few if few <= MOST_SEGMENTS && !sizes.has_unindexed => Merge::Nothing,
        _ => Merge::Retrain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(segments: &[u64], unindexed: u64) -> Sizes {
        Sizes {
            segments: segments.to_vec(),
            unindexed,
            has_unindexed: unindexed > 0,
        }
    }

    #[test]
    fn what_is_merged_without_a_number() {
        let cases = [
            // A large segment is left alone, new ones are merged among themselves.
            (sizes(&[1000], 100), true, Merge::Newest(0)),
            (sizes(&[1000, 100], 100), true, Merge::Newest(1)),
            (sizes(&[1000, 400], 100), true, Merge::Newest(0)),
            (sizes(&[2000, 400, 100], 100), true, Merge::Newest(2)),
            (sizes(&[1000], 500), true, Merge::Newest(1)),
            (sizes(&[0], 500), true, Merge::Newest(1)),
            // Four stay at the most.
            (sizes(&[8000, 2000, 500, 100], 10), true, Merge::Newest(1)),
            (
                sizes(&[80_000, 8000, 2000, 500, 100], 10),
                true,
                Merge::Newest(2),
            ),
            // An index on values takes its newest segment in.
            (sizes(&[1000], 1), false, Merge::Newest(1)),
            (sizes(&[1000, 1], 1), false, Merge::Newest(1)),
            // Nothing is new.
            (sizes(&[1000], 0), true, Merge::Lance),
            (sizes(&[1000, 100], 0), true, Merge::Nothing),
            (sizes(&[1000, 900], 0), true, Merge::Newest(2)),
            (sizes(&[], 0), true, Merge::Lance),
        ];
        for (sizes, is_vector, merge) in cases {
            assert_eq!(choose(&sizes, is_vector), merge, "{sizes:?}");
        }
    }

    #[test]
    fn segments_stay_few_and_rows_are_seldom_rewritten() {
        let mut segments = vec![1_000_000_u64];
        let mut written = 0;
        for _ in 0..1000 {
            let merge = choose(&sizes(&segments, 1000), true);
            let Merge::Newest(merged) = merge else {
                panic!("{merge:?}")
            };
            let rows: u64 = 1000 + segments.drain(segments.len() - merged..).sum::<u64>();
            segments.push(rows);
            written += rows;
            assert!(segments.len() <= MOST_SEGMENTS, "{segments:?}");
        }
        // Merging everything each time would write a hundred times as much.
        assert!(written < 20_000_000, "{written}");
    }

    #[test]
    fn what_is_done_where_nothing_can_be_merged() {
        for (sizes, merge) in [
            (sizes(&[10, 10, 10], 5), Merge::Newest(0)),
            (sizes(&[10, 10, 10, 10], 5), Merge::Retrain),
            (sizes(&[10, 10, 10, 10], 0), Merge::Nothing),
            (sizes(&[10, 10, 10, 10, 10], 0), Merge::Retrain),
        ] {
            assert_eq!(instead_of_merging(&sizes), merge, "{sizes:?}");
        }
    }

    #[test]
    fn what_a_task_asks_for() {
        for (asked, sizes, merge) in [
            (0, sizes(&[10], 5), Merge::Newest(0)),
            (2, sizes(&[10], 5), Merge::Newest(1)),
            (i64::MAX, sizes(&[10, 5], 0), Merge::Newest(2)),
            (0, sizes(&[10, 5], 0), Merge::Nothing),
            (1, sizes(&[10, 5], 0), Merge::Nothing),
            (2, sizes(&[10], 0), Merge::Nothing),
        ] {
            assert_eq!(asked_for(asked, &sizes), merge, "{asked} of {sizes:?}");
        }
    }
}
