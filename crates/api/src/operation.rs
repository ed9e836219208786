//! The operations: what is served under which method and path, by which component, and what a
//! caller must be allowed to do.
//!
//! A new operation is one line of the table below, and its component.

use serde::{Deserialize, Serialize};

use crate::error::{ApiError, ErrorName};

/// What an operation is about, and so which resource a caller must be allowed to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The table bucket: what is in it, or is to be.
    Bucket,
    /// A table that exists.
    Table,
    /// A table that exists, named by its identifier or by the URI of its folder.
    TableOrUri,
    /// The table of a job.
    Job,
    /// Access keys.
    Credentials,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $method:literal $path:literal
        -> $component:literal, $action:literal on $subject:ident;)*) => {
        /// An operation of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Operation {
            $($(#[$doc])* $name,)*
        }

        impl Operation {
            /// Every operation there is.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),*];

            /// The operation's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// The HTTP method.
            pub fn method(self) -> &'static str {
                match self { $(Self::$name => $method),* }
            }

            /// The path; `{...}` stands for one segment.
            pub fn path(self) -> &'static str {
                match self { $(Self::$name => $path),* }
            }

            /// The component that serves it.
            pub fn component(self) -> &'static str {
                match self { $(Self::$name => $component),* }
            }

            /// What a policy must allow (API facts, section 1; those of the namespace are named
            /// after their operations).
            pub fn action(self) -> &'static str {
                match self { $(Self::$name => $action),* }
            }

            /// What the action is done to.
            pub fn subject(self) -> Subject {
                match self { $(Self::$name => Subject::$subject),* }
            }
        }
    };
}

operations! {
    SubmitLanceTableCompactTask = "POST" "/lance/oss/v1/table/{id}/compact"
        -> "compact", "oss:PutTableMaintenanceConfiguration" on Table;
    SubmitLanceTableScalarIndexTask = "POST" "/lance/oss/v1/table/{id}/create_scalar_index"
        -> "scalar-index", "oss:PutTableMaintenanceConfiguration" on Table;
    SubmitLanceTableVectorIndexTask = "POST" "/lance/oss/v1/table/{id}/create_vector_index"
        -> "vector-index", "oss:PutTableMaintenanceConfiguration" on Table;
    SubmitLanceTableOptimizeIndicesTask = "POST" "/lance/oss/v1/table/{id}/optimize_indices"
        -> "optimize-indices", "oss:PutTableMaintenanceConfiguration" on Table;
    SubmitLanceTableCleanupTask = "POST" "/lance/oss/v1/table/{id}/cleanup"
        -> "cleanup", "oss:PutTableMaintenanceConfiguration" on Table;
    GetLanceTaskStatus = "GET" "/lance/oss/v1/table/{id}/tasks/{task_id}"
        -> "get-task", "oss:GetTableMaintenanceJobStatus" on Table;
    ListLanceTasks = "GET" "/lance/oss/v1/table/{id}/tasks"
        -> "list-tasks", "oss:GetTableMaintenanceJobStatus" on Table;
    DeleteLanceTask = "DELETE" "/lance/oss/v1/table/{id}/tasks/{task_id}"
        -> "delete-task", "oss:PutTableMaintenanceConfiguration" on Table;

    GetTableHealth = "GET" "/maintenance/v1/table/{id}/health"
        -> "health", "oss:GetTableMaintenanceJobStatus" on TableOrUri;
    PreviewMaintenanceJob = "POST" "/maintenance/v1/table/{id}/preview"
        -> "health", "oss:GetTableMaintenanceJobStatus" on TableOrUri;
    SubmitMaintenanceJob = "POST" "/maintenance/v1/table/{id}/jobs"
        -> "jobs", "oss:PutTableMaintenanceConfiguration" on TableOrUri;
    ListMaintenanceJobs = "GET" "/maintenance/v1/table/{id}/jobs"
        -> "jobs", "oss:GetTableMaintenanceJobStatus" on TableOrUri;
    GetMaintenanceJob = "GET" "/maintenance/v1/jobs/{job_id}"
        -> "jobs", "oss:GetTableMaintenanceJobStatus" on Job;
    CancelMaintenanceJob = "POST" "/maintenance/v1/jobs/{job_id}/cancel"
        -> "jobs", "oss:PutTableMaintenanceConfiguration" on Job;

    CreateNamespace = "POST" "/lance/v1/namespace/{id}/create"
        -> "catalog", "oss:CreateNamespace" on Bucket;
    DescribeNamespace = "POST" "/lance/v1/namespace/{id}/describe"
        -> "catalog", "oss:GetNamespace" on Bucket;
    NamespaceExists = "POST" "/lance/v1/namespace/{id}/exists"
        -> "catalog", "oss:GetNamespace" on Bucket;
    DropNamespace = "POST" "/lance/v1/namespace/{id}/drop"
        -> "catalog", "oss:DeleteNamespace" on Bucket;
    ListNamespaces = "GET" "/lance/v1/namespace/{id}/list"
        -> "catalog", "oss:ListNamespaces" on Bucket;
    ListTables = "GET" "/lance/v1/namespace/{id}/table/list"
        -> "catalog", "oss:ListTables" on Bucket;
    ListAllTables = "GET" "/lance/v1/table"
        -> "catalog", "oss:ListTables" on Bucket;
    CreateTable = "POST" "/lance/v1/table/{id}/create"
        -> "catalog", "oss:CreateTable" on Bucket;
    DeclareTable = "POST" "/lance/v1/table/{id}/declare"
        -> "catalog", "oss:CreateTable" on Bucket;
    RegisterTable = "POST" "/lance/v1/table/{id}/register"
        -> "catalog", "oss:CreateTable" on Bucket;
    DescribeTable = "POST" "/lance/v1/table/{id}/describe"
        -> "catalog", "oss:GetTable" on Table;
    TableExists = "POST" "/lance/v1/table/{id}/exists"
        -> "catalog", "oss:GetTable" on Table;
    DropTable = "POST" "/lance/v1/table/{id}/drop"
        -> "catalog", "oss:DeleteTable" on Table;
    DeregisterTable = "POST" "/lance/v1/table/{id}/deregister"
        -> "catalog", "oss:DeleteTable" on Table;
    RenameTable = "POST" "/lance/v1/table/{id}/rename"
        -> "catalog", "oss:RenameTable" on Table;
    AlterTableAddColumns = "POST" "/lance/v1/table/{id}/add_columns"
        -> "columns", "oss:PutTableData" on Table;
    AlterTableBackfillColumns = "POST" "/lance/v1/table/{id}/backfill_column"
        -> "columns", "oss:PutTableData" on Table;
    CreateTableVersion = "POST" "/lance/v1/table/{id}/version/create"
        -> "catalog", "oss:PutTableData" on Table;
    DescribeTableVersion = "POST" "/lance/v1/table/{id}/version/describe"
        -> "catalog", "oss:GetTable" on Table;
    ListTableVersions = "POST" "/lance/v1/table/{id}/version/list"
        -> "catalog", "oss:GetTable" on Table;

    PutTableBucketPolicy = "PUT" "/access/v1/policy"
        -> "access", "oss:PutTableBucketPolicy" on Bucket;
    GetTableBucketPolicy = "GET" "/access/v1/policy"
        -> "access", "oss:GetTableBucketPolicy" on Bucket;
    DeleteTableBucketPolicy = "DELETE" "/access/v1/policy"
        -> "access", "oss:DeleteTableBucketPolicy" on Bucket;
    PutTablePolicy = "PUT" "/access/v1/table/{id}/policy"
        -> "access", "oss:PutTablePolicy" on Table;
    GetTablePolicy = "GET" "/access/v1/table/{id}/policy"
        -> "access", "oss:GetTablePolicy" on Table;
    DeleteTablePolicy = "DELETE" "/access/v1/table/{id}/policy"
        -> "access", "oss:DeleteTablePolicy" on Table;
    /// A credential that exists is updated, which is the action `ram:UpdateAccessKey`.
    PutCredential = "PUT" "/access/v1/credentials/{access_key_id}"
        -> "access", "ram:CreateAccessKey" on Credentials;
    GetCredential = "GET" "/access/v1/credentials/{access_key_id}"
        -> "access", "ram:GetAccessKey" on Credentials;
    DeleteCredential = "DELETE" "/access/v1/credentials/{access_key_id}"
        -> "access", "ram:DeleteAccessKey" on Credentials;
    ListCredentials = "GET" "/access/v1/credentials"
        -> "access", "ram:ListAccessKeys" on Credentials;
}

/// The namespace specification's prefix: what is not served under it is `Unsupported`.
const NAMESPACE_PREFIX: &str = "/lance/v1/";

/// The operation of a request, with the segments that its path has for `{...}`, still encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The operation.
    pub operation: Operation,
    /// The segments, in the order of the path.
    pub segments: Vec<&'a str>,
}

/// Finds the operation of a request by its method and raw path. Nothing is decoded: `%2F` is part
/// of a segment.
pub fn find<'a>(method: &str, path: &'a str) -> Result<Found<'a>, ApiError> {
    for operation in Operation::ALL {
        if operation.method() != method {
            continue;
        }
        if let Some(segments) = segments(operation.path(), path) {
            if let Some(at) = segments.iter().position(|segment| segment.is_empty()) {
                let name = placeholders(operation.path()).nth(at).unwrap_or("id");
                return Err(ApiError::invalid(format!(
                    "The {name} is missing in the path."
                )));
            }
            return Ok(Found {
                operation: *operation,
                segments,
            });
        }
    }
    let others = methods(path);
    if !others.is_empty() {
        return Err(ApiError::new(
            ErrorName::MethodNotAllowed,
            format!("This path takes {}.", others.join(" and ")),
        ));
    }
    if path.starts_with(NAMESPACE_PREFIX) {
        return Err(ApiError::new(
            ErrorName::Unsupported,
            "This operation of the Lance REST namespace is not served here.",
        ));
    }
    Err(ApiError::new(
        ErrorName::NoSuchOperation,
        "There is no operation under this path.",
    ))
}

/// The methods that a path takes; none where nothing is served under it.
pub fn methods(path: &str) -> Vec<&'static str> {
    Operation::ALL
        .iter()
        .filter(|operation| segments(operation.path(), path).is_some())
        .map(|operation| operation.method())
        .collect()
}

/// The names in the `{...}` of a template.
fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template
        .split('/')
        .filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'))
}

/// What stands in a path for the `{...}` of a template, if the path fits it.
fn segments<'a>(template: &str, path: &'a str) -> Option<Vec<&'a str>> {
    let mut found = Vec::new();
    let (mut expected, mut actual) = (template.split('/'), path.split('/'));
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return Some(found),
            (Some(word), Some(segment)) if word.starts_with('{') => found.push(segment),
            (Some(word), Some(segment)) if word == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_under_its_path() {
        for operation in Operation::ALL {
            let path = operation
                .path()
                .replace("{id}", "a%24b")
                .replace("{task_id}", "t")
                .replace("{access_key_id}", "k")
                .replace("{job_id}", "j.t");
            let found = find(operation.method(), &path).unwrap();
            assert_eq!(found.operation, *operation, "{path}");
            let expected: &[&str] = match operation.path().matches('{').count() {
                0 => &[],
                1 if operation.path().contains("{access_key_id}") => &["k"],
                1 if operation.path().contains("{job_id}") => &["j.t"],
                1 => &["a%24b"],
                _ => &["a%24b", "t"],
            };
            assert_eq!(found.segments, expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_served() {
        use ErrorName::{InvalidInput, MethodNotAllowed, NoSuchOperation, Unsupported};
        let cases = [
            ("GET", "/", NoSuchOperation),
            ("GET", "/lance/oss/v1/table/a", NoSuchOperation),
            (
                "POST",
                "/lance/oss/v1/table/a/lance_compact",
                NoSuchOperation,
            ),
            ("GET", "/lance/oss/v1/table/a/tasks/b/c", NoSuchOperation),
            ("POST", "/lance/oss/v1/table/a/compact/", NoSuchOperation),
            ("POST", "//lance/oss/v1/table/a/compact", NoSuchOperation),
            ("POST", "/lance/oss/v1/table%2Fa/compact", NoSuchOperation),
            ("GET", "/lance/oss/v1/table/a/tasks/", InvalidInput),
            ("GET", "/lance/oss/v1/table//tasks", InvalidInput),
            ("PUT", "/access/v1/credentials/", InvalidInput),
            ("GET", "/lance/oss/v1/table/a/compact", MethodNotAllowed),
            ("PUT", "/lance/oss/v1/table/a/tasks/b", MethodNotAllowed),
            ("DELETE", "/lance/oss/v1/table/a/tasks", MethodNotAllowed),
            ("GET", "/lance/v1/table/ns%24t/declare", MethodNotAllowed),
            ("POST", "/lance/v1/table", MethodNotAllowed),
            ("POST", "/access/v1/policy", MethodNotAllowed),
            ("POST", "/lance/v1/table/ns%24t/query", Unsupported),
            ("POST", "/lance/v1/table/version/batch-create", Unsupported),
            ("GET", "/lance/v1/", Unsupported),
            ("GET", "/lance/v1", NoSuchOperation),
        ];
        for (method, path, name) in cases {
            assert_eq!(
                find(method, path).unwrap_err().name,
                name,
                "{method} {path}"
            );
        }
        let error = find("PUT", "/lance/oss/v1/table/a/tasks/b").unwrap_err();
        assert_eq!(error.detail, "This path takes GET and DELETE.");
        assert_eq!(methods("/access/v1/policy"), ["PUT", "GET", "DELETE"]);
        assert!(methods("/lance/v1/table/ns%24t/query").is_empty());
    }
}
