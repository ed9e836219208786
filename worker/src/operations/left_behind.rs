//! Removes what attempts left behind that died: written, entered in their [`super::journal`], and
//! referred to by no version.
//!
//! It is done when a task of the table runs. Of a table one task at a time has its turn, so every
//! other attempt whose book is there is over: it can't commit any more, as before a commit it asks
//! whether it may ([`Supervisor::confirm`]), and before it asks, it notes that it is about to. The
//! one that can't be told from a dead one is an attempt that was allowed to commit and was held up
//! right then. Its files stay until a commit of the same task has been made, with which its own would
//! conflict, or for as long as Lance itself waits for writers that nobody knows of. A backfill's commits
//! need not conflict with each other: there it is always as long.
//!
//! [`Supervisor::confirm`]: super::supervisor::Supervisor::confirm

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use lance::Error;
use object_store::ObjectMeta;
use object_store::path::Path;
use tracing::{info, warn};

use super::OperationContext;
use super::backfill::checkpoints::{FOLDER as CHECKPOINTS, remove_all};
use super::journal::{COMMIT, Place};
use super::references::needed;
use super::supervisor::Measure;
use super::table::Table;

/// How long an attempt that was about to commit may still do so. Lance takes files that no version
/// refers to for those of a writer that is alive for as long.
const COMMITTING: TimeDelta = TimeDelta::days(7);

/// The book of an attempt.
#[derive(Debug, Default)]
struct Book {
    /// The version that it began with.
    version: u64,
    /// What was entered.
    names: Vec<String>,
    /// The entries.
    entries: Vec<Path>,
    /// The note that it is about to commit, and since when, if it is.
    committing: Option<(Path, DateTime<Utc>)>,
}

/// Removes what attempts left behind: those at other tasks, and earlier ones at this one. `committed`
/// says that this task has made its commit. What fails is logged and left to the next task.
pub async fn remove(table: &Table, ctx: &OperationContext, committed: bool) {
    let place = table.journal.place();
    match remove_of(table, place, ctx, committed).await {
        Ok(0) => {}
        Ok(removed) => {
            info!(removed, "removed what attempts left that never committed");
            ctx.supervisor.measure(Measure::OrphansRemoved(removed));
        }
        Err(error) => warn!(%error, "what attempts left is not removed"),
    }
}

/// Whether an earlier attempt at this task was about to commit, and may still.
pub async fn may_commit(table: &Table, ctx: &OperationContext) -> Result<bool, Error> {
    let (books, _) = books(table.journal.place(), ctx).await?;
    Ok(books.into_iter().any(|((task_id, attempt), book)| {
        let is_earlier = task_id == ctx.task_id && attempt != ctx.attempt;
        is_earlier
            && book
                .committing
                .is_some_and(|(_, since)| !is_too_late(since))
    }))
}

/// Whether an attempt that was about to commit then no longer can.
fn is_too_late(since: DateTime<Utc>) -> bool {
    Utc::now() - since > COMMITTING
}

/// The books of a table, by task and attempt; and the checkpoints of other tasks than this.
async fn books(
    place: &Place,
    ctx: &OperationContext,
) -> Result<(BTreeMap<(String, u32), Book>, Vec<Path>), Error> {
    let folder = place.books(&ctx.table_id);
    let own = folder.clone().join(ctx.task_id.as_str());
    let (mut books, mut checkpoints) = (BTreeMap::new(), Vec::new());
    for file in &place.files_below(&folder).await? {
        let is_checkpoint = file
            .location
            .prefix_match(&folder)
            .and_then(|mut parts| parts.nth(1))
            .is_some_and(|part| part.as_ref() == CHECKPOINTS);
        match is_checkpoint {
            false => enter(&mut books, &folder, file),
            true if file.location.prefix_matches(&own) => {}
            true => checkpoints.push(file.location.clone()),
        }
    }
    Ok((books, checkpoints))
}

async fn remove_of(
    table: &Table,
    place: &Place,
    ctx: &OperationContext,
    committed: bool,
) -> Result<u64, Error> {
    place.remove_staged_books(&ctx.table_id).await;
    let (books, checkpoints) = books(place, ctx).await?;
    // One task of the table has its turn: those of others are of use to nobody, or computed once more.
    let are_others = !checkpoints.is_empty();
    remove_all(place, checkpoints).await;
    if books.is_empty() {
        if are_others {
            place.remove_empty_books(&ctx.table_id).await;
        }
        return Ok(0);
    }
    let own = (ctx.task_id.as_str(), ctx.attempt);
    // Of versions that are gone a branch may have what no version of the table has any more.
    let has_branches = !table.dataset.list_branches().await?.is_empty();
    let mut left = Vec::new();
    for ((task_id, attempt), book) in books {
        let is_over = match &book.committing {
            None => true,
            Some(_) if has_branches => false,
            Some((_, since)) => (committed && task_id == own.0) || is_too_late(*since),
        };
        if (task_id.as_str(), attempt) != own && is_over {
            left.push(book);
        }
    }
    if left.is_empty() {
        return Ok(0);
    }
    let first = left.iter().map(|book| book.version).min().unwrap_or(0);
    let names = left.iter().flat_map(|book| book.names.clone()).collect();
    let needed = needed(&table.dataset, first, names).await?;
    let mut removed = 0;
    for book in left {
        let mut all_gone = true;
        for name in &book.names {
            if !needed.contains(name) {
                match place.remove_written(name).await {
                    true => removed += 1,
                    false => all_gone = false,
                }
            }
        }
        if all_gone {
            let note = book.committing.iter().map(|(note, _)| note);
            // The note of a commit is the last to go.
            for entry in book.entries.iter().chain(note) {
                place.remove_object(entry).await?;
            }
        }
    }
    place.remove_empty_books(&ctx.table_id).await;
    Ok(removed)
}

/// `<task id>/<attempt>-<version>/<name>`; anything else is not looked at.
fn enter(books: &mut BTreeMap<(String, u32), Book>, folder: &Path, file: &ObjectMeta) {
    let parts: Option<Vec<String>> = file
        .location
        .prefix_match(folder)
        .map(|parts| parts.map(|part| part.as_ref().to_owned()).collect());
    let Some([task_id, began, name @ ..]) = parts.as_deref() else {
        return;
    };
    let Some((attempt, version)) = began
        .split_once('-')
        .and_then(|(attempt, version)| Some((attempt.parse().ok()?, version.parse().ok()?)))
    else {
        return;
    };
    let book = books.entry((task_id.clone(), attempt)).or_default();
    book.version = version;
    let name = name.join("/");
    if name == COMMIT {
        book.committing = Some((file.location.clone(), file.last_modified));
    } else {
        book.names.push(name);
        book.entries.push(file.location.clone());
    }
}
