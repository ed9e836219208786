//! Taking tables out of the catalog.
//!
//! A mark says that a table was dropped, and its name says whether it was: the mark comes first, so
//! that from the moment the name stands for nothing no task of the table starts, and it stays, since a
//! drop that comes too late can't know whose mark it would take away. A table whose name still stands
//! for it is not dropped, whatever its mark says.

use lance_maintenance_api::ApiError;
use lance_maintenance_api::identifier::TableIdentifier;

use super::locations::find_table;
use super::purges::{Dropped, Purges};
use super::{Catalog, TableRecord};
use crate::key_value::{KeyValue, StoreError, set_json};
use crate::keys;

impl<S: KeyValue> Catalog<'_, S> {
    /// Takes a table out of the catalog; its name can be used again, for another table. With
    /// `purge` its data is to be removed, which [`Purges`] keeps until a worker has done it.
    pub fn drop_table(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        purge: bool,
        now: impl Fn() -> i64,
    ) -> Result<TableRecord, ApiError> {
        self.take_out(id, table_id, purge, false, &now)
    }

    /// The same. `seen`: the caller is dropping the namespace, and has seen the table in it.
    pub(super) fn take_out(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        purge: bool,
        seen: bool,
        now: &impl Fn() -> i64,
    ) -> Result<TableRecord, ApiError> {
        let at = now();
        let held = self.change_table(id, table_id, seen, now, |held| {
            let mark = Dropped {
                at,
                purge: purge.then(|| held.location.clone()),
            };
            set_json(self.store, &keys::dropped(table_id), &mark)?;
            Ok(None)
        })?;
        self.delete_entry(&held)?;
        if purge {
            // Only now: as long as the name stands for the table, its data must stay.
            Purges::new(self.store).note(&held)?;
        }
        Ok(held)
    }
}

/// Whether a table was dropped or deregistered.
pub(crate) fn is_dropped(store: &impl KeyValue, table_id: &str) -> Result<bool, StoreError> {
    Ok(store.get(&keys::dropped(table_id))?.is_some() && find_table(store, table_id)?.is_none())
}
