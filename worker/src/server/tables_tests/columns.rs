use lance_maintenance_dispatch::tables::{ADD_COLUMNS_PATH, CHECK_BACKFILL_PATH};
use serde_json::json;

use super::*;

#[tokio::test]
async fn columns_are_added_and_checked() {
    let bench = Bench::new().await;
    bench.table("t", 0..10).await;
    let location = bench.uri("t");
    let columns = json!([{"name": "c", "computed": "id + 1"}, {"name": "d", "computed": "text"}]);
    let message = json!({"location": location, "columns": columns});
    let answer = bench.ask(ADD_COLUMNS_PATH, &message).await;
    assert_eq!(answer, (200, json!({"version": 2})));
    // They are there now.
    let (status, answer) = bench.ask(ADD_COLUMNS_PATH, &message).await;
    assert_eq!(
        (status, &answer["error"]),
        (400, &json!("InvalidInput")),
        "{answer}"
    );

    let check = |task_type: &str, params: Value| json!({"location": location, "task_type": task_type, "params": params});
    let cases = [
        ("lance_backfill_column", json!({"column": "c"}), 200),
        (
            "lance_backfill_column",
            json!({"column": "c", "where": "id > 3"}),
            200,
        ),
        (
            "lance_backfill_column",
            json!({"column": "c", "where": "id >"}),
            400,
        ),
        ("lance_backfill_column", json!({"column": "text"}), 400),
        ("lance_backfill_column", json!({"column": "gone"}), 404),
    ];
    for (task_type, params, expected) in cases {
        let (status, answer) = bench
            .ask(CHECK_BACKFILL_PATH, &check(task_type, params))
            .await;
        assert_eq!(status, expected, "{answer}");
        if status == 200 {
            assert_eq!(answer, json!({}));
        }
    }
    let nothing = json!({"location": bench.uri("u"), "columns": columns});
    let (status, answer) = bench.ask(ADD_COLUMNS_PATH, &nothing).await;
    assert_ne!(status, 200, "{answer}");
}
