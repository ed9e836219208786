//! The stores of an application, whichever backend holds them.

use std::sync::Arc;

use super::{Database, RedisStore, StoreError};

/// Where stores are. Clones share it.
///
/// Both backends answer alike, with two exceptions that Spin's have as well:
///
/// - A counter read with `get` is 8 bytes, little-endian, in SQLite, and decimal digits in Redis.
///   Only `increment` tells its value everywhere.
/// - SQLite keeps stores with different names apart. Redis holds one store, without its name in the
///   keys; [`Application::load`](crate::application::Application::load) refuses a second.
#[derive(Clone)]
pub enum Stores {
    /// One SQLite file.
    Sqlite(Database),
    /// A Redis server.
    Redis(RedisStore),
}

impl Stores {
    /// Called when a guest opens a store, before it does anything in it: a connection that was lost
    /// since is replaced here, where nothing can be half done.
    pub async fn ready(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Redis(redis) => redis.ready().await,
        }
    }

    /// The value of a key.
    pub async fn get(&self, store: Arc<str>, key: String) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Self::Sqlite(database) => database.get(store, key).await,
            Self::Redis(redis) => redis.get(key).await,
        }
    }

    /// Whether a key has a value.
    pub async fn exists(&self, store: Arc<str>, key: String) -> Result<bool, StoreError> {
        match self {
            Self::Sqlite(database) => database.exists(store, key).await,
            Self::Redis(redis) => redis.exists(key).await,
        }
    }

    /// Every key of a store, in no order.
    pub async fn keys(&self, store: Arc<str>) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Sqlite(database) => database.keys(store).await,
            Self::Redis(redis) => redis.keys().await,
        }
    }

    /// The values of many keys, all from one moment, each key once. Leaves out keys without a
    /// value, like Spin's SQLite store; callers must look results up by key.
    pub async fn get_many(
        &self,
        store: Arc<str>,
        keys: Vec<String>,
    ) -> Result<Vec<(String, Option<Vec<u8>>)>, StoreError> {
        match self {
            Self::Sqlite(database) => database.get_many(store, keys).await,
            Self::Redis(redis) => redis.get_many(keys).await,
        }
    }

    /// Sets many keys, all or none.
    pub async fn set_many(
        &self,
        store: Arc<str>,
        pairs: Vec<(String, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(database) => database.set_many(store, pairs).await,
            Self::Redis(redis) => redis.set_many(pairs).await,
        }
    }

    /// Deletes many keys, all or none; keys without a value are skipped.
    pub async fn delete_many(&self, store: Arc<str>, keys: Vec<String>) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(database) => database.delete_many(store, keys).await,
            Self::Redis(redis) => redis.delete_many(keys).await,
        }
    }

    /// Adds to a counter and returns its new value. An absent counter is 0, and even adding 0
    /// creates it, as in Spin.
    pub async fn increment(
        &self,
        store: Arc<str>,
        key: String,
        delta: i64,
    ) -> Result<i64, StoreError> {
        match self {
            Self::Sqlite(database) => database.increment(store, key, delta).await,
            Self::Redis(redis) => redis.increment(key, delta).await,
        }
    }
}

#[cfg(test)]
#[path = "stores_tests.rs"]
mod tests;
