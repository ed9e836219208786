//! What optimize_indices does to a table.

use lance_maintenance_tests::busy_table;
use lance_maintenance_tests::client::Table;
use lance_maintenance_tests::inspect::{self, TableState};
use serde_json::json;

use crate::support::{busy, fails, look_at, same_rows};

const INDICES: [&str; 3] = ["id_idx", "review_idx", "vector_idx"];

/// A table with three indices, and rows that none of them covers.
async fn indexed(name: &str) -> (Table, TableState) {
    let table = busy("optimizing", name).await;
    for body in [
        json!({"column": "id"}),
        json!({"column": "review", "index_type": "FTS"}),
    ] {
        table.complete("create_scalar_index", body).await.unwrap();
    }
    let body = json!({"column": "vector", "index_type": "IVF_FLAT"});
    table.complete("create_vector_index", body).await.unwrap();
    append(&table, 400).await;
    let state = look_at(&table).await;
    for name in INDICES {
        assert_eq!(state.index(name).unwrap().unindexed, 50, "{name}");
    }
    (table, state)
}

async fn append(table: &Table, first: i64) {
    busy_table::append(&table.location, first..first + 50)
        .await
        .unwrap();
}

#[tokio::test]
async fn every_row_is_indexed_afterwards() {
    let (table, before) = indexed("all").await;
    let result = table.complete("optimize_indices", json!({})).await.unwrap();
    let after = look_at(&table).await;
    same_rows(&before, &after);
    let rows = after.rows as u64;
    assert_eq!(after.coverage(), (3 * rows, 0));
    assert_eq!(result["version"], after.version);
    let mut reported: Vec<(&str, u64, u64)> = result["indices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|index| {
            (
                index["name"].as_str().unwrap(),
                index["num_indexed_rows"].as_u64().unwrap(),
                index["num_unindexed_rows"].as_u64().unwrap(),
            )
        })
        .collect();
    reported.sort_unstable();
    assert_eq!(reported, INDICES.map(|name| (name, rows, 0)));
    let plan = inspect::filter_plan(&table.location, "id = 420")
        .await
        .unwrap();
    assert!(plan.contains("ScalarIndexQuery"), "{plan}");

    // There is nothing to do any more, so nothing is done.
    for body in [json!({}), json!({"index_names": ["id_idx"]})] {
        let again = table
            .complete("optimize_indices", body.clone())
            .await
            .unwrap();
        assert_eq!(again["version"], after.version, "{body}");
        assert_eq!(look_at(&table).await, after, "{body}");
    }
}

#[tokio::test]
async fn only_what_is_named() {
    let (table, _) = indexed("named").await;
    let body = json!({"index_names": ["review_idx"]});
    let result = table.complete("optimize_indices", body).await.unwrap();
    assert_eq!(result["indices"].as_array().unwrap().len(), 1);
    let after = look_at(&table).await;
    for (name, unindexed) in [("id_idx", 50), ("review_idx", 0), ("vector_idx", 50)] {
        assert_eq!(after.index(name).unwrap().unindexed, unindexed, "{name}");
    }

    let body = json!({"index_names": ["review_idx", "nope"]});
    let detail = fails(&table, "optimize_indices", body, ("TableIndexNotFound", 6)).await;
    assert!(detail.contains("'nope'"), "{detail}");
    assert_eq!(look_at(&table).await, after);
}

#[tokio::test]
async fn segments() {
    let (table, _) = indexed("segments").await;
    let only = |more: &str| {
        let body = format!(r#"{{"index_names":["vector_idx"]{more}}}"#);
        serde_json::from_str::<serde_json::Value>(&body).unwrap()
    };
    for (body, segments) in [
        (only(r#","num_indices_to_merge":0"#), 2),
        (only(r#","num_indices_to_merge":0"#), 3),
        (only(r#","num_indices_to_merge":1"#), 3),
        (only(r#","retrain":true"#), 1),
    ] {
        table
            .complete("optimize_indices", body.clone())
            .await
            .unwrap();
        let index = look_at(&table).await.index("vector_idx").unwrap().clone();
        assert_eq!((index.segments, index.unindexed), (segments, 0), "{body}");
        let first = look_at(&table).await.rows as i64 + 1000;
        append(&table, first).await;
    }
}

/// Where the service chooses, segments stay few however often it is asked.
#[tokio::test]
async fn segments_stay_few() {
    let (table, _) = indexed("few").await;
    for round in 0..8 {
        table.complete("optimize_indices", json!({})).await.unwrap();
        let state = look_at(&table).await;
        for index in &state.indices {
            assert_eq!(index.unindexed, 0, "{round} {index:?}");
            assert!(index.segments <= 4, "{round} {index:?}");
        }
        append(&table, 2000 + round * 50).await;
    }
}

#[tokio::test]
async fn a_table_without_indices() {
    let table = busy("optimizing", "none").await;
    let before = look_at(&table).await;
    let result = table.complete("optimize_indices", json!({})).await.unwrap();
    assert_eq!(result, json!({"indices": [], "version": before.version}));
    assert_eq!(look_at(&table).await, before);
}
