//! Parameters in paths, queries and headers.

use lance_maintenance_api::operation::{Operation, Subject};
use lance_maintenance_api::task::TaskType;
use serde_json::{Value, json};

use crate::bodies::CREATE_MODES;
use crate::rule::any_case;

/// What an operation takes in its query, beside the delimiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// `limit` and `page_token`.
    Page,
    /// The same, of a table's jobs.
    JobPage,
    /// `check_files` and `reclaim`.
    Health,
    /// `include_declared`.
    IncludeDeclared,
    /// `task_type`, `max_results` and `marker`.
    TaskList,
    /// The flags of DescribeTable, which may also stand in the body.
    DescribeFlags,
    /// `mode`, `properties` and `storage_options`: the body holds rows.
    CreateTable,
    /// `branch` and `descending`.
    Versions,
    /// The header that asks for a task's progress.
    Progress,
}

/// Everything that an operation takes outside its body.
pub fn of(operation: Operation, extra: &[Parameter]) -> Vec<Value> {
    let names = operation
        .path()
        .split('/')
        .filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = names.map(|name| in_path(operation, name)).collect();
    if operation.path().contains("{id}") || operation == Operation::ListAllTables {
        parameters.push(delimiter());
    }
    parameters.extend(extra.iter().flat_map(|parameter| parameter.described()));
    parameters.push(json!({
        "name": "Content-MD5",
        "in": "header",
        "description": "The MD5 digest of the body in base64; checked if it is there.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9+/]{22}==$"},
    }));
    parameters
}

fn in_path(operation: Operation, name: &str) -> Value {
    let (about, example) = match (name, operation.path().contains("/namespace/")) {
        ("id", true) => (
            "The namespace's name, of `a-z`, `0-9` and `_`; the delimiter alone is the root, which \
             holds the namespaces.",
            "prod",
        ),
        ("id", false) if operation.subject() == Subject::TableOrUri => (
            "The table: `namespace$table`, or the URI of its folder, encoded as one segment of the path \
             (`/` as `%2F`).",
            "prod$documents",
        ),
        ("id", false) => (
            "The table: `namespace$table`, two names of `a-z`, `0-9` and `_` with the delimiter \
             between them.",
            "prod$documents",
        ),
        ("task_id", _) => (
            "The task's id, as the submit answered.",
            "10000000000111111111111111111111",
        ),
        ("job_id", _) => (
            "The job's id, as the submit answered.",
            "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab.10000000000111111111111111111111",
        ),
        _ => ("The key's public half.", "alice-1"),
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": about,
        "schema": {"type": "string", "minLength": 1},
        "example": example,
    })
}

fn delimiter() -> Value {
    query(
        "delimiter",
        "What stands between namespace and table; empty means `$`, too.",
        json!({"type": "string", "pattern": "^[^/:\\-]*$", "default": "$"}),
    )
}

fn query(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "schema": schema})
}

fn flag(name: &str, about: &str, default: bool) -> Value {
    query(name, about, json!({"type": "boolean", "default": default}))
}

impl Parameter {
    fn described(self) -> Vec<Value> {
        match self {
            Self::Page => vec![
                query(
                    "limit",
                    "Entries on the page at the most; more than 1000 are 1000.",
                    json!({"type": "integer", "minimum": 1, "maximum": u32::MAX, "default": 1000}),
                ),
                query(
                    "page_token",
                    "The `page_token` of the page before, from the same listing.",
                    json!({"type": "string"}),
                ),
            ],
            Self::JobPage => vec![
                query(
                    "limit",
                    "Jobs on the page at the most.",
                    json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
                ),
                query(
                    "page_token",
                    "The `page_token` of the page before, of the same table.",
                    json!({"type": "string"}),
                ),
            ],
            Self::Health => vec![
                flag(
                    "check_files",
                    "Whether to look for files that the newest version refers to and that are not there.",
                    false,
                ),
                flag(
                    "reclaim",
                    "Whether space is wanted: then the advice may hold a cleanup.",
                    false,
                ),
            ],
            Self::IncludeDeclared => vec![flag(
                "include_declared",
                "Whether tables are listed that were declared and never written.",
                true,
            )],
            Self::TaskList => vec![
                json!({
                    "name": "task_type",
                    "in": "query",
                    "required": true,
                    "description": "The one type of task to list. `mode` and `status` are no \
                                    parameters here and refused.",
                    "schema": {"type": "string", "enum": TaskType::ALL.map(TaskType::as_str)},
                }),
                query(
                    "max_results",
                    "Tasks on the page at the most.",
                    json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
                ),
                query(
                    "marker",
                    "The `next_marker` of the page before, of the same table and type.",
                    json!({"type": "string"}),
                ),
            ],
            Self::DescribeFlags => vec![
                flag("with_table_uri", "As in the body.", false),
                flag("load_detailed_metadata", "As in the body.", false),
                flag("check_declared", "As in the body.", false),
            ],
            Self::CreateTable => vec![
                query(
                    "mode",
                    "What to do with a table that exists: fail, leave it as it is, or give it a \
                     new version with these rows.",
                    json!({
                        "type": "string",
                        "anyOf": [{"enum": CREATE_MODES}, {"pattern": any_case(&CREATE_MODES)}],
                        "default": "create",
                    }),
                ),
                json!({
                    "name": "properties",
                    "in": "query",
                    "description": "Properties to keep with the table, as JSON.",
                    "content": {"application/json": {"schema": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                    }}},
                }),
                query(
                    "storage_options",
                    "Not taken: the service writes with its own.",
                    json!({"type": "string", "enum": ["{}"]}),
                ),
            ],
            Self::Versions => vec![
                query(
                    "branch",
                    "The branch; if absent, the main one.",
                    json!({"type": "string"}),
                ),
                flag("descending", "Newest first.", false),
            ],
            Self::Progress => vec![json!({
                "name": "x-lance-task-progress",
                "in": "header",
                "description": "With `true`, the answer says how far a running task is.",
                "schema": {"type": "string", "enum": ["true", "false"]},
            })],
        }
    }
}
