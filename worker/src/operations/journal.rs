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

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
};
use tokio::sync::RwLock;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::OperationContext;
use crate::local_folders::{local_path, remove_empty, remove_staged};

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

    /// The version that the attempt began with.
    pub fn began_with(&self) -> u64 {
        self.state().version
    }

    /// Notes that from now on a version may refer to the files, whatever becomes of this process.
    pub async fn begin_commit(&self) -> Result<()> {
        self.state().committing = true;
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
        let removed = self.remove(unreferenced).await;
        let all_gone = stream::iter(self.written())
            .map(|name| self.give_up(name))
            .buffer_unordered(CONCURRENT_DELETES)
            .fold(true, |all, gone| async move { all && gone })
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

/// Where an attempt wrote: the table's folder in its store.
#[derive(Clone)]
pub struct Place {
    /// The store, without anything that watches it.
    pub store: Arc<dyn ObjectStore>,
    /// The table's folder.
    pub base: Path,
    /// Whether the store is this machine's file system.
    pub is_local: bool,
}

impl Place {
    /// The folder of all books of a table.
    pub fn books(&self, table_id: &str) -> Path {
        self.base.clone().join(FOLDER).join(table_id)
    }

    /// Removes what an entry names: a file, or the files of an index; false if something stays, which
    /// is logged.
    pub async fn remove_written(&self, name: &str) -> bool {
        let path = below(&self.base, name);
        let files = match is_folder(name) {
            false => vec![path.clone()],
            true => match self.files_below(&path).await {
                Ok(files) => files.into_iter().map(|file| file.location).collect(),
                Err(error) => {
                    warn!(%path, %error, "what an attempt left can't be listed");
                    return false;
                }
            },
        };
        let removed = stream::iter(files)
            .map(|file| async move { self.remove_object(&file).await.is_ok() })
            .buffer_unordered(CONCURRENT_DELETES)
            .fold(true, |all, removed| async move { all && removed })
            .await;
        removed && (!self.is_local || self.remove_local(&path, is_folder(name)).await)
    }

    /// Removes an object; that it is not there is no error. An error is logged.
    pub async fn remove_object(&self, path: &Path) -> Result<()> {
        match self.store.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => {
                warn!(%path, %error, "what an attempt left can't be removed");
                Err(error)
            }
        }
    }

    /// Every object below a folder, which need not be there.
    pub async fn files_below(&self, folder: &Path) -> Result<Vec<ObjectMeta>> {
        match self.store.list(Some(folder)).try_collect().await {
            // A folder that is not there can't be listed on some stores.
            Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Removes the folders of books that are empty, where a store has folders.
    pub async fn remove_empty_books(&self, table_id: &str) {
        if !self.is_local {
            return;
        }
        let book = local_path(&self.books(table_id));
        let all = local_path(&self.base.clone().join(FOLDER));
        // Waste, if it fails.
        let _ = spawn_blocking(move || {
            remove_empty(&book);
            let _ = std::fs::remove_dir(all);
        })
        .await;
    }

    async fn remove_local(&self, path: &Path, is_folder: bool) -> bool {
        let local = local_path(path);
        let removed = spawn_blocking(move || {
            if !is_folder {
                return remove_staged(&local);
            }
            if let Ok(entries) = std::fs::read_dir(&local) {
                // What a local store lists leaves out what is not whole.
                for entry in entries.flatten() {
                    std::fs::remove_file(entry.path())?;
                }
            }
            remove_empty(&local);
            Ok(())
        })
        .await;
        match removed {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                warn!(%path, %error, "what an attempt left can't be removed");
                false
            }
            Err(_) => false,
        }
    }
}

fn is_folder(name: &str) -> bool {
    name.starts_with("_indices/")
}

/// The path with this name, which has `/` between its parts, below a folder.
fn below(folder: &Path, name: &str) -> Path {
    name.split('/')
        .fold(folder.clone(), |path, part| path.join(part))
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("task_id", &self.task_id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl WrappingObjectStore for Journal {
    fn wrap(&self, _prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Entering {
            journal: self.clone(),
            store: original,
        })
    }

    fn wrap_paginated(
        &self,
        _prefix: &str,
        original: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        // Listing writes nothing.
        Some(original)
    }
}

/// A store that enters every file before it is written.
#[derive(Debug)]
struct Entering {
    journal: Journal,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Display for Entering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Entering {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let (store, path) = (Arc::clone(&self.store), location.clone());
        let write = async move { store.put_opts(&path, payload, opts).await };
        self.journal.write(location, write).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (store, path) = (Arc::clone(&self.store), location.clone());
        let write = async move { store.put_multipart_opts(&path, opts).await };
        Ok(Box::new(EnteredUpload {
            upload: Some(self.journal.write(location, write).await?),
            journal: self.journal.clone(),
            location: location.clone(),
        }))
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (store, from, path) = (Arc::clone(&self.store), from.clone(), to.clone());
        let write = async move { store.copy_opts(&from, &path, options).await };
        self.journal.write(to, write).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (store, from, path) = (Arc::clone(&self.store), from.clone(), to.clone());
        let write = async move { store.rename_opts(&from, &path, options).await };
        self.journal.write(to, write).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.store.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        self.store.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }
}

/// A file that is written in parts, and is there when it is complete.
#[derive(Debug)]
struct EnteredUpload {
    /// There until it is complete.
    upload: Option<Box<dyn MultipartUpload>>,
    journal: Journal,
    location: Path,
}

impl EnteredUpload {
    fn is_over() -> object_store::Error {
        object_store::Error::Generic {
            store: "journal",
            source: "the upload is complete or was given up".into(),
        }
    }
}

#[async_trait]
impl MultipartUpload for EnteredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut self.upload {
            Some(upload) => upload.put_part(data),
            None => futures::future::ready(Err(Self::is_over())).boxed(),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut upload = self.upload.take().ok_or_else(Self::is_over)?;
        let write = async move { upload.complete().await };
        self.journal.write(&self.location, write).await
    }

    async fn abort(&mut self) -> Result<()> {
        match self.upload.take() {
            Some(mut upload) => upload.abort().await,
            None => Ok(()),
        }
    }
}
