//! What is done to a table at once, for whoever asks: no queue, no attempts, an answer.
//!
//! | module | what it holds |
//! |---|---|
//! | [`location`] | which locations the worker touches |
//! | [`place`] | a location with its store, and errors as they are answered |
//! | [`write`], [`create_only`] | makes a table, or its next version, of an Arrow IPC stream |
//! | [`rows`], [`framing`] | the stream, decoded, and checked before |
//! | [`describe`] | schema and numbers of a version |
//! | [`exist`] | which locations hold a table |
//! | [`versions`] | lists versions |
//! | [`commit`] | makes a manifest that a client has staged a version |
//! | [`purge`] | removes a dropped table's files |
//!
//! The messages are [`lance_maintenance_dispatch::tables`]; routes and signatures are the server's.

pub mod commit;
pub mod create_only;
pub mod describe;
pub mod exist;
pub mod framing;
pub mod location;
pub mod place;
pub mod purge;
pub mod rows;
pub mod versions;
pub mod write;

use std::fmt;
use std::sync::Arc;

use lance_io::object_store::ObjectStoreRegistry;
use lance_maintenance_api::ApiError;

use crate::storage::StorageOptions;
use place::Place;

/// How many stores are asked at the same time for one request.
const CONCURRENT_READS: usize = 16;

/// The tables that the worker reaches.
#[derive(Clone, Default)]
pub struct Tables {
    storage: StorageOptions,
    /// Keeps connections to stores for as long as somebody uses them.
    registry: Arc<ObjectStoreRegistry>,
}

impl Tables {
    /// The tables in stores that are reached with these options.
    pub fn new(storage: StorageOptions) -> Self {
        Self {
            storage,
            registry: Arc::default(),
        }
    }

    /// The place with this location.
    pub async fn place(&self, location: &str) -> Result<Place, ApiError> {
        Place::new(location, &self.storage, Arc::clone(&self.registry)).await
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}
