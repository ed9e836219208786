//! Compaction: small fragments are merged and deleted rows dropped.
//!
//! Plan, rewrite and commit are separate steps. Rewriting reports how much of the planned data was
//! read; a commit that is lost to another writer removes what was rewritten and starts over on the
//! newest version.
//!
//! The parameters of a task of the OSS API are complete, so the table's own settings
//! (`lance.compaction.*`) of the same things do not count; those of a job leave out what the table is to
//! decide. Its settings of how to write always count (`batch_size`, `defer_index_remap`,
//! `data_storage_version` and the like). Its budgets per run (`max_source_*`) limit jobs only: a
//! completed task of the OSS API that did half of its work would mislead whoever submitted it.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | what would be rewritten, and what comes of it |
//! | [`preview`] | the same in words of a preview |

pub mod plan;
pub mod preview;

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use lance::dataset::index::DatasetIndexRemapperOptions;
use lance::dataset::optimize::{CompactionTask, RewriteResult, commit_compaction};
use lance::dataset::transaction::{Operation as Change, Transaction};
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::CompactParams;
use lance_maintenance_api::result::CompactResult;
use lance_table::format::Fragment;
use serde_json::Value;

pub use self::plan::Compaction;
use super::commit::{Lost, Retries, begin_commit, committed, earlier_commit, settle};
use super::errors::to_task_error;
use super::meter::{Meter, REWRITING};
use super::redact::Redactor;
use super::supervisor::{Changed, Phase};
use super::table::Table;
use super::{Operation, OperationContext, to_result, unreadable};

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

impl Compaction {
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
