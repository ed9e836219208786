use std::time::Duration;

use lance::Dataset;
use lance_maintenance_api::ErrorName;
use lance_worker::operations::run;
use serde_json::json;

use crate::support::{self, Table, cleanup, compact, files, optimize, scalar};

/// A table with ten versions, of which the third has a tag.
async fn ten_versions() -> Table {
    let table = Table::with_rows(0..10, 100).await;
    for n in 1..10 {
        table.append(n * 10..(n + 1) * 10).await;
    }
    let dataset = table.open().await;
    dataset.tags().create("keep", 3).await.unwrap();
    table
}

async fn versions(table: &Table) -> Vec<u64> {
    let versions = table.open().await.version_refs().await.unwrap();
    versions.iter().map(|version| version.version).collect()
}

#[tokio::test]
async fn the_newest_and_the_tagged_stay() {
    let table = ten_versions().await;
    let before = table.contents().await;
    let result = table
        .run(cleanup(r#"{"retain_versions":2}"#))
        .await
        .unwrap();
    assert_eq!(versions(&table).await, [3, 9, 10]);
    assert_eq!(result["old_versions"], 7);
    let mut keys: Vec<_> = result.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "bytes_removed",
            "data_files_removed",
            "deletion_files_removed",
            "index_files_removed",
            "old_versions",
            "transaction_files_removed"
        ]
    );
    assert_eq!(table.contents().await, before);
    let tagged = table.open().await.checkout_version("keep").await.unwrap();
    assert_eq!(tagged.count_rows(None).await.unwrap(), 30);
    // And again: nothing.
    let result = table
        .run(cleanup(r#"{"retain_versions":2}"#))
        .await
        .unwrap();
    assert_eq!(result["old_versions"], 0);
}

#[tokio::test]
async fn conditions() {
    for (body, left) in [
        (r#"{"older_than":"0d"}"#, vec![3, 10]),
        (r#"{"older_than":"0s","retain_versions":1}"#, vec![3, 10]),
        (
            r#"{"older_than":"0s","retain_versions":4}"#,
            vec![3, 7, 8, 9, 10],
        ),
        (r#"{"retain_versions":1}"#, vec![3, 10]),
        (r#"{"retain_versions":100}"#, (1..=10).collect()),
        (r#"{"older_than":"1h"}"#, (1..=10).collect()),
        (
            r#"{"older_than":"1h","retain_versions":1}"#,
            (1..=10).collect(),
        ),
    ] {
        let table = ten_versions().await;
        table.run(cleanup(body)).await.unwrap();
        assert_eq!(versions(&table).await, left, "{body}");
    }
}

#[tokio::test]
async fn the_minimum_age_guards_readers() {
    let table = ten_versions().await;
    let mut ctx = table.context();
    ctx.limits.minimum_version_age = Duration::from_secs(3600);
    for body in [r#"{"older_than":"0d"}"#, r#"{"retain_versions":1}"#] {
        let result = run(&cleanup(body), &ctx).await.unwrap();
        assert_eq!(result["old_versions"], 0, "{body}");
    }
    assert_eq!(versions(&table).await.len(), 10);
}

#[tokio::test]
async fn what_is_no_age() {
    let table = Table::with_rows(0..10, 100).await;
    for age in [
        "1w",
        "1.5d",
        "-7d",
        "1h30m",
        "7D",
        "7 d",
        "99999999999999999999d",
    ] {
        let body = json!({ "older_than": age }).to_string();
        let error = table.run(cleanup(&body)).await.unwrap_err();
        assert_eq!(error.error, ErrorName::InvalidInput);
        assert!(
            error.detail.contains(age) && error.detail.contains("^[0-9]+[dhms]$"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn files_that_are_not_the_tables_stay() {
    let table = ten_versions().await;
    table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    table.delete("id = 7").await;
    table.run(compact("{}")).await.unwrap();
    table.run(optimize("{}")).await.unwrap();
    for (folder, file) in [
        ("media", "a.lance"),
        (".", "notes.txt"),
        ("data", "foreign.bin"),
    ] {
        let folder = table.path().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), b"mine").unwrap();
    }
    let before = files(&table.path());
    let contents = table.contents().await;
    let result = table.run(cleanup(r#"{"older_than":"0s"}"#)).await.unwrap();
    assert!(
        result["data_files_removed"].as_u64().unwrap() > 0,
        "{result}"
    );
    let after = files(&table.path());
    for file in ["media/a.lance", "notes.txt", "data/foreign.bin"] {
        assert!(after.contains_key(file), "{file}");
    }
    let sum = |files: &std::collections::BTreeMap<String, u64>| files.values().sum::<u64>();
    assert_eq!(result["bytes_removed"], sum(&before) - sum(&after));
    assert_eq!(table.contents().await, contents);
}

/// Two fragments, a branch of them, made with the table opened under this name, and one fragment of the
/// same rows since.
async fn branched(name: impl Fn(&str) -> String) -> Table {
    let table = Table::with_rows(0..10, 5).await;
    let mut dataset = Dataset::open(&name(&table.uri())).await.unwrap();
    dataset.create_branch("dev", 1, None).await.unwrap();
    table.run(compact("{}")).await.unwrap();
    table
}

async fn branch(table: &Table) -> Vec<String> {
    let branch = table.open().await.checkout_branch("dev").await.unwrap();
    support::contents(&branch).await
}

/// Lance knows a branch by the spelling of its table's URI only.
#[tokio::test]
async fn a_branch_stays_whole_whatever_the_table_was_called_when_it_was_made() {
    let names: [fn(&str) -> String; 4] = [
        |uri| uri.to_owned(),
        |uri| uri.replace("file://", ""),
        |uri| format!("{uri}/"),
        |uri| uri.replace("file:", "file-object-store:"),
    ];
    for (number, name) in names.into_iter().enumerate() {
        let table = branched(name).await;
        let rows = branch(&table).await;
        assert_eq!(rows, table.contents().await);
        let outcome = table.run(cleanup(r#"{"retain_versions":1}"#)).await;
        assert_eq!(branch(&table).await, rows, "{number}: {outcome:?}");
        assert_eq!(table.contents().await, rows, "{number}");
        match outcome {
            // The versions between the branch's and the newest.
            Ok(result) => assert_eq!(result["old_versions"], 1, "{number}"),
            Err(error) => assert_eq!(
                error.error,
                ErrorName::InvalidTableState,
                "{number}: {error}"
            ),
        }
    }
}

#[tokio::test]
async fn branches_that_do_not_agree_on_a_name_stop_a_cleanup() {
    let table = branched(str::to_owned).await;
    let mut dataset = Dataset::open(table.path().to_str().unwrap()).await.unwrap();
    dataset.create_branch("other", 1, None).await.unwrap();
    let before = files(&table.path());
    let error = table
        .run(cleanup(r#"{"retain_versions":1}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::InvalidTableState, "{error}");
    assert!(error.detail.contains("file:///"), "{error}");
    assert_eq!(files(&table.path()), before);
    // Without branches it is as before.
    for name in ["dev", "other"] {
        dataset.delete_branch(name).await.unwrap();
    }
    let result = table
        .run(cleanup(r#"{"retain_versions":1}"#))
        .await
        .unwrap();
    assert!(result["data_files_removed"].as_u64() >= Some(2), "{result}");
}
