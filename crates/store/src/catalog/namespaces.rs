//! Namespaces: create, drop, list.

use lance_maintenance_api::identifier::NamespaceName;
use lance_maintenance_api::{ApiError, ErrorName};

use super::moves::Presence;
use super::{Catalog, Dropping, NamespaceRecord, TableRecord, busy, namespace_not_found};
use crate::fence::ABANDONED_MICROS;
use crate::key_value::{KeyValue, StoreError};
use crate::keys;
use crate::log::{self, Page};
use crate::names::{self, Change, Verdict, read};

/// How many tables a page holds when a namespace is looked through.
const PAGE: usize = 256;

/// Whether a table may be dropped with its namespace, or why not.
pub type MayDrop<'a> = &'a dyn Fn(&TableRecord) -> Result<(), ApiError>;

impl<S: KeyValue> Catalog<'_, S> {
    /// Creates a namespace; false if it exists already.
    pub fn create_namespace(
        &self,
        record: &NamespaceRecord,
        now: impl Fn() -> i64,
    ) -> Result<bool, ApiError> {
        let log = keys::namespace_log(self.bucket);
        let change = names::change(
            self.store,
            &keys::namespace_name(self.bucket, &record.name),
            now,
            None,
            |held: Option<&NamespaceRecord>| Ok(held.is_none()),
            |store, _| {
                let slot = log::take_slot(store, &log)?;
                log::write(store, &log, slot, &record.name)?;
                Ok(Some(NamespaceRecord {
                    slot,
                    ..record.clone()
                }))
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
        self.read_namespace(name.as_str())?
            .ok_or_else(|| namespace_not_found(name.as_str()))
    }

    pub(super) fn read_namespace(&self, name: &str) -> Result<Option<NamespaceRecord>, StoreError> {
        read(self.store, &keys::namespace_name(self.bucket, name))
    }

    /// Names of namespaces, newest first.
    pub fn namespaces(&self, below: Option<u64>, limit: usize) -> Result<Page<String>, StoreError> {
        let log = keys::namespace_log(self.bucket);
        let page = log::records::<String>(self.store, &log, below, limit)?;
        let heads: Vec<String> = page
            .entries
            .iter()
            .map(|(_, name)| keys::namespace_name(self.bucket, name))
            .collect();
        let held = names::read_many::<NamespaceRecord>(self.store, &heads)?;
        let entries = page
            .entries
            .into_iter()
            .zip(held)
            // Records of the first version know no slot.
            .filter(|((slot, _), held)| {
                held.as_ref()
                    .is_some_and(|held| held.slot == *slot || held.slot == 0)
            })
            .map(|(entry, _)| entry)
            .collect();
        Ok(Page {
            entries,
            next: page.next,
        })
    }

    /// Drops a namespace, for the request `by`. With `may_drop` its tables are dropped with it, if
    /// every one of them may be; without, tables keep it from being dropped.
    pub fn drop_namespace(
        &self,
        name: &NamespaceName,
        by: &str,
        now: impl Fn() -> i64,
        may_drop: Option<MayDrop<'_>>,
    ) -> Result<NamespaceRecord, ApiError> {
        self.begin_drop(name, by, &now)?;
        match self.empty(name, may_drop, &now) {
            Ok(()) => self.end_drop(name, by, &now),
            Err(error) => {
                self.stop_drop(name.as_str(), by, &now)?;
                Err(error)
            }
        }
    }

    /// From here on nothing new comes into the namespace.
    fn begin_drop(
        &self,
        name: &NamespaceName,
        by: &str,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let dropping = Dropping {
            by: by.to_owned(),
            since: now(),
        };
        let change = names::change(
            self.store,
            &keys::namespace_name(self.bucket, name.as_str()),
            now,
            None,
            |held: Option<&NamespaceRecord>| {
                Ok(match held.map(|held| &held.dropping) {
                    None => Verdict::Refused,
                    Some(Some(other)) if !is_abandoned(other, now()) => Verdict::Busy,
                    Some(_) => Verdict::Allowed,
                })
            },
            |_, held| {
                Ok(held.map(|held| NamespaceRecord {
                    dropping: Some(dropping),
                    ..held.clone()
                }))
            },
        )?;
        match change {
            Change::Done(_) => Ok(()),
            Change::Refused(_) => Err(namespace_not_found(name.as_str())),
            Change::Busy => Err(busy("namespace")),
        }
    }

    /// Makes sure that the namespace holds no table, or says why it does.
    fn empty(
        &self,
        name: &NamespaceName,
        may_drop: Option<MayDrop<'_>>,
        now: &impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let Some(may_drop) = may_drop else {
            return match self.first_table(name, now)? {
                None => Ok(()),
                Some(_) => Err(ApiError::new(
                    ErrorName::NamespaceNotEmpty,
                    format!("The namespace '{name}' holds tables: drop them first."),
                )),
            };
        };
        // All are asked about before the first is dropped.
        let mut below = None;
        loop {
            let page = self.table_records(name, below, PAGE)?;
            for (_, table) in &page.entries {
                may_drop(table)?;
            }
            below = page.next;
            if below.is_none() {
                break;
            }
        }
        while let Some(table) = self.first_table(name, now)? {
            may_drop(&table)?;
            match self.take_out(&table.identifier()?, &table.id, true, true, now) {
                // Somebody else took it out, or renamed it: what is left is looked for again.
                Err(error) if error.name == ErrorName::TableNotFound => {}
                dropped => drop(dropped?),
            }
        }
        Ok(())
    }

    /// A table of a namespace that is being dropped, if there is one.
    fn first_table(
        &self,
        name: &NamespaceName,
        now: &impl Fn() -> i64,
    ) -> Result<Option<TableRecord>, ApiError> {
        let mut undecided = None;
        let mut below = None;
        loop {
            let page = self.table_page(name, below, PAGE)?;
            for (_, (table, presence)) in page.entries {
                match presence {
                    Presence::Here => return Ok(Some(table)),
                    _ => undecided = Some(table),
                }
            }
            below = page.next;
            if below.is_none() {
                break;
            }
        }
        // One that is being renamed within the namespace may have come to its new name after that
        // was looked for; one that went to another comes back if that is dropped.
        let Some(to) = undecided.and_then(|table| table.moving_to) else {
            return Ok(None);
        };
        if to.namespace != name.as_str() {
            // Whoever was dropping that one may be dead.
            let _ = self.open_namespace(&NamespaceName::parse(&to.namespace)?, now);
        }
        Err(busy("namespace"))
    }

    fn end_drop(
        &self,
        name: &NamespaceName,
        by: &str,
        now: &impl Fn() -> i64,
    ) -> Result<NamespaceRecord, ApiError> {
        let change = names::change(
            self.store,
            &keys::namespace_name(self.bucket, name.as_str()),
            now,
            None,
            |held: Option<&NamespaceRecord>| Ok(is_dropped_by(held, by)),
            |_, _| Ok(None),
        )?;
        let Change::Done(Some(held)) = change else {
            return Err(busy("namespace"));
        };
        let log = keys::namespace_log(self.bucket);
        self.store
            .delete_many(&[keys::log_entry(&log, held.slot)])?;
        Ok(held)
    }

    /// The namespace stays.
    fn stop_drop(&self, name: &str, by: &str, now: &impl Fn() -> i64) -> Result<(), ApiError> {
        names::change(
            self.store,
            &keys::namespace_name(self.bucket, name),
            now,
            None,
            |held: Option<&NamespaceRecord>| Ok(is_dropped_by(held, by)),
            |_, held| {
                Ok(held.map(|held| NamespaceRecord {
                    dropping: None,
                    ..held.clone()
                }))
            },
        )?;
        Ok(())
    }

    /// A namespace that things may come into.
    pub(super) fn open_namespace(
        &self,
        name: &NamespaceName,
        now: &impl Fn() -> i64,
    ) -> Result<NamespaceRecord, ApiError> {
        let held = self.namespace(name)?;
        match &held.dropping {
            None => Ok(held),
            Some(dropping) if is_abandoned(dropping, now()) => {
                self.stop_drop(name.as_str(), &dropping.by, now)?;
                let held = self.namespace(name)?;
                if held.dropping.is_some() {
                    return Err(busy("namespace"));
                }
                Ok(held)
            }
            Some(_) => Err(busy("namespace")),
        }
    }
}

/// Whether whoever began to drop a namespace is to be taken for dead.
fn is_abandoned(dropping: &Dropping, now: i64) -> bool {
    now - dropping.since > ABANDONED_MICROS
}

fn is_dropped_by(held: Option<&NamespaceRecord>, by: &str) -> bool {
    held.and_then(|held| held.dropping.as_ref())
        .is_some_and(|dropping| dropping.by == by)
}
