//! Key-value stores: `wasi:keyvalue` for guests, on SQLite or on Redis.
//!
//! - [`stores`]: the stores, whichever of the two holds them, and what they promise.
//! - [`database`] and `writer`: one SQLite file. [`redis`]: a Redis server.
//! - [`guest`]: what guests call.

pub mod database;
pub mod error;
pub mod guest;
pub mod redis;
pub mod stores;
#[cfg(test)]
mod test_redis;
mod writer;

pub use database::Database;
pub use error::StoreError;
pub use guest::{Bucket, CompareAndSwap, HasKeyValue, KeyValue, KeyValueView};
pub use redis::{RedisStore, RedisUrl};
pub use stores::Stores;
