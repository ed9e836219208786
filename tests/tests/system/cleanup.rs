//! What a cleanup does to a table.

use std::path::PathBuf;

use lance::Dataset;
use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::client::Table;
use serde_json::{Value, json};

use crate::support::{declared, fails, look_at, same_rows};

/// A table with ten versions: each but the last rewritten away in part.
async fn ten_versions(name: &str) -> Table {
    let table = declared("cleanup", name).await;
    for number in 0..5 {
        let first = number * 40;
        busy_table::append(&table.location, first..first + 40)
            .await
            .unwrap();
        busy_table::update(&table.location, &format!("id < {}", first + 40))
            .await
            .unwrap();
    }
    assert_eq!(
        look_at(&table).await.versions,
        (1..=10).collect::<Vec<u64>>()
    );
    table
}

async fn cleanup(table: &Table, body: Value) -> Value {
    let before = look_at(table).await;
    let result = table.complete("cleanup", body).await.unwrap();
    let after = look_at(table).await;
    same_rows(&before, &after);
    assert_eq!(after.version, before.version);
    let removed = before.versions.len() - after.versions.len();
    assert_eq!(result["old_versions"], removed);
    let bytes = before.bytes - after.bytes;
    assert_eq!(
        result["bytes_removed"].as_u64().unwrap() > 0,
        bytes > 0,
        "{result}"
    );
    result
}

#[tokio::test]
async fn which_versions_stay() {
    let all: Vec<u64> = (1..=10).collect();
    for (number, (body, stay)) in [
        (json!({"retain_versions": 3}), vec![8, 9, 10]),
        (json!({"retain_versions": 1}), vec![10]),
        (json!({"retain_versions": 10}), all.clone()),
        (json!({"retain_versions": 1_000_000}), all.clone()),
        (json!({"older_than": "7d"}), all.clone()),
        (json!({"older_than": "0s"}), vec![10]),
        (json!({"older_than": "000m"}), vec![10]),
        // Both have to hold of what goes.
        (
            json!({"older_than": "7d", "retain_versions": 1}),
            all.clone(),
        ),
        (
            json!({"older_than": "0d", "retain_versions": 4}),
            vec![7, 8, 9, 10],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let table = ten_versions(&format!("stay{number}")).await;
        let result = cleanup(&table, body.clone()).await;
        let after = look_at(&table).await;
        assert_eq!(after.versions, stay, "{body}");
        if stay == [10] {
            assert!(
                result["data_files_removed"].as_u64().unwrap() > 0,
                "{result}"
            );
        }
    }
}

#[tokio::test]
async fn tagged_versions_stay() {
    let table = ten_versions("tagged").await;
    let dataset = Dataset::open(&table.location).await.unwrap();
    dataset.tags().create("keep", 3).await.unwrap();
    let rows_of_3 = dataset
        .checkout_version(3)
        .await
        .unwrap()
        .count_rows(None)
        .await
        .unwrap();

    cleanup(&table, json!({"retain_versions": 2})).await;
    assert_eq!(look_at(&table).await.versions, [3, 9, 10]);
    let dataset = Dataset::open(&table.location).await.unwrap();
    assert_eq!(dataset.tags().get_version("keep").await.unwrap(), 3);
    let tagged = dataset.checkout_version("keep").await.unwrap();
    tagged.validate().await.unwrap();
    assert_eq!(tagged.count_rows(None).await.unwrap(), rows_of_3);

    dataset.tags().delete("keep").await.unwrap();
    cleanup(&table, json!({"retain_versions": 2})).await;
    assert_eq!(look_at(&table).await.versions, [9, 10]);
}

#[tokio::test]
async fn what_is_not_the_tables_stays() {
    let table = ten_versions("foreign").await;
    let folder = PathBuf::from(table.location.strip_prefix("file://").unwrap());
    let foreign = [
        "media/a.lance",
        "notes.txt",
        "data/notes.txt",
        "_versions/notes.txt",
    ];
    for name in foreign {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    table
        .complete("cleanup", json!({"retain_versions": 1}))
        .await
        .unwrap();
    assert_eq!(look_at(&table).await.versions, [10]);
    for name in foreign {
        let content = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(content, name);
    }
}

#[tokio::test]
async fn ages_that_are_none() {
    let table = ten_versions("ages").await;
    let before = look_at(&table).await;
    for age in [
        "1w",
        "1.5d",
        "-7d",
        "1h30m",
        "7D",
        "7 d",
        "d",
        "7",
        " ",
        "٧d",
        "99999999999999999999d",
    ] {
        let body = json!({"older_than": age});
        let detail = fails(&table, "cleanup", body, ("InvalidInput", 13)).await;
        assert!(detail.contains(&format!("'{age}'")), "{detail}");
    }
    assert_eq!(look_at(&table).await, before);
}
