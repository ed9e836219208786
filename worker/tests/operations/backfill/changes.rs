//! Tables that others change between backfills, or while one runs, so that what was filled is no longer
//! what it should be.

use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::RecordBatchIterator;
use futures::future::BoxFuture;
use lance::Dataset;
use lance::dataset::{
    ColumnAlteration, MergeInsertBuilder, MergeInsertWriteMode, NewColumnTransform, WhenMatched,
    WhenNotMatched,
};
use lance_maintenance_api::ErrorName;
use lance_worker::operations::supervisor::Refused;

use super::attempts::{When, lost_at_second_commit, meanwhile, others};
use super::*;

/// Sets `a` where it is stored: its rows stay where they are.
async fn set_in_place(table: &Table, ids: &[i64], a: i64) {
    let source = batch(vec![
        ("id", Arc::new(Int64Array::from(ids.to_vec()))),
        ("a", Arc::new(Int64Array::from(vec![a; ids.len()]))),
    ]);
    let schema = source.schema();
    let before = table.open().await;
    MergeInsertBuilder::try_new(Arc::new(before.clone()), vec!["id".to_owned()])
        .unwrap()
        .when_matched(WhenMatched::UpdateAll)
        .when_not_matched(WhenNotMatched::DoNothing)
        .write_mode(MergeInsertWriteMode::RewriteColumns)
        .try_build()
        .unwrap()
        .execute_reader(RecordBatchIterator::new([Ok(source)], schema))
        .await
        .unwrap();
    let after = table.open().await;
    assert_eq!(before.get_fragments().len(), after.get_fragments().len());
}

async fn declare_again(dataset: &mut Dataset, table: &Table, expression: &str) {
    dataset.drop_columns(&["c"]).await.unwrap();
    declare(table, "c", expression).await;
}

async fn rename(table: &Table, names: &[(&str, &str)]) {
    for (from, to) in names {
        let renamed = ColumnAlteration::new((*from).to_owned()).rename((*to).to_owned());
        table.open().await.alter_columns(&[renamed]).await.unwrap();
    }
}

async fn restore(table: &Table, version: u64) {
    let mut old = table.open().await.checkout_version(version).await.unwrap();
    old.restore().await.unwrap();
}

#[tokio::test]
async fn a_column_that_is_dropped_and_declared_again_is_filled_again() {
    for stable in [false, true] {
        for expression in ["a + 1", "a + 2"] {
            let table = declared(stable).await;
            fill(&table, r#"{"column":"c"}"#).await;
            let id = |dataset: &Dataset| dataset.schema().field("c").unwrap().id;
            let before = id(&table.open().await);
            declare_again(&mut table.open().await, &table, expression).await;
            // Which is why the id alone does not do.
            assert_eq!(id(&table.open().await), before);
            let result = fill(&table, r#"{"column":"c"}"#).await;
            assert_eq!(
                counts(&result),
                [1000, 0, 0, 10, 0],
                "{stable} {expression}"
            );
            let more = if expression == "a + 1" { 1 } else { 2 };
            check_values(&table, |id| Some(id * 10 + more)).await;
        }
    }
}

#[tokio::test]
async fn a_column_that_is_added_as_it_was_is_filled_again() {
    for stable in [false, true] {
        let table = declared(stable).await;
        fill(&table, r#"{"column":"c"}"#).await;
        let mut dataset = table.open().await;
        let schema = dataset.schema().project(&["c"]).unwrap();
        dataset.drop_columns(&["c"]).await.unwrap();
        let schema = Arc::new(arrow_schema::Schema::from(&schema));
        let nulls = NewColumnTransform::AllNulls(schema);
        dataset.add_columns(nulls, None, None).await.unwrap();
        let result = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&result), [1000, 0, 0, 10, 0], "{stable}");
        check_values(&table, |id| Some(id * 10 + 1)).await;
    }
}

#[tokio::test]
async fn another_attempt_does_not_count_what_was_filled_with_something_else() {
    for stable in [false, true] {
        for what in ["as before", "another expression", "other inputs"] {
            let case = format!("{stable} {what}");
            let table = declared(stable).await;
            let body = r#"{"column":"c","commit_granularity":4}"#;
            let mut ctx = lost_at_second_commit(&table);
            run(&backfill(body), &ctx).await.unwrap_err();
            let value: fn(i64) -> i64 = match what {
                "as before" => {
                    declare_again(&mut table.open().await, &table, "a + 1").await;
                    |id| id * 10 + 1
                }
                "another expression" => {
                    declare_again(&mut table.open().await, &table, "a + 2").await;
                    |id| id * 10 + 2
                }
                // Of which tables that don't track versions know nothing.
                _ if !stable => continue,
                _ => {
                    rename(&table, &[("a", "b"), ("id", "a"), ("b", "id")]).await;
                    |id| id / 10 + 1
                }
            };
            ctx.supervisor = table.context().supervisor;
            ctx.attempt = 2;
            let result = fill_as(&ctx, body).await;
            assert_eq!(counts(&result), [1000, 0, 0, 10, 0], "{case}");
            check_values(&table, |id| Some(value(id))).await;
            check_files(&table, &case).await;
            let again = fill(&table, r#"{"column":"c"}"#).await;
            assert_eq!(counts(&again), [0; 5], "{case}");
        }
    }
}

#[tokio::test]
async fn names_that_others_swap_are_other_inputs() {
    let table = declared(true).await;
    let column = r#"{"column":"c"}"#;
    fill(&table, column).await;
    rename(&table, &[("a", "b"), ("id", "a"), ("b", "id")]).await;
    fill(&table, column).await;
    // What is called `a` now are the former ids.
    check_values(&table, |id| Some(id / 10 + 1)).await;
    // Other names of the same make no difference to a column.
    let version = table.open().await.version_id();
    rename(&table, &[("text", "words")]).await;
    let again = fill(&table, column).await;
    assert_eq!((counts(&again), again.version), ([0; 5], version + 1));
}

#[tokio::test]
async fn rows_that_change_around_a_commit() {
    // Right before the first commit they are in it, and are filled once more; right before the second the
    // first is made.
    for (at, filled, left) in [(1, 1400, 0), (2, 1000, 1)] {
        let table = Arc::new(declared(true).await);
        let ctx = others(&table, When::Confirmed(at), |table| {
            Box::pin(async move { set_in_place(&table, &[5], 7).await })
        });
        let result = fill_as(&ctx, r#"{"column":"c","commit_granularity":4}"#).await;
        assert_eq!((result.rows_filled, result.rows_left), (filled, left));
        let result = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!((result.rows_filled, result.rows_left), (left, 0));
        check_values(&table, |id| Some(if id == 5 { 8 } else { id * 10 + 1 })).await;
        check_files(&table, "filled").await;
    }
}

#[tokio::test]
async fn another_attempt_knows_of_a_row_that_changed_right_before_a_commit() {
    let table = Arc::new(declared(true).await);
    let (by, at) = (Arc::clone(&table), AtomicU32::new(0));
    let happening = move || -> BoxFuture<'static, Option<Refused>> {
        let (table, at) = (Arc::clone(&by), at.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move {
            if at == 1 {
                set_in_place(&table, &[5], 7).await;
            }
            (at > 1).then_some(Refused::Lost)
        })
    };
    let mut ctx = meanwhile(&table, When::Each, Box::new(happening));
    let body = r#"{"column":"c","commit_granularity":4}"#;
    run(&backfill(body), &ctx).await.unwrap_err();
    ctx.supervisor = table.context().supervisor;
    ctx.attempt = 2;
    let result = fill_as(&ctx, body).await;
    assert_eq!((result.rows_filled, result.rows_left), (1400, 0));
    check_values(&table, |id| Some(if id == 5 { 8 } else { id * 10 + 1 })).await;
    check_files(&table, "filled").await;
}

#[tokio::test]
async fn a_fragment_that_goes_meanwhile_leaves_nothing() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..100), 100, stable).await;
        declare(&table, "c", "a + 1").await;
        let table = Arc::new(table);
        let ctx = others(&table, When::Planned, |table| {
            Box::pin(async move { table.delete("true").await })
        });
        let result = fill_as(&ctx, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&result), [0; 5]);
        check_files(&table, "gone").await;
        assert!(!table.path().join("_maintenance").exists());
    }
}

#[tokio::test]
async fn rows_whose_versions_are_not_known_are_looked_at_each_time() {
    let table = declared(false).await;
    let column = r#"{"column":"c"}"#;
    fill(&table, column).await;
    table
        .open()
        .await
        .migrate_to_stable_row_ids()
        .await
        .unwrap();
    let version = table.open().await.version_id();
    let result = fill(&table, column).await;
    assert_eq!(
        (counts(&result), result.version),
        ([1000, 0, 0, 0, 0], version)
    );
    set_in_place(&table, &[5], 7).await;
    // The compaction gives rows without a version the first.
    table.run(compact("{}")).await.unwrap();
    fill(&table, column).await;
    check_values(&table, |id| Some(if id == 5 { 8 } else { id * 10 + 1 })).await;
    let result = fill(&table, column).await;
    assert_eq!(counts(&result), [0; 5]);
}

#[tokio::test]
async fn a_version_that_is_restored_meanwhile_is_filled() {
    for (stable, filled_before) in [(false, false), (true, false), (true, true)] {
        let case = format!("{stable} {filled_before}");
        let table = Arc::new(declared(stable).await);
        let unfilled = table.open().await.version_id();
        if filled_before {
            fill(&table, r#"{"column":"c"}"#).await;
            for fragment in 0..10 {
                set_in_place(&table, &[fragment * 100], 7).await;
            }
        }
        let ctx = others(&table, When::Confirmed(2), move |table| {
            Box::pin(async move { restore(&table, unfilled).await })
        });
        let body = r#"{"column":"c","commit_granularity":1}"#;
        let result = fill_as(&ctx, body).await;
        assert_eq!(result.rows_left, 0, "{case}");
        check_values(&table, |id| Some(id * 10 + 1)).await;
        check_files(&table, &case).await;
        let again = fill(&table, r#"{"column":"c"}"#).await;
        assert_eq!(counts(&again), [0; 5], "{case}");
    }
}

#[tokio::test]
async fn a_column_that_is_another_meanwhile_is_not_filled() {
    type Change = fn(Arc<Table>) -> BoxFuture<'static, ()>;
    let cases: [(&str, Change, ErrorName, i64); 4] = [
        (
            "dropped",
            |table| Box::pin(async move { table.open().await.drop_columns(&["c"]).await.unwrap() }),
            ErrorName::TableColumnNotFound,
            0,
        ),
        (
            "another expression",
            |table| {
                Box::pin(async move {
                    declare_again(&mut table.open().await, &table, "a + 2").await;
                })
            },
            ErrorName::ConcurrentModification,
            2,
        ),
        (
            "another table",
            |table| Box::pin(async move { table.overwrite(0..50).await }),
            ErrorName::TableColumnNotFound,
            0,
        ),
        (
            "other inputs",
            |table| {
                Box::pin(async move {
                    rename(&table, &[("a", "b"), ("id", "a"), ("b", "id")]).await;
                })
            },
            ErrorName::ConcurrentModification,
            1,
        ),
    ];
    for stable in [false, true] {
        for when in [When::Planned, When::Confirmed(1), When::Confirmed(2)] {
            for (what, change, expected, more) in cases {
                let case = format!("{stable} {when:?} {what}");
                let table = Arc::new(declared(stable).await);
                let ctx = others(&table, when, change);
                let body = backfill(r#"{"column":"c","commit_granularity":4}"#);
                let error = run(&body, &ctx).await.expect_err(&case);
                assert_eq!(error.error, expected, "{case} {error}");
                check_files(&table, &case).await;
                // Tables that don't track versions keep what was committed of other inputs.
                if more == 0 || (what == "other inputs" && !stable) {
                    continue;
                }
                fill(&table, r#"{"column":"c"}"#).await;
                check_values(&table, |id| match what {
                    "other inputs" => Some(id / 10 + 1),
                    _ => Some(id * 10 + more),
                })
                .await;
                check_files(&table, &case).await;
            }
        }
    }
}

#[tokio::test]
async fn what_a_condition_leaves_out_stays_to_be_done_after_another_attempt() {
    let table = declared(true).await;
    fill(&table, r#"{"column":"c"}"#).await;
    set_in_place(&table, &[5, 6, 105, 106], 7).await;
    let body = r#"{"column":"c","where":"id = 6 OR id = 106","commit_granularity":1}"#;
    let mut ctx = lost_at_second_commit(&table);
    run(&backfill(body), &ctx).await.unwrap_err();
    ctx.supervisor = table.context().supervisor;
    ctx.attempt = 2;
    let result = fill_as(&ctx, body).await;
    assert_eq!((result.rows_filled, result.fragments_filled), (2, 2));
    let value = |id: i64, a: [i64; 4]| a.contains(&id).then_some(8).or(Some(id * 10 + 1));
    check_values(&table, |id| value(id, [6, 6, 106, 106])).await;
    fill(&table, r#"{"column":"c"}"#).await;
    check_values(&table, |id| value(id, [5, 6, 105, 106])).await;
}
