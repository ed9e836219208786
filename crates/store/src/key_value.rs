//! What the store must be able to do.

use lance_maintenance_api::{ApiError, ErrorName};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A key-value store with atomic increment, as `wasi:keyvalue` has it.
///
/// A counter's stored bytes differ by backend: a key that was ever incremented is read with
/// `increment(key, 0)` only.
pub trait KeyValue {
    /// The value of a key.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;
    /// Writes a value, over any that is there.
    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError>;
    /// Adds `delta` to a counter, which starts at 0, and returns its new value.
    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError>;
    /// The values of many keys, in the order of `keys`; of none, none.
    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError>;
    /// Removes keys; those that are not there are no error.
    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError>;
    /// Every key there is. As slow as the store is large: never on a request's path.
    fn keys(&self) -> Result<Vec<String>, StoreError>;
}

/// The store could not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store can't be reached or refused; the text is for the log, not for a client.
    #[error("the key-value store failed: {0}")]
    Unavailable(String),
    /// A record can't be read: it was not written by this service, or not by this version.
    #[error("the record under '{0}' can't be read")]
    Corrupt(String),
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => ApiError::new(
                ErrorName::ServiceUnavailable,
                "The service can't reach its store just now; try again.",
            ),
            StoreError::Corrupt(_) => {
                ApiError::new(ErrorName::InternalError, "A stored record can't be read.")
            }
        }
    }
}

/// The record under a key, from JSON.
pub(crate) fn get_json<T: DeserializeOwned>(
    store: &impl KeyValue,
    key: &str,
) -> Result<Option<T>, StoreError> {
    store
        .get(key)?
        .map(|bytes| from_json(key, &bytes))
        .transpose()
}

/// Writes a record as JSON.
pub(crate) fn set_json(
    store: &impl KeyValue,
    key: &str,
    record: &impl Serialize,
) -> Result<(), StoreError> {
    let bytes = serde_json::to_vec(record).map_err(|_| StoreError::Corrupt(key.to_owned()))?;
    store.set(key, &bytes)
}

/// Reads a record that `set_json` wrote.
pub(crate) fn from_json<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|_| StoreError::Corrupt(key.to_owned()))
}
