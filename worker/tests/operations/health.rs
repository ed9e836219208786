//! What a health check says about tables of all kinds.

mod files;
mod large;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{BinaryArray, Int64Array, RecordBatch};
use lance::dataset::NewColumnTransform;
use lance_maintenance_api::ApiError;
use lance_maintenance_api::health::advice::{Rule, advise};
use lance_maintenance_api::health::{
    ColumnFiles, CompactionOutlook, FragmentSizes, HealthReport, IndexHealth,
};
use lance_maintenance_api::jobs::JobRequest;
use lance_maintenance_dispatch::tables::CheckHealth;
use lance_worker::operations::Limits;
use lance_worker::storage::StorageOptions;
use lance_worker::tables::{Tables, health};

use crate::support::{self, Table, batch, optimize, scalar, vector};

async fn ask(location: &str, check_files: bool) -> Result<HealthReport, ApiError> {
    let place = Tables::new(StorageOptions::default(), Limits::default())
        .place(location)
        .await?;
    let request = CheckHealth {
        location: location.to_owned(),
        check_files,
    };
    health::check(&place, &request).await
}

/// The health of the table, which is the same afterwards.
async fn check(table: &Table, check_files: bool) -> HealthReport {
    let before = support::files(&table.path());
    let report = ask(&table.uri(), check_files).await.unwrap();
    assert_eq!(support::files(&table.path()), before);
    report
}

/// The health of a table about which everything is known.
async fn sound(table: &Table) -> HealthReport {
    let report = check(table, true).await;
    assert_eq!(report.errors, BTreeMap::new());
    assert_eq!(report.missing, Some(Default::default()));
    report
}

/// Rows, fragments, deleted rows, small fragments and tasks.
fn numbers(report: &HealthReport) -> [Option<u64>; 5] {
    [
        report.num_rows,
        report.num_fragments,
        report.num_deleted_rows,
        report.num_small_fragments,
        report.compaction_tasks,
    ]
}

fn rules(report: &HealthReport) -> Vec<Rule> {
    let advice = advise(report, true);
    advice.into_iter().map(|advice| advice.rule).collect()
}

/// Runs the jobs that are advised.
async fn follow(table: &Table, report: &HealthReport) {
    for advice in advise(report, false) {
        for job in advice.job.iter().chain(&advice.then) {
            let body = serde_json::to_vec(job).unwrap();
            let request = JobRequest::parse(&body).unwrap();
            table.run(request.params).await.unwrap();
        }
    }
}

/// 200 000 bytes that can't be compressed.
fn noise(id: i64) -> Vec<u8> {
    let mut state = id as u64 + 1;
    let numbers = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    numbers.take(25_000).flatten().collect()
}

async fn configured(values: &[(&str, &str)]) -> Table {
    let table = Table::with_rows(0..1000, 100).await;
    table
        .open()
        .await
        .update_config(values.iter().copied())
        .await
        .unwrap();
    table
}

#[tokio::test]
async fn a_fresh_table_is_healthy() {
    let table = Table::with_rows(0..10, 100).await;
    let report = sound(&table).await;
    assert_eq!(report.table, table.uri());
    assert_eq!(report.version, Some(1));
    assert_eq!(numbers(&report), [10, 1, 0, 1, 0].map(Some));
    assert_eq!(report.small_fragment_threshold_rows, Some(1_048_576));
    assert_eq!(report.compaction_budget, Some(BTreeMap::new()));
    assert_eq!(report.num_versions, Some(1));
    assert_eq!(report.tags, Some(BTreeMap::new()));
    assert_eq!(report.auto_cleanup, Some(BTreeMap::new()));
    assert_eq!(report.indices, Some(Vec::new()));
    assert_eq!(report.branches, Some(Vec::new()));
    assert_eq!(report.compaction, Some(CompactionOutlook::default()));
    let oldest = report.oldest_version.clone().unwrap();
    assert_eq!(oldest.version, 1);
    assert!(oldest.age_seconds < 60, "{oldest:?}");

    let found = support::files(&table.path());
    let data: u64 = found
        .iter()
        .filter(|(name, _)| name.starts_with("data/"))
        .map(|(_, size)| size)
        .sum();
    let bytes = report.bytes.clone().unwrap();
    assert_eq!(bytes.total, found.values().sum::<u64>());
    assert_eq!((bytes.live, bytes.reclaimable), (bytes.total, 0));
    assert_eq!(report.average_row_bytes, Some(data / 10));
    assert_eq!(
        report.fragment_sizes,
        Some(vec![FragmentSizes {
            from_rows: 1,
            below_rows: Some(1000),
            num_fragments: 1,
            num_rows: 10,
            bytes: data,
        }])
    );
    assert_eq!(
        report.column_files,
        Some(ColumnFiles {
            num_files: 1,
            most_per_fragment: 1,
            num_fragments_with_several: 0,
        })
    );
    assert_eq!(rules(&report), []);
    assert_eq!(check(&table, false).await.missing, None);
}

#[tokio::test]
async fn many_small_appends_want_a_compaction() {
    let table = Table::with_rows(0..5, 100).await;
    for n in 1..20 {
        table.append(n * 5..n * 5 + 5).await;
    }
    let report = sound(&table).await;
    assert_eq!(numbers(&report), [100, 20, 0, 20, 1].map(Some));
    assert_eq!(report.num_versions, Some(20));
    let outlook = report.compaction.clone().unwrap();
    let data = report.fragment_sizes.as_ref().unwrap()[0].bytes;
    assert_eq!(
        outlook,
        CompactionOutlook {
            target_rows_per_fragment: None,
            tasks: 1,
            fragments_rewritten: 20,
            fragments_added: 1,
            rows_rewritten: 100,
            deleted_rows_dropped: 0,
            bytes_rewritten: data,
            is_worthwhile: true,
            is_over_budget: false,
        }
    );
    assert_eq!(rules(&report), [Rule::Compaction, Rule::OldVersions]);
}

#[tokio::test]
async fn deleted_rows_are_counted() {
    let table = configured(&[("lance.compaction.target_rows_per_fragment", "100")]).await;
    table.delete("id < 20 or id >= 950").await;
    let report = sound(&table).await;
    // Two fragments have lost so many rows that it is worth it; none is small by what it stores.
    assert_eq!(numbers(&report), [930, 10, 70, 0, 2].map(Some));
    let outlook = report.compaction.clone().unwrap();
    assert_eq!(outlook.fragments_rewritten, 2);
    assert_eq!(outlook.deleted_rows_dropped, 70);
    assert!(outlook.is_worthwhile);
}

#[tokio::test]
async fn what_the_configuration_says() {
    const TARGET: &str = "lance.compaction.target_rows_per_fragment";
    for (value, threshold, small, tasks) in [
        ("100", 100, 0, 0),
        ("101", 101, 10, 5),
        ("0", 1_048_576, 10, 0),
    ] {
        let report = sound(&configured(&[(TARGET, value)]).await).await;
        assert_eq!(
            report.small_fragment_threshold_rows,
            Some(threshold),
            "{value}"
        );
        let expected = [1000, 10, 0, small, tasks].map(Some);
        assert_eq!(numbers(&report), expected, "{value}");
    }
    let report = check(&configured(&[(TARGET, "x")]).await, true).await;
    let sections: Vec<&str> = report.errors.keys().map(String::as_str).collect();
    assert_eq!(sections, ["compaction", "fragments", "outlook"]);
    assert_eq!(numbers(&report), [Some(1000), None, None, None, None]);
    assert!(report.errors["fragments"].contains("'x'"), "{report:?}");
    assert!(report.bytes.is_some() && report.fragment_sizes.is_some());

    // A budget does not hide what there is to do.
    let budgeted = configured(&[
        ("lance.compaction.max_source_rows", "1"),
        ("lance.compaction.max_source_fragments", "03"),
        ("lance.auto_cleanup.interval", "20"),
        ("lance.auto_cleanup.older_than", "14d"),
        ("other", "thing"),
    ]);
    let report = sound(&budgeted.await).await;
    let owned = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Some(BTreeMap::from_iter(pairs))
    };
    assert_eq!(
        report.compaction_budget,
        owned(&[("max_source_fragments", "03"), ("max_source_rows", "1")])
    );
    assert_eq!(
        report.auto_cleanup,
        owned(&[
            ("lance.auto_cleanup.interval", "20"),
            ("lance.auto_cleanup.older_than", "14d")
        ])
    );
    assert_eq!(report.compaction_tasks, Some(1));
    assert_eq!(report.compaction.unwrap().tasks, 1);
}

#[tokio::test]
async fn wide_rows_get_another_target() {
    let wide = |ids: std::ops::Range<i64>| -> RecordBatch {
        let values = ids.clone().map(noise);
        batch(vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
            ("wide", Arc::new(BinaryArray::from_iter_values(values))),
        ])
    };
    let table = Table::write(wide(0..20), 1000, false).await;
    for n in 1..5 {
        table.append_batch(wide(n * 20..n * 20 + 20)).await;
    }
    let report = sound(&table).await;
    assert_eq!(numbers(&report), [100, 5, 0, 5, 1].map(Some));
    let row = report.average_row_bytes.unwrap();
    assert!((200_000..210_000).contains(&row), "{row}");
    let outlook = report.compaction.clone().unwrap();
    assert_eq!(outlook.target_rows_per_fragment, Some((256 << 20) / row));
    assert_eq!((outlook.tasks, outlook.fragments_added), (1, 1));
    assert!(outlook.is_worthwhile);
}

#[tokio::test]
async fn added_columns_are_files_of_their_own() {
    let table = Table::with_rows(0..200, 100).await;
    let mut dataset = table.open().await;
    for n in 0..10 {
        let column = vec![(format!("c{n}"), "id + 1".to_owned())];
        let transform = NewColumnTransform::SqlExpressions(column);
        dataset.add_columns(transform, None, None).await.unwrap();
    }
    table
        .open()
        .await
        .update_config([("lance.compaction.target_rows_per_fragment", "100")])
        .await
        .unwrap();
    let report = sound(&table).await;
    assert_eq!(numbers(&report), [200, 2, 0, 0, 0].map(Some));
    assert_eq!(
        report.column_files,
        Some(ColumnFiles {
            num_files: 22,
            most_per_fragment: 11,
            num_fragments_with_several: 2,
        })
    );
    assert_eq!(rules(&report), [Rule::ColumnFiles, Rule::OldVersions]);
    follow(&table, &report).await;
    let report = sound(&table).await;
    assert_eq!(report.column_files.as_ref().unwrap().most_per_fragment, 1);
    assert_eq!(rules(&report), [Rule::OldVersions]);
}

#[tokio::test]
async fn what_indices_cover() {
    let table = Table::with_rows(0..1000, 500).await;
    for body in [
        r#"{"column":"id","index_type":"BTREE"}"#,
        r#"{"column":"kind","index_type":"ZONEMAP"}"#,
    ] {
        table.run(scalar(body)).await.unwrap();
    }
    let index =
        r#"{"column":"vector","index_type":"IVF_FLAT","metric_type":"l2","num_partitions":1}"#;
    table.run(vector(index)).await.unwrap();
    for n in 0..4 {
        table.append(1000 + n * 10..1010 + n * 10).await;
        let body = r#"{"index_names":["vector_idx"],"num_indices_to_merge":0}"#;
        table.run(optimize(body)).await.unwrap();
    }
    let health = |name: &str, index_type: &str, segments, indexed, unindexed| IndexHealth {
        name: name.to_owned(),
        index_type: index_type.to_owned(),
        num_segments: segments,
        num_rows_indexed: indexed,
        num_unindexed_rows: Some(unindexed),
        loses_coverage_in_compaction: index_type == "ZoneMap",
    };
    let report = sound(&table).await;
    assert_eq!(
        report.indices,
        Some(vec![
            health("id_idx", "BTree", 1, 1000, 40),
            health("kind_idx", "ZoneMap", 1, 1000, 40),
            health("vector_idx", "IVF_FLAT", 5, 1040, 0),
        ])
    );
    let advice = advise(&report, false);
    let jobs: Vec<_> = advice
        .iter()
        .map(|advice| serde_json::to_value(&advice.job.as_ref().unwrap().options).unwrap())
        .collect();
    assert_eq!(
        jobs[..2],
        [
            serde_json::json!({"index_names": ["vector_idx"], "num_indices_to_merge": 5}),
            serde_json::json!({"index_names": ["id_idx", "kind_idx"]}),
        ]
    );

    // What was advised leaves nothing to advise.
    follow(&table, &report).await;
    let report = sound(&table).await;
    assert_eq!(advise(&report, false), []);
    assert_eq!(
        report.indices.unwrap()[1],
        health("kind_idx", "ZoneMap", 1, 1040, 0)
    );
}

#[tokio::test]
async fn a_table_without_rows() {
    let table = Table::with_rows(0..0, 100).await;
    let report = sound(&table).await;
    assert_eq!(numbers(&report), [0, 0, 0, 0, 0].map(Some));
    assert_eq!(report.average_row_bytes, None);
    assert_eq!(report.fragment_sizes, Some(Vec::new()));
    assert_eq!(rules(&report), []);
    let body = r#"{"column":"id","index_type":"BTREE"}"#;
    table.run(scalar(body)).await.unwrap();
    let indices = sound(&table).await.indices.unwrap();
    assert_eq!(indices.len(), 1);
    assert_eq!(indices[0].num_unindexed_rows, Some(0));
}
