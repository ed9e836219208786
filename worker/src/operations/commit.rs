//! What every commit of ours has in common: it is marked with the task, found again by that mark,
//! tried again when another writer was faster, and leaves nothing behind when it fails for good.
//!
//! So its effect comes about once, however often a task is attempted. An attempt that finds the commit
//! of an earlier one reports that one's. An attempt that was lost while it was held up, and goes on,
//! learns of it before it commits; and one that is held up right then conflicts: the later attempt
//! has rewritten the same fragments, or made segments of the same index, and Lance takes both kinds
//! for conflicts. A backfill's commits may not: files of one that is held up stay until it can't be made
//! any more ([`super::left_behind`]). After a conflict the task's own commit is looked for before anything is
//! redone.

use std::collections::HashMap;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use lance::dataset::transaction::Transaction;
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use tracing::warn;
use uuid::Uuid;

use super::errors::{is_retryable_conflict, to_task_error};
use super::redact::Redactor;
use super::references::needed;
use super::supervisor::{Measure, Phase, Supervisor};
use super::table::Table;
use super::{Limits, OperationContext};

/// The transaction property that holds the id of the task that made the commit.
pub const TASK_ID_PROPERTY: &str = "lance-maintenance.task-id";

/// Versions that are looked at in search of a commit of ours.
const VERSIONS_SEARCHED: usize = 10_000;
const CONCURRENT_READS: usize = 16;

/// The properties that mark a commit as this task's.
pub fn task_properties(ctx: &OperationContext) -> HashMap<String, String> {
    HashMap::from([(TASK_ID_PROPERTY.to_owned(), ctx.task_id.clone())])
}

/// A commit that this task made.
#[derive(Clone, Debug)]
pub struct OwnCommit {
    /// The version that it made.
    pub version: u64,
    /// What it changed.
    pub transaction: Transaction,
}

/// The newest commit of this task among the versions after `version` that are still there.
pub async fn find_own_commit(
    dataset: &Dataset,
    ctx: &OperationContext,
    after: u64,
) -> Result<Option<OwnCommit>, Error> {
    let found = commits_of(dataset, ctx, after).await?;
    std::pin::pin!(found).try_next().await
}

/// All of this task's commits among those, the newest first. Only a backfill makes more than one.
pub async fn own_commits(
    dataset: &Dataset,
    ctx: &OperationContext,
    after: u64,
) -> Result<Vec<OwnCommit>, Error> {
    commits_of(dataset, ctx, after).await?.try_collect().await
}

async fn commits_of<'a>(
    dataset: &'a Dataset,
    ctx: &'a OperationContext,
    after: u64,
) -> Result<impl Stream<Item = Result<OwnCommit, Error>> + 'a, Error> {
    let mut versions: Vec<u64> = dataset
        .version_refs()
        .await?
        .into_iter()
        .map(|found| found.version)
        .filter(|version| *version > after)
        .collect();
    versions.reverse();
    versions.truncate(VERSIONS_SEARCHED);
    Ok(stream::iter(versions)
        .map(move |version| async move {
            match dataset.read_version_transaction(version).await {
                Ok(read) => Ok(read.transaction.map(|transaction| OwnCommit {
                    version,
                    transaction,
                })),
                // Somebody cleans up at the same time.
                Err(Error::DatasetNotFound { .. } | Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .buffered(CONCURRENT_READS)
        .try_filter_map(move |read| async move {
            Ok(read.filter(|own| is_ours(&own.transaction, &ctx.task_id)))
        }))
}

/// What an earlier attempt at this task committed, if this is not the first.
pub async fn earlier_commit(
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<Option<OwnCommit>, Error> {
    match ctx.attempt {
        0 | 1 => Ok(None),
        _ => find_own_commit(dataset, ctx, 0).await,
    }
}

fn is_ours(transaction: &Transaction, task_id: &str) -> bool {
    transaction
        .transaction_properties
        .as_ref()
        .and_then(|properties| properties.get(TASK_ID_PROPERTY))
        .is_some_and(|found| found == task_id)
}

/// Counts how often an operation may still start over after a lost commit, and waits in between:
/// a tenth of a second, then twice as long each time up to five seconds, each with up to half as
/// much again so that two writers don't meet for ever.
#[derive(Debug)]
pub struct Retries {
    left: u32,
    delay: Duration,
}

impl Retries {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(5);

    /// As many as the limits allow.
    pub fn new(limits: &Limits) -> Self {
        Self {
            left: limits.max_conflict_retries,
            delay: Self::FIRST,
        }
    }

    /// Waits and answers true, or answers false where there is none left.
    pub async fn another(&mut self, supervisor: &dyn Supervisor) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        supervisor.measure(Measure::Retry);
        let random = (Uuid::new_v4().as_u128() % 512) as u32;
        tokio::time::sleep(self.delay + self.delay * random / 1024).await;
        self.delay = (self.delay * 2).min(Self::LONGEST);
        true
    }
}

/// What became of a commit that ended with an error.
#[derive(Debug)]
pub enum Lost {
    /// It was made all the same.
    Committed(Box<OwnCommit>),
    /// Another writer was faster; the same work on the newest version may succeed.
    Conflict(Error),
    /// It can't be made.
    Failed(Error),
}

/// Makes certain that the attempt may commit, and notes that it is about to. Whatever happens to this
/// process from here on, nobody removes what the commit would refer to unless it is known to have
/// failed.
pub async fn begin_commit(table: &Table, ctx: &OperationContext) -> Result<(), TaskError> {
    ctx.enter(Phase::Commit);
    let noted = table.journal.begin_commit().await;
    noted.map_err(|error| to_task_error(&error.into(), &Redactor::new(ctx)))?;
    // In this order: a later attempt that this one lost to sees the note.
    if let Err(lost) = ctx.supervisor.confirm().await {
        discard(table, ctx).await;
        return Err(lost.into());
    }
    Ok(())
}

/// Closes the book of an attempt whose commit was made.
pub async fn committed(table: &Table, ctx: &OperationContext) {
    table.journal.set_committed();
    close(table, ctx).await;
}

/// Closes the book of an attempt that has made no commit, nor will.
pub async fn discard(table: &Table, ctx: &OperationContext) {
    table.journal.quiet().await;
    close(table, ctx).await;
}

/// Removes what was written and no version refers to. Even where no commit was made of the work, some
/// may: Lance makes versions on the way to reserve ids for fragments.
async fn close(table: &Table, ctx: &OperationContext) {
    let journal = &table.journal;
    let mut written = journal.written();
    match needed(&table.dataset, journal.began_with(), written.clone()).await {
        Ok(needed) => written.retain(|name| !needed.contains(name)),
        Err(error) => {
            warn!(%error, "which files no version needs is left to the next task");
            return;
        }
    }
    let removed = journal.close(written).await;
    if removed > 0 {
        ctx.supervisor.measure(Measure::OrphansRemoved(removed));
    }
}

/// Finds out what became of a commit, begun on `read_version`, that ended with `error`, and removes
/// what it would have referred to unless a version refers to it or may yet.
pub async fn settle(
    table: &Table,
    ctx: &OperationContext,
    read_version: u64,
    error: Error,
) -> Lost {
    match find_own_commit(&table.dataset, ctx, read_version).await {
        Ok(Some(own)) => {
            committed(table, ctx).await;
            return Lost::Committed(Box::new(own));
        }
        Ok(None) if !error.is_commit_status_unknown() => discard(table, ctx).await,
        // Whether it is there, or still comes, is not known: the journal tells a later task.
        Ok(None) | Err(_) => warn!(%error, "files of a commit of unknown outcome stay"),
    }
    match is_retryable_conflict(&error) {
        true => {
            ctx.supervisor.measure(Measure::Conflict);
            Lost::Conflict(error)
        }
        false => Lost::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::supervisor::Unsupervised;

    #[tokio::test]
    async fn retries_are_counted_and_take_longer_each_time() {
        let mut retries = Retries::new(&Limits {
            max_conflict_retries: 3,
            ..Default::default()
        });
        let mut waits = Vec::new();
        loop {
            let start = tokio::time::Instant::now();
            if !retries.another(&Unsupervised).await {
                break;
            }
            waits.push(start.elapsed().as_millis());
        }
        assert_eq!(waits.len(), 3);
        for (wait, delay) in waits.iter().zip([100, 200, 400]) {
            // At most half as much again, and what a busy machine adds.
            assert!((delay..delay * 3 / 2 + 100).contains(wait), "{waits:?}");
        }
    }
}
