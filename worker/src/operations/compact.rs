//! Compaction: small fragments are merged and deleted rows dropped.
//!
//! Plan, rewrite and commit are separate steps. Rewriting reports how much of the planned data was
//! read; a commit that is lost to another writer removes what was rewritten and starts over on the
//! newest version.
//!
//! The parameters of a task are complete, so the table's own settings (`lance.compaction.*`) of the
//! same things do not count. Its settings of how to write do (`batch_size`, `defer_index_remap`,
//! `data_storage_version` and the like); its budgets per run (`max_source_*`) do not, since a
//! completed task that did half of its work would mislead whoever submitted it.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{
    CompactionMode as LanceMode, CompactionOptions, CompactionPlan, CompactionTask, RewriteResult,
    commit_compaction, plan_compaction,
};
use lance::dataset::transaction::{Operation as Change, Transaction};
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::{CompactParams, CompactionMode};
use lance_maintenance_api::result::CompactResult;
use lance_table::format::Fragment;
use serde_json::Value;

use super::commit::{
    Lost, Retries, begin_commit, committed, earlier_commit, settle, task_properties,
};
use super::errors::to_task_error;
use super::meter::{Meter, REWRITING, Work};
use super::redact::Redactor;
use super::supervisor::{Changed, Phase};
use super::table::Table;
use super::{Operation, OperationContext, memory, to_result, unreadable};

/// Where Lance's writer begins another file if nothing else is said.
const MAX_BYTES_PER_FILE: usize = 90 << 30;
/// What Lance's writer holds of a column before it counts, so that no limit below has an effect.
const WRITER_BUFFER: u64 = 8 << 20;

impl Operation for CompactParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        if let Some(own) = earlier_commit(&table.dataset, ctx).await.map_err(failed)? {
            return to_result(&from_transaction(&own.transaction, own.version));
        }
        let mut retries = Retries::new(&ctx.limits);
        loop {
            ctx.enter(Phase::Plan);
            ctx.progress.report(0, "planning");
            let compaction = Compaction::plan(&table.dataset, self, ctx).await?;
            if compaction.is_empty() {
                let result = CompactResult {
                    version: table.dataset.version_id(),
                    ..Default::default()
                };
                ctx.progress.report(100, "nothing to compact");
                return to_result(&result);
            }
            ctx.reserve(compaction.memory(ctx)).await;
            let rewritten = compaction.rewrite(&table.dataset, ctx).await?;
            match compaction.commit(table, rewritten, ctx).await? {
                Ok(result) => {
                    ctx.progress.report(100, "committed");
                    return to_result(&result);
                }
                Err(Lost::Committed(own)) => {
                    return to_result(&from_transaction(&own.transaction, own.version));
                }
                Err(Lost::Failed(error)) => return Err(failed(error)),
                Err(Lost::Conflict(error)) => {
                    if !retries.another(&*ctx.supervisor).await {
                        return Err(failed(error));
                    }
                    table.refresh(ctx).await?;
                }
            }
        }
    }
}

/// A planned compaction of one version of a table.
#[derive(Debug)]
pub struct Compaction {
    plan: CompactionPlan,
}

impl Compaction {
    /// Plans the compaction of the version that `dataset` is at.
    pub async fn plan(
        dataset: &Dataset,
        params: &CompactParams,
        ctx: &OperationContext,
    ) -> Result<Self, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        let mut options = options(params, dataset).map_err(failed)?;
        options.transaction_properties = Some(Arc::new(task_properties(ctx)));
        let mut plan = match plan_compaction(dataset, &options).await {
            Ok(plan) => plan,
            Err(error) => {
                let fragments = dataset.fragments().clone();
                return Err(
                    unreadable::explain(dataset, &fragments, None, &error, &redactor).await,
                );
            }
        };
        let options = &plan.options;
        if !(options.materialize_deletions && options.materialize_deletions_threshold < 0.0) {
            let max_bytes = options.max_bytes_per_file.unwrap_or(MAX_BYTES_PER_FILE);
            plan.tasks
                .retain(|task| is_gain(&task.fragments, max_bytes as u64));
        }
        if plan.options.batch_size.is_none() {
            plan.options.batch_size = batch_size(&plan);
        }
        Ok(Self { plan })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.plan.num_tasks() == 0
    }

    /// What the rewriting is expected to need, in bytes.
    fn memory(&self, ctx: &OperationContext) -> u64 {
        let rewrites = ctx
            .limits
            .concurrent_rewrites
            .clamp(1, self.plan.num_tasks().max(1));
        memory::compaction(self.work(), rewrites as u64)
    }

    fn work(&self) -> Work {
        Work::of(self.plan.tasks.iter().flat_map(|task| &task.fragments))
    }

    /// Rewrites the planned fragments. Nothing of it is visible to readers yet.
    pub async fn rewrite(
        &self,
        dataset: &Dataset,
        ctx: &OperationContext,
    ) -> Result<Vec<RewriteResult>, TaskError> {
        ctx.enter(Phase::Work);
        let mut meter = Meter::new(dataset, &ctx.progress, self.work()).await;
        let tasks: Vec<CompactionTask> = self.plan.compaction_tasks().collect();
        let mut running = stream::iter(tasks)
            .map(|task| async move { task.execute(dataset).await.map_err(|error| (task, error)) })
            .buffer_unordered(ctx.limits.concurrent_rewrites.max(1));
        let mut rewritten = Vec::with_capacity(self.plan.num_tasks());
        let mut ticks = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                next = running.next() => match next {
                    None => break,
                    Some(Ok(result)) => {
                        meter.finished(&result.original_fragments);
                        rewritten.push(result);
                    }
                    Some(Err((task, error))) => {
                        // What runs beside it stops here.
                        drop(running);
                        let redactor = Redactor::new(ctx);
                        let fragments = &task.task.fragments;
                        return Err(
                            unreadable::explain(dataset, fragments, None, &error, &redactor).await,
                        );
                    }
                },
                _ = ticks.tick() => meter.report(),
            }
        }
        Ok(rewritten)
    }

    /// Makes what was rewritten the table's newest version.
    pub async fn commit(
        self,
        table: &mut Table,
        rewritten: Vec<RewriteResult>,
        ctx: &OperationContext,
    ) -> Result<Result<CompactResult, Lost>, TaskError> {
        ctx.progress.report(REWRITING.1, "committing");
        begin_commit(table, ctx).await?;
        let work = self.work();
        let remapper = Arc::new(DatasetIndexRemapperOptions::default());
        let options = &self.plan.options;
        match commit_compaction(&mut table.dataset, rewritten, remapper, options).await {
            Ok(metrics) => {
                committed(table, ctx).await;
                ctx.changed(Changed {
                    rows: work.rows,
                    fragments: work.fragments,
                    ..Changed::default()
                });
                Ok(Ok(CompactResult {
                    fragments_removed: metrics.fragments_removed as u64,
                    fragments_added: metrics.fragments_added as u64,
                    files_removed: metrics.files_removed as u64,
                    files_added: metrics.files_added as u64,
                    version: table.dataset.version_id(),
                }))
            }
            Err(error) => Ok(Err(settle(table, ctx, self.plan.read_version, error).await)),
        }
    }
}

fn options(params: &CompactParams, dataset: &Dataset) -> Result<CompactionOptions, Error> {
    let mut options = CompactionOptions::from_dataset_config(dataset.config())?;
    options.max_source_fragments = None;
    options.max_source_rows = None;
    options.max_source_bytes = None;
    options.target_rows_per_fragment = to_usize(params.target_rows_per_fragment);
    options.materialize_deletions = params.materialize_deletions;
    options.materialize_deletions_threshold = threshold(params.materialize_deletions_threshold);
    options.max_rows_per_group = to_usize(params.max_rows_per_group);
    options.max_bytes_per_file = match params.max_bytes_per_file {
        0 => None,
        bytes => Some(to_usize(bytes)),
    };
    options.compaction_mode = Some(match params.compaction_mode {
        CompactionMode::Reencode => LanceMode::Reencode,
        CompactionMode::TryBinaryCopy => LanceMode::TryBinaryCopy,
        CompactionMode::ForceBinaryCopy => LanceMode::ForceBinaryCopy,
    });
    Ok(options)
}

/// The threshold as Lance takes it, on the same side of 0 and 1 as the one that was given: below 0
/// every fragment is rewritten, from 1 on none.
fn threshold(given: f64) -> f32 {
    match given {
        below if below < 0.0 => -1.0,
        share if share < 1.0 => (share as f32).min(1.0_f32.next_down()),
        _ => 1.0,
    }
}

/// Parameters are not negative; one that is too large for the machine is as good as its largest.
fn to_usize(value: i64) -> usize {
    usize::try_from(value).unwrap_or(if value < 0 { 0 } else { usize::MAX })
}

/// Whether rewriting the fragments leaves fewer. Lance plans by rows alone: files that are as large
/// as they may be, with fewer rows than the target, it would rewrite every time.
fn is_gain(fragments: &[Fragment], max_bytes: u64) -> bool {
    let is_whole = |fragment: &Fragment| {
        fragment.deletion_file.is_none()
            && fragment.files.len() == 1
            && fragment.overlays.is_empty()
    };
    // A single one is planned for something else that is wrong with it.
    if fragments.len() == 1 || !fragments.iter().all(is_whole) {
        return true;
    }
    let files = Work::of(fragments)
        .bytes
        .div_ceil(max_bytes.max(WRITER_BUFFER));
    files < fragments.len() as u64
}

/// Rows to read at a time where they are so wide that Lance's own number would hold too much in
/// memory: about 32 MiB worth.
fn batch_size(plan: &CompactionPlan) -> Option<usize> {
    const BATCH_BYTES: u64 = 32 << 20;
    const LANCE_BATCH_ROWS: u64 = 8192;
    let work = Work::of(plan.tasks.iter().flat_map(|task| &task.fragments));
    let row_bytes = work.bytes.checked_div(work.rows)?.max(1);
    let rows = BATCH_BYTES / row_bytes;
    (rows < LANCE_BATCH_ROWS)
        .then(|| usize::try_from(rows.max(1)).ok())
        .flatten()
}

/// What the commit of a compaction changed, for a task that finds its own.
fn from_transaction(transaction: &Transaction, version: u64) -> CompactResult {
    let mut result = CompactResult {
        version,
        ..Default::default()
    };
    if let Change::Rewrite { groups, .. } = &transaction.operation {
        for group in groups {
            result.fragments_removed += group.old_fragments.len() as u64;
            result.fragments_added += group.new_fragments.len() as u64;
            result.files_removed += files(&group.old_fragments);
            result.files_added += files(&group.new_fragments);
        }
    }
    result
}

fn files(fragments: &[Fragment]) -> u64 {
    fragments
        .iter()
        .map(|fragment| fragment.files.len() as u64 + u64::from(fragment.deletion_file.is_some()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_stay_on_their_side() {
        for (given, lance) in [
            (0.1, 0.1_f32),
            (-1.0, -1.0),
            (-1e-60, -1.0),
            (1.0, 1.0),
            (2.5, 1.0),
            (0.999_999_999_99, 1.0_f32.next_down()),
        ] {
            assert_eq!(threshold(given), lance, "{given}");
        }
    }
}
