//! What is stored of a namespace and a table.

use lance_maintenance_api::namespace::Properties;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The table format of Lance tables.
pub const LANCE_FORMAT: &str = "LANCE";

/// A namespace, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceRecord {
    /// The namespace's UUID, which is never used again.
    #[serde(default)]
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its properties.
    pub properties: Properties,
    /// The slot of its entry in the bucket's log of namespaces; set when it is created.
    #[serde(default)]
    pub slot: u64,
    /// Who is dropping it, if anybody is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropping: Option<Dropping>,
}

/// A namespace is being dropped: nothing new comes into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropping {
    /// The id of the request that does.
    pub by: String,
    /// Since when, in microseconds.
    pub since: i64,
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
    /// That namespace's UUID; set when the table comes into it.
    #[serde(default)]
    pub namespace_id: String,
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
    /// The table policy, as it was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Value>,
    /// The slot of its entry in the log of the namespace's tables; set when it is created.
    #[serde(default)]
    pub slot: u64,
    /// The name that it is about to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<Move>,
    /// The name that it had before, which may still have to be cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<Move>,
}

/// A rename: its other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The namespace.
    pub namespace: String,
    /// The table's name there.
    pub name: String,
    /// When the rename began, in microseconds.
    pub since: i64,
}
