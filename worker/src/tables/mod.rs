//! What is done to a table at once, for whoever asks: no queue, no attempts, an answer.
//!
//! | module | what it holds |
//! |---|---|
//! | [`location`] | which locations the worker touches |
//! | [`place`] | a location with its store, and errors as they are answered |
//! | [`write`], [`create_only`] | makes a table, or its next version, of an Arrow IPC stream |
//! | [`uncommitted`] | what a write has written before its commit |
//! | [`rows`], [`framing`] | the stream, decoded, and checked before |
//! | [`describe`] | schema and numbers of a version |
//! | [`preview`] | what a task would do |
//! | [`exist`] | which locations hold a table |
//! | [`health`] | how a table is |
//! | [`versions`] | lists versions |
//! | [`columns`] | adds columns, and says whether one can be filled |
//! | [`commit`] | makes a manifest that a client has staged a version |
//! | [`purge`] | removes a dropped table's files |
//!
//! The messages are [`lance_maintenance_dispatch::tables`]; routes and signatures are the server's.

pub mod columns;
pub mod commit;
pub mod create_only;
pub mod describe;
pub mod exist;
pub mod framing;
pub mod health;
pub mod location;
pub mod place;
pub mod preview;
pub mod purge;
pub mod rows;
pub mod uncommitted;
pub mod versions;
pub mod write;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lance_io::object_store::{ObjectStore, ObjectStoreRegistry};
use lance_maintenance_api::ApiError;

use crate::operations::Limits;
use crate::storage::StorageOptions;
use place::Place;

/// How many stores are asked at the same time for one request.
const CONCURRENT_READS: usize = 16;
/// How many stores stay open for the next request.
const KEPT_STORES: usize = 16;

/// The tables that the worker reaches.
#[derive(Clone, Default)]
pub struct Tables {
    storage: StorageOptions,
    limits: Limits,
    /// Finds the stores that are open.
    registry: Arc<ObjectStoreRegistry>,
    /// Keeps them open: a new client has to find the bucket's region and connect first.
    kept: Arc<Mutex<VecDeque<Arc<ObjectStore>>>>,
}

impl Tables {
    /// The tables in stores that are reached with these options, as operations see them that keep to
    /// these limits.
    pub fn new(storage: StorageOptions, limits: Limits) -> Self {
        Self {
            storage,
            limits,
            registry: Arc::default(),
            kept: Arc::default(),
        }
    }

    /// The place with this location.
    pub async fn place(&self, location: &str) -> Result<Place, ApiError> {
        let mut place = Place::new(location, &self.storage, Arc::clone(&self.registry)).await?;
        place.ctx.limits = self.limits.clone();
        self.keep(&place.store);
        Ok(place)
    }

    fn keep(&self, store: &Arc<ObjectStore>) {
        // Nothing that can panic runs while the lock is held.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.iter().any(|kept| Arc::ptr_eq(kept, store)) {
            if kept.len() >= KEPT_STORES {
                kept.pop_front();
            }
            kept.push_back(Arc::clone(store));
        }
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tables")
            .field("storage", &self.storage)
            .finish_non_exhaustive()
    }
}
