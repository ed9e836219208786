//! A table keeps so many tasks of each type, whatever their state.

use lance_maintenance_tests::client::{Call, Table};
use serde_json::{Value, json};

use crate::support::{
    SUBMITS, TASK_QUOTA_EXCEEDED, assert_accepted, assert_refused, declared_by, narrow_service,
};

const QUOTA: usize = 3;

/// Bodies that the narrow service accepts: its own compaction mode is none.
fn body(operation: &str, body: &str) -> Value {
    match operation {
        "compact" => json!({"compaction_mode": "reencode"}),
        _ => serde_json::from_str(body).unwrap(),
    }
}

async fn fill(table: &Table, operation: &str, with: &Value) -> Vec<String> {
    let mut task_ids = Vec::new();
    for _ in 0..QUOTA {
        task_ids.push(table.submit(operation, with.clone()).await.unwrap());
    }
    task_ids
}

async fn assert_full(table: &Table, operation: &str, with: &Value) {
    for attempt in 0..4 {
        let call = Call::post(table.path(operation), with.to_string());
        let answer = table.client().call(call).await.unwrap();
        assert_refused(
            &answer,
            TASK_QUOTA_EXCEEDED,
            &format!("{operation} {attempt}"),
        );
    }
}

#[tokio::test]
async fn each_type_has_its_own() {
    let client = narrow_service().client().unwrap();
    let table = declared_by(&client, "quota", "types").await;
    for (operation, task_type, with) in SUBMITS {
        let with = body(operation, with);
        fill(&table, operation, &with).await;
        assert_full(&table, operation, &with).await;
        // Nothing is stored of what was refused, and what ends keeps its place.
        let tasks = table.tasks(task_type, 100).await.unwrap();
        assert_eq!(tasks.len(), QUOTA, "{operation}");
        for task in tasks {
            let task_id = task["task_id"].as_str().unwrap();
            table.wait(task_id, |_| {}).await.unwrap();
        }
        assert_full(&table, operation, &with).await;
    }
}

#[tokio::test]
async fn each_table_has_its_own() {
    let client = narrow_service().client().unwrap();
    let full = declared_by(&client, "quota", "full").await;
    let other = declared_by(&client, "quota", "other").await;
    fill(&full, "optimize_indices", &json!({})).await;
    assert_full(&full, "optimize_indices", &json!({})).await;
    other.submit("optimize_indices", json!({})).await.unwrap();
}

#[tokio::test]
async fn deleting_makes_room() {
    let client = narrow_service().client().unwrap();
    let table = declared_by(&client, "quota", "deleting").await;
    let table_id = table.uuid().await.unwrap();
    let mut task_ids = fill(&table, "optimize_indices", &json!({})).await;
    // Over and over: the count stays right.
    for round in 0..5 {
        assert_full(&table, "optimize_indices", &json!({})).await;
        let task_id = task_ids.remove(round % task_ids.len());
        table.wait(&task_id, |_| {}).await.unwrap();
        table.delete_task(&task_id).await.unwrap();
        let call = Call::post(table.path("optimize_indices"), "{}");
        let answer = client.call(call).await.unwrap();
        assert_accepted(&answer, &table_id, &format!("round {round}"));
        let answer = answer.json().unwrap();
        task_ids.push(answer["task_id"].as_str().unwrap().to_owned());
    }
    let listed = table.tasks("lance_optimize_indices", 1).await.unwrap();
    assert_eq!(listed.len(), QUOTA);
}

#[tokio::test]
async fn many_at_once() {
    let client = narrow_service().client().unwrap();
    let table = declared_by(&client, "quota", "at_once").await;
    let submits = (0..20).map(|_| table.submit("optimize_indices", json!({})));
    let accepted = futures::future::join_all(submits)
        .await
        .into_iter()
        .filter(Result::is_ok)
        .count();
    let listed = table.tasks("lance_optimize_indices", 100).await.unwrap();
    assert_eq!(listed.len(), accepted);
    // It may overshoot a little while they race, and never ends up lower.
    assert!((QUOTA..=QUOTA + 2).contains(&accepted), "{accepted}");
    assert_full(&table, "optimize_indices", &json!({})).await;
}
