//! Tasks that can't be done: the name, the code, and a detail that a user can act on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lance::Dataset;
use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::client::Table;
use serde_json::{Value, json};

use crate::support::{SUBMITS, busy, client, declared, fails, look_at, service};

const COLUMN_NOT_FOUND: (&str, i64) = ("TableColumnNotFound", 12);
const INVALID_INPUT: (&str, i64) = ("InvalidInput", 13);
const TABLE_NOT_FOUND: (&str, i64) = ("TableNotFound", 4);
const INVALID_STATE: (&str, i64) = ("InvalidTableState", 19);

#[tokio::test]
async fn what_does_not_fit_the_table() {
    let table = busy("failures", "fit").await;
    let before = look_at(&table).await;
    let scalar = "create_scalar_index";
    let vector = "create_vector_index";
    for (operation, body, error, words) in [
        (
            scalar,
            json!({"column": "nope"}),
            COLUMN_NOT_FOUND,
            "'nope'",
        ),
        (
            vector,
            json!({"column": "nope"}),
            COLUMN_NOT_FOUND,
            "'nope'",
        ),
        (
            scalar,
            json!({"column": "vector"}),
            INVALID_INPUT,
            "'vector'",
        ),
        (scalar, json!({"column": "tags"}), INVALID_INPUT, "'tags'"),
        (
            scalar,
            json!({"column": "id", "index_type": "LABEL_LIST"}),
            INVALID_INPUT,
            "'id'",
        ),
        (
            scalar,
            json!({"column": "id", "index_type": "FTS"}),
            INVALID_INPUT,
            "'id'",
        ),
        (
            scalar,
            json!({"column": "id", "index_type": "NGRAM"}),
            INVALID_INPUT,
            "'id'",
        ),
        (vector, json!({"column": "id"}), INVALID_INPUT, "'id'"),
        (
            vector,
            json!({"column": "review"}),
            INVALID_INPUT,
            "'review'",
        ),
        (
            vector,
            json!({"column": "vector", "num_sub_vectors": 5}),
            INVALID_INPUT,
            "16",
        ),
        (
            vector,
            json!({"column": "bits", "metric_type": "hamming"}),
            INVALID_INPUT,
            "IVF_FLAT",
        ),
        (
            vector,
            json!({"column": "vector", "index_type": "IVF_FLAT", "metric_type": "hamming"}),
            INVALID_INPUT,
            "hamming",
        ),
        (
            vector,
            json!({"column": "vector", "index_type": "IVF_HNSW_SQ", "m": 2}),
            INVALID_INPUT,
            "4",
        ),
        (
            vector,
            json!({"column": "vector", "index_type": "IVF_RQ", "num_bits": 10}),
            INVALID_INPUT,
            "9",
        ),
        (
            scalar,
            json!({"column": "review", "index_type": "FTS", "language": "Klingon"}),
            INVALID_INPUT,
            "Klingon",
        ),
        (
            "optimize_indices",
            json!({"index_names": ["nope"]}),
            ("TableIndexNotFound", 6),
            "'nope'",
        ),
    ] {
        let case = format!("{operation} {body}");
        let detail = fails(&table, operation, body, error).await;
        assert!(detail.contains(words), "{case}: {detail}");
    }
    assert_eq!(look_at(&table).await, before);
}

#[tokio::test]
async fn too_few_rows_to_train_on() {
    let table = declared("failures", "few").await;
    busy_table::append(&table.location, 0..10).await.unwrap();
    let body = json!({"column": "vector"});
    let detail = fails(&table, "create_vector_index", body, INVALID_INPUT).await;
    assert!(detail.contains("256") && detail.contains("10"), "{detail}");
}

async fn every_operation_fails(table: &Table, error: (&str, i64), words: &str) {
    for (operation, _, body) in SUBMITS {
        let body: Value = serde_json::from_str(body).unwrap();
        let detail = fails(table, operation, body, error).await;
        assert!(detail.contains(words), "{operation}: {detail}");
        let folder = service().folder().display().to_string();
        assert!(!detail.contains(&folder), "{operation}: {detail}");
    }
}

#[tokio::test]
async fn nothing_at_the_location() {
    let table = declared("failures", "nothing").await;
    every_operation_fails(&table, TABLE_NOT_FOUND, "location").await;
    assert!(!folder_of(&table).exists());
}

#[tokio::test]
async fn parquet_at_the_location() {
    let folder = service().folder().canonicalize().unwrap().join("parquet");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("part-0.parquet"), b"PAR1....PAR1").unwrap();
    client().ensure_namespace("failures").await.unwrap();
    let location = format!("file://{}", folder.display());
    let table = client()
        .register("failures", "parquet", &location)
        .await
        .unwrap();
    let before = files(&folder);
    every_operation_fails(&table, INVALID_INPUT, "part-0.parquet").await;
    assert_eq!(files(&folder), before);
}

/// Whoever reads the file names it; the others run.
#[tokio::test]
async fn a_data_file_that_can_not_be_read() {
    for (name, spoil) in [
        ("missing", None),
        ("garbage", Some(true)),
        ("cut", Some(false)),
    ] {
        let table = busy("failures", name).await;
        table
            .complete("create_scalar_index", json!({"column": "id"}))
            .await
            .unwrap();
        // Two, so that a compaction has something to merge them with.
        busy_table::append(&table.location, 400..425).await.unwrap();
        busy_table::append(&table.location, 425..450).await.unwrap();
        let dataset = Dataset::open(&table.location).await.unwrap();
        // The newest, which an index that is brought up to date has to read too.
        let file = dataset.fragments().last().unwrap().files[0].path.clone();
        let path = folder_of(&table).join("data").join(&file);
        let content = std::fs::read(&path).unwrap();
        match spoil {
            None => std::fs::remove_file(&path).unwrap(),
            Some(true) => std::fs::write(&path, vec![b'x'; content.len()]).unwrap(),
            Some(false) => std::fs::write(&path, &content[..content.len() / 2]).unwrap(),
        }
        let version = dataset.version_id();
        for (operation, body) in [
            ("compact", json!({})),
            ("create_scalar_index", json!({"column": "quality"})),
            (
                "create_vector_index",
                json!({"column": "vector", "index_type": "IVF_FLAT"}),
            ),
            ("optimize_indices", json!({})),
        ] {
            let detail = fails(&table, operation, body, INVALID_STATE).await;
            assert!(detail.contains(&file), "{name} {operation}: {detail}");
        }
        let result = table
            .complete("cleanup", json!({"retain_versions": 1}))
            .await
            .unwrap();
        assert!(result["old_versions"].as_u64().unwrap() > 0);
        let dataset = Dataset::open(&table.location).await.unwrap();
        assert_eq!(dataset.version_id(), version);
    }
}

fn folder_of(table: &Table) -> PathBuf {
    PathBuf::from(table.location.strip_prefix("file://").unwrap())
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        found.insert(path.clone(), std::fs::read(&path).unwrap());
    }
    found
}
