//! Tables and parameters for the tests of the store.

use lance_maintenance_api::identifier::{Delimiter, NamespaceName, TableIdentifier};
use lance_maintenance_api::params::{CleanupParams, CompactParams, TaskParams};
use lance_maintenance_api::task::TaskId;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{Claim, TableRef, TaskAddress};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::catalog::{Catalog, NamespaceRecord, Origin, TableRecord};
use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::tasks::Tasks;

pub const TABLE: &str = "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab";

pub fn table(id: &str) -> TableRef {
    TableRef {
        id: id.to_owned(),
        arn: format!("acs:osstables:r:1:bucket/b/table/{id}"),
        location: format!("file:///w/{id}.lance"),
    }
}

pub fn compact() -> TaskParams {
    TaskParams::Compact(CompactParams::parse(b"", "reencode").unwrap())
}

pub fn cleanup() -> TaskParams {
    TaskParams::Cleanup(CleanupParams::parse(br#"{"retain_versions":1}"#).unwrap())
}

/// Submits a task of the table [`TABLE`] at this time.
pub fn submit(
    store: &MemoryStore,
    params: TaskParams,
    quota: u64,
    now: i64,
) -> Result<TaskId, ApiError> {
    Tasks::new(store, TABLE)
        .submit(&table(TABLE), params, "R", [7; 10], quota, || now)
        .map(|task| task.submitted.task_id)
}

pub fn name<T: std::fmt::Debug>(outcome: Result<T, ApiError>) -> ErrorName {
    outcome.unwrap_err().name
}

pub fn identifier(text: &str) -> TableIdentifier {
    TableIdentifier::parse(text, &Delimiter::default()).unwrap()
}

pub fn namespace(name: &str) -> NamespaceName {
    NamespaceName::parse(name).unwrap()
}

/// A namespace as it is created, with an id that no other has.
pub fn namespace_record(name: &str, id: &str) -> NamespaceRecord {
    NamespaceRecord {
        id: id.to_owned(),
        name: name.to_owned(),
        ..NamespaceRecord::default()
    }
}

/// A table as it is created.
pub fn record(name: &str, id: &str) -> TableRecord {
    let location = format!("file:///w/{id}.lance");
    let properties = Default::default();
    TableRecord::new(
        &identifier(name),
        id.to_owned(),
        location,
        Origin::Declared,
        properties,
    )
}

/// The catalog of a bucket with the namespace `ns`.
pub fn catalog<S: KeyValue>(store: &S) -> Catalog<'_, S> {
    let catalog = Catalog::new(store, "b");
    let created = catalog.create_namespace(&namespace_record("ns", "N1"), || 0);
    assert!(created.unwrap());
    catalog
}

/// A second, in microseconds.
pub const SECOND: i64 = 1_000_000;

/// Where a task of [`TABLE`] lies.
pub fn address(id: &TaskId) -> TaskAddress {
    TaskAddress {
        table_id: TABLE.to_owned(),
        task_id: id.clone(),
    }
}

/// A worker claims an attempt at a task of [`TABLE`].
pub fn claim(id: &TaskId, worker: &str, attempt: u32) -> Claim {
    Claim {
        worker_id: worker.to_owned(),
        incarnation: String::new(),
        task: address(id),
        attempt,
    }
}
