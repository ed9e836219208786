//! Removes the data of dropped tables in the background, and says so when it is done.
//!
//! A purge that fails, or that a stopping worker leaves, is not kept: the application says it again
//! until it hears that it is done.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::Purge;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::Instrument;

use crate::application::Application;
use crate::intake::Intake;
use crate::tables::Tables;
use crate::tables::location;
use crate::tables::purge::purge;

/// How many tables are removed at the same time: a store has better things to do.
const AT_ONCE: usize = 2;
/// How many purges are in hand at most.
const IN_HAND: usize = 1000;
/// How long a purge that failed is not begun again.
const PAUSE: Duration = Duration::from_secs(60);

/// The purges in hand.
#[derive(Debug)]
pub struct Purges {
    tables: Tables,
    intake: Arc<Intake>,
    application: Application,
    operations: Handle,
    places: Semaphore,
    /// The ids of the tables.
    in_hand: Mutex<HashSet<String>>,
}

impl Purges {
    /// None in hand. A table is removed while no task of the intake runs on it, on the runtime
    /// `operations`.
    pub fn new(
        tables: Tables,
        intake: Arc<Intake>,
        application: Application,
        operations: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            tables,
            intake,
            application,
            operations,
            places: Semaphore::new(AT_ONCE),
            in_hand: Mutex::default(),
        })
    }

    /// Takes a purge in hand, unless it is already. Has to be called on a runtime, on which it is
    /// seen through. Refuses what is no table's location (`InvalidInput`), and everything when as
    /// many are in hand as may be, or the worker is about to stop (`ServiceUnavailable`).
    pub fn offer(self: &Arc<Self>, purge: Purge) -> Result<(), ApiError> {
        location::check(&purge.location)?;
        if !self.intake.is_open() {
            return Err(unavailable("The worker is stopping."));
        }
        {
            let mut in_hand = self.in_hand();
            if in_hand.contains(&purge.table_id) {
                return Ok(());
            }
            if in_hand.len() >= IN_HAND {
                return Err(unavailable("As many tables wait to be removed as may."));
            }
            in_hand.insert(purge.table_id.clone());
        }
        let span = tracing::info_span!("purge", table_id = %purge.table_id);
        let held = InHand {
            purges: Arc::clone(self),
            table_id: purge.table_id,
        };
        let location = purge.location;
        let work = async move {
            tokio::select! {
                () = held.purges.see_through(&held.table_id, &location) => {}
                () = held.purges.intake.closed() => {}
            }
            drop(held);
        };
        tokio::spawn(work.instrument(span));
        Ok(())
    }

    async fn see_through(&self, table_id: &str, location: &str) {
        // First the table, which may take hours, then a place, which others need.
        let Some(table) = self.intake.hold(location).await else {
            return;
        };
        let Ok(place) = self.places.acquire().await else {
            return;
        };
        let removed = self.remove(location.to_owned()).await;
        drop((table, place));
        match removed {
            Ok(files) => {
                tracing::info!(files, "removed the data of a dropped table");
                if let Err(error) = self.application.purged(table_id).await {
                    tracing::warn!(%error, "could not report that a table's data is removed");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "could not remove the data of a dropped table");
                sleep(PAUSE).await;
            }
        }
    }

    async fn remove(&self, location: String) -> Result<u64, ApiError> {
        let tables = self.tables.clone();
        let work = async move { purge(&tables.place(&location).await?).await };
        // A set, since it stops its task when it is dropped.
        let mut removing = JoinSet::new();
        removing.spawn_on(work.in_current_span(), &self.operations);
        match removing.join_next().await {
            Some(Ok(removed)) => removed,
            Some(Err(_)) | None => Err(ApiError::new(
                ErrorName::InternalError,
                "The removal broke off unexpectedly.",
            )),
        }
    }

    fn in_hand(&self) -> MutexGuard<'_, HashSet<String>> {
        // Nothing that can panic runs while the lock is held.
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A purge in hand; dropped, it may be begun again.
struct InHand {
    purges: Arc<Purges>,
    table_id: String,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.purges.in_hand().remove(&self.table_id);
    }
}

fn unavailable(detail: &str) -> ApiError {
    ApiError::new(ErrorName::ServiceUnavailable, detail)
}

#[cfg(test)]
#[path = "purges_tests.rs"]
mod tests;
