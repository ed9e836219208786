//! Key-value stores in one SQLite file, with the semantics of Spin's SQLite store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use tokio::sync::Semaphore;

use super::StoreError;
use super::writer::{Change, Writer};

/// How many reads run at the same time; more don't help on the cores that serve requests.
const READERS: usize = 4;

/// An open database file. Clones share it.
///
/// A change that was answered is committed: it outlives a killed process because it is in the
/// write-ahead log by then, and a power cut because the log was flushed to the disk
/// (`synchronous = FULL`; with `NORMAL` a power cut could take back changes that were already
/// answered, though it would not damage the file). What a disk promises and does not keep is lost
/// here as well.
#[derive(Clone)]
pub struct Database {
    writer: Writer,
    readers: Arc<Readers>,
}

struct Readers {
    path: PathBuf,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Database {
    /// Opens the file, creating it if it is not there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS key_value (
                store TEXT NOT NULL,
                key   TEXT NOT NULL,
                value BLOB NOT NULL,
                PRIMARY KEY (store, key)
            ) WITHOUT ROWID",
        )?;
        Ok(Self {
            writer: Writer::start(connection),
            readers: Arc::new(Readers {
                path: path.to_owned(),
                permits: Semaphore::new(READERS),
                idle: Mutex::default(),
            }),
        })
    }

    /// The value of a key.
    pub async fn get(&self, store: Arc<str>, key: String) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(move |connection| get(connection, &store, &key))
            .await
    }

    /// Whether a key has a value.
    pub async fn exists(&self, store: Arc<str>, key: String) -> Result<bool, StoreError> {
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT 1 FROM key_value WHERE store = ?1 AND key = ?2")?
                .exists(params![store, key])
        })
        .await
    }

    /// Every key of a store, in order.
    pub async fn keys(&self, store: Arc<str>) -> Result<Vec<String>, StoreError> {
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT key FROM key_value WHERE store = ?1 ORDER BY key")?
                .query_map(params![store], |row| row.get(0))?
                .collect()
        })
        .await
    }

    /// The values of many keys, all from one moment. Like Spin's SQLite store, this leaves out keys
    /// without a value and answers in the order of the keys, each once; callers must look results
    /// up by key.
    pub async fn get_many(
        &self,
        store: Arc<str>,
        mut keys: Vec<String>,
    ) -> Result<Vec<(String, Option<Vec<u8>>)>, StoreError> {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.read(move |connection| {
            let snapshot = connection.unchecked_transaction()?;
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                if let Some(value) = get(&snapshot, &store, &key)? {
                    found.push((key, Some(value)));
                }
            }
            Ok(found)
        })
        .await
    }

    /// Sets many keys, all or none.
    pub async fn set_many(
        &self,
        store: Arc<str>,
        pairs: Vec<(String, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        if pairs.is_empty() {
            return Ok(());
        }
        self.writer.write(store, Change::Set(pairs)).await.map(drop)
    }

    /// Deletes many keys, all or none; keys without a value are skipped.
    pub async fn delete_many(&self, store: Arc<str>, keys: Vec<String>) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.writer
            .write(store, Change::Delete(keys))
            .await
            .map(drop)
    }

    /// Adds to a counter and returns its new value. An absent counter is 0, and even adding 0
    /// creates it, as in Spin. A counter is stored as 8 bytes, little-endian.
    pub async fn increment(
        &self,
        store: Arc<str>,
        key: String,
        delta: i64,
    ) -> Result<i64, StoreError> {
        // Adding 0 to a counter that is there changes nothing: a read is enough, and does not wait
        // for the disk.
        if delta == 0
            && let Some(value) = self.get(store.clone(), key.clone()).await?
        {
            return counter(&key, &value);
        }
        self.writer
            .write(store, Change::Increment(key, delta))
            .await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.readers.clone();
        let _permit = self
            .readers
            .permits
            .acquire()
            .await
            .map_err(|_| StoreError::Closed)?;
        tokio::task::spawn_blocking(move || {
            let connection = readers.take()?;
            let result = query(&connection);
            readers
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(connection);
            Ok(result?)
        })
        .await
        .map_err(|_| StoreError::Closed)?
    }
}

impl Readers {
    fn take(&self) -> rusqlite::Result<Connection> {
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(connection) = idle {
            return Ok(connection);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(&self.path, flags)
    }
}

pub(super) fn get(
    connection: &Connection,
    store: &str,
    key: &str,
) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT value FROM key_value WHERE store = ?1 AND key = ?2")?
        .query_row(params![store, key], |row| row.get(0))
        .optional()
}

pub(super) fn counter(key: &str, value: &[u8]) -> Result<i64, StoreError> {
    let bytes = value
        .try_into()
        .map_err(|_| StoreError::NotACounter(key.to_owned()))?;
    Ok(i64::from_le_bytes(bytes))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
