//! The book that an attempt keeps, in the table's own folder, about the files that it writes and
//! that no version refers to yet.
//!
//! Each file is entered before it is written: an empty object whose path repeats the file's.
//!
//! ```text
//! _maintenance/<table id>/<task id>/<attempt>-<version>/data/<file>.lance
//!                                                      /_indices/<uuid>
//!                                                      /_commit
//! ```
//!
//! `<version>` is the one that the attempt began with: only later ones can refer to its files.
//! `_commit` is there from before a commit until its outcome is known. The entries go when the files
//! are referred to, or are gone. So what is still entered after an attempt has died tells the next
//! task of the table, on whatever machine, what to remove ([`super::left_behind`]): it never has to
//! guess whose a file is.

mod entering;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload, Result};
use tokio::sync::RwLock;

pub use self::place::Place;
use self::place::below;
use super::OperationContext;

/// The folder of the book, in the table's.
pub const FOLDER: &str = "_maintenance";
/// The entry that says that a commit is being made.
pub const COMMIT: &str = "_commit";
/// Folders whose files Lance makes visible or removes by itself.
const NOT_ENTERED: [&str; 3] = ["_versions", "_refs", FOLDER];
const CONCURRENT_DELETES: usize = 16;

/// One attempt's book. Clones share it.
#[derive(Clone)]
pub struct Journal {
    place: Place,
    table_id: String,
    task_id: String,
    attempt: u32,
    state: Arc<Mutex<State>>,
    /// Shared by writes that are under way.
    under_way: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct State {
    /// The version that the attempt began with.
    version: u64,
    /// The files and folders that are written, relative to the table's folder, and whether their entries
    /// are certain to be there.
    written: BTreeMap<String, bool>,
    /// Whether a version may refer to them.
    committing: bool,
    /// Whether a commit was made.
    committed: bool,
    /// Whether nothing is to be written any more.
    shut: bool,
}

impl Journal {
    /// The book of the context's attempt on the table in this place, empty yet.
    pub fn new(place: Place, ctx: &OperationContext) -> Self {
        Self {
            place,
            table_id: ctx.table_id.clone(),
            task_id: ctx.task_id.clone(),
            attempt: ctx.attempt,
            state: Arc::default(),
            under_way: Arc::default(),
        }
    }

    /// Where it is kept.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Says which version the attempt begins with, before anything is written.
    pub fn begin(&self, version: u64) {
        self.state().version = version;
    }

    /// What was written and is neither removed nor given up yet, relative to the table's folder.
    pub fn written(&self) -> Vec<String> {
        self.state().written.keys().cloned().collect()
    }

    /// Whether a commit was made.
    pub fn has_committed(&self) -> bool {
        self.state().committed
    }

    /// Whether a version may refer to what was written, or will.
    pub fn is_committing(&self) -> bool {
        self.state().committing
    }

    /// Notes that the commit was made.
    pub fn set_committed(&self) {
        self.state().committed = true;
    }

    /// Notes that the attempt goes on after its commit: what comes is another one.
    pub fn go_on(&self) {
        self.state().committed = false;
    }

    /// The version that the attempt began with.
    pub fn began_with(&self) -> u64 {
        self.state().version
    }

    /// From now on nothing is written, and no commit begun: false if one was.
    pub fn shut(&self) -> bool {
        let mut state = self.state();
        state.shut |= !state.committing;
        state.shut
    }

    /// Notes that from now on a version may refer to the files, whatever becomes of this process.
    pub async fn begin_commit(&self) -> Result<()> {
        {
            let mut state = self.state();
            if state.shut {
                return Err(is_shut());
            }
            state.committing = true;
        }
        let entry = self.entry(COMMIT);
        self.place
            .store
            .put(&entry, PutPayload::new())
            .await
            .map(drop)
    }

    /// Waits until nothing is being written any more, so that nothing comes after what is done next.
    pub async fn quiet(&self) {
        drop(self.under_way.write().await);
    }

    /// Removes these, which no version refers to nor will, and gives the rest up: versions refer to it.
    /// Returns how many files and folders were removed. What can't be removed stays entered, for the
    /// next task.
    pub async fn close(&self, unreferenced: Vec<String>) -> u64 {
        let mut referenced = self.written();
        let leave: BTreeSet<&String> = unreferenced.iter().collect();
        referenced.retain(|name| !leave.contains(name));
        let expected = unreferenced.len() as u64;
        let removed = self.remove(unreferenced).await;
        let all_gone = stream::iter(referenced)
            .map(|name| self.give_up(name))
            .buffer_unordered(CONCURRENT_DELETES)
            .fold(removed == expected, |all, gone| async move { all && gone })
            .await;
        // Last, so that a book that is not settled to its end is looked at like one of an attempt
        // that died at its commit.
        if all_gone && self.end_commit().await {
            self.place.remove_empty_books(&self.table_id).await;
        }
        removed
    }

    async fn end_commit(&self) -> bool {
        if self.is_committing() {
            if self.remove_entry(COMMIT).await.is_err() {
                return false;
            }
            self.state().committing = false;
        }
        true
    }

    async fn remove(&self, names: Vec<String>) -> u64 {
        stream::iter(names)
            .map(|name| async move {
                self.place.remove_written(&name).await && self.give_up(name).await
            })
            .buffer_unordered(CONCURRENT_DELETES)
            .fold(0, |removed, gone| async move { removed + u64::from(gone) })
            .await
    }

    /// Removes an entry; false if it stays.
    async fn give_up(&self, name: String) -> bool {
        let gone = self.remove_entry(&name).await.is_ok();
        if gone {
            self.state().written.remove(&name);
        }
        gone
    }

    async fn remove_entry(&self, name: &str) -> Result<()> {
        self.place.remove_object(&self.entry(name)).await
    }

    /// Enters what the file belongs to, then writes it. Goes on to its end when it is no longer waited
    /// for: a request that is under way would be answered after all, when nobody reckons with it.
    async fn write<T: Send + 'static>(
        &self,
        path: &Path,
        write: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (journal, name) = (self.clone(), self.name(path));
        let under_way = Arc::clone(&self.under_way).read_owned().await;
        let written = tokio::spawn(async move {
            let _under_way = under_way;
            if let Some(name) = name {
                if journal.state().shut {
                    return Err(is_shut());
                }
                journal.enter(name).await?;
            }
            write.await
        });
        written
            .await
            .map_err(|error| object_store::Error::Generic {
                store: "journal",
                source: error.into(),
            })?
    }

    async fn enter(&self, name: String) -> Result<()> {
        if *self.state().written.entry(name.clone()).or_default() {
            return Ok(());
        }
        let entry = self.entry(&name);
        self.place.store.put(&entry, PutPayload::new()).await?;
        self.state().written.insert(name, true);
        Ok(())
    }

    /// What is entered for a path, relative to the table's folder; none if nothing is.
    fn name(&self, path: &Path) -> Option<String> {
        let parts: Vec<_> = path.prefix_match(&self.place.base)?.collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        match parts[..] {
            [] | [_] => None,
            [folder, ..] if NOT_ENTERED.contains(&folder) => None,
            // An index is a folder, whose files come and go together.
            ["_indices", uuid, _, ..] => Some(format!("_indices/{uuid}")),
            _ => Some(parts.join("/")),
        }
    }

    fn entry(&self, name: &str) -> Path {
        let attempt = format!("{}-{}", self.attempt, self.state().version);
        let books = self.place.books(&self.table_id);
        below(&books.join(self.task_id.as_str()).join(attempt), name)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole between any two operations on it, panic or not.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_shut() -> object_store::Error {
    object_store::Error::Generic {
        store: "journal",
        source: "the operation was stopped".into(),
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("task_id", &self.task_id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use object_store::local::LocalFileSystem;

    use super::*;

    #[tokio::test]
    async fn what_can_t_be_removed_stays_entered() {
        let folder = tempfile::tempdir().unwrap();
        let base = Path::from_absolute_path(folder.path()).unwrap();
        let place = Place {
            store: Arc::new(LocalFileSystem::new()),
            base,
            is_local: true,
        };
        let ctx = OperationContext::unsupervised("t".into(), "file:///t".into(), HashMap::new());
        let journal = Journal::new(place, &ctx);
        for name in ["data/gone", "data/stays", "data/referenced"] {
            journal.enter(name.to_owned()).await.unwrap();
        }
        fs::create_dir_all(folder.path().join("data/stays/not a file")).unwrap();
        fs::write(folder.path().join("data/gone"), b"").unwrap();
        let unreferenced = ["data/gone", "data/stays"].map(str::to_owned);
        assert_eq!(journal.close(unreferenced.to_vec()).await, 1);
        assert_eq!(journal.written(), ["data/stays"]);
        let folder_of = |journal: &Journal| journal.entry("data/stays").to_string();
        assert!(fs::exists(format!("/{}", folder_of(&journal))).unwrap());
        // Another time it can.
        fs::remove_dir_all(folder.path().join("data/stays")).unwrap();
        assert_eq!(journal.close(journal.written()).await, 1);
        assert!(!folder.path().join(FOLDER).exists());
    }
}
