//! Where a book is kept, and how what it names is removed.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, Result};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::{CONCURRENT_DELETES, FOLDER};
use crate::local_folders::{local_path, remove_empty, remove_staged, remove_staged_below};

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
        let (books, all) = self.local_books(table_id);
        // Waste, if it fails.
        let _ = spawn_blocking(move || remove_empty_books(&books, &all)).await;
    }

    /// Removes what attempts left of entries that they were writing when they died, where a store has such.
    pub async fn remove_staged_books(&self, table_id: &str) {
        if !self.is_local {
            return;
        }
        let (books, all) = self.local_books(table_id);
        // Waste, if it fails.
        let _ = spawn_blocking(move || {
            if remove_staged_below(&books) > 0 {
                remove_empty_books(&books, &all);
            }
        })
        .await;
    }

    /// The folder of the table's books, and the one of all.
    fn local_books(&self, table_id: &str) -> (PathBuf, PathBuf) {
        let all = self.base.clone().join(FOLDER);
        (local_path(&self.books(table_id)), local_path(&all))
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

fn remove_empty_books(books: &FilePath, all: &FilePath) {
    remove_empty(books);
    let _ = std::fs::remove_dir(all);
}

fn is_folder(name: &str) -> bool {
    name.starts_with("_indices/")
}

/// The path with this name, which has `/` between its parts, below a folder.
pub(super) fn below(folder: &Path, name: &str) -> Path {
    name.split('/')
        .fold(folder.clone(), |path, part| path.join(part))
}
