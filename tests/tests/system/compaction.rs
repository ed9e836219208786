//! What a compaction does to a table.

use lance::Dataset;
use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::client::Table;
use lance_maintenance_tests::inspect;
use serde_json::json;

use crate::support::{busy, declared, look_at, same_rows};

async fn rows_per_fragment(table: &Table) -> Vec<usize> {
    let dataset = Dataset::open(&table.location).await.unwrap();
    let mut rows = Vec::new();
    for fragment in dataset.get_fragments() {
        rows.push(fragment.count_rows(None).await.unwrap());
    }
    rows
}

#[tokio::test]
async fn small_fragments_are_merged_and_deleted_rows_dropped() {
    let table = busy("compaction", "busy").await;
    let before = look_at(&table).await;
    assert!(
        before.fragments > 5 && before.deleted_rows > 0,
        "{before:?}"
    );

    let result = table.complete("compact", json!({})).await.unwrap();
    let after = look_at(&table).await;
    same_rows(&before, &after);
    assert_eq!((after.fragments, after.deleted_rows), (1, 0));
    assert_eq!(result["fragments_removed"], before.fragments);
    assert_eq!(result["fragments_added"], 1);
    assert_eq!(result["files_added"], 1);
    assert_eq!(result["version"], after.version);
    // A file of rows a fragment, and one of deletions for some.
    let files = result["files_removed"].as_u64().unwrap() as usize;
    assert!(files > before.fragments, "{result}");

    let again = table.complete("compact", json!({})).await.unwrap();
    let nothing = json!({
        "fragments_removed": 0, "fragments_added": 0, "files_removed": 0, "files_added": 0,
        "version": after.version,
    });
    assert_eq!(again, nothing);
    assert_eq!(look_at(&table).await, after);
}

#[tokio::test]
async fn no_leftovers_that_no_later_run_merges() {
    let table = declared("compaction", "leftovers").await;
    for number in 0..10 {
        let rows = number * 200..(number + 1) * 200;
        busy_table::append(&table.location, rows).await.unwrap();
    }
    let body = json!({"target_rows_per_fragment": 500});
    table.complete("compact", body.clone()).await.unwrap();
    let sizes = rows_per_fragment(&table).await;
    assert!(
        sizes.iter().all(|rows| (500..1000).contains(rows)),
        "{sizes:?}"
    );
    let version = look_at(&table).await.version;
    table.complete("compact", body).await.unwrap();
    assert_eq!(look_at(&table).await.version, version);
}

/// One fragment with a fifth of its rows deleted: whether it is rewritten for that.
#[tokio::test]
async fn deleted_rows_alone() {
    for (number, (body, rewritten)) in [
        (json!({}), true),
        (json!({"materialize_deletions_threshold": 0}), true),
        (json!({"materialize_deletions_threshold": 0.1}), true),
        (json!({"materialize_deletions_threshold": 0.5}), false),
        (json!({"materialize_deletions_threshold": 1}), false),
        (json!({"materialize_deletions_threshold": 2.5}), false),
        (json!({"materialize_deletions_threshold": -1}), true),
        (json!({"materialize_deletions": false}), false),
    ]
    .into_iter()
    .enumerate()
    {
        let table = declared("compaction", &format!("deleted{number}")).await;
        busy_table::append(&table.location, 0..100).await.unwrap();
        busy_table::delete(&table.location, "id < 20")
            .await
            .unwrap();
        let before = look_at(&table).await;
        table.complete("compact", body.clone()).await.unwrap();
        let after = look_at(&table).await;
        same_rows(&before, &after);
        let deleted_rows = if rewritten { 0 } else { 20 };
        assert_eq!(after.deleted_rows, deleted_rows, "{body}");
        assert_eq!(after.version > before.version, rewritten, "{body}");
    }
}

#[tokio::test]
async fn pages_may_be_copied() {
    let table = busy("compaction", "copied").await;
    let before = look_at(&table).await;
    let body = json!({"compaction_mode": "try_binary_copy"});
    table.complete("compact", body).await.unwrap();
    let after = look_at(&table).await;
    same_rows(&before, &after);
    assert_eq!(after.fragments, 1);
}

#[tokio::test]
async fn indices_stay_complete_and_used() {
    let table = busy("compaction", "indexed").await;
    for column in ["id", "quality"] {
        let body = json!({"column": column});
        table.complete("create_scalar_index", body).await.unwrap();
    }
    let body = json!({"column": "vector", "index_type": "IVF_FLAT"});
    table.complete("create_vector_index", body).await.unwrap();
    let before = look_at(&table).await;
    table.complete("compact", json!({})).await.unwrap();
    let after = look_at(&table).await;
    same_rows(&before, &after);
    assert_eq!(after.fragments, 1);
    for index in &after.indices {
        assert_eq!(
            (index.indexed, index.unindexed),
            (after.rows as u64, 0),
            "{index:?}"
        );
    }
    let plan = inspect::filter_plan(&table.location, "id = 250")
        .await
        .unwrap();
    assert!(plan.contains("ScalarIndexQuery"), "{plan}");
    let dataset = Dataset::open(&table.location).await.unwrap();
    let found = dataset
        .count_rows(Some("id = 250".to_owned()))
        .await
        .unwrap();
    assert_eq!(found, 1);
}

/// Two tasks on one table wait for each other instead of losing to each other.
#[tokio::test]
async fn together_with_other_tasks() {
    let table = busy("compaction", "together").await;
    let body = json!({"column": "id"});
    table.complete("create_scalar_index", body).await.unwrap();
    busy_table::append(&table.location, 400..450).await.unwrap();
    let before = look_at(&table).await;
    let mut submitted = Vec::new();
    for (operation, body) in [
        ("compact", json!({})),
        ("optimize_indices", json!({})),
        (
            "create_scalar_index",
            json!({"column": "quality", "index_type": "BITMAP"}),
        ),
        ("compact", json!({})),
        ("optimize_indices", json!({})),
        ("cleanup", json!({"retain_versions": 1})),
    ] {
        submitted.push(table.submit(operation, body).await.unwrap());
    }
    for task_id in submitted {
        let info = table.wait(&task_id, |_| {}).await.unwrap();
        assert_eq!(info["status"], "completed", "{info}");
    }
    let after = look_at(&table).await;
    same_rows(&before, &after);
    assert_eq!((after.fragments, after.versions.len()), (1, 1));
    assert_eq!(after.coverage(), (2 * after.rows as u64, 0));
}

/// A writer goes on while the tasks run: both get through.
#[tokio::test]
async fn together_with_a_writer() {
    let table = busy("compaction", "writer").await;
    let rows = look_at(&table).await.rows;
    let write = async {
        for number in 0..10 {
            let first = 1000 + number * 10;
            busy_table::append(&table.location, first..first + 10)
                .await
                .unwrap();
        }
    };
    let maintain = async {
        for _ in 0..3 {
            table.complete("compact", json!({})).await.unwrap();
        }
    };
    tokio::join!(write, maintain);
    table.complete("compact", json!({})).await.unwrap();
    let after = look_at(&table).await;
    assert_eq!((after.rows, after.fragments), (rows + 100, 1));
}
