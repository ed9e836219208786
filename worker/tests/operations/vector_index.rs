use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use lance::index::DatasetIndexExt;
use lance_maintenance_api::ErrorName;
use serde_json::json;

use crate::support::{Table, batch, nearest, optimize, rows, vector, vector_of, vectors};

#[tokio::test]
async fn each_type_and_metric_is_complete_and_used() {
    let table = Table::with_rows(0..2000, 500).await;
    let before = table.contents().await;
    for (index_type, metric, options) in [
        ("IVF_FLAT", "l2", r#""num_partitions":4"#),
        ("IVF_FLAT", "cosine", r#""num_partitions":4"#),
        ("IVF_FLAT", "dot", r#""num_partitions":4"#),
        ("IVF_PQ", "l2", r#""num_sub_vectors":8"#),
        ("IVF_PQ", "cosine", r#""num_sub_vectors":16"#),
        ("IVF_PQ", "dot", r#""num_sub_vectors":4,"num_bits":4"#),
        ("IVF_SQ", "l2", r#""target_partition_size":500"#),
        ("IVF_RQ", "l2", r#""num_bits":5"#),
        ("IVF_RQ", "cosine", r#""num_bits":1"#),
        ("IVF_HNSW_FLAT", "l2", r#""m":8,"ef_construction":50"#),
        ("IVF_HNSW_PQ", "cosine", r#""num_sub_vectors":8"#),
        ("IVF_HNSW_SQ", "l2", r#""max_level":3"#),
    ] {
        let result = table
            .run(vector(&format!(
                r#"{{"column":"vector","index_type":"{index_type}","metric_type":"{metric}","replace":true,{options}}}"#
            )))
            .await
            .unwrap();
        let dataset = table.open().await;
        let segments = dataset.load_indices_by_name("vector_idx").await.unwrap();
        assert_eq!(segments.len(), 1);
        assert_eq!(
            result,
            json!({"index_name": "vector_idx", "column": "vector", "index_type": index_type,
                   "index_uuid": segments[0].uuid.to_string(), "num_indexed_rows": 2000,
                   "version": dataset.version_id()})
        );
        let (plan, ids) = nearest(&dataset, 123).await;
        assert!(plan.contains("ANN"), "{index_type}: {plan}");
        if metric != "dot" {
            assert!(ids.contains(&123), "{index_type} {metric}: {ids:?}");
        }
    }
    assert_eq!(table.contents().await, before);
    assert!(table.litter().await.is_empty());
}

#[tokio::test]
async fn bytes_are_compared_bit_by_bit() {
    let table = Table::with_rows(0..1000, 500).await;
    for index_type in ["IVF_FLAT", "IVF_HNSW_FLAT"] {
        let result = table
            .run(vector(&format!(
                r#"{{"column":"bits","index_type":"{index_type}","metric_type":"hamming","replace":true}}"#
            )))
            .await
            .unwrap();
        assert_eq!(result["num_indexed_rows"], 1000);
    }
}

#[tokio::test]
async fn what_can_not_be_built_is_said_before_it_is_tried() {
    let table = Table::with_rows(0..100, 100).await;
    for (body, name, words) in [
        (
            r#"{"column":"nope"}"#,
            ErrorName::TableColumnNotFound,
            "'vector'",
        ),
        (
            r#"{"column":"id"}"#,
            ErrorName::InvalidInput,
            "fixed-size lists",
        ),
        (
            r#"{"column":"tags"}"#,
            ErrorName::InvalidInput,
            "fixed-size lists",
        ),
        (
            r#"{"column":"vector"}"#,
            ErrorName::InvalidInput,
            "train 256 centroids on 100 vectors",
        ),
        (
            r#"{"column":"vector","num_sub_vectors":5}"#,
            ErrorName::InvalidInput,
            "1, 2, 4, 8, 16",
        ),
        (
            r#"{"column":"vector","index_type":"IVF_HNSW_PQ"}"#,
            ErrorName::InvalidInput,
            "256",
        ),
        (
            r#"{"column":"vector","index_type":"IVF_RQ","num_bits":10}"#,
            ErrorName::InvalidInput,
            "1 to 9",
        ),
        (
            r#"{"column":"vector","index_type":"IVF_HNSW_SQ","m":2}"#,
            ErrorName::InvalidInput,
            "at least 4",
        ),
        (
            r#"{"column":"vector","index_type":"IVF_FLAT","metric_type":"hamming"}"#,
            ErrorName::InvalidInput,
            "uint8",
        ),
        (
            r#"{"column":"bits","index_type":"IVF_FLAT"}"#,
            ErrorName::InvalidInput,
            "hamming",
        ),
    ] {
        let error = table.run(vector(body)).await.unwrap_err();
        assert_eq!(error.error, name, "{body}: {error}");
        assert!(error.detail.contains(words), "{body}: {error}");
    }
    assert_eq!(table.open().await.version_id(), 1);
    assert!(table.litter().await.is_empty());
}

#[tokio::test]
async fn few_rows_and_extreme_numbers() {
    for (count, body) in [
        (
            10,
            r#"{"column":"vector","index_type":"IVF_FLAT","num_partitions":100}"#,
        ),
        (1, r#"{"column":"vector","index_type":"IVF_FLAT"}"#),
        (1, r#"{"column":"vector","index_type":"IVF_SQ"}"#),
        (1, r#"{"column":"vector","index_type":"IVF_RQ"}"#),
        (1, r#"{"column":"vector","index_type":"IVF_HNSW_SQ"}"#),
        (
            16,
            r#"{"column":"vector","index_type":"IVF_PQ","num_bits":4}"#,
        ),
        (
            300,
            r#"{"column":"vector","index_type":"IVF_PQ","num_partitions":1000000,"sample_rate":9223372036854775807,"max_iterations":9223372036854775807}"#,
        ),
        (
            300,
            r#"{"column":"vector","index_type":"IVF_SQ","target_partition_size":1}"#,
        ),
    ] {
        let table = Table::with_rows(0..count, 100).await;
        let result = table
            .run(vector(body))
            .await
            .unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!(result["num_indexed_rows"], count, "{body}");
    }
}

#[tokio::test]
async fn an_empty_table_gets_its_index_trained_later() {
    for index_type in ["IVF_PQ", "IVF_FLAT", "IVF_HNSW_SQ", "IVF_RQ"] {
        let table = Table::write(rows(0..0), 100, false).await;
        let result = table
            .run(vector(&format!(
                r#"{{"column":"vector","index_type":"{index_type}"}}"#
            )))
            .await
            .unwrap();
        assert_eq!(result["num_indexed_rows"], 0, "{index_type}");
        let found = table
            .open()
            .await
            .load_indices_by_name("vector_idx")
            .await
            .unwrap();
        assert_eq!(found.len(), 1, "{index_type}");
        table.append(0..1000).await;
        let result = table.run(optimize("{}")).await.unwrap();
        assert_eq!(
            result["indices"][0]["num_indexed_rows"], 1000,
            "{index_type}: {result}"
        );
        assert!(nearest(&table.open().await, 5).await.0.contains("ANN"));
    }
}

fn with_gaps(count: i64, value: impl Fn(i64) -> Option<Vec<f32>>) -> RecordBatch {
    batch(vec![
        ("id", Arc::new(Int64Array::from_iter(0..count))),
        ("vector", Arc::new(vectors((0..count).map(value)))),
    ])
}

#[tokio::test]
async fn null_and_nan_vectors() {
    let nan = || Some(vec![f32::NAN; 16]);
    for index_type in [
        "IVF_FLAT",
        "IVF_PQ",
        "IVF_SQ",
        "IVF_RQ",
        "IVF_HNSW_SQ",
        "IVF_HNSW_FLAT",
    ] {
        let body = format!(r#"{{"column":"vector","index_type":"{index_type}"}}"#);
        // Some of each among enough good ones.
        let mixed = with_gaps(1000, |id| match id % 5 {
            0 => None,
            1 => nan(),
            _ => Some(vector_of(id)),
        });
        let table = Table::write(mixed, 200, false).await;
        let before = table.contents().await;
        table
            .run(vector(&body))
            .await
            .unwrap_or_else(|error| panic!("{index_type}: {error}"));
        let (plan, ids) = nearest(&table.open().await, 123).await;
        assert!(
            plan.contains("ANN") && ids.contains(&123),
            "{index_type}: {ids:?}"
        );
        assert_eq!(table.contents().await, before);

        // Nothing but nulls: a clear failure.
        let table = Table::write(with_gaps(300, |_| None), 200, false).await;
        let error = table.run(vector(&body)).await.unwrap_err();
        assert_eq!(
            error.error,
            ErrorName::InvalidInput,
            "{index_type}: {error}"
        );
        assert!(error.detail.contains("null"), "{error}");

        // Nothing but NaN: whatever comes, it is no panic.
        let table = Table::write(with_gaps(300, |_| nan()), 200, false).await;
        if let Err(error) = table.run(vector(&body)).await {
            assert_ne!(
                error.error,
                ErrorName::InternalError,
                "{index_type}: {error}"
            );
        }
        assert!(table.litter().await.is_empty());
    }
}

#[tokio::test]
async fn a_name_that_exists() {
    let table = Table::with_rows(0..100, 100).await;
    let body = r#"{"column":"vector","index_type":"IVF_FLAT"}"#;
    table.run(vector(body)).await.unwrap();
    let error = table.run(vector(body)).await.unwrap_err();
    assert_eq!(error.error, ErrorName::TableIndexAlreadyExists, "{error}");
}
