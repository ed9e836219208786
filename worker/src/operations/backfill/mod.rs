//! Backfill: computes the rows of a computed column that have no value yet, or one that is out of date.
//!
//! Fragment by fragment the column gets a new file, with the values of all of the fragment's rows in the
//! order in which they are stored: computed ones, those that are not to be computed as they were, and
//! whatever is there for deleted rows, which are never computed. Several fragments make a commit. Each
//! commit stands for itself: what a task has committed stays when it fails later, or is canceled.
//!
//! Others go on writing meanwhile. Rows that they add are theirs, and reported as left. A deletion does
//! not touch where rows are. A fragment that they rewrite is given up before the commit, and what became of
//! it filled with the newest version, as often as an operation may start over.
//!
//! An attempt after a lost one plans anew: what was committed is no longer to be done, and what was
//! computed and not committed is kept in [`checkpoints`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`binding`], [`functions`], [`size`], [`mistake`] | the expression of a column, compiled, and what is wrong with it |
//! | [`column`] | the column with the condition on its rows |
//! | [`settings`] | how to go about it |
//! | [`record`] | which rows have the value of their inputs |
//! | [`source`], [`pace`] | reading rows, as many at a time as fit |
//! | [`rows`], [`choice`] | choosing and computing them |
//! | [`fragment`] | filling one fragment |
//! | [`done`] | which fragments are filled |
//! | [`checkpoints`] | what was computed and not committed |
//! | [`commit`] | making the versions |
//! | [`meter`] | how far it is |

pub mod binding;
pub mod checkpoints;
pub mod choice;
pub mod column;
pub mod commit;
pub mod done;
pub mod fragment;
pub mod functions;
pub mod meter;
pub mod mistake;
pub mod pace;
pub mod record;
pub mod rows;
pub mod settings;
pub mod size;
pub mod source;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::fragment::FileFragment;
use lance::{Dataset, Error};
use lance_maintenance_api::params::BackfillColumnParams;
use lance_maintenance_api::result::BackfillColumnResult;
use lance_maintenance_api::{ErrorName, TaskError};
use serde_json::Value;

use self::checkpoints::Checkpoints;
use self::column::Column;
use self::commit::Commits;
use self::done::Done;
use self::fragment::{Filled, Filler};
use self::meter::RowMeter;
use self::pace::Pace;
use self::rows::Rows;
use self::settings::Settings;
use super::commit::Retries;
use super::errors::to_task_error;
use super::meter::{REWRITING, Work};
use super::redact::Redactor;
use super::supervisor::Phase;
use super::table::Table;
use super::{Operation, OperationContext, memory, to_result};

/// Fragments that are looked at at the same time.
const CONCURRENT_LOOKS: usize = 4;

impl Operation for BackfillColumnParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        ctx.enter(Phase::Plan);
        ctx.progress.report(0, "planning");
        let settings = Settings::of(self, ctx);
        let dataset = &table.dataset;
        let what = Column::find(dataset, &self.column, self.filter.as_deref(), &redactor)?;
        let among = fragments_of(&table.dataset, self.read_version, &redactor).await?;
        let place = table.journal.place().clone();
        let kept = Checkpoints::open(&place, ctx, what.description.clone()).await;
        let checkpoints = Arc::new(kept.map_err(failed)?);
        let mut commits = Commits::begin(table, ctx, what, Arc::clone(&checkpoints)).await?;
        let mut retries = Retries::new(&ctx.limits);
        let mut is_reserved = false;
        loop {
            ctx.enter(Phase::Plan);
            let what = commits.follow(&table.dataset, &redactor)?;
            let rows = Arc::new(what.rows(&table.dataset, commits.record.clone(), &redactor)?);
            let mut plan = plan(&table.dataset, &rows, &commits.done, &redactor).await?;
            if let Some(among) = &among {
                plan.retain(|(fragment, _)| among.contains(&(fragment.id() as u64)));
            }
            // More, where some turn out to have the values that they should.
            let likely = plan.iter().take(commits.room(self.num_frags));
            let to_do: u64 = likely.map(|(_, rows)| rows).sum();
            if !plan.is_empty() && !is_reserved {
                let fragments = plan.iter().map(|(fragment, _)| fragment.metadata());
                let work = Work::of(fragments);
                ctx.reserve(memory::backfill(work, &settings)).await;
                is_reserved = true;
            }
            let filler = Filler {
                rows,
                checkpoints: Arc::clone(&checkpoints),
                settings,
                pace: Arc::new(Pace::new(u64::from(settings.part_rows))),
                meter: Arc::new(RowMeter::new(
                    &ctx.progress,
                    commits.result.rows_filled,
                    commits.result.rows_filled + to_do,
                )),
                redactor: redactor.clone(),
            };
            let mut is_lost = false;
            let mut plan = plan.into_iter().map(|(fragment, _)| fragment).peekable();
            while plan.peek().is_some() {
                let most = commits.room(self.num_frags).min(settings.commit_fragments);
                if most == 0 {
                    break;
                }
                ctx.enter(Phase::Work);
                let fragments = plan.by_ref().take(most);
                match fill(&filler, fragments.collect()).await {
                    Ok(filled) => is_lost |= !commits.commit(table, ctx, filled).await?,
                    // Others may have removed what was being read.
                    Err(error) if error.error == ErrorName::InvalidTableState => {
                        if !commits.is_outrun(table).await {
                            return Err(error);
                        }
                        is_lost = true;
                    }
                    Err(error) => return Err(error),
                }
            }
            if !is_lost || !retries.another(&*ctx.supervisor).await {
                break;
            }
            table.refresh(ctx).await?;
        }
        ctx.enter(Phase::Plan);
        ctx.progress.report(REWRITING.1, "counting what is left");
        table.refresh(ctx).await?;
        let what = commits.follow(&table.dataset, &redactor)?;
        let rows = Arc::new(what.rows(&table.dataset, commits.record.clone(), &redactor)?);
        let left = plan(&table.dataset, &rows, &commits.done, &redactor).await?;
        commits.result.fragments_left = left.len() as u64;
        commits.result.rows_left = left.iter().map(|(_, rows)| rows).sum();
        commits.write_record(table, ctx).await?;
        let result = BackfillColumnResult {
            column: self.column.clone(),
            version: table.dataset.version_id(),
            ..commits.result
        };
        ctx.progress.report(100, "committed");
        to_result(&result)
    }
}

/// Whether the backfill can run on this version: fails as it would fail at its beginning.
pub async fn check(
    params: &BackfillColumnParams,
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<(), TaskError> {
    let redactor = Redactor::new(ctx);
    Column::find(dataset, &params.column, params.filter.as_deref(), &redactor)?;
    fragments_of(dataset, params.read_version, &redactor).await?;
    Ok(())
}

/// The fragments that have rows to be computed, with how many.
async fn plan(
    dataset: &Dataset,
    rows: &Arc<Rows>,
    done: &Done,
    redactor: &Redactor,
) -> Result<Vec<(FileFragment, u64)>, TaskError> {
    let fragments: Vec<FileFragment> = dataset
        .get_fragments()
        .into_iter()
        .filter(|fragment| !done.has(fragment.metadata()))
        .collect();
    let dataset = Arc::new(dataset.clone());
    stream::iter(fragments)
        .map(|fragment| {
            let (rows, dataset) = (Arc::clone(rows), Arc::clone(&dataset));
            async move {
                let count = rows.count(&dataset, &fragment).await;
                (fragment, count)
            }
        })
        .buffered(CONCURRENT_LOOKS)
        .map(|(fragment, count)| match count {
            Ok(count) => Ok((fragment, count)),
            Err(error) => Err(to_task_error(&error, redactor)),
        })
        .try_filter(|(_, count)| std::future::ready(*count > 0))
        .try_collect()
        .await
}

/// Fills fragments, some at the same time.
async fn fill(filler: &Filler, fragments: Vec<FileFragment>) -> Result<Vec<Filled>, TaskError> {
    let filling = fragments.into_iter().map(|fragment| {
        let filler = filler.clone();
        async move { filler.fill(fragment).await }
    });
    stream::iter(filling)
        .buffered(filler.settings.fragments)
        .try_collect()
        .await
}

/// The fragments that a version has, if one is given.
async fn fragments_of(
    dataset: &Dataset,
    version: Option<i64>,
    redactor: &Redactor,
) -> Result<Option<BTreeSet<u64>>, TaskError> {
    let Some(version) = version.and_then(|version| u64::try_from(version).ok()) else {
        return Ok(None);
    };
    let no_such = || {
        TaskError::new(
            ErrorName::TableVersionNotFound,
            format!("The table has no version {version}, or no longer."),
        )
    };
    if version > dataset.version_id() {
        return Err(no_such());
    }
    let read = match dataset.checkout_version(version).await {
        Ok(read) => read,
        Err(error) if error.is_not_found() => return Err(no_such()),
        Err(Error::DatasetNotFound { .. } | Error::VersionNotFound { .. }) => return Err(no_such()),
        Err(error) => return Err(to_task_error(&error, redactor)),
    };
    Ok(Some(read.fragments().iter().map(|of| of.id).collect()))
}
