//! Renaming.
//!
//! A table is at one name at every moment, though the store changes one key at a time:
//!
//! 1. the record at the old name says where the table **is moving to**;
//! 2. the new name, if it stands for nothing, gets the record: from here on, if the new namespace
//!    stays, the table is there, and the old name stands for nothing, whatever its head still says;
//! 3. the old name's head is cleared.
//!
//! Whoever finds a record that is moving looks at the new name to know where the table is, so a
//! rename that was cut short is either still to come (and forgotten after a while) or done. Before
//! the record at the new name changes again, the old name is cleared: nobody must find the table
//! gone from the new name and take it for one that never left the old.

use lance_maintenance_api::identifier::TableIdentifier;
use lance_maintenance_api::{ApiError, ErrorName};

use super::{Catalog, Move, NamespaceRecord, TableRecord, busy, namespace_not_found, table_exists};
use crate::key_value::{KeyValue, StoreError};
use crate::keys;
use crate::names::{self, Change, OWNER_MICROS, read};

/// Whether the table of a record is at the record's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is.
    Here,
    /// It is at the name that it was moving to, or its namespace is gone.
    Gone,
    /// It is at the name that it was moving to, unless that namespace is dropped just now.
    Undecided,
}

impl<S: KeyValue> Catalog<'_, S> {
    /// Renames the table of this identifier and UUID; the new name must stand for nothing.
    pub fn rename_table(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        to: &TableIdentifier,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        if id == to {
            return Err(table_exists(to));
        }
        let namespace = self.open_namespace(&to.namespace, &now)?;
        let since = now();
        let there = place(to, since);
        self.change_table(id, table_id, false, &now, |held| {
            Ok(Some(TableRecord {
                moving_to: Some(there.clone()),
                ..held.clone()
            }))
        })?;
        let arriving = self.arrive(id, table_id, to, &namespace, since, &now);
        if let Err(error) = arriving {
            // Where the store failed, the table may be there all the same; whoever looks will know.
            if error.name != ErrorName::ServiceUnavailable {
                self.forget_move(id, table_id, &there, &now)?;
            }
            return Err(error);
        }
        match self.read_namespace(to.namespace.as_str())? {
            Some(held) if held.id == namespace.id && held.dropping.is_none() => {}
            // It is there unless that namespace goes; whoever looks next will know.
            Some(held) if held.id == namespace.id => return Err(busy("namespace")),
            _ => {
                self.forget_move(id, table_id, &there, &now)?;
                return Err(namespace_not_found(to.namespace.as_str()));
            }
        }
        let from = place(id, since);
        let record = read::<TableRecord>(self.store, &self.name_of(to))?;
        if let Some(record) = record.filter(|record| record.id == table_id) {
            // What can't be cleared now is when the table changes next.
            let _ = self.clear_moved(&record, &from, &now);
        }
        Ok(())
    }

    /// Gives the new name the record.
    fn arrive(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        to: &TableIdentifier,
        namespace: &NamespaceRecord,
        since: i64,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        // Before the table leaves its name, and before anybody can take this rename for dead: the
        // next one writes here too.
        if now() - since > OWNER_MICROS {
            return Err(busy("table"));
        }
        self.index(table_id, id, Some(place(to, since)))?;
        let record = read::<TableRecord>(self.store, &self.name_of(id))?
            .filter(|record| record.id == table_id)
            .ok_or_else(|| busy("table"))?;
        let record = TableRecord {
            namespace: to.namespace.as_str().to_owned(),
            namespace_id: namespace.id.clone(),
            name: to.table.as_str().to_owned(),
            moving_to: None,
            moved_from: Some(place(id, since)),
            ..record
        };
        match self.put_table(to, &record, Some(since), now)? {
            Change::Done(_) => Ok(()),
            Change::Refused(_) => Err(table_exists(to)),
            Change::Busy => Err(busy("table")),
        }
    }

    /// The table stays where it is.
    fn forget_move(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        there: &Move,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        names::change(
            self.store,
            &self.name_of(id),
            now,
            None,
            |held: Option<&TableRecord>| Ok(is_moving_to(held, table_id, there)),
            |_, held| {
                Ok(held.map(|held| TableRecord {
                    moving_to: None,
                    ..held.clone()
                }))
            },
        )?;
        Ok(())
    }

    /// Clears the name that a table has left for the name of `record`.
    pub(super) fn clear_moved(
        &self,
        record: &TableRecord,
        from: &Move,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let here = Move {
            namespace: record.namespace.clone(),
            name: record.name.clone(),
            since: from.since,
        };
        let change = names::change(
            self.store,
            &keys::table_name(self.bucket, &from.namespace, &from.name),
            now,
            None,
            |held: Option<&TableRecord>| Ok(is_moving_to(held, &record.id, &here)),
            |_, _| Ok(None),
        )?;
        match change {
            Change::Done(Some(held)) => Ok(self.delete_entry(&held)?),
            // Cleared before, and maybe another table's name by now.
            Change::Done(None) | Change::Refused(_) => Ok(()),
            Change::Busy => Err(busy("table")),
        }
    }

    /// Whether the table of a record is at the record's name.
    pub(super) fn presence(&self, table: &TableRecord) -> Result<Presence, StoreError> {
        let namespace = self.read_namespace(&table.namespace)?;
        self.presence_in(table, namespace.as_ref())
    }

    /// The same, for what the namespace of the record was found to be.
    pub(super) fn presence_in(
        &self,
        table: &TableRecord,
        namespace: Option<&NamespaceRecord>,
    ) -> Result<Presence, StoreError> {
        if namespace.is_none_or(|namespace| namespace.id != table.namespace_id) {
            return Ok(Presence::Gone);
        }
        let Some(to) = &table.moving_to else {
            return Ok(Presence::Here);
        };
        let there = keys::table_name(self.bucket, &to.namespace, &to.name);
        let Some(there) =
            read::<TableRecord>(self.store, &there)?.filter(|there| there.id == table.id)
        else {
            // It has not come there, if it has not come and gone: then this name was cleared.
            let here = keys::table_name(self.bucket, &table.namespace, &table.name);
            let here = read::<TableRecord>(self.store, &here)?;
            return Ok(match here.is_some_and(|here| here.id == table.id) {
                true => Presence::Here,
                false => Presence::Gone,
            });
        };
        // Read after the name, never with it: a namespace that is open now, after the table came,
        // is not being dropped by somebody who has not seen the table.
        Ok(match self.read_namespace(&to.namespace)? {
            Some(namespace) if namespace.id == there.namespace_id => match namespace.dropping {
                None => Presence::Gone,
                Some(_) => Presence::Undecided,
            },
            _ => Presence::Here,
        })
    }
}

fn place(id: &TableIdentifier, since: i64) -> Move {
    Move {
        namespace: id.namespace.as_str().to_owned(),
        name: id.table.as_str().to_owned(),
        since,
    }
}

fn is_moving_to(held: Option<&TableRecord>, table_id: &str, there: &Move) -> bool {
    held.is_some_and(|held| held.id == table_id && held.moving_to.as_ref() == Some(there))
}
