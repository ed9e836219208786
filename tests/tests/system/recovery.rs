//! What survives when a part of the service does not.

use std::time::Duration;

use lance_maintenance_tests::busy_table::{self, Plan};
use lance_maintenance_tests::harness::{Server, signal};
use lance_maintenance_tests::inspect::TableState;
use serde_json::json;

use crate::support::{TASK_NOT_FOUND, assert_refused, declared_by, same_rows};

/// How long the table is whose index takes a while.
const MANY_ROWS: i64 = 12_000;

#[tokio::test]
async fn a_worker_that_is_killed() {
    let server = Server::start(&[]).unwrap();
    let client = server.client().unwrap();
    let table = declared_by(&client, "recovery", "killed").await;
    busy_table::append(&table.location, 0..MANY_ROWS)
        .await
        .unwrap();
    busy_table::append(&table.location, MANY_ROWS..MANY_ROWS + 100)
        .await
        .unwrap();
    let before = TableState::of(&table.location).await.unwrap();

    // One that runs for seconds, and two that wait for it.
    let slow = json!({
        "column": "vector", "index_type": "IVF_HNSW_FLAT", "m": 60, "ef_construction": 800,
    });
    let index = table.submit("create_vector_index", slow).await.unwrap();
    let compaction = table.submit("compact", json!({})).await.unwrap();
    let other = table
        .submit("create_scalar_index", json!({"column": "id"}))
        .await
        .unwrap();
    while table.task(&index).await.unwrap()["status"] == "submitted" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let running = table.task(&index).await.unwrap();
    assert_eq!(running["status"], "running", "{running}");
    let killed = server.facts().unwrap().worker_pid.unwrap();
    signal("KILL", killed).unwrap();

    for task_id in [&index, &compaction, &other] {
        let task = table.wait(task_id, |_| {}).await.unwrap();
        assert_eq!(task["status"], "completed", "{task}");
    }
    let again = table.task(&index).await.unwrap();
    assert_eq!(again["started_at"], running["started_at"]);
    assert_ne!(server.facts().unwrap().worker_pid, Some(killed));
    let after = TableState::of(&table.location).await.unwrap();
    same_rows(&before, &after);
    assert_eq!(after.fragments, 1);
    assert_eq!(after.coverage(), (2 * after.rows as u64, 0));
}

#[tokio::test]
async fn an_application_that_is_killed() {
    let server = Server::start(&[]).unwrap();
    let client = server.client().unwrap();
    let table = declared_by(&client, "recovery", "application").await;
    busy_table::write(&table.location, &Plan::small(), |_| {})
        .await
        .unwrap();
    let before = TableState::of(&table.location).await.unwrap();
    let mut submitted = Vec::new();
    for body in [json!({"column": "id"}), json!({"column": "quality"})] {
        submitted.push(table.submit("create_scalar_index", body).await.unwrap());
    }
    submitted.push(table.submit("compact", json!({})).await.unwrap());
    signal("KILL", server.facts().unwrap().application_pid.unwrap()).unwrap();

    // What was answered is stored, and it ends, once the application is back.
    let mut tries = 0;
    while client.get("/healthz").await.is_err() {
        tries += 1;
        assert!(tries < 600, "the application does not come back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for task_id in &submitted {
        let task = table.wait(task_id, |_| {}).await.unwrap();
        assert_eq!(task["status"], "completed", "{task}");
    }
    let after = TableState::of(&table.location).await.unwrap();
    same_rows(&before, &after);
    assert_eq!(after.coverage(), (2 * after.rows as u64, 0));
}

#[tokio::test]
async fn a_service_that_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_in(folder.path(), &[]).unwrap();
    let client = server.client().unwrap();
    let table = declared_by(&client, "recovery", "again").await;
    busy_table::write(&table.location, &Plan::small(), |_| {})
        .await
        .unwrap();
    let ended = table
        .submit("create_scalar_index", json!({"column": "id"}))
        .await
        .unwrap();
    let task = table.wait(&ended, |_| {}).await.unwrap();
    let deleted = table.submit("compact", json!({})).await.unwrap();
    table.wait(&deleted, |_| {}).await.unwrap();
    table.delete_task(&deleted).await.unwrap();
    let credentials = client.credentials().clone();
    // One that is perhaps not begun when everything stops.
    let waiting = table.submit("optimize_indices", json!({})).await.unwrap();
    drop(server);

    let server = Server::start_in(folder.path(), &[]).unwrap();
    let client = server.client().unwrap();
    assert_eq!(
        client.credentials().access_key_id,
        credentials.access_key_id
    );
    let table = table.with_client(client.clone());
    assert_eq!(table.task(&ended).await.unwrap(), task);
    let call = lance_maintenance_tests::client::Call::get(table.path(&format!("tasks/{deleted}")));
    assert_refused(
        &client.call(call).await.unwrap(),
        TASK_NOT_FOUND,
        "deleted before",
    );
    let task = table.wait(&waiting, |_| {}).await.unwrap();
    assert_eq!(task["status"], "completed", "{task}");
    table
        .complete("cleanup", json!({"retain_versions": 1}))
        .await
        .unwrap();
    let tables = client
        .get("/lance/v1/namespace/recovery/table/list")
        .await
        .unwrap();
    assert_eq!(tables["tables"], json!(["again"]));
}
