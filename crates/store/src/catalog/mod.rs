//! Namespaces and tables.
//!
//! | module | what it holds |
//! |---|---|
//! | `records` | what is stored of a namespace and a table |
//! | `namespaces` | namespaces: create, drop, list |
//! | `tables` | tables: create, find, change, list |
//! | `drops` | taking tables out |
//! | `moves` | renaming: one table, two names, no moment with none or both |
//! | `locations` | no two tables at one place; tables by their ids |
//! | `purges` | the data of dropped tables |
//!
//! **A table counts while its namespace does.** Its record holds the id of the namespace that it
//! was created in, and a namespace that is dropped and created again is another one. So a table
//! that slipped into a namespace while that was being dropped is not there, whatever its name's
//! head says. Creating a table looks at the namespace before and after; dropping a namespace marks
//! it first and looks for tables then: at least one of the two sees the other.

mod drops;
mod locations;
mod moves;
mod namespaces;
mod purges;
mod records;
mod tables;

pub(crate) use drops::is_dropped;
pub use locations::find_table;
pub use namespaces::MayDrop;
pub use purges::Purges;
pub use records::{Dropping, LANCE_FORMAT, Move, NamespaceRecord, Origin, TableRecord};
pub use tables::BucketPlace;

use lance_maintenance_api::identifier::TableIdentifier;
use lance_maintenance_api::{ApiError, ErrorName};

use crate::key_value::KeyValue;

/// The namespaces and tables of one bucket. Times are in microseconds since the Unix epoch.
pub struct Catalog<'a, S> {
    store: &'a S,
    bucket: &'a str,
}

impl<'a, S: KeyValue> Catalog<'a, S> {
    /// The catalog of a bucket.
    pub fn new(store: &'a S, bucket: &'a str) -> Self {
        Self { store, bucket }
    }
}

fn namespace_not_found(name: &str) -> ApiError {
    ApiError::new(
        ErrorName::NamespaceNotFound,
        format!("There is no namespace '{name}'."),
    )
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

/// The refusal of a name that stands for a table.
pub fn table_exists(id: &TableIdentifier) -> ApiError {
    ApiError::new(
        ErrorName::TableAlreadyExists,
        format!(
            "The namespace '{}' has a table '{}' already.",
            id.namespace, id.table
        ),
    )
}

fn busy(what: &str) -> ApiError {
    ApiError::new(
        ErrorName::ConcurrentModification,
        format!("Another request is changing this {what} just now; try again."),
    )
}
