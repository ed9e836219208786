//! Columns that are added, and computed ones that are filled.

mod adding;
mod attempts;
mod changes;
mod memory;
mod options;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use lance::dataset::UpdateBuilder;
use lance_maintenance_api::ApiError;
use lance_maintenance_api::result::BackfillColumnResult;
use lance_maintenance_dispatch::tables::{AddColumns, NewColumn, NewContent};
use lance_worker::operations::{Limits, OperationContext, run};
use lance_worker::storage::StorageOptions;
use lance_worker::tables::{Tables, columns};

use crate::attempts::check_files;
use crate::support::{Table, backfill, batch, compact};

/// Longer than anything takes here.
const LONG: Duration = Duration::from_secs(600);

/// `id`, `a` which is ten times that, and `text`, which is the number in words of digits.
fn numbers(ids: Range<i64>) -> RecordBatch {
    let a = Int64Array::from_iter_values(ids.clone().map(|id| id * 10));
    let text = StringArray::from_iter_values(ids.clone().map(|id| id.to_string()));
    batch(vec![
        ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ("a", Arc::new(a)),
        ("text", Arc::new(text)),
    ])
}

async fn add(table: &Table, columns: &[(&str, NewContent)]) -> Result<u64, ApiError> {
    let place = Tables::new(StorageOptions::default(), Limits::default())
        .place(&table.uri())
        .await?;
    let request = AddColumns {
        location: table.uri(),
        branch: None,
        columns: columns
            .iter()
            .map(|(name, content)| NewColumn {
                name: (*name).to_owned(),
                content: content.clone(),
            })
            .collect(),
    };
    let added = columns::add(&place, &request, LONG).await?;
    Ok(added.version)
}

async fn declare(table: &Table, name: &str, expression: &str) {
    let content = NewContent::Computed(expression.to_owned());
    add(table, &[(name, content)]).await.unwrap();
}

/// A thousand rows in ten fragments, with a column `c` that is to be `a + 1`.
async fn declared(stable_row_ids: bool) -> Table {
    let table = Table::write(numbers(0..1000), 100, stable_row_ids).await;
    declare(&table, "c", "a + 1").await;
    table
}

async fn fill_as(ctx: &OperationContext, body: &str) -> BackfillColumnResult {
    let result = run(&backfill(body), ctx).await.unwrap();
    serde_json::from_value(result).unwrap()
}

async fn fill(table: &Table, body: &str) -> BackfillColumnResult {
    fill_as(&table.context(), body).await
}

/// Rows filled, resumed, left; fragments filled, left.
fn counts(result: &BackfillColumnResult) -> [u64; 5] {
    [
        result.rows_filled,
        result.rows_resumed,
        result.rows_left,
        result.fragments_filled,
        result.fragments_left,
    ]
}

/// The column by id.
async fn values(table: &Table, column: &str) -> BTreeMap<i64, Option<i64>> {
    let mut scanner = table.open().await.scan();
    scanner.project(&["id", column]).unwrap();
    let batch = scanner.try_into_batch().await.unwrap();
    let ids = batch.column(0).as_primitive::<Int64Type>();
    let column = batch.column(1).as_primitive::<Int64Type>();
    (0..batch.num_rows())
        .map(|row| {
            let value = column.is_valid(row).then(|| column.value(row));
            (ids.value(row), value)
        })
        .collect()
}

async fn check_values(table: &Table, of: impl Fn(i64) -> Option<i64>) {
    for (id, value) in values(table, "c").await {
        assert_eq!(value, of(id), "{id}");
    }
}

async fn update(table: &Table, which: &str, column: &str, value: &str) {
    UpdateBuilder::new(Arc::new(table.open().await))
        .update_where(which)
        .unwrap()
        .set(column, value)
        .unwrap()
        .build()
        .unwrap()
        .execute()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_column_is_filled_once() {
    for stable in [false, true] {
        let table = declared(stable).await;
        let before = table.open().await.version_id();
        let result = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&result), [1000, 0, 0, 10, 0]);
        assert_eq!(result.version, before + 1 + u64::from(stable));
        check_values(&table, |id| Some(id * 10 + 1)).await;
        check_files(&table, "filled").await;
        table.open().await.validate().await.unwrap();

        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&again), [0; 5], "{stable}");
        assert_eq!(again.version, result.version);
        assert_eq!(table.open().await.version_id(), result.version);
    }
}

#[tokio::test]
async fn a_condition_chooses_the_rows() {
    for stable in [false, true] {
        let table = declared(stable).await;
        let result = fill(&table, r#"{"column":"c","where":"id < 250"}"#).await;
        assert_eq!(counts(&result), [250, 0, 0, 3, 0], "{stable}");
        check_values(&table, |id| (id < 250).then_some(id * 10 + 1)).await;
        // The rest, and no more.
        let result = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&result), [750, 0, 0, 8, 0], "{stable}");
        check_values(&table, |id| Some(id * 10 + 1)).await;
        // Rows that have their value already get it again, which changes nothing.
        let version = result.version;
        let result = fill(&table, r#"{"column":"c","where":"id < 250"}"#).await;
        assert_eq!(counts(&result), [250, 0, 0, 0, 0], "{stable}");
        assert_eq!(result.version, version);
        check_files(&table, "filled").await;
    }
}

#[tokio::test]
async fn what_is_added_and_changed_later_is_filled_later() {
    for stable in [false, true] {
        let table = declared(stable).await;
        fill(&table, r#"{"column":"c"}"#).await;
        table.append_batch(numbers(1000..1100)).await;
        table.delete("id % 7 = 0").await;
        update(&table, "id = 5", "a", "7").await;
        update(&table, "id = 6", "text", "'x'").await;
        let result = fill(&table, r#"{"column":"c"}"#).await;
        // Of what is added a part is deleted. Only stable row ids tell what was updated: a row of
        // which another column was is computed as well.
        let added = (1000..1100).filter(|id| id % 7 != 0).count() as u64;
        let updated = if stable { 2 } else { 0 };
        assert_eq!(result.rows_filled, added + updated, "{stable}");
        assert_eq!(result.rows_left, 0);
        check_values(&table, |id| match id {
            5 if stable => Some(8),
            _ => Some(id * 10 + 1),
        })
        .await;
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&again), [0; 5], "{stable}");
        assert_eq!(again.version, result.version);

        // A compaction moves rows and changes none.
        table.run(compact("{}")).await.unwrap();
        let version = table.open().await.version_id();
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&again), [0; 5], "{stable}");
        assert_eq!(again.version, version);
        // The column now is in a file with others.
        update(&table, "id = 9", "c", "null").await;
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(again.rows_filled, 1, "{stable}");
        check_files(&table, "filled").await;
        table.open().await.validate().await.unwrap();
    }
}

#[tokio::test]
async fn values_that_are_null_are_no_reason_to_go_on() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..300), 100, stable).await;
        declare(&table, "c", "CASE WHEN id >= 100 AND id % 2 = 0 THEN a END").await;
        let result = fill(&table, r#"{"column":"c"}"#).await;
        // The first fragment has the values that it had: with stable row ids it is noted that it is filled.
        let written = 2 + u64::from(stable);
        assert_eq!(counts(&result), [300, 0, 0, written, 0], "{stable}");
        check_values(&table, |id| (id >= 100 && id % 2 == 0).then_some(id * 10)).await;
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(again.version, result.version, "{stable}");
        assert_eq!(again.fragments_filled, 0);
        assert_eq!(again.rows_filled == 0, stable);
        check_files(&table, "filled").await;
    }
}

#[tokio::test]
async fn two_columns_do_not_make_each_other_out_of_date_for_ever() {
    let table = declared(true).await;
    declare(&table, "d", "c * 2").await;
    for column in ["c", "d", "c", "d"] {
        fill(&table, &format!(r#"{{"column":"{column}"}}"#)).await;
    }
    let version = table.open().await.version_id();
    for column in ["c", "d"] {
        let again = fill(&table, &format!(r#"{{"column":"{column}"}}"#)).await;
        assert_eq!((again.rows_filled, again.version), (0, version), "{column}");
    }
    let d = values(&table, "d").await;
    assert!(d.iter().all(|(id, d)| *d == Some(id * 20 + 2)));
}

#[tokio::test]
async fn a_part_that_fails_is_named() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..300), 100, stable).await;
        update(&table, "id = 177", "text", "'no number'").await;
        table.run(compact("{}")).await.unwrap();
        declare(&table, "c", "CAST(text AS BIGINT)").await;
        let version = table.open().await.version_id();
        let ctx = table.context();
        let body = r#"{"column":"c","task_size":50}"#;
        let error = run(&backfill(body), &ctx).await.unwrap_err();
        let ids: Vec<i64> = values(&table, "c").await.into_keys().collect();
        assert_eq!(ids.len(), 300);
        let detail = error.detail;
        // Which rows depends on where the update put the row.
        assert!(detail.contains(" of fragment "), "{detail}");
        assert!(detail.contains("rows "), "{detail}");
        assert!(detail.contains("no number"), "{detail}");
        assert_eq!(table.open().await.version_id(), version);
        check_files(&table, "failed").await;
        // A deleted row can't fail.
        table.delete("id = 177").await;
        let result = fill(&table, body).await;
        assert_eq!(result.rows_filled, 299);
        check_values(&table, Some).await;
        check_files(&table, "filled").await;
    }
}
