//! Tables: create, find, change, list.

use lance_maintenance_api::identifier::{NamespaceName, TableIdentifier, TableName};
use lance_maintenance_api::namespace::Properties;
use lance_maintenance_api::{ApiError, ErrorName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::moves::Presence;
use super::{
    Catalog, LANCE_FORMAT, NamespaceRecord, Origin, TableRecord, busy, namespace_not_found,
    table_exists, table_not_found,
};
use crate::fence::ABANDONED_MICROS;
use crate::key_value::{KeyValue, StoreError};
use crate::keys;
use crate::log::{self, Page};
use crate::names::{self, Change, Verdict};

/// An entry in the log of a namespace's tables. It counts while the name stands for this table.
#[derive(Serialize, Deserialize)]
struct TableEntry {
    name: String,
    table_id: String,
}

impl TableRecord {
    /// A new table.
    pub fn new(
        id: &TableIdentifier,
        table_id: String,
        location: String,
        origin: Origin,
        properties: Properties,
    ) -> Self {
        Self {
            id: table_id,
            namespace: id.namespace.as_str().to_owned(),
            namespace_id: String::new(),
            name: id.table.as_str().to_owned(),
            location,
            origin,
            format: LANCE_FORMAT.to_owned(),
            properties,
            policy: None,
            slot: 0,
            moving_to: None,
            moved_from: None,
        }
    }

    /// The table's identifier. Fails on a record that this version could not have written.
    pub fn identifier(&self) -> Result<TableIdentifier, ApiError> {
        Ok(TableIdentifier {
            namespace: NamespaceName::parse(&self.namespace)?,
            table: TableName::parse(&self.name)?,
        })
    }
}

impl<S: KeyValue> Catalog<'_, S> {
    /// Creates a table in a namespace that exists. Its location must not be another table's.
    pub fn create_table(
        &self,
        id: &TableIdentifier,
        record: &TableRecord,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let namespace = self.open_namespace(&id.namespace, &now)?;
        let record = TableRecord {
            namespace_id: namespace.id.clone(),
            ..record.clone()
        };
        let claimed = self.claim_location(&record, &now)?;
        // A claim without a table is given up after a while, so its owner's time counts from there.
        let error = match self.put_table(id, &record, Some(claimed), &now)? {
            Change::Done(_) => return self.confirm(id, &namespace, &record, &now),
            Change::Refused(_) => table_exists(id),
            Change::Busy => busy("table"),
        };
        self.release_location(&record, &now)?;
        Err(error)
    }

    /// Gives a table a name that stands for none.
    pub(super) fn put_table(
        &self,
        id: &TableIdentifier,
        record: &TableRecord,
        since: Option<i64>,
        now: &impl Fn() -> i64,
    ) -> Result<Change<TableRecord>, StoreError> {
        let log = keys::table_log(self.bucket, id.namespace.as_str());
        names::change(
            self.store,
            &self.name_of(id),
            now,
            since,
            |held: Option<&TableRecord>| {
                Ok(match held {
                    None => Verdict::Allowed,
                    Some(table) => match self.presence(table)? {
                        Presence::Here => Verdict::Refused,
                        Presence::Undecided => Verdict::Busy,
                        Presence::Gone => Verdict::Allowed,
                    },
                })
            },
            |store, _| {
                let slot = log::take_slot(store, &log)?;
                let entry = TableEntry {
                    name: record.name.clone(),
                    table_id: record.id.clone(),
                };
                log::write(store, &log, slot, &entry)?;
                Ok(Some(TableRecord {
                    slot,
                    ..record.clone()
                }))
            },
        )
    }

    /// Sees that a table which was just created came into a namespace that stays, or takes it out
    /// again.
    fn confirm(
        &self,
        id: &TableIdentifier,
        namespace: &NamespaceRecord,
        record: &TableRecord,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let error = match self.read_namespace(&namespace.name)? {
            Some(held) if held.id == namespace.id && held.dropping.is_none() => return Ok(()),
            Some(held) if held.id == namespace.id => busy("namespace"),
            _ => namespace_not_found(&namespace.name),
        };
        let change = names::change(
            self.store,
            &self.name_of(id),
            now,
            None,
            // One that somebody renames already may be elsewhere.
            |held: Option<&TableRecord>| {
                Ok(held.is_some_and(|held| held.id == record.id && held.moving_to.is_none()))
            },
            |_, _| Ok(None),
        )?;
        if let Change::Done(Some(held)) = change {
            self.delete_entry(&held)?;
            // Only now: a table that stays keeps its place.
            self.release_location(record, now)?;
        }
        Err(error)
    }

    /// The table of this identifier.
    pub fn table(&self, id: &TableIdentifier) -> Result<TableRecord, ApiError> {
        let namespace = keys::namespace_name(self.bucket, id.namespace.as_str());
        let (namespace, table) = names::read_pair::<NamespaceRecord, TableRecord>(
            self.store,
            &namespace,
            &self.name_of(id),
        )?;
        let Some(table) = table else {
            return Err(table_not_found(id));
        };
        match self.presence_in(&table, namespace.as_ref())? {
            Presence::Here => Ok(table),
            Presence::Undecided | Presence::Gone => Err(table_not_found(id)),
        }
    }

    /// Changes the table of this identifier and UUID, or takes it out with `None`; returns what it
    /// was. `make` runs only for the owner of the change. `seen`: the caller is dropping the
    /// namespace, and has seen the table in it.
    pub(super) fn change_table(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        seen: bool,
        now: &impl Fn() -> i64,
        make: impl FnOnce(&TableRecord) -> Result<Option<TableRecord>, StoreError>,
    ) -> Result<TableRecord, ApiError> {
        let before = self.table(id)?;
        if before.id != table_id {
            return Err(table_not_found(id));
        }
        if let Some(from) = &before.moved_from {
            // Whoever drops the namespace may have looked for tables before this one came: then it
            // is to be found at its old name.
            if !seen {
                match self.open_namespace(&id.namespace, now) {
                    Ok(namespace) if namespace.id == before.namespace_id => {}
                    Err(error) if error.name != ErrorName::NamespaceNotFound => return Err(error),
                    _ => return Err(table_not_found(id)),
                }
            }
            // The old name must not stand for a table whose new name is about to change.
            self.clear_moved(&before, from, now)?;
        }
        let change = names::change(
            self.store,
            &self.name_of(id),
            now,
            None,
            |held: Option<&TableRecord>| {
                let Some(held) = held.filter(|held| held.id == table_id) else {
                    return Ok(Verdict::Refused);
                };
                if held.moved_from != before.moved_from {
                    return Ok(Verdict::Busy);
                }
                Ok(match self.presence(held)? {
                    Presence::Here if is_moving(held, now()) => Verdict::Busy,
                    Presence::Here => Verdict::Allowed,
                    Presence::Undecided => Verdict::Busy,
                    Presence::Gone => Verdict::Refused,
                })
            },
            |_, held| {
                let held = TableRecord {
                    moved_from: None,
                    moving_to: None,
                    ..held.unwrap_or(&before).clone()
                };
                make(&held)
            },
        )?;
        match change {
            Change::Done(held) => Ok(held.unwrap_or(before)),
            Change::Refused(_) => Err(table_not_found(id)),
            Change::Busy => Err(busy("table")),
        }
    }

    /// Puts a table's policy, or removes it with `None`.
    pub fn set_table_policy(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        policy: Option<Value>,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        self.change_table(id, table_id, false, &now, |held| {
            Ok(Some(TableRecord {
                policy,
                ..held.clone()
            }))
        })?;
        Ok(())
    }

    /// Names of a namespace's tables, newest first.
    pub fn tables(
        &self,
        namespace: &NamespaceName,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Page<TableRecord>, ApiError> {
        self.namespace(namespace)?;
        self.table_records(namespace, below, limit)
    }

    /// Every table of the bucket, the newest namespace's first, and where the next page goes on.
    pub fn all_tables(
        &self,
        from: Option<BucketPlace>,
        limit: usize,
    ) -> Result<(Vec<TableRecord>, Option<BucketPlace>), ApiError> {
        let mut found = Vec::new();
        // The namespace that a page stopped in is looked at again.
        let mut below = from.map(|(namespace, _)| namespace + 1);
        let mut inside = from;
        for _ in 0..NAMESPACES_A_PAGE {
            let page = self.namespaces(below, 1)?;
            let Some((slot, name)) = page.entries.into_iter().next() else {
                match page.next {
                    None => return Ok((found, None)),
                    next => {
                        below = next;
                        continue;
                    }
                }
            };
            let start = inside
                .take()
                .filter(|(namespace, _)| *namespace == slot)
                .map(|(_, table)| table);
            let tables =
                self.table_records(&NamespaceName::parse(&name)?, start, limit - found.len())?;
            found.extend(tables.entries.into_iter().map(|(_, table)| table));
            if let Some(next) = tables.next {
                return Ok((found, Some((slot, next))));
            }
            if page.next.is_none() {
                return Ok((found, None));
            }
            below = Some(slot);
            if found.len() == limit {
                // Below its lowest slot there is nothing left in this namespace.
                return Ok((found, Some((slot, 1))));
            }
        }
        Ok((found, below.map(|slot| (slot, 1))))
    }

    pub(super) fn table_records(
        &self,
        namespace: &NamespaceName,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Page<TableRecord>, ApiError> {
        let page = self.table_page(namespace, below, limit)?;
        let here =
            |(slot, (table, presence))| (presence == Presence::Here).then_some((slot, table));
        Ok(Page {
            entries: page.entries.into_iter().filter_map(here).collect(),
            next: page.next,
        })
    }

    /// The tables that are in a namespace or may be.
    pub(super) fn table_page(
        &self,
        namespace: &NamespaceName,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Page<(TableRecord, Presence)>, ApiError> {
        let log = keys::table_log(self.bucket, namespace.as_str());
        let page = log::records::<TableEntry>(self.store, &log, below, limit)?;
        let heads: Vec<String> = page
            .entries
            .iter()
            .map(|(_, entry)| keys::table_name(self.bucket, namespace.as_str(), &entry.name))
            .collect();
        let held = names::read_many::<TableRecord>(self.store, &heads)?;
        let of = self.read_namespace(namespace.as_str())?;
        let mut entries = Vec::new();
        for ((slot, entry), held) in page.entries.into_iter().zip(held) {
            // A change that was cut short may have left an entry of the same table beside its own.
            let Some(table) = held
                .filter(|held| held.id == entry.table_id && (held.slot == slot || held.slot == 0))
            else {
                continue;
            };
            let presence = self.presence_in(&table, of.as_ref())?;
            if presence != Presence::Gone {
                entries.push((slot, (table, presence)));
            }
        }
        Ok(Page {
            entries,
            next: page.next,
        })
    }

    pub(super) fn name_of(&self, id: &TableIdentifier) -> String {
        keys::table_name(self.bucket, id.namespace.as_str(), id.table.as_str())
    }

    pub(super) fn delete_entry(&self, table: &TableRecord) -> Result<(), StoreError> {
        let log = keys::table_log(self.bucket, &table.namespace);
        self.store.delete_many(&[keys::log_entry(&log, table.slot)])
    }
}

/// A place in the list of a bucket's tables: a namespace's slot, and a table's, below which to go on.
pub type BucketPlace = (u64, u64);

/// How many namespaces one page of a bucket's tables looks at.
const NAMESPACES_A_PAGE: usize = 128;

/// Whether a rename of the table may still be on its way.
fn is_moving(table: &TableRecord, now: i64) -> bool {
    table
        .moving_to
        .as_ref()
        .is_some_and(|to| now - to.since <= ABANDONED_MICROS)
}
