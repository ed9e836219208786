//! Why a store did not do what was asked.

use std::sync::Arc;
use std::time::Duration;

/// The texts reach guests and the log; none has a value or a password in it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// SQLite failed.
    #[error("{0}")]
    Sqlite(Arc<rusqlite::Error>),
    /// Redis refused, or can't be reached; the text says which and why.
    #[error("Redis: {0}")]
    Redis(String),
    /// Redis did not answer in time. A change may have been made all the same.
    #[error("Redis: no answer within {} s", .0.as_secs_f64())]
    NoAnswer(Duration),
    /// The key holds something that the store did not put there, such as a list in Redis.
    #[error("the value of {0:?} is not one of a key-value store")]
    WrongType(String),
    /// `increment` met a value that is not a counter's.
    #[error("the value of {0:?} is not a counter")]
    NotACounter(String),
    /// `increment` would leave the range of 64 bits.
    #[error("the counter {0:?} would overflow")]
    Overflow(String),
    /// The database's thread is gone.
    #[error("the key-value store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}
