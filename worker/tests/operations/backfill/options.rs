//! What each option does.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Schema};
use lance_maintenance_api::ErrorName;
use lance_worker::operations::backfill::binding::EXPRESSION_KEY;

use super::*;

#[tokio::test]
async fn commits_and_fragments() {
    // Versions beside the one that notes what is filled; rows filled and left.
    let cases = [
        (r#"{"column":"c"}"#, 1, 1000, 0),
        (r#"{"column":"c","commit_granularity":3}"#, 4, 1000, 0),
        (
            r#"{"column":"c","commit_granularity":1,"concurrency":1}"#,
            10,
            1000,
            0,
        ),
        (r#"{"column":"c","num_frags":4}"#, 1, 400, 600),
        (r#"{"column":"c","read_version":1}"#, 1, 1000, 100),
        (
            r#"{"column":"c","task_size":7,"intra_applier_concurrency":5}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","task_size":7,"checkpoint_size":3}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","min_checkpoint_size":30,"max_checkpoint_size":40}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","batch_checkpoint_flush_interval_seconds":0.001,"task_size":10}"#,
            1,
            1000,
            0,
        ),
    ];
    for stable in [false, true] {
        for (body, commits, filled, left) in cases {
            let table = declared(stable).await;
            if body.contains("read_version") {
                table.append_batch(numbers(1000..1100)).await;
            }
            let before = table.open().await.version_id();
            let result = fill(&table, body).await;
            assert_eq!(
                result.version - before,
                commits + u64::from(stable),
                "{body}"
            );
            assert_eq!(
                (result.rows_filled, result.rows_left),
                (filled, left),
                "{body}"
            );
            assert_eq!(result.fragments_left, left.div_ceil(100), "{body}");
            let found = values(&table, "c").await;
            let right = found.iter().filter(|(id, c)| **c == Some(*id * 10 + 1));
            assert_eq!(right.count() as u64, filled, "{body}");
            check_files(&table, body).await;
            // What is left is filled by the next, and nothing else.
            let rest = fill(&table, r#"{"column":"c"}"#).await;
            assert_eq!((rest.rows_filled, rest.rows_left), (left, 0), "{body}");
            check_values(&table, |id| Some(id * 10 + 1)).await;
        }
    }
}

#[tokio::test]
async fn fragments_without_a_new_value_do_not_count() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..1000), 100, stable).await;
        declare(&table, "c", "CASE WHEN id >= 300 THEN a END").await;
        let body = r#"{"column":"c","num_frags":2,"commit_granularity":4}"#;
        let cases = match stable {
            // Those that have no file yet get one.
            true => [(2, 200), (2, 400), (2, 600), (2, 800), (2, 1000)],
            false => [(2, 500), (2, 700), (2, 900), (1, 1000), (0, 1000)],
        };
        for (filled, to) in cases {
            let result = fill(&table, body).await;
            assert_eq!(result.fragments_filled, filled, "{stable} {to}");
            let found = values(&table, "c").await;
            let right = |id: i64| (id >= 300 && id < to).then_some(id * 10);
            assert!(found.iter().all(|(id, c)| *c == right(*id)), "{stable}");
        }
    }
}

#[tokio::test]
async fn structures_are_filled_once() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..300), 100, stable).await;
        let expression = "named_struct('x', a, 'y', named_struct('z', id))";
        declare(&table, "c", expression).await;
        let result = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&result), [300, 0, 0, 3, 0], "{stable}");
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&again), [0; 5], "{stable}");
        let filter = Some("c.y.z * 10 = c.x AND c.x = a".to_owned());
        let right = table.open().await.count_rows(filter).await.unwrap();
        assert_eq!(right, 300, "{stable}");
        check_files(&table, "filled").await;
    }
}

#[tokio::test]
async fn a_column_that_may_not_be_null_is_refused() {
    let fields = [("id", true), ("a", false)];
    let fields = fields.map(|(name, nullable)| Field::new(name, DataType::Int64, nullable));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let rows = RecordBatch::try_new(schema, vec![numbers.clone(), numbers]).unwrap();
    let table = Table::write(rows, 10, false).await;
    let mut dataset = table.open().await;
    let entry = (EXPRESSION_KEY.to_owned(), "id + 1".to_owned());
    let update = dataset.update_field_metadata();
    update.update("a", [entry]).unwrap().await.unwrap();
    let error = run(&backfill(r#"{"column":"a"}"#), &table.context()).await;
    let error = error.unwrap_err();
    assert_eq!(error.error, ErrorName::InvalidInput);
    assert!(error.detail.contains("nullable"), "{error}");
}
