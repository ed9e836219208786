//! The one thread that changes the database.
//!
//! Every commit waits for the disk. Changes that arrive while it does are committed together
//! afterwards, so many requests share one wait; each is still all or nothing on its own, and none
//! is answered before its commit.

use std::sync::Arc;
use std::sync::mpsc;

use rusqlite::{Connection, Savepoint, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::StoreError;
use super::database::{counter, get};

/// The most changes that share one commit.
const BATCH: usize = 256;

/// A change to one store.
pub(super) enum Change {
    Set(Vec<(String, Vec<u8>)>),
    Delete(Vec<String>),
    Increment(String, i64),
}

/// The counter's new value, or how many keys changed.
type Outcome = Result<i64, StoreError>;

struct Job {
    store: Arc<str>,
    change: Change,
    reply: oneshot::Sender<Outcome>,
}

/// A way to reach the thread; it ends when the last one is gone.
#[derive(Clone)]
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Self {
        let (jobs, queue) = mpsc::channel();
        std::thread::spawn(move || run(connection, &queue));
        Self { jobs }
    }

    /// Makes a change and returns once it is committed.
    pub(super) async fn write(&self, store: Arc<str>, change: Change) -> Outcome {
        let (reply, outcome) = oneshot::channel();
        let job = Job {
            store,
            change,
            reply,
        };
        self.jobs.send(job).map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }
}

fn run(mut connection: Connection, queue: &mpsc::Receiver<Job>) {
    while let Ok(first) = queue.recv() {
        let batch: Vec<Job> = std::iter::once(first)
            .chain(queue.try_iter().take(BATCH - 1))
            .collect();
        let (changes, replies): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|job| ((job.store, job.change), job.reply))
            .unzip();
        let outcomes = commit(&mut connection, changes)
            .unwrap_or_else(|error| vec![Err(error); replies.len()]);
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            // Whoever asked may have been ended in the meantime.
            let _ = reply.send(outcome);
        }
    }
}

/// One outcome per change, or an error that means that none was made.
fn commit(
    connection: &mut Connection,
    changes: Vec<(Arc<str>, Change)>,
) -> Result<Vec<Outcome>, StoreError> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut outcomes = Vec::with_capacity(changes.len());
    for (store, change) in changes {
        let savepoint = transaction.savepoint()?;
        let outcome = apply(&savepoint, &store, change);
        // A savepoint that is dropped is rolled back.
        if outcome.is_ok() {
            savepoint.commit()?;
        }
        outcomes.push(outcome);
    }
    transaction.commit()?;
    Ok(outcomes)
}

fn apply(savepoint: &Savepoint<'_>, store: &str, change: Change) -> Outcome {
    let changed = match change {
        Change::Set(pairs) => {
            for (key, value) in &pairs {
                set(savepoint, store, key, value)?;
            }
            pairs.len()
        }
        Change::Delete(keys) => {
            let mut delete =
                savepoint.prepare_cached("DELETE FROM key_value WHERE store = ?1 AND key = ?2")?;
            let mut changed = 0;
            for key in keys {
                changed += delete.execute(params![store, key])?;
            }
            changed
        }
        Change::Increment(key, delta) => {
            let value = match get(savepoint, store, &key)? {
                Some(value) => counter(&key, &value)?,
                None => 0,
            };
            let Some(value) = value.checked_add(delta) else {
                return Err(StoreError::Overflow(key));
            };
            set(savepoint, store, &key, &value.to_le_bytes())?;
            return Ok(value);
        }
    };
    Ok(i64::try_from(changed).unwrap_or(i64::MAX))
}

fn set(connection: &Connection, store: &str, key: &str, value: &[u8]) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "INSERT INTO key_value (store, key, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (store, key) DO UPDATE SET value = excluded.value",
        )?
        .execute(params![store, key, value])
}
