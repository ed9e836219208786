//! Indices of every type: listed, complete, and used by a query.

use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_maintenance_tests::client::Table;
use lance_maintenance_tests::inspect;
use lance_maintenance_tests::wine::wine;
use serde_json::{Value, json};

use crate::support::{busy, declared, fails, look_at, same_rows};

async fn drop_index(table: &Table, name: &str) {
    let mut dataset = Dataset::open(&table.location).await.unwrap();
    dataset.drop_index(name).await.unwrap();
}

/// Runs a creation, and checks what it says and what the table has.
async fn create(table: &Table, operation: &str, body: &Value, name: &str) -> Value {
    let before = look_at(table).await;
    let result = table.complete(operation, body.clone()).await.unwrap();
    let after = look_at(table).await;
    same_rows(&before, &after);
    let index = after.index(name).unwrap();
    let rows = after.rows as u64;
    assert_eq!(
        (index.indexed, index.unindexed, index.segments),
        (rows, 0, 1),
        "{body}"
    );
    for (field, value) in [
        ("index_name", json!(name)),
        ("column", body["column"].clone()),
        ("num_indexed_rows", json!(rows)),
        ("version", json!(after.version)),
    ] {
        assert_eq!(result[field], value, "{body}: {field}");
    }
    let dataset = Dataset::open(&table.location).await.unwrap();
    let segments = dataset.load_indices_by_name(name).await.unwrap();
    assert_eq!(result["index_uuid"], segments[0].uuid.to_string(), "{body}");
    result
}

#[tokio::test]
async fn scalar_types() {
    let table = busy("indices", "scalar").await;
    for (column, index_type, stored, filter) in [
        ("id", "BTREE", "BTREE", "id = 250"),
        ("alcohol", "btree", "BTREE", "alcohol > 12.5"),
        ("quality", "BITMAP", "BITMAP", "quality = 7"),
        (
            "tags",
            "LABEL_LIST",
            "LABEL_LIST",
            "array_has_any(tags, ['high_alcohol'])",
        ),
        ("review", "NGRAM", "NGRAM", "contains(review, 'sulphates')"),
        ("id", "ZONEMAP", "ZONEMAP", "id > 390"),
        ("id", "BLOOMFILTER", "BLOOMFILTER", "id = 250"),
    ] {
        let expected = count(&table, filter).await;
        assert!(expected > 0, "{filter}");
        let body = json!({"column": column, "index_type": index_type});
        let name = format!("{column}_idx");
        let result = create(&table, "create_scalar_index", &body, &name).await;
        assert_eq!(result["index_type"], stored, "{body}");
        let plan = inspect::filter_plan(&table.location, filter).await.unwrap();
        assert!(plan.contains("ScalarIndexQuery"), "{index_type}: {plan}");
        assert_eq!(count(&table, filter).await, expected, "{index_type}");
        drop_index(&table, &name).await;
    }
}

async fn count(table: &Table, filter: &str) -> usize {
    let dataset = Dataset::open(&table.location).await.unwrap();
    dataset.count_rows(Some(filter.to_owned())).await.unwrap()
}

#[tokio::test]
async fn texts() {
    let table = busy("indices", "texts").await;
    for (body, words, found) in [
        (
            json!({"column": "review", "index_type": "FTS"}),
            "surprise",
            true,
        ),
        (
            json!({"column": "review", "index_type": "INVERTED"}),
            "without",
            true,
        ),
        (
            json!({"column": "review", "index_type": "INVERTED"}),
            "with",
            false,
        ),
        (
            json!({"column": "review", "index_type": "INVERTED", "remove_stop_words": false}),
            "with",
            true,
        ),
        (
            json!({"column": "review", "index_type": "INVERTED", "stem": false}),
            "surprise",
            false,
        ),
    ] {
        let result = create(&table, "create_scalar_index", &body, "review_idx").await;
        assert_eq!(result["index_type"], "INVERTED");
        let (plan, rows) = inspect::text_search(&table.location, words).await.unwrap();
        assert!(plan.contains("MatchQuery"), "{plan}");
        assert_eq!(rows > 0, found, "{body} {words}: {rows}");
    }
}

#[tokio::test]
async fn vector_types() {
    let table = busy("indices", "vector").await;
    for (index_type, metric, options) in [
        ("IVF_FLAT", "l2", r#""num_partitions":4"#),
        ("IVF_FLAT", "cosine", r#""target_partition_size":100"#),
        ("IVF_FLAT", "dot", r#""sample_rate":64"#),
        ("IVF_FLAT", "hamming", r#""max_iterations":5"#),
        ("IVF_PQ", "l2", r#""num_bits":8"#),
        ("IVF_PQ", "cosine", r#""num_sub_vectors":4,"num_bits":4"#),
        ("IVF_SQ", "l2", r#""num_partitions":2"#),
        ("IVF_RQ", "l2", r#""num_bits":5"#),
        ("IVF_HNSW_FLAT", "l2", r#""m":8,"ef_construction":50"#),
        ("IVF_HNSW_FLAT", "hamming", r#""m":8"#),
        ("IVF_HNSW_PQ", "l2", r#""num_sub_vectors":8"#),
        ("IVF_HNSW_SQ", "cosine", r#""max_level":3"#),
    ] {
        let column = if metric == "hamming" {
            "bits"
        } else {
            "vector"
        };
        let body = format!(
            r#"{{"column":"{column}","index_type":"{index_type}","metric_type":"{metric}",
                "replace":true,{options}}}"#
        );
        let body = serde_json::from_str(&body).unwrap();
        let name = format!("{column}_idx");
        let result = create(&table, "create_vector_index", &body, &name).await;
        assert_eq!(result["index_type"], index_type);
        let plan = inspect::nearest_plan(&table.location, column, wine(7))
            .await
            .unwrap();
        assert!(plan.contains("ANN"), "{index_type}: {plan}");
    }
}

#[tokio::test]
async fn names() {
    let table = busy("indices", "names").await;
    let scalar = "create_scalar_index";
    let exists = ("TableIndexAlreadyExists", 7);
    let body = json!({"column": "id", "name": "own"});
    create(&table, scalar, &body, "own").await;
    let version = look_at(&table).await.version;
    let body = json!({"column": "id", "name": "own", "replace": false});
    let detail = fails(&table, scalar, body, exists).await;
    assert!(detail.contains("'own'"), "{detail}");

    let vector = json!({"column": "vector", "index_type": "IVF_FLAT"});
    table
        .complete("create_vector_index", vector.clone())
        .await
        .unwrap();
    // A vector index is not replaced unless that is asked for, a scalar one is.
    fails(&table, "create_vector_index", vector, exists).await;
    let body = json!({"column": "id", "name": "own"});
    create(&table, scalar, &body, "own").await;
    let state = look_at(&table).await;
    assert_eq!(state.version, version + 2);
    assert_eq!(state.indices.len(), 2);
}

#[tokio::test]
async fn an_empty_table() {
    let table = declared("indices", "empty").await;
    let rows = lance_maintenance_tests::busy_table::rows(0..0).unwrap();
    lance_maintenance_tests::busy_table::append_batch(&table.location, rows)
        .await
        .unwrap();
    let body = json!({"column": "id"});
    create(&table, "create_scalar_index", &body, "id_idx").await;
    let body = json!({"column": "vector"});
    let result = table.complete("create_vector_index", body).await.unwrap();
    assert_eq!(result["num_indexed_rows"], 0);
}
