use lance::index::DatasetIndexExt;
use lance_maintenance_api::ErrorName;
use lance_worker::operations::run;
use serde_json::json;

use crate::support::{Table, compact, filter_plan, nearest, optimize, scalar, vector};

async fn indexed() -> Table {
    let table = Table::with_rows(0..1000, 500).await;
    table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    table
        .run(vector(
            r#"{"column":"vector","index_type":"IVF_PQ","num_sub_vectors":8}"#,
        ))
        .await
        .unwrap();
    table
}

async fn segments(table: &Table, name: &str) -> usize {
    table
        .open()
        .await
        .load_indices_by_name(name)
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn new_rows_are_indexed_and_the_second_run_does_nothing() {
    let table = indexed().await;
    table.append(1000..1400).await;
    let before = table.contents().await;
    for body in [
        "{}",
        r#"{"num_indices_to_merge":1}"#,
        r#"{"num_indices_to_merge":10}"#,
    ] {
        let result = table.run(optimize(body)).await.unwrap();
        let dataset = table.open().await;
        assert_eq!(
            result,
            json!({"indices": [
                {"name": "id_idx", "num_indexed_rows": 1400, "num_unindexed_rows": 0},
                {"name": "vector_idx", "num_indexed_rows": 1400, "num_unindexed_rows": 0},
            ], "version": dataset.version_id()})
        );
        // Whatever is left to merge is merged once.
        let version = dataset.version_id();
        table.run(optimize(body)).await.unwrap();
        assert_eq!(table.open().await.version_id(), version, "{body}");
    }
    assert_eq!(table.contents().await, before);
    let dataset = table.open().await;
    assert!(
        filter_plan(&dataset, "id = 1399")
            .await
            .contains("ScalarIndexQuery")
    );
    let (plan, ids) = nearest(&dataset, 1399).await;
    assert!(
        plan.contains("ANN") && ids.contains(&1399),
        "{ids:?}\n{plan}"
    );
    assert_eq!(table.litter().await, Default::default());
}

#[tokio::test]
async fn names() {
    let table = indexed().await;
    table.append(1000..1100).await;
    let error = table
        .run(optimize(r#"{"index_names":["id_idx","nope"]}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::TableIndexNotFound);
    assert!(
        error.detail.contains("'nope'") && error.detail.contains("'vector_idx'"),
        "{error}"
    );

    let result = table
        .run(optimize(r#"{"index_names":["id_idx","id_idx"]}"#))
        .await
        .unwrap();
    assert_eq!(
        result["indices"],
        json!([{"name": "id_idx", "num_indexed_rows": 1100, "num_unindexed_rows": 0}])
    );

    let bare = Table::with_rows(0..10, 10).await;
    let result = bare.run(optimize("{}")).await.unwrap();
    assert_eq!(result, json!({"indices": [], "version": 1}));
    let error = bare
        .run(optimize(r#"{"index_names":["x"]}"#))
        .await
        .unwrap_err();
    assert!(error.detail.contains("no indices"), "{error}");
}

#[tokio::test]
async fn segments_stay_few() {
    let table = indexed().await;
    for n in 0..5 {
        table.append(1000 + n * 200..1200 + n * 200).await;
        table.run(optimize("{}")).await.unwrap();
    }
    assert!(segments(&table, "vector_idx").await <= 2);
    assert!(segments(&table, "id_idx").await <= 2);
    let (_, ids) = nearest(&table.open().await, 1950).await;
    assert!(ids.contains(&1950), "{ids:?}");
}

#[tokio::test]
async fn a_number_says_what_is_merged() {
    let table = indexed().await;
    for n in 0..3 {
        table.append(1000 + n * 100..1100 + n * 100).await;
        table
            .run(optimize(r#"{"num_indices_to_merge":0}"#))
            .await
            .unwrap();
    }
    for name in ["id_idx", "vector_idx"] {
        assert_eq!(segments(&table, name).await, 4, "{name}");
    }
    table
        .run(optimize(r#"{"num_indices_to_merge":3}"#))
        .await
        .unwrap();
    for name in ["id_idx", "vector_idx"] {
        assert_eq!(segments(&table, name).await, 2, "{name}");
    }
    table.run(optimize(r#"{"retrain":true}"#)).await.unwrap();
    let (_, ids) = nearest(&table.open().await, 1250).await;
    assert!(ids.contains(&1250), "{ids:?}");
    assert_eq!(segments(&table, "vector_idx").await, 1);
}

#[tokio::test]
async fn a_zone_map_that_lost_its_rows_to_a_compaction_gets_them_back() {
    let table = Table::with_rows(0..1000, 100).await;
    table
        .run(scalar(r#"{"column":"id","index_type":"ZONEMAP"}"#))
        .await
        .unwrap();
    table.run(compact("{}")).await.unwrap();
    let result = table.run(optimize("{}")).await.unwrap();
    assert_eq!(result["indices"][0]["num_unindexed_rows"], 0, "{result}");
    assert_eq!(result["indices"][0]["num_indexed_rows"], 1000, "{result}");
}

#[tokio::test]
async fn two_at_the_same_time() {
    let table = indexed().await;
    table.append(1000..1400).await;
    let (one, two) = tokio::join!(table.run(optimize("{}")), table.run(optimize("{}")));
    one.unwrap();
    two.unwrap();
    let dataset = table.open().await;
    dataset.validate().await.unwrap();
    assert_eq!(
        dataset.count_rows(Some("id >= 1000".into())).await.unwrap(),
        400
    );
    assert_eq!(table.litter().await, Default::default());
}

#[tokio::test]
async fn a_second_attempt_makes_no_version() {
    let table = indexed().await;
    table.append(1000..1400).await;
    let mut ctx = table.context();
    let first = run(&optimize(r#"{"retrain":true}"#), &ctx).await.unwrap();
    ctx.attempt = 2;
    let second = run(&optimize(r#"{"retrain":true}"#), &ctx).await.unwrap();
    assert_eq!(second, first);
}
