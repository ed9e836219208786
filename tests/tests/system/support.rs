//! What the tests share: one running service, and what every answer must be like.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lance_maintenance_tests::busy_table::{self, Plan};
use lance_maintenance_tests::client::{Answer, Client, Table};
use lance_maintenance_tests::harness::Server;
use lance_maintenance_tests::inspect::TableState;
use serde_json::{Value, json};

/// The five submits: the word in the path, the task type, and a body that is accepted.
pub const SUBMITS: [(&str, &str, &str); 5] = [
    ("compact", "lance_compact", "{}"),
    (
        "create_scalar_index",
        "lance_scalar_index",
        r#"{"column":"id"}"#,
    ),
    (
        "create_vector_index",
        "lance_vector_index",
        r#"{"column":"vector"}"#,
    ),
    ("optimize_indices", "lance_optimize_indices", "{}"),
    ("cleanup", "lance_cleanup", r#"{"retain_versions":1}"#),
];

/// The service that most tests use, with the variables as they come. It stops when the tests end.
pub fn service() -> &'static Server {
    static SERVICE: OnceLock<Server> = OnceLock::new();
    SERVICE.get_or_init(|| {
        // Always the same folder: a static is never dropped, so nobody would remove it.
        let folder = fresh_folder("service");
        Server::start_in(&folder, &[("table_buckets", "lance,other")]).unwrap()
    })
}

/// A service with few places for tasks and a compaction mode that is none.
pub fn narrow_service() -> &'static Server {
    static SERVICE: OnceLock<Server> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let folder = fresh_folder("narrow-service");
        let variables = [("task_quota", "3"), ("compaction_mode", "fast")];
        Server::start_in(&folder, &variables).unwrap()
    })
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

/// A client of [`service`] for this test.
pub fn client() -> Client {
    service().client().unwrap()
}

/// A table of the catalog at whose location nothing lies. Tasks on it are accepted, and fail.
pub async fn declared(namespace: &str, name: &str) -> Table {
    declared_by(&client(), namespace, name).await
}

/// The same, on another service.
pub async fn declared_by(client: &Client, namespace: &str, name: &str) -> Table {
    client.ensure_namespace(namespace).await.unwrap();
    client.declare(namespace, name).await.unwrap()
}

/// A small table that a busy writer left.
pub async fn busy(namespace: &str, name: &str) -> Table {
    let table = declared(namespace, name).await;
    busy_table::write(&table.location, &Plan::small(), |_| {})
        .await
        .unwrap();
    table
}

/// What can be seen of a table.
pub async fn look_at(table: &Table) -> TableState {
    TableState::of(&table.location).await.unwrap()
}

/// Fails unless both hold the same rows.
pub fn same_rows(before: &TableState, after: &TableState) {
    assert_eq!(
        (before.rows, before.content_hash),
        (after.rows, after.content_hash)
    );
}

/// How a refused request is answered: status, error name, code.
pub type Refusal = (u16, &'static str, i64);

pub const INVALID_INPUT: Refusal = (400, "InvalidInput", 13);
pub const TABLE_NOT_FOUND: Refusal = (404, "TableNotFound", 4);
pub const TASK_NOT_FOUND: Refusal = (404, "TaskNotFound", 10000);
pub const TASK_STATE_CONFLICT: Refusal = (409, "TaskStateConflict", 10001);
pub const TASK_QUOTA_EXCEEDED: Refusal = (429, "TaskQuotaExceeded", 10002);

/// Fails unless an answer is this refusal, in the documented form and with nothing in it that is
/// not for the client.
pub fn assert_refused(answer: &Answer, refusal: Refusal, case: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    let body = answer
        .json()
        .unwrap_or_else(|_| panic!("{case}: {} {text}", answer.status));
    let seen = (
        answer.status,
        body["error"].as_str().unwrap_or_default(),
        body["code"].as_i64().unwrap_or(-1),
    );
    assert_eq!(seen, refusal, "{case}: {text}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/json"),
        "{case}"
    );
    assert_eq!(
        keys(&body),
        ["code", "detail", "error", "instance"],
        "{case}"
    );
    assert_eq!(body["instance"].as_str(), request_id(answer), "{case}");
    assert_clean(body["detail"].as_str().unwrap(), case);
    assert_eq!(answer.header("x-oss-table-id"), None, "{case}");
}

/// Fails unless an answer is a success of the table with this UUID.
pub fn assert_accepted(answer: &Answer, table_id: &str, case: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(
        matches!(answer.status, 200 | 204),
        "{case}: {} {text}",
        answer.status
    );
    assert_eq!(answer.header("x-oss-table-id"), Some(table_id), "{case}");
    assert!(
        request_id(answer).is_some_and(|id| !id.is_empty()),
        "{case}"
    );
    if answer.status == 200 {
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{case}"
        );
    } else {
        assert_eq!(text, "", "{case}");
    }
}

/// The names of an object's fields, sorted.
pub fn keys(object: &Value) -> Vec<&str> {
    let fields = object.as_object().unwrap();
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn request_id(answer: &Answer) -> Option<&str> {
    answer.header("x-oss-request-id")
}

/// Fails if a text that users read holds a source path, the text of a panic, or a secret; or says
/// nothing.
pub fn assert_clean(detail: &str, case: &str) {
    assert!(!detail.trim().is_empty(), "{case}");
    let mut banned = vec![
        ".rs:".to_owned(),
        "panicked".to_owned(),
        "RUST_BACKTRACE".to_owned(),
    ];
    for file in ["credentials.json", "secrets.json"] {
        let text = std::fs::read(service().folder().join(file)).unwrap();
        let secrets: Value = serde_json::from_slice(&text).unwrap();
        for (name, secret) in secrets.as_object().unwrap() {
            if name.contains("secret") {
                banned.push(secret.as_str().unwrap().to_owned());
            }
        }
    }
    for text in banned {
        assert!(!detail.contains(&text), "{case}: {detail}");
    }
}

/// Runs a task that must fail with this name and code, and returns its detail.
pub async fn fails(table: &Table, operation: &str, body: Value, error: (&str, i64)) -> String {
    let case = format!("{operation} {body}");
    let info = table.run(operation, body).await.unwrap();
    assert_eq!(info["status"], "failed", "{case}: {info}");
    assert_eq!(info["result"], json!({}), "{case}");
    let seen = &info["error"];
    assert_eq!(
        (
            seen["error"].as_str().unwrap(),
            seen["code"].as_i64().unwrap()
        ),
        error,
        "{case}: {seen}"
    );
    let detail = seen["detail"].as_str().unwrap();
    assert_clean(detail, &case);
    detail.to_owned()
}
