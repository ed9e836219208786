//! Namespaces and tables.

use lance_maintenance_api::identifier::{NamespaceName, TableIdentifier};
use lance_maintenance_api::namespace::Properties;
use lance_maintenance_api::{ApiError, ErrorName};
use serde::{Deserialize, Serialize};

use crate::key_value::{KeyValue, StoreError, set_json};
use crate::log::{self, Page};
use crate::names::{self, Change};
use crate::{keys, names::read};

/// A namespace, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// The namespace's name.
    pub name: String,
    /// Its properties.
    pub properties: Properties,
}

/// How a table came into the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The service chose the location.
    Declared,
    /// The table was there before, and somebody else's.
    Registered,
}

/// A table, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// The table's UUID, which is never used again.
    pub id: String,
    /// The namespace it is in.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The URI of its folder.
    pub location: String,
    /// How it came into the catalog.
    pub origin: Origin,
    /// The table format: `LANCE`.
    pub format: String,
    /// Its properties.
    pub properties: Properties,
    /// The slot of its entry in the log of the namespace's tables; set when it is created.
    #[serde(default)]
    pub slot: u64,
}

/// The table format of Lance tables.
pub const LANCE_FORMAT: &str = "LANCE";

/// An entry in the log of a namespace's tables. It counts while the name stands for this table.
#[derive(Serialize, Deserialize)]
struct TableEntry {
    name: String,
    table_id: String,
}

/// The namespaces and tables of one bucket.
pub struct Catalog<'a, S> {
    store: &'a S,
    bucket: &'a str,
}

impl<'a, S: KeyValue> Catalog<'a, S> {
    /// The catalog of a bucket.
    pub fn new(store: &'a S, bucket: &'a str) -> Self {
        Self { store, bucket }
    }

    /// Creates a namespace; false if it exists already. `now` is in microseconds.
    pub fn create_namespace(
        &self,
        record: &NamespaceRecord,
        now: impl Fn() -> i64,
    ) -> Result<bool, ApiError> {
        let name = keys::namespace_name(self.bucket, &record.name);
        let log = keys::namespace_log(self.bucket);
        let change = names::change(
            self.store,
            &name,
            now,
            |held: Option<&NamespaceRecord>| held.is_none(),
            |store| {
                let slot = log::take_slot(store, &log)?;
                log::write(store, &log, slot, &record.name)?;
                Ok(Some(record.clone()))
            },
        )?;
        match change {
            Change::Done(_) => Ok(true),
            Change::Refused(_) => Ok(false),
            Change::Busy => Err(busy("namespace")),
        }
    }

    /// The namespace of this name.
    pub fn namespace(&self, name: &NamespaceName) -> Result<NamespaceRecord, ApiError> {
        read(
            self.store,
            &keys::namespace_name(self.bucket, name.as_str()),
        )?
        .ok_or_else(|| {
            ApiError::new(
                ErrorName::NamespaceNotFound,
                format!("There is no namespace '{name}'."),
            )
        })
    }

    /// Names of namespaces, newest first.
    pub fn namespaces(&self, below: Option<u64>, limit: usize) -> Result<Page<String>, StoreError> {
        log::records(self.store, &keys::namespace_log(self.bucket), below, limit)
    }

    /// Creates a table in a namespace that exists. `now` is in microseconds.
    pub fn create_table(
        &self,
        namespace: &NamespaceName,
        record: &TableRecord,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        self.namespace(namespace)?;
        let log = keys::table_log(self.bucket, &record.namespace);
        let change = names::change(
            self.store,
            &keys::table_name(self.bucket, &record.namespace, &record.name),
            now,
            |held: Option<&TableRecord>| held.is_none(),
            |store| {
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
        )?;
        match change {
            Change::Done(_) => Ok(()),
            Change::Refused(_) => Err(ApiError::new(
                ErrorName::TableAlreadyExists,
                format!(
                    "The namespace '{namespace}' has a table '{}' already.",
                    record.name
                ),
            )),
            Change::Busy => Err(busy("table")),
        }
    }

    /// The table of this identifier.
    pub fn table(&self, id: &TableIdentifier) -> Result<TableRecord, ApiError> {
        read(
            self.store,
            &keys::table_name(self.bucket, id.namespace.as_str(), id.table.as_str()),
        )?
        .ok_or_else(|| table_not_found(id))
    }

    /// Names of a namespace's tables, newest first.
    pub fn tables(
        &self,
        namespace: &NamespaceName,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Page<String>, ApiError> {
        self.namespace(namespace)?;
        let log = keys::table_log(self.bucket, namespace.as_str());
        let page = log::records::<TableEntry>(self.store, &log, below, limit)?;
        let names: Vec<String> = page
            .entries
            .iter()
            .map(|(_, entry)| keys::table_name(self.bucket, namespace.as_str(), &entry.name))
            .collect();
        let held = names::read_many::<TableRecord>(self.store, &names)?;
        let entries = page
            .entries
            .into_iter()
            .zip(held)
            .filter(|((_, entry), held)| {
                held.as_ref()
                    .is_some_and(|table| table.id == entry.table_id)
            })
            .map(|((slot, entry), _)| (slot, entry.name))
            .collect();
        Ok(Page {
            entries,
            next: page.next,
        })
    }

    /// Takes a table out of the catalog; its name can be used again, for another table. `now` is
    /// in microseconds.
    pub fn drop_table(
        &self,
        id: &TableIdentifier,
        table_id: &str,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let time = now();
        let change = names::change(
            self.store,
            &keys::table_name(self.bucket, id.namespace.as_str(), id.table.as_str()),
            now,
            |held: Option<&TableRecord>| held.is_some_and(|table| table.id == table_id),
            |store| {
                // First of all no task of it starts any more.
                set_json(store, &keys::dropped(table_id), &time)?;
                Ok(None)
            },
        )?;
        match change {
            Change::Done(held) => {
                let log = keys::table_log(self.bucket, id.namespace.as_str());
                let entries: Vec<String> = held
                    .iter()
                    .map(|table| keys::log_entry(&log, table.slot))
                    .collect();
                self.store.delete_many(&entries)?;
                Ok(())
            }
            Change::Refused(_) => Err(table_not_found(id)),
            Change::Busy => Err(busy("table")),
        }
    }
}

fn table_not_found(id: &TableIdentifier) -> ApiError {
    ApiError::new(
        ErrorName::TableNotFound,
        format!(
            "There is no table '{}' in the namespace '{}'.",
            id.table, id.namespace
        ),
    )
}

fn busy(what: &str) -> ApiError {
    ApiError::new(
        ErrorName::ConcurrentModification,
        format!("Another request is changing this {what} just now; try again."),
    )
}
