use std::path::Path;

use lance_maintenance_dispatch::tables::{PURGE_PATH, PURGED_PATH};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::testing::{SECRET, Served, dispatch};

/// A folder that looks like a table's, with what others have put there.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "t/_versions/18446744073709551614.manifest",
        "t/_versions/latest_version_hint.json",
        "t/data/1.lance",
        "t/_indices/u/page.idx",
        "t/_latest.manifest",
        "t/tree/b/_versions/18446744073709551613.manifest",
        "t/tree/b/data/2.lance",
        "u/_versions/18446744073709551614.manifest",
        "u/data/1.lance",
        "u/data/notes.md",
        "u/notes.txt",
        "u/inner.lance/data/1.lance",
    ] {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    folder
}

fn uri(folder: &TempDir, table: &str) -> String {
    format!("file://{}/{table}", folder.path().display())
}

async fn ask(served: &Served, table_id: &str, location: &str) -> (u16, Value) {
    let body = json!({"table_id": table_id, "location": location}).to_string();
    let (status, _, answer) = served.post(PURGE_PATH, body.as_bytes(), SECRET, 0).await;
    (status, answer)
}

fn purged(calls: &[Value]) -> Vec<&str> {
    let mut ids: Vec<_> = calls
        .iter()
        .map(|call| call["table_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

fn there(path: &Path) -> bool {
    path.exists()
}

#[tokio::test]
async fn removes_what_is_the_tables_and_says_so() {
    let (served, folder) = (Served::with_room(9).await, folder());
    for (id, table) in [("T", "t"), ("U", "u/"), ("N", "nothing")] {
        let (status, answer) = ask(&served, id, &uri(&folder, table)).await;
        assert_eq!((status, answer), (202, Value::Null));
    }
    let calls = served.fake.wait_for(PURGED_PATH, 3).await;
    assert_eq!(purged(&calls), ["N", "T", "U"]);
    assert!(!there(&folder.path().join("t")));
    let u = folder.path().join("u");
    assert!(!there(&u.join("_versions")) && !there(&u.join("data/1.lance")));
    for foreign in ["data/notes.md", "notes.txt", "inner.lance/data/1.lance"] {
        assert!(there(&u.join(foreign)), "{foreign}");
    }
    // Nothing there is no error, nor is a second time.
    assert_eq!(ask(&served, "T", &uri(&folder, "t")).await.0, 202);
    served.fake.wait_for(PURGED_PATH, 4).await;
}

#[tokio::test]
async fn a_table_that_was_written_goes() {
    let (served, folder) = (Served::with_room(9).await, tempfile::tempdir().unwrap());
    let batch = arrow_array::RecordBatch::try_from_iter([(
        "id",
        Arc::new(arrow_array::Int64Array::from_iter_values(0..100)) as _,
    )])
    .unwrap();
    let reader = arrow_array::RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let location = uri(&folder, "t");
    let mut dataset = lance::Dataset::write(reader, location.as_str(), None)
        .await
        .unwrap();
    dataset.delete("id < 10").await.unwrap();
    dataset.tags().create("first", 1).await.unwrap();
    let mut branch = dataset.create_branch("team/b", 1, None).await.unwrap();
    branch.delete("id < 20").await.unwrap();
    ask(&served, "T", &location).await;
    served.fake.wait_for(PURGED_PATH, 1).await;
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn waits_for_the_task_that_runs_and_is_in_hand_once() {
    let (served, folder) = (Served::with_room(9).await, folder());
    let location = uri(&folder, "t");
    served.intake.offer(dispatch(1, &location)).unwrap();
    let running = served.intake.next().await.unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&served, "T", &location).await.0, 202);
    }
    // Another table's purge overtakes it.
    ask(&served, "U", &uri(&folder, "u")).await;
    let calls = served.fake.wait_for(PURGED_PATH, 1).await;
    assert_eq!(purged(&calls), ["U"]);
    assert!(there(&folder.path().join("t/data/1.lance")));
    drop(running);
    let calls = served.fake.wait_for(PURGED_PATH, 2).await;
    assert_eq!(purged(&calls), ["T", "U"]);
    assert!(!there(&folder.path().join("t")));
    // The table is free again.
    served.intake.offer(dispatch(2, &location)).unwrap();
    assert_eq!(
        served
            .intake
            .next()
            .await
            .unwrap()
            .dispatch()
            .task_id
            .slot(),
        2
    );
}

#[tokio::test]
async fn is_said_until_it_is_heard() {
    let (served, folder) = (Served::with_room(9).await, folder());
    served.fake.answer(PURGED_PATH, &[503, 500, 200]);
    ask(&served, "T", &uri(&folder, "t")).await;
    let calls = served.fake.wait_for(PURGED_PATH, 3).await;
    assert_eq!(purged(&calls), ["T", "T", "T"]);
}

#[tokio::test]
async fn what_is_not_purged() {
    let (served, folder) = (Served::with_room(9).await, folder());
    for location in [
        "",
        "/",
        "file:///",
        "file:///w/..",
        "s3://bucket",
        "memory://t",
        "t",
    ] {
        let (status, answer) = ask(&served, "T", location).await;
        assert_eq!(
            (status, &answer["error"]),
            (400, &json!("InvalidInput")),
            "{location}"
        );
    }
    served.intake.close();
    let (status, answer) = ask(&served, "T", &uri(&folder, "t")).await;
    assert_eq!(
        (status, &answer["error"]),
        (503, &json!("ServiceUnavailable"))
    );
    assert!(there(&folder.path().join("t/data/1.lance")));
}
