use std::time::Duration;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_worker::operations::commit::{Lost, TASK_ID_PROPERTY};
use lance_worker::operations::compact::Compaction;
use lance_worker::operations::run;
use lance_worker::operations::table::open;
use serde_json::json;

use crate::support::{Table, compact, contents, filter_plan, optimize, scalar};

fn params(task: TaskParams) -> CompactParams {
    match task {
        TaskParams::Compact(params) => params,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn fragments_and_deleted_rows_go_down_and_rows_stay() {
    let table = Table::with_rows(0..1000, 100).await;
    table.delete("id % 4 = 0").await;
    let before = table.contents().await;
    let ctx = table.context();
    let watcher = ctx.progress.subscribe();

    let result = run(&compact("{}"), &ctx).await.unwrap();

    let dataset = table.open().await;
    assert_eq!(
        result,
        json!({"fragments_removed": 10, "fragments_added": 1, "files_removed": 20,
               "files_added": 1, "version": dataset.version_id()})
    );
    assert_eq!(dataset.count_fragments(), 1);
    assert_eq!(dataset.count_deleted_rows().await.unwrap(), 0);
    assert_eq!(table.contents().await, before);
    assert_eq!(watcher.borrow().percent, 100);
    let transaction = dataset.read_transaction().await.unwrap().unwrap();
    let properties = transaction.transaction_properties.unwrap();
    assert_eq!(properties[TASK_ID_PROPERTY], ctx.task_id);
}

#[tokio::test]
async fn nothing_to_do_makes_no_version() {
    let table = Table::with_rows(0..1000, 100).await;
    table.run(compact("{}")).await.unwrap();
    let version = table.open().await.version_id();
    let result = table.run(compact("{}")).await.unwrap();
    assert_eq!(
        result,
        json!({"fragments_removed": 0, "fragments_added": 0, "files_removed": 0,
               "files_added": 0, "version": version})
    );
    assert_eq!(table.open().await.version_id(), version);
}

#[tokio::test]
async fn remainders_reach_a_healthy_size_at_once() {
    let table = Table::with_rows(0..200, 1000).await;
    for n in 1..10 {
        table.append(n * 200..(n + 1) * 200).await;
    }
    let body = r#"{"target_rows_per_fragment":500}"#;
    table.run(compact(body)).await.unwrap();
    let rows: Vec<_> = table
        .open()
        .await
        .fragments()
        .iter()
        .map(|f| f.num_rows())
        .collect();
    assert_eq!(rows, [Some(600), Some(600), Some(800)]);
    let again = table.run(compact(body)).await.unwrap();
    assert_eq!(again["fragments_removed"], 0);
}

#[tokio::test]
async fn thresholds_of_deleted_rows() {
    // One fragment of four has a fifth of its rows deleted; all are of the target's size.
    for (body, rewritten) in [
        (r#"{"target_rows_per_fragment":100}"#, 1),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions_threshold":0}"#,
            1,
        ),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions_threshold":0.5}"#,
            0,
        ),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions_threshold":1}"#,
            0,
        ),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions_threshold":2.5}"#,
            0,
        ),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions_threshold":-1}"#,
            4,
        ),
        (
            r#"{"target_rows_per_fragment":100,"materialize_deletions":false}"#,
            0,
        ),
    ] {
        let table = Table::with_rows(0..400, 100).await;
        table.delete("id < 20").await;
        let before = table.contents().await;
        let result = table.run(compact(body)).await.unwrap();
        assert_eq!(result["fragments_removed"], rewritten, "{body}");
        assert_eq!(table.contents().await, before, "{body}");
    }
}

#[tokio::test]
async fn modes_and_file_sizes() {
    for body in [
        r#"{"compaction_mode":"try_binary_copy"}"#,
        r#"{"compaction_mode":"force_binary_copy"}"#,
        r#"{"max_bytes_per_file":20000,"max_rows_per_group":10}"#,
    ] {
        let table = Table::with_rows(0..1000, 100).await;
        let before = table.contents().await;
        let result = table.run(compact(body)).await.unwrap();
        assert_eq!(result["fragments_removed"], 10, "{body}");
        assert_eq!(table.contents().await, before, "{body}");
    }
    // Deleted rows can't be copied around.
    let table = Table::with_rows(0..1000, 100).await;
    table.delete("id = 5").await;
    let error = table
        .run(compact(r#"{"compaction_mode":"force_binary_copy"}"#))
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::InvalidInput, "{error}");
    assert!(error.detail.contains("binary copy"), "{error}");
    assert!(table.litter().await.is_empty());
}

#[tokio::test]
async fn budgets_of_the_table_do_not_limit_a_task() {
    let table = Table::with_rows(0..1000, 100).await;
    let mut dataset = table.open().await;
    dataset
        .update_config([
            ("lance.compaction.max_source_fragments", "2"),
            ("lance.compaction.target_rows_per_fragment", "10"),
        ])
        .await
        .unwrap();
    let result = table.run(compact("{}")).await.unwrap();
    assert_eq!(result["fragments_removed"], 10);
}

#[tokio::test]
async fn indices_survive() {
    for stable_row_ids in [false, true] {
        let table = Table::write(crate::support::rows(0..1000), 100, stable_row_ids).await;
        table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
        table.delete("id % 3 = 0").await;
        let before = table.contents().await;
        table.run(compact("{}")).await.unwrap();
        let dataset = table.open().await;
        assert_eq!(table.contents().await, before);
        assert!(
            filter_plan(&dataset, "id = 500")
                .await
                .contains("ScalarIndexQuery")
        );
        assert_eq!(
            dataset.count_rows(Some("id = 500".into())).await.unwrap(),
            1
        );
        assert_eq!(
            dataset.count_rows(Some("id = 501".into())).await.unwrap(),
            0
        );
    }
}

#[tokio::test]
async fn a_lost_conflict_leaves_nothing_behind() {
    for (stable_row_ids, indexed) in [(false, false), (false, true), (true, true)] {
        let table = Table::write(crate::support::rows(0..1000), 100, stable_row_ids).await;
        if indexed {
            table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
        }
        let ctx = table.context();
        let params = params(compact("{}"));
        let mut opened = open(&ctx).await.unwrap();
        let compaction = Compaction::plan(&opened.dataset, &params, &ctx)
            .await
            .unwrap();
        let rewritten = compaction.rewrite(&opened.dataset, &ctx).await.unwrap();
        assert!(!table.litter().await.is_empty());
        table.delete("id = 500").await;
        let before = table.contents().await;

        let lost = compaction.commit(&mut opened, rewritten, &ctx).await;
        let lost = lost.unwrap().unwrap_err();

        assert!(matches!(lost, Lost::Conflict(_)), "{lost:?}");
        assert_eq!(
            table.litter().await,
            Default::default(),
            "{stable_row_ids} {indexed}"
        );
        assert_eq!(table.contents().await, before);

        // The whole operation gets through afterwards.
        table.run(compact("{}")).await.unwrap();
        assert_eq!(table.contents().await, before);
        assert_eq!(table.litter().await, Default::default());
    }
}

#[tokio::test]
async fn an_append_in_between_is_no_conflict() {
    let table = Table::with_rows(0..1000, 100).await;
    let ctx = table.context();
    let mut opened = open(&ctx).await.unwrap();
    let compaction = Compaction::plan(&opened.dataset, &params(compact("{}")), &ctx)
        .await
        .unwrap();
    let rewritten = compaction.rewrite(&opened.dataset, &ctx).await.unwrap();
    table.append(1000..1100).await;
    let result = compaction.commit(&mut opened, rewritten, &ctx).await;
    let result = result.unwrap().unwrap();
    assert_eq!(result.fragments_removed, 10);
    assert_eq!(table.open().await.count_rows(None).await.unwrap(), 1100);
}

#[tokio::test]
async fn an_overwrite_in_between_ends_the_task() {
    let table = Table::with_rows(0..1000, 100).await;
    let ctx = table.context();
    let mut opened = open(&ctx).await.unwrap();
    let compaction = Compaction::plan(&opened.dataset, &params(compact("{}")), &ctx)
        .await
        .unwrap();
    let rewritten = compaction.rewrite(&opened.dataset, &ctx).await.unwrap();
    table.overwrite(0..10).await;
    let before = table.contents().await;
    let lost = compaction.commit(&mut opened, rewritten, &ctx).await;
    let lost = lost.unwrap().unwrap_err();
    let Lost::Failed(error) = lost else {
        panic!("{lost:?}")
    };
    let error = lance_worker::operations::errors::to_task_error(&error, &Default::default());
    assert_eq!(error.error, ErrorName::ConcurrentModification, "{error}");
    assert_eq!(table.contents().await, before);
    assert_eq!(table.litter().await, Default::default());
}

#[tokio::test]
async fn writers_that_go_on_do_not_keep_it_from_completing() {
    let table = Table::with_rows(0..2000, 50).await;
    let uri = table.uri();
    let writer = tokio::spawn(async move {
        for id in 0..30 {
            let mut dataset = lance::Dataset::open(&uri).await.unwrap();
            // The writer may lose too; then the row stays.
            dataset.delete(&format!("id = {}", id * 60)).await.ok();
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
    let mut ctx = table.context();
    ctx.limits.max_conflict_retries = 20;
    let result = run(&compact("{}"), &ctx).await.unwrap();
    writer.await.unwrap();
    assert!(
        result["fragments_removed"].as_u64().unwrap() >= 40,
        "{result}"
    );
    assert_eq!(table.litter().await, Default::default());
    let left = table.contents().await;
    assert!((1970..=2000).contains(&left.len()), "{}", left.len());
}

#[tokio::test]
async fn a_second_attempt_reports_what_the_first_committed() {
    let table = Table::with_rows(0..1000, 100).await;
    let mut ctx = table.context();
    let first = run(&compact("{}"), &ctx).await.unwrap();
    // Others go on meanwhile.
    table.append(1000..1010).await;
    table.append(1010..1020).await;
    ctx.attempt = 2;
    let second = run(&compact("{}"), &ctx).await.unwrap();
    assert_eq!(second, first);
    assert_eq!(table.open().await.count_fragments(), 3);
    // Another task's attempt does its own work.
    let mut other = table.context();
    other.attempt = 2;
    let result = run(&compact("{}"), &other).await.unwrap();
    assert_eq!(result["fragments_removed"], 3);
}

#[tokio::test]
async fn many_tiny_fragments() {
    let table = Table::with_rows(0..1500, 1).await;
    let before = contents(&table.open().await).await;
    let result = table.run(compact("{}")).await.unwrap();
    assert_eq!(result["fragments_removed"], 1500);
    assert_eq!(table.open().await.count_fragments(), 1);
    assert_eq!(table.contents().await, before);
}

#[tokio::test]
async fn compaction_and_index_update_side_by_side() {
    let table = Table::with_rows(0..1000, 100).await;
    table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    table.append(1000..1100).await;
    table.append(1100..1200).await;
    let before = table.contents().await;
    let (compacted, optimized) = tokio::join!(table.run(compact("{}")), table.run(optimize("{}")));
    compacted.unwrap();
    optimized.unwrap();
    assert_eq!(table.contents().await, before);
    assert_eq!(table.litter().await, Default::default());
}
