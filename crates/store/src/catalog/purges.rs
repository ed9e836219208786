//! The data of dropped tables: noted until a worker has removed it.

use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::tables::{Purge, Purged};
use serde::{Deserialize, Serialize};

use super::TableRecord;
use super::locations::find_table;
use crate::key_value::{KeyValue, StoreError, from_json, set_json};
use crate::keys;
use crate::outbox::Outbox;

/// That a table was dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dropped {
    /// When, in microseconds.
    pub at: i64,
    /// The location whose data is to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<String>,
}

/// What became of a dropped table.
pub(super) struct Fate {
    dropped: Dropped,
    purged: bool,
}

impl Fate {
    /// Whether its data is still to be removed.
    pub(super) fn is_pending(&self) -> bool {
        self.dropped.purge.is_some() && !self.purged
    }
}

/// The data of dropped tables.
pub struct Purges<'a, S> {
    store: &'a S,
}

impl<'a, S: KeyValue> Purges<'a, S> {
    /// The purges of a store.
    pub fn new(store: &'a S) -> Self {
        Self { store }
    }

    /// Notes that the data of a table which has been dropped is to be removed.
    pub(super) fn note(&self, table: &TableRecord) -> Result<(), StoreError> {
        Outbox::purges(self.store).note(&purge_of(&table.id, &table.location))
    }

    /// Plans to remove data that has no name yet, not before `at` (in microseconds): unless the
    /// plan is cancelled before its table gets a name, the data goes.
    pub fn plan(&self, data: &Purge, at: i64) -> Result<(), StoreError> {
        let dropped = Dropped {
            at,
            purge: Some(data.location.clone()),
        };
        set_json(self.store, &keys::dropped(&data.table_id), &dropped)?;
        Outbox::purges(self.store).note(data)
    }

    /// Cancels a plan.
    pub fn cancel(&self, table_id: &str) -> Result<(), StoreError> {
        self.store.delete_many(&[keys::dropped(table_id)])
    }

    /// What a worker should remove.
    pub fn waiting(&self, now: i64) -> Result<Vec<Purge>, ApiError> {
        let mut waiting = Vec::new();
        Outbox::purges(self.store).drain(now, |purge: &Purge| {
            let fate = self.fate(&purge.table_id)?;
            let pending = fate.as_ref().is_some_and(Fate::is_pending);
            // Whatever went wrong: the data of a table that is in the catalog stays.
            if !pending || find_table(self.store, &purge.table_id)?.is_some() {
                return Ok(false);
            }
            if fate.is_some_and(|fate| fate.dropped.at <= now) {
                waiting.push(purge.clone());
            }
            Ok(true)
        })?;
        Ok(waiting)
    }

    /// A worker has removed a table's data.
    pub fn done(&self, purged: &Purged, now: i64) -> Result<(), StoreError> {
        set_json(self.store, &keys::purged(&purged.table_id), &now)
    }

    /// Looks through all keys for dropped tables whose data is to be removed, and notes them: a
    /// drop may have been cut short before it left its note.
    pub(crate) fn reconcile(&self, keys: &[String]) -> Result<(), ApiError> {
        let outbox = Outbox::purges(self.store);
        let noted: Vec<Purge> = outbox.noted()?;
        for table_id in keys.iter().filter_map(|key| keys::dropped_table(key)) {
            let Some(fate) = self.fate(table_id)?.filter(Fate::is_pending) else {
                continue;
            };
            let Some(location) = fate.dropped.purge else {
                continue;
            };
            let purge = purge_of(table_id, &location);
            if !noted.contains(&purge) && find_table(self.store, table_id)?.is_none() {
                outbox.note(&purge)?;
            }
        }
        Ok(())
    }

    /// What became of a table, if it was dropped.
    pub(super) fn fate(&self, table_id: &str) -> Result<Option<Fate>, StoreError> {
        let keys = [keys::dropped(table_id), keys::purged(table_id)];
        let mut values = self.store.get_many(&keys)?.into_iter();
        let (dropped, purged) = (values.next().flatten(), values.next().flatten());
        let [dropped_key, _] = &keys;
        let Some(bytes) = dropped else {
            return Ok(None);
        };
        // The first version stored the time alone, and left the data.
        let dropped = from_json::<Dropped>(dropped_key, &bytes).or_else(|_| {
            from_json::<i64>(dropped_key, &bytes).map(|at| Dropped { at, purge: None })
        })?;
        Ok(Some(Fate {
            dropped,
            purged: purged.is_some(),
        }))
    }
}

fn purge_of(table_id: &str, location: &str) -> Purge {
    Purge {
        table_id: table_id.to_owned(),
        location: location.to_owned(),
    }
}
