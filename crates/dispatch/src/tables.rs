//! Tables as the catalog asks a worker about them: what needs Lance and has to be answered at once.
//!
//! ```text
//! POST /v1/tables/write?location=L&mode=M  Arrow IPC stream -> 200 Written
//! POST /v1/tables/describe                 DescribeTable    -> 200 TableDescription
//! POST /v1/tables/exist                    TablesExist      -> 200 Existing
//! POST /v1/tables/versions                 ListVersions     -> 200 Versions
//! POST /v1/tables/commit                   CommitVersion    -> 200 TableVersion
//! POST /v1/tables/purge                    Purge            -> 202
//! POST /v1/tables/health                   CheckHealth      -> 200 HealthReport
//! POST /v1/tables/preview                  PreviewTask      -> 200 Preview
//! POST /v1/tables/add-columns              AddColumns       -> 200 AddColumnsResponse
//! POST /v1/tables/check-backfill           PreviewTask      -> 200 {}
//! ```
//!
//! Requests are signed like all messages, over the path with the query as it is sent. Refusals come
//! as the error format with the status of their name; beside the names that are said here:
//! `AccessDenied` with 401 (not signed), `InvalidInput` (a message or location that can't be read),
//! `RequestTooLarge`, `PermissionDenied` and `ServiceUnavailable` (the table's store), and
//! `ServiceUnavailable` where the worker has no place for a write (with `retry-after`) or stops.
//!
//! Locations are the catalog's: a worker is never given one that a client chose freely. It takes
//! those in `file`, `s3` and `oss` that are a folder and not a whole store.
//!
//! What was asked is done to its end also when the caller does not wait for the answer.

use std::collections::BTreeMap;

pub use lance_maintenance_api::health::HealthReport;
pub use lance_maintenance_api::namespace::columns::{AddColumnsResponse, NewColumn, NewContent};
pub use lance_maintenance_api::namespace::versions::TableVersion;
use lance_maintenance_api::params::TaskParams;
pub use lance_maintenance_api::preview::Preview;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Path where a table is written from an Arrow IPC stream. Query: `location`, a URI, and `mode`, of
/// [`WriteMode`].
pub const WRITE_PATH: &str = "/v1/tables/write";
/// Path that describes a table.
pub const DESCRIBE_PATH: &str = "/v1/tables/describe";
/// Path that says which tables hold data.
pub const EXIST_PATH: &str = "/v1/tables/exist";
/// Path that lists versions.
pub const VERSIONS_PATH: &str = "/v1/tables/versions";
/// Path that makes a staged manifest a version.
pub const COMMIT_PATH: &str = "/v1/tables/commit";
/// Path where the data of dropped tables is removed.
pub const PURGE_PATH: &str = "/v1/tables/purge";
/// Path that looks at a table's health.
pub const HEALTH_PATH: &str = "/v1/tables/health";
/// Path that says what a task would do.
pub const PREVIEW_PATH: &str = "/v1/tables/preview";
/// Path that adds columns to a table.
pub const ADD_COLUMNS_PATH: &str = "/v1/tables/add-columns";
/// Path that says whether a backfill can run: refused as it would fail at its beginning.
pub const CHECK_BACKFILL_PATH: &str = "/v1/tables/check-backfill";
/// Path on the application where a worker says that the data of a dropped table is removed.
pub const PURGED_PATH: &str = "/worker/v1/purged";

/// The largest Arrow IPC stream that a worker takes, in bytes.
pub const WRITE_LIMIT: usize = 256 * 1024 * 1024;

/// What happens to a table that is there already. A write that fails leaves the table as it was, and
/// no files, unless the store does not say what became of the commit (`ServiceUnavailable`: look at
/// the table before writing again). A stream that can't be read is `InvalidInput`, a schema that
/// Lance can't store `TableSchemaValidationError`. A stream without batches makes a table without
/// rows; one may have 2^31 rows, and unpack to 2 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// It is an error: `TableAlreadyExists`.
    Create,
    /// It gets a new version with these rows alone. Where none is, one is made.
    Overwrite,
}

/// The query of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteTable {
    /// The URI of the table's folder.
    pub location: String,
    /// What happens to a table that is there already.
    pub mode: WriteMode,
}

impl WriteTable {
    /// The query.
    pub fn query(&self) -> String {
        let mode = match self.mode {
            WriteMode::Create => "create",
            WriteMode::Overwrite => "overwrite",
        };
        form_urlencoded::Serializer::new(String::new())
            .append_pair("location", &self.location)
            .append_pair("mode", mode)
            .finish()
    }
}

/// A table was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The version that the write made.
    pub version: u64,
}

/// Asks what a table holds. Of `version` and `tag` at most one is given; both are the branch's if
/// there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeTable {
    /// The URI of the table's folder.
    pub location: String,
    /// The version to describe: absent for the newest. One that is not there (any more) is
    /// `TableVersionNotFound`.
    #[serde(default)]
    pub version: Option<u64>,
    /// The tag whose version to describe. One that is not there is `TableTagNotFound`.
    #[serde(default)]
    pub tag: Option<String>,
    /// The branch to describe: absent for the main one. One that is not there is
    /// `TableBranchNotFound`.
    #[serde(default)]
    pub branch: Option<String>,
}

/// What a table holds. A table that was never written is `InvalidTableState`; one that can't be
/// read is, too. `Unsupported` is a schema with types that JsonArrowSchema does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableDescription {
    /// The version that is described.
    pub version: u64,
    /// The schema as the namespace specification's JsonArrowSchema, which does not tell units and
    /// time zones of times, nor dictionaries from their values.
    pub schema: Value,
    /// The schema's metadata.
    pub metadata: BTreeMap<String, String>,
    /// Rows that are deleted and still stored.
    pub num_deleted_rows: u64,
    /// Fragments.
    pub num_fragments: u64,
}

/// Asks which tables hold data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablesExist {
    /// URIs of tables' folders.
    pub locations: Vec<String>,
}

/// Which tables hold data, in the order of the question. A location that can't be looked at fails
/// the question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Existing {
    /// Whether there is a Lance table.
    pub exist: Vec<bool>,
}

/// Asks for versions of a table. One that was never written has none; a branch that is not there is
/// `TableBranchNotFound`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListVersions {
    /// The URI of the table's folder.
    pub location: String,
    /// The branch: absent for the main one.
    #[serde(default)]
    pub branch: Option<String>,
    /// Only this version; `TableVersionNotFound` if it is not there.
    #[serde(default)]
    pub version: Option<u64>,
    /// Newest first.
    #[serde(default)]
    pub descending: bool,
    /// Only versions after this one, in the order that is asked for.
    #[serde(default)]
    pub after: Option<u64>,
    /// Versions at the most; absent for all.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// Versions of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The versions, in the order that was asked for.
    pub versions: Vec<TableVersion>,
    /// Whether there are more after the last.
    pub more: bool,
}

/// Makes a manifest that a client has staged under the table's folder a version, if it is the next
/// one, the first being 1: else, or if somebody else has made it, it is `ConcurrentModification`. The
/// first version of a branch may have any number. The staged file is removed when it is a version,
/// and stays otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitVersion {
    /// The URI of the table's folder.
    pub location: String,
    /// The branch: absent for the main one.
    #[serde(default)]
    pub branch: Option<String>,
    /// The version's number.
    pub version: u64,
    /// Where the client has staged the manifest, as Lance knows the path in the table's object store:
    /// right in the `_versions` folder of the table, or of the branch, under a name that no version
    /// has. Anything else is `InvalidInput`, as is a manifest that can't be read or is of another
    /// version.
    pub manifest_path: String,
    /// The manifest's size in bytes; another size is `InvalidInput`.
    #[serde(default)]
    pub manifest_size: Option<u64>,
    /// The staged manifest's ETag; another one is `InvalidInput`.
    #[serde(default)]
    pub e_tag: Option<String>,
    /// `V1` or `V2`: how Lance names manifests; absent for what the table does, or `V2` if this is
    /// its first. What the table does not do is `InvalidInput`: Lance can't read a mixture.
    #[serde(default)]
    pub naming_scheme: Option<String>,
}

/// The data of a dropped table is to be removed: the files that Lance writes, and no others. Said
/// until a worker answers with [`Purged`]; a worker begins once no task runs on the table, and one
/// that fails waits to be told again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// The table's UUID.
    pub table_id: String,
    /// The URI of the table's folder.
    pub location: String,
}

/// The data of a dropped table has been removed, or there was none. Answered with `{}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The worker's name.
    pub worker_id: String,
    /// The table's UUID.
    pub table_id: String,
}

/// Asks for the health of a table's newest version, without what only the application knows: its tasks,
/// and the advice. A table that was never written, or can't be opened, is `InvalidTableState`; that there
/// is no Lance table is `TableNotFound` or `InvalidInput`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckHealth {
    /// The URI of the table's folder.
    pub location: String,
    /// Whether to look for the files that the version refers to.
    #[serde(default)]
    pub check_files: bool,
}

/// Asks what a task would do to a table as it is now. Refused as the task would fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviewTask {
    /// The URI of the table's folder.
    pub location: String,
    /// The task.
    #[serde(flatten)]
    pub params: TaskParams,
}

/// Adds columns to a table, all in one commit or none. A column that is there already, and an expression
/// that does not compile, are `InvalidInput`, the latter with the position of the mistake; a column that it
/// names and that is not there is `TableColumnNotFound`.
///
/// A virtual column, which a function of a user computes, is not among them: the application refuses it.
/// A worker that runs such functions takes them as a third kind of [`NewContent`], keeps the function where
/// a computed column keeps its expression, in the field's metadata, and runs `lance_backfill_column`
/// tasks on it: nothing else in this contract knows how a column is computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddColumns {
    /// The URI of the table's folder.
    pub location: String,
    /// The branch: absent for the main one.
    #[serde(default)]
    pub branch: Option<String>,
    /// The columns.
    pub columns: Vec<NewColumn>,
}
