//! Where tables lie: no two at one place. And where a table is found by its id.
//!
//! Two tables at one location would be maintained at the same time, and one could be dropped with
//! the other's data. A folder in another table's is no place for a table either: what lies there is
//! the other's, to clean up and to remove.

use lance_maintenance_api::identifier::TableIdentifier;
use lance_maintenance_api::{ApiError, ErrorName};
use serde::{Deserialize, Serialize};

use super::moves::Presence;
use super::purges::Purges;
use super::{Catalog, Move, Origin, TableRecord};
use crate::fence::ABANDONED_MICROS;
use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::keys;
use crate::names::{self, Change, Verdict};

/// Whose a location is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    table_id: String,
    /// When the table was created, in microseconds.
    since: i64,
}

/// The name of the table with some id: written before the table comes to it, and with every rename
/// before the table leaves it. What is in between says the table itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Indexed {
    bucket: String,
    namespace: String,
    name: String,
    /// The name that the table is moving to, or has moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving_to: Option<Move>,
}

/// How often a search for a table follows one that is renamed meanwhile.
const HOPS: usize = 4;

impl<S: KeyValue> Catalog<'_, S> {
    /// Claims a location for a table that is about to be created, and notes its name; since when
    /// it is claimed.
    pub(super) fn claim_location(
        &self,
        table: &TableRecord,
        now: &impl Fn() -> i64,
    ) -> Result<i64, ApiError> {
        // Where declared tables lie nothing else decides, and a table around all of them must not
        // keep others from being declared.
        if table.origin == Origin::Registered {
            self.check_not_inside(&table.location)?;
        }
        // Before anybody can find the claim: whoever does looks for the table.
        self.index(&table.id, &table.identifier()?, None)?;
        let claim = Claim {
            table_id: table.id.clone(),
            since: now(),
        };
        let since = claim.since;
        let change = names::change(
            self.store,
            &keys::location(&table.location),
            now,
            None,
            |held: Option<&Claim>| self.may_claim(held, now()),
            |_, _| Ok(Some(claim)),
        )?;
        match change {
            Change::Done(_) => Ok(since),
            Change::Refused(_) => Err(ApiError::new(
                ErrorName::TableAlreadyExists,
                "A table at this location is in the catalog already.",
            )),
            Change::Busy => Err(ApiError::new(
                ErrorName::ConcurrentModification,
                "Another table at this location is just being created or removed; try again.",
            )),
        }
    }

    /// Fails if a location lies in the folder of a table.
    fn check_not_inside(&self, location: &str) -> Result<(), ApiError> {
        let around: Vec<String> = location
            .match_indices('/')
            .filter_map(|(at, _)| location.get(..at))
            .map(keys::location)
            .collect();
        for claim in names::read_many::<Claim>(self.store, &around)?
            .into_iter()
            .flatten()
        {
            if find_table(self.store, &claim.table_id)?.is_some() {
                return Err(ApiError::new(
                    ErrorName::TableAlreadyExists,
                    "The location lies in the folder of a table that is in the catalog.",
                ));
            }
        }
        Ok(())
    }

    fn may_claim(&self, held: Option<&Claim>, now: i64) -> Result<Verdict, StoreError> {
        let Some(held) = held else {
            return Ok(Verdict::Allowed);
        };
        if find_table(self.store, &held.table_id)?.is_some() {
            return Ok(Verdict::Refused);
        }
        Ok(match Purges::new(self.store).fate(&held.table_id)? {
            // Its data is about to be removed, or the next table's that lies there.
            Some(fate) if fate.is_pending() => Verdict::Busy,
            Some(_) => Verdict::Allowed,
            // Its creation failed, or has not come to its end.
            None if now - held.since > ABANDONED_MICROS => Verdict::Allowed,
            None => Verdict::Busy,
        })
    }

    /// The table of this bucket whose folder is at this location.
    pub fn table_at(&self, location: &str) -> Result<TableRecord, ApiError> {
        let claim = names::read::<Claim>(self.store, &keys::location(location))?;
        let found = match claim {
            Some(claim) => self.table_with_id(&claim.table_id)?,
            None => None,
        };
        found
            .filter(|table| table.location == location)
            .ok_or_else(|| {
                ApiError::new(
                    ErrorName::TableNotFound,
                    "No table of the catalog is at this location; register it, or name it by its id.",
                )
            })
    }

    /// The table of this bucket with this id, whatever its name.
    pub fn table_with_id(&self, table_id: &str) -> Result<Option<TableRecord>, StoreError> {
        // A table stays in its bucket.
        match get_json::<Indexed>(self.store, &keys::table_index(table_id))? {
            Some(indexed) if indexed.bucket == self.bucket => find_table(self.store, table_id),
            _ => Ok(None),
        }
    }

    /// Gives up the claim of a table that was not created.
    pub(super) fn release_location(
        &self,
        table: &TableRecord,
        now: &impl Fn() -> i64,
    ) -> Result<(), StoreError> {
        names::change(
            self.store,
            &keys::location(&table.location),
            now,
            None,
            |held: Option<&Claim>| Ok(held.is_some_and(|held| held.table_id == table.id)),
            |_, _| Ok(None),
        )?;
        self.store.delete_many(&[keys::table_index(&table.id)])
    }

    /// Notes the name of a table, and the one that it is moving to.
    pub(super) fn index(
        &self,
        table_id: &str,
        id: &TableIdentifier,
        moving_to: Option<Move>,
    ) -> Result<(), StoreError> {
        let indexed = Indexed {
            bucket: self.bucket.to_owned(),
            namespace: id.namespace.as_str().to_owned(),
            name: id.table.as_str().to_owned(),
            moving_to,
        };
        set_json(self.store, &keys::table_index(table_id), &indexed)
    }
}

/// The table with this id, whatever its name and bucket, if it is in a catalog.
pub fn find_table<S: KeyValue>(
    store: &S,
    table_id: &str,
) -> Result<Option<TableRecord>, StoreError> {
    let mut before = None;
    for _ in 0..HOPS {
        let Some(indexed) = get_json::<Indexed>(store, &keys::table_index(table_id))? else {
            return Ok(None);
        };
        if before.as_ref() == Some(&indexed) {
            return Ok(None);
        }
        let catalog = Catalog::new(store, &indexed.bucket);
        let here = Some((&indexed.namespace, &indexed.name));
        let there = indexed
            .moving_to
            .as_ref()
            .map(|to| (&to.namespace, &to.name));
        // In the order of the rename: a table that has left the one is at the other by now.
        for (namespace, name) in here.into_iter().chain(there) {
            let head = keys::table_name(&indexed.bucket, namespace, name);
            let table = names::read::<TableRecord>(store, &head)?;
            if let Some(table) = table.filter(|table| table.id == table_id)
                && catalog.presence(&table)? == Presence::Here
            {
                return Ok(Some(table));
            }
        }
        // Gone, unless the next rename came in between.
        before = Some(indexed);
    }
    Ok(None)
}
