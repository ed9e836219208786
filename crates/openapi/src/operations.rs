//! What is said of each operation beside the API's own table: what it takes, what it answers, and
//! with which errors. An operation that is missing here does not compile.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::operation::Operation;

use crate::parameters::Parameter;

/// What an operation takes, answers and fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The heading under which it stands.
    pub tag: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Parameters beside those in the path and the delimiter.
    pub parameters: &'static [Parameter],
    /// The body of the request.
    pub body: Body,
    /// The schema of the success's JSON; without one it is 204 and has no body.
    pub answer: Option<&'static str>,
    /// How it can fail, beside [`COMMON`] and what its subject brings with it.
    pub errors: &'static [ErrorName],
}

/// The body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// None; what is sent is not looked at.
    None,
    /// JSON with this schema, which may be left out altogether.
    Optional(&'static str),
    /// JSON with this schema.
    Required(&'static str),
    /// Rows, as an Arrow IPC stream.
    Rows,
}

use ErrorName::*;

/// How every signed operation can fail: the door, the identifier, permissions, the store.
pub const COMMON: &[ErrorName] = &[
    InvalidInput,
    LanceThirdLevelDomainRequired,
    InvalidDigest,
    PermissionDenied,
    AccessDenied,
    SignatureDoesNotMatch,
    InvalidAccessKeyId,
    RequestTimeTooSkewed,
    InvalidSecurityToken,
    NoSuchTableBucket,
    RequestTooLarge,
    ServiceUnavailable,
];

/// How an operation on a table that exists can fail, beside the common errors.
pub const OF_TABLES: &[ErrorName] = &[TableNotFound];

/// How an operation on a job can fail, beside the common errors.
pub const OF_JOBS: &[ErrorName] = &[TaskNotFound];

/// How giving a name to a table can fail, beside the common errors.
const TAKING_A_NAME: &[ErrorName] = &[
    NamespaceNotFound,
    TableAlreadyExists,
    ConcurrentModification,
];

const TASKS: &str = "Maintenance tasks";
const JOBS: &str = "Health and jobs";
const NAMESPACES: &str = "Namespaces";
const TABLES: &str = "Tables";
const VERSIONS: &str = "Table versions";
const ACCESS: &str = "Access";

/// The headings, and what stands under them.
pub const TAGS: &[(&str, &str)] = &[
    (
        TASKS,
        "Submitting, watching and deleting the maintenance tasks of a table.",
    ),
    (
        JOBS,
        "How a table is and what to do about it, and the same tasks as jobs, with the names and meanings \
         of the published maintenance skill. A table is named by its id or by the URI of its folder.",
    ),
    (NAMESPACES, "The Lance REST namespace: namespaces."),
    (TABLES, "The Lance REST namespace: tables."),
    (VERSIONS, "The Lance REST namespace: versions of tables."),
    (ACCESS, "Policies and credentials."),
    ("Health", "Whether the service works."),
];

/// What is said of an operation.
pub fn entry(operation: Operation) -> Entry {
    use Operation as O;
    match operation {
        O::SubmitLanceTableCompactTask => Entry {
            // Only where the server's own default compaction mode is not one.
            errors: &[TaskQuotaExceeded, InternalError],
            ..submit(
                "Submit a task that merges small fragments and drops deleted rows",
                Body::Optional("CompactRequest"),
            )
        },
        O::SubmitLanceTableScalarIndexTask => submit(
            "Submit a task that creates a scalar or text index",
            Body::Required("ScalarIndexRequest"),
        ),
        O::SubmitLanceTableVectorIndexTask => submit(
            "Submit a task that creates a vector index",
            Body::Required("VectorIndexRequest"),
        ),
        O::SubmitLanceTableOptimizeIndicesTask => submit(
            "Submit a task that brings indices up to date",
            Body::Optional("OptimizeIndicesRequest"),
        ),
        O::SubmitLanceTableCleanupTask => submit(
            "Submit a task that removes old versions",
            Body::Required("CleanupRequest"),
        ),
        O::GetLanceTaskStatus => Entry {
            parameters: &[Parameter::Progress],
            answer: Some("GetTaskResponse"),
            errors: &[TaskNotFound],
            ..plain(TASKS, "Get a task")
        },
        O::ListLanceTasks => Entry {
            parameters: &[Parameter::TaskList, Parameter::Progress],
            answer: Some("ListTasksResponse"),
            ..plain(TASKS, "List the tasks of a type, newest first")
        },
        O::DeleteLanceTask => Entry {
            errors: &[TaskNotFound, TaskStateConflict],
            ..plain(TASKS, "Delete a task that has ended")
        },
        O::GetTableHealth => Entry {
            parameters: &[Parameter::Health],
            answer: Some("HealthReport"),
            errors: &[InvalidTableState],
            ..plain(JOBS, "Say how a table is, and what to do about it")
        },
        O::PreviewMaintenanceJob => Entry {
            body: Body::Required("JobRequest"),
            answer: Some("Preview"),
            errors: &[TableIndexNotFound, InvalidTableState],
            ..plain(JOBS, "Say what a job would do to the table as it is")
        },
        O::SubmitMaintenanceJob => Entry {
            body: Body::Required("JobRequest"),
            answer: Some("JobStatus"),
            errors: &[TaskQuotaExceeded],
            ..plain(JOBS, "Submit a job")
        },
        O::ListMaintenanceJobs => Entry {
            parameters: &[Parameter::JobPage],
            answer: Some("ListJobsResponse"),
            ..plain(
                JOBS,
                "List the jobs of a table, of all operations, newest first",
            )
        },
        O::GetMaintenanceJob => Entry {
            answer: Some("JobStatus"),
            ..plain(JOBS, "Get a job")
        },
        O::CancelMaintenanceJob => Entry {
            answer: Some("JobStatus"),
            ..plain(
                JOBS,
                "Ask that a job be stopped, and say where it stands: one that has ended stays as it is",
            )
        },
        O::CreateNamespace => Entry {
            body: Body::Optional("CreateNamespaceRequest"),
            answer: Some("NamespaceResponse"),
            errors: &[
                NamespaceAlreadyExists,
                NamespaceNotEmpty,
                NamespaceNotFound,
                ConcurrentModification,
            ],
            ..plain(NAMESPACES, "Create a namespace")
        },
        O::DescribeNamespace => Entry {
            body: Body::Optional("IdRequest"),
            answer: Some("NamespaceResponse"),
            errors: &[NamespaceNotFound],
            ..plain(NAMESPACES, "Describe a namespace")
        },
        O::NamespaceExists => Entry {
            body: Body::Optional("IdRequest"),
            answer: Some("Empty"),
            errors: &[NamespaceNotFound],
            ..plain(NAMESPACES, "Say whether a namespace exists")
        },
        O::DropNamespace => Entry {
            body: Body::Optional("DropNamespaceRequest"),
            answer: Some("NamespaceResponse"),
            errors: &[NamespaceNotFound, NamespaceNotEmpty, ConcurrentModification],
            ..plain(NAMESPACES, "Drop a namespace")
        },
        O::ListNamespaces => Entry {
            parameters: &[Parameter::Page],
            answer: Some("ListNamespacesResponse"),
            errors: &[NamespaceNotFound],
            ..plain(NAMESPACES, "List namespaces")
        },
        O::ListTables => Entry {
            parameters: &[Parameter::Page, Parameter::IncludeDeclared],
            answer: Some("ListTablesResponse"),
            errors: &[NamespaceNotFound],
            ..plain(TABLES, "List the tables of a namespace")
        },
        O::ListAllTables => Entry {
            parameters: &[Parameter::Page, Parameter::IncludeDeclared],
            answer: Some("ListTablesResponse"),
            ..plain(TABLES, "List the tables of all namespaces")
        },
        O::CreateTable => Entry {
            parameters: &[Parameter::CreateTable],
            body: Body::Rows,
            answer: Some("CreateTableResponse"),
            errors: &[
                NamespaceNotFound,
                TableAlreadyExists,
                TableSchemaValidationError,
                InvalidTableState,
                ConcurrentModification,
            ],
            ..plain(TABLES, "Create a table from rows")
        },
        O::DeclareTable => Entry {
            body: Body::Optional("DeclareTableRequest"),
            answer: Some("DeclareTableResponse"),
            errors: TAKING_A_NAME,
            ..plain(
                TABLES,
                "Declare a table: give it a name and a place for a client to write to",
            )
        },
        O::RegisterTable => Entry {
            body: Body::Required("RegisterTableRequest"),
            answer: Some("DeclareTableResponse"),
            errors: TAKING_A_NAME,
            ..plain(TABLES, "Register a table that lies somewhere already")
        },
        O::DescribeTable => Entry {
            parameters: &[Parameter::DescribeFlags],
            body: Body::Optional("DescribeTableRequest"),
            answer: Some("DescribeTableResponse"),
            errors: &[
                TableVersionNotFound,
                TableTagNotFound,
                TableBranchNotFound,
                InvalidTableState,
                // The schema has types that the namespace specification's form has not.
                Unsupported,
            ],
            ..plain(TABLES, "Describe a table")
        },
        O::TableExists => Entry {
            body: Body::Optional("TableVersionRequest"),
            answer: Some("Empty"),
            errors: &[TableVersionNotFound, TableBranchNotFound, InvalidTableState],
            ..plain(TABLES, "Say whether a table, or a version of it, exists")
        },
        O::DropTable => take_out("Drop a table and remove its data"),
        O::DeregisterTable => take_out("Take a table out of the catalog and leave its data"),
        O::RenameTable => Entry {
            body: Body::Required("RenameTableRequest"),
            answer: Some("RenameTableResponse"),
            errors: TAKING_A_NAME,
            ..plain(TABLES, "Rename a table")
        },
        O::AlterTableAddColumns => Entry {
            body: Body::Required("AddColumnsRequest"),
            answer: Some("AddColumnsResponse"),
            errors: &[
                TableColumnNotFound,
                TableBranchNotFound,
                InvalidTableState,
                ConcurrentModification,
                // Virtual columns.
                Unsupported,
            ],
            ..plain(TABLES, "Add columns whose values SQL expressions give")
        },
        O::AlterTableBackfillColumns => Entry {
            body: Body::Required("BackfillColumnRequest"),
            answer: Some("BackfillColumnResponse"),
            errors: &[
                TableColumnNotFound,
                TableVersionNotFound,
                InvalidTableState,
                TaskQuotaExceeded,
            ],
            ..plain(TABLES, "Submit a job that fills a computed column")
        },
        O::CreateTableVersion => Entry {
            body: Body::Required("CreateTableVersionRequest"),
            answer: Some("TableVersionResponse"),
            errors: &[
                TableBranchNotFound,
                InvalidTableState,
                ConcurrentModification,
            ],
            ..plain(VERSIONS, "Make a staged manifest a version")
        },
        O::DescribeTableVersion => Entry {
            body: Body::Optional("TableVersionRequest"),
            answer: Some("TableVersionResponse"),
            errors: &[TableVersionNotFound, TableBranchNotFound, InvalidTableState],
            ..plain(VERSIONS, "Describe a version of a table")
        },
        O::ListTableVersions => Entry {
            parameters: &[Parameter::Page, Parameter::Versions],
            answer: Some("ListTableVersionsResponse"),
            errors: &[TableBranchNotFound, InvalidTableState],
            ..plain(VERSIONS, "List the versions of a table")
        },
        O::PutTableBucketPolicy => Entry {
            body: Body::Required("ResourcePolicy"),
            errors: &[MalformedPolicy],
            ..plain(ACCESS, "Set the policy of the table bucket")
        },
        O::GetTableBucketPolicy => Entry {
            answer: Some("ResourcePolicy"),
            errors: &[NoSuchPolicy],
            ..plain(ACCESS, "Get the policy of the table bucket")
        },
        O::DeleteTableBucketPolicy => plain(ACCESS, "Remove the policy of the table bucket"),
        O::PutTablePolicy => Entry {
            body: Body::Required("ResourcePolicy"),
            errors: &[MalformedPolicy, ConcurrentModification],
            ..plain(ACCESS, "Set the policy of a table")
        },
        O::GetTablePolicy => Entry {
            answer: Some("ResourcePolicy"),
            errors: &[NoSuchPolicy],
            ..plain(ACCESS, "Get the policy of a table")
        },
        O::DeleteTablePolicy => Entry {
            errors: &[ConcurrentModification],
            ..plain(ACCESS, "Remove the policy of a table")
        },
        O::PutCredential => Entry {
            body: Body::Required("PutCredentialRequest"),
            answer: Some("Credential"),
            errors: &[MalformedPolicy, ConcurrentModification],
            ..plain(ACCESS, "Create a credential, or replace one")
        },
        O::GetCredential => Entry {
            answer: Some("Credential"),
            errors: &[NoSuchCredential],
            ..plain(ACCESS, "Get a credential, without its secrets")
        },
        O::DeleteCredential => Entry {
            errors: &[NoSuchCredential, ConcurrentModification],
            ..plain(ACCESS, "Delete a credential")
        },
        O::ListCredentials => Entry {
            parameters: &[Parameter::Page],
            answer: Some("ListCredentialsResponse"),
            ..plain(ACCESS, "List credentials, newest first")
        },
    }
}

fn plain(tag: &'static str, summary: &'static str) -> Entry {
    Entry {
        tag,
        summary,
        parameters: &[],
        body: Body::None,
        answer: None,
        errors: &[],
    }
}

fn submit(summary: &'static str, body: Body) -> Entry {
    Entry {
        body,
        answer: Some("SubmitResponse"),
        errors: &[TaskQuotaExceeded],
        ..plain(TASKS, summary)
    }
}

fn take_out(summary: &'static str) -> Entry {
    Entry {
        body: Body::Optional("IdRequest"),
        answer: Some("DropTableResponse"),
        errors: &[ConcurrentModification],
        ..plain(TABLES, summary)
    }
}
