//! A key-value store in Redis, laid out like Spin's, so that both can use one server.
//!
//! A key is the guest's, without a prefix; a value is a plain string; a counter is what `INCRBY`
//! makes, decimal digits; nothing expires. One command differs from Spin's: a batch read is `MGET`
//! here, while Spin sends its keys to `KEYS`, which fails.

mod connection;
mod url;

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisError, cmd};

use super::StoreError;
use connection::{Connection, Failure};

pub use url::RedisUrl;

/// How long a guest waits for an answer, connecting included.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store on a Redis server. Clones share one connection.
#[derive(Clone)]
pub struct RedisStore(Connection);

impl RedisStore {
    /// Does not connect yet: as on Spin, the application starts without Redis too.
    pub fn new(url: RedisUrl) -> Self {
        Self::with_patience(url, PATIENCE)
    }

    pub(super) fn with_patience(url: RedisUrl, patience: Duration) -> Self {
        Self(Connection::new(url, patience))
    }

    /// Sees to it that there is a connection, as Spin does when a guest opens a store.
    pub(super) async fn ready(&self) -> Result<(), StoreError> {
        self.0.check().await.map_err(|failure| failed(failure, ""))
    }

    pub(super) async fn get(&self, key: String) -> Result<Option<Vec<u8>>, StoreError> {
        self.query(cmd("GET").arg(&key), &key).await
    }

    pub(super) async fn exists(&self, key: String) -> Result<bool, StoreError> {
        self.query(cmd("EXISTS").arg(&key), &key).await
    }

    /// One command, as on Spin: a scan could miss keys, or tell them twice.
    pub(super) async fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.query(cmd("KEYS").arg("*"), "").await
    }

    /// Leaves out a key with something other than a string, too.
    pub(super) async fn get_many(
        &self,
        mut keys: Vec<String>,
    ) -> Result<Vec<(String, Option<Vec<u8>>)>, StoreError> {
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<Option<Vec<u8>>> = self.query(cmd("MGET").arg(&keys), "").await?;
        Ok(keys
            .into_iter()
            .zip(values)
            .filter(|(_, value)| value.is_some())
            .collect())
    }

    pub(super) async fn set_many(&self, pairs: Vec<(String, Vec<u8>)>) -> Result<(), StoreError> {
        if pairs.is_empty() {
            return Ok(());
        }
        let mut command = cmd("MSET");
        for (key, value) in &pairs {
            command.arg(key).arg(value.as_slice());
        }
        self.query(&command, "").await
    }

    pub(super) async fn delete_many(&self, keys: Vec<String>) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        self.query(cmd("DEL").arg(keys), "").await
    }

    pub(super) async fn increment(&self, key: String, delta: i64) -> Result<i64, StoreError> {
        self.query(cmd("INCRBY").arg(&key).arg(delta), &key).await
    }

    /// `key` is for the error.
    async fn query<T: FromRedisValue>(&self, command: &Cmd, key: &str) -> Result<T, StoreError> {
        self.0
            .query(command)
            .await
            .map_err(|failure| failed(failure, key))
    }
}

fn failed(failure: Failure, key: &str) -> StoreError {
    let error = match failure {
        Failure::NoAnswer(time) => return StoreError::NoAnswer(time),
        Failure::Redis(error) => error,
    };
    let detail = error.detail().unwrap_or_default();
    if error.code() == Some("WRONGTYPE") {
        StoreError::WrongType(key.to_owned())
    } else if detail.contains("not an integer") {
        StoreError::NotACounter(key.to_owned())
    } else if detail.contains("would overflow") {
        StoreError::Overflow(key.to_owned())
    } else {
        StoreError::Redis(text(&error))
    }
}

/// What a server says of a command that it does not know repeats what came with it: the password,
/// where the command is `AUTH`.
fn text(error: &RedisError) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(", with args beginning with") {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
#[path = "redis_tests.rs"]
mod tests;
