//! What every commit of ours has in common: it is marked with the task, found again by that mark,
//! tried again when another writer was faster, and leaves nothing behind when it fails for good.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::transaction::Transaction;
use lance::{Dataset, Error};
use lance_io::object_store::ObjectStore;
use lance_table::format::Fragment;
use object_store::path::Path;
use tracing::warn;
use uuid::Uuid;

use super::errors::is_retryable_conflict;
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
    let mut versions: Vec<u64> = dataset
        .version_refs()
        .await?
        .into_iter()
        .map(|found| found.version)
        .filter(|version| *version > after)
        .collect();
    versions.reverse();
    versions.truncate(VERSIONS_SEARCHED);
    let found = stream::iter(versions)
        .map(|version| async move {
            match dataset.read_version_transaction(version).await {
                Ok(read) => Ok(read.transaction.map(|transaction| (version, transaction))),
                // Somebody cleans up at the same time.
                Err(Error::DatasetNotFound { .. } | Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .buffered(CONCURRENT_READS)
        .try_filter_map(|read| async move {
            Ok(read.filter(|(_, transaction)| is_ours(transaction, &ctx.task_id)))
        });
    let mut found = std::pin::pin!(found);
    let newest = found.try_next().await?;
    Ok(newest.map(|(version, transaction)| OwnCommit {
        version,
        transaction,
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
    pub async fn another(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let random = (Uuid::new_v4().as_u128() % 512) as u32;
        tokio::time::sleep(self.delay + self.delay * random / 1024).await;
        self.delay = (self.delay * 2).min(Self::LONGEST);
        true
    }
}

/// Files that this task wrote and that no version refers to yet.
///
/// Dropping it removes them in the background, so that an operation that fails or is stopped on any
/// of its ways out leaves nothing behind. Whoever commits calls [`Self::begin_commit`] first: from
/// then on a version may refer to them, and only [`Self::remove`] still does, for a commit that is
/// known to have failed. Only what this task itself reported as written is ever removed.
#[derive(Debug)]
pub struct Uncommitted {
    store: Arc<ObjectStore>,
    data_dir: Path,
    indices_dir: Path,
    written: Arc<Mutex<Written>>,
}

#[derive(Debug, Default)]
struct Written {
    files: Vec<Path>,
    folders: Vec<Path>,
    committing: bool,
}

impl Uncommitted {
    /// Nothing written yet to the table.
    pub async fn new(dataset: &Dataset) -> Result<Self, Error> {
        Ok(Self {
            store: dataset.object_store(None).await?,
            data_dir: dataset.data_dir(),
            indices_dir: dataset.indices_dir(),
            written: Arc::default(),
        })
    }

    /// Nothing written yet to the table in this folder, which need not be there.
    pub fn below(store: Arc<ObjectStore>, base: &Path) -> Self {
        Self {
            store,
            data_dir: base.clone().join("data"),
            indices_dir: base.clone().join("_indices"),
            written: Arc::default(),
        }
    }

    /// The data files of these fragments were written.
    pub fn add_fragments(&self, fragments: &[Fragment]) {
        let mut written = lock(&self.written);
        for file in fragments.iter().flat_map(|fragment| &fragment.files) {
            // Our rewrites go into the table's own folder only.
            if file.base_id.is_some() {
                continue;
            }
            written
                .files
                .push(self.data_dir.clone().join(file.path.as_str()));
            // Large values lie beside a data file, in a folder of its name.
            if let Some((stem, _)) = file.path.rsplit_once('.') {
                written.folders.push(self.data_dir.clone().join(stem));
            }
        }
    }

    /// The folder of this index was written, or is being.
    pub fn add_index(&self, index: Uuid) {
        self.index_log().add(index);
    }

    /// A place to note indices for code that can't borrow this.
    pub fn index_log(&self) -> IndexLog {
        IndexLog {
            indices_dir: self.indices_dir.clone(),
            written: self.written.clone(),
        }
    }

    /// From now on a version may refer to the files.
    pub fn begin_commit(&self) {
        lock(&self.written).committing = true;
    }

    /// Removes the files now: no version refers to them, nor will.
    pub async fn remove(&self) {
        let written = std::mem::take(&mut *lock(&self.written));
        remove(&self.store, written).await;
    }
}

impl Drop for Uncommitted {
    fn drop(&mut self) {
        let written = std::mem::take(&mut *lock(&self.written));
        if written.committing || (written.files.is_empty() && written.folders.is_empty()) {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let store = self.store.clone();
            runtime.spawn(async move { remove(&store, written).await });
        }
    }
}

/// Notes indices as written; see [`Uncommitted::index_log`].
#[derive(Clone, Debug)]
pub struct IndexLog {
    indices_dir: Path,
    written: Arc<Mutex<Written>>,
}

impl IndexLog {
    /// The folder of this index was written, or is being.
    pub fn add(&self, index: Uuid) {
        let folder = self.indices_dir.clone().join(index.to_string());
        lock(&self.written).folders.push(folder);
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

/// Finds out what became of a commit, begun on `read_version`, that ended with `error`, and removes
/// what it would have referred to unless a version refers to it or may yet.
pub async fn settle(
    dataset: &Dataset,
    ctx: &OperationContext,
    read_version: u64,
    uncommitted: &Uncommitted,
    error: Error,
) -> Lost {
    match find_own_commit(dataset, ctx, read_version).await {
        Ok(Some(own)) => return Lost::Committed(Box::new(own)),
        Ok(None) if !error.is_commit_status_unknown() => uncommitted.remove().await,
        // Whether it is there, or still comes, is not known: a cleanup finds the files in time.
        Ok(None) | Err(_) => warn!(%error, "files of a commit of unknown outcome stay"),
    }
    match is_retryable_conflict(&error) {
        true => Lost::Conflict(error),
        false => Lost::Failed(error),
    }
}

/// What can't be removed is left to the next cleanup, which is a waste and no fault.
async fn remove(store: &ObjectStore, written: Written) {
    for file in &written.files {
        if let Err(error) = store.delete(file).await
            && !error.is_not_found()
        {
            warn!(path = %file, %error, "an uncommitted file could not be removed");
        }
    }
    for folder in &written.folders {
        if let Err(error) = store.remove_dir_all(folder.clone()).await
            && !error.is_not_found()
        {
            warn!(path = %folder, %error, "an uncommitted folder could not be removed");
        }
    }
}

fn lock(written: &Mutex<Written>) -> std::sync::MutexGuard<'_, Written> {
    // The lists are whole between any two operations on them, panic or not.
    written.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn retries_are_counted_and_take_longer_each_time() {
        let mut retries = Retries::new(&Limits {
            max_conflict_retries: 3,
            ..Default::default()
        });
        let mut waits = Vec::new();
        loop {
            let start = tokio::time::Instant::now();
            if !retries.another().await {
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
