//! Tasks belong to a table, not to its name.

use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::client::Call;
use reqwest::Method;
use serde_json::json;

use crate::support::{
    SUBMITS, TABLE_NOT_FOUND, TASK_NOT_FOUND, assert_refused, client, declared, look_at,
};

#[tokio::test]
async fn dropped_and_created_again() {
    let old = declared("isolation", "t").await;
    let old_id = old.uuid().await.unwrap();
    busy_table::append(&old.location, 0..20).await.unwrap();
    let mut task_ids = Vec::new();
    for (operation, _, body) in SUBMITS {
        let body = serde_json::from_str(body).unwrap();
        task_ids.push(old.submit(operation, body).await.unwrap());
    }
    old.drop_from_catalog().await.unwrap();
    for call in [
        Call::get(old.path(&format!("tasks/{}", task_ids[0]))),
        Call::get(old.path("tasks?task_type=lance_compact")),
        Call::post(old.path("compact"), "{}"),
    ] {
        let case = call.target.clone();
        let answer = client().call(call).await.unwrap();
        assert_refused(&answer, TABLE_NOT_FOUND, &case);
    }

    let new = declared("isolation", "t").await;
    assert_ne!(new.uuid().await.unwrap(), old_id);
    assert_ne!(new.location, old.location);
    busy_table::append(&new.location, 0..10).await.unwrap();
    for (_, task_type, _) in SUBMITS {
        assert!(
            new.tasks(task_type, 10).await.unwrap().is_empty(),
            "{task_type}"
        );
    }
    for task_id in &task_ids {
        for method in [Method::GET, Method::DELETE] {
            let call = Call::new(method, new.path(&format!("tasks/{task_id}")));
            let answer = client().call(call).await.unwrap();
            assert_refused(&answer, TASK_NOT_FOUND, task_id);
        }
    }
    // Its own tasks run, and none of the old ones did on it.
    let result = new.complete("compact", json!({})).await.unwrap();
    assert_eq!(result["version"], 1);
    let state = look_at(&new).await;
    assert_eq!((state.version, state.rows, state.indices.len()), (1, 10, 0));
}

#[tokio::test]
async fn the_same_name_in_two_namespaces() {
    let one = declared("isolation_one", "t").await;
    let two = declared("isolation_two", "t").await;
    let task_id = one.submit("compact", json!({})).await.unwrap();
    assert!(two.tasks("lance_compact", 10).await.unwrap().is_empty());
    let call = Call::get(two.path(&format!("tasks/{task_id}")));
    let answer = client().call(call).await.unwrap();
    assert_refused(&answer, TASK_NOT_FOUND, "the other namespace");
    assert_eq!(one.tasks("lance_compact", 10).await.unwrap().len(), 1);
}
