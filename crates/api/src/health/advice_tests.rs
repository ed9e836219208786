use serde_json::{Value, json};

use super::*;
use crate::health::IndexHealth;
use crate::health::samples::*;
use crate::jobs::JobRequest;

/// Rules with their jobs, in order.
fn shown(advice: &[Advice]) -> Value {
    let job = |job: &AdvisedJob| json!([job.operation, job.options]);
    advice
        .iter()
        .map(|advice| match (&advice.job, &advice.then) {
            (Some(first), Some(then)) => json!([advice.rule, job(first), job(then)]),
            (Some(first), None) => json!([advice.rule, job(first)]),
            (None, _) => json!([advice.rule]),
        })
        .collect()
}

fn update(options: Value) -> Value {
    json!(["unindexed_rows", ["optimize_indices", options]])
}

fn merge(name: &str, segments: u64) -> Value {
    json!(["index_segments", ["optimize_indices",
        {"index_names": [name], "num_indices_to_merge": segments}]])
}

#[test]
fn what_is_advised() {
    let everything = json!({"materialize_deletions": true, "materialize_deletions_threshold": -1});
    let cases = [
        ("nothing is known", HealthReport::default(), json!([])),
        ("healthy", healthy(), json!([])),
        ("nothing is missing", with_missing(&[], &[]), json!([])),
        (
            "a file is missing",
            with_missing(&["data/1.lance"], &[]),
            json!([["missing_files"]]),
        ),
        (
            "a folder is missing",
            with_missing(&[], &["_indices/u"]),
            json!([["missing_files"]]),
        ),
        // Indices.
        (
            "one is behind",
            with_indices(healthy(), vec![index("a", 1, 1371, 343)]),
            json!([update(json!({}))]),
        ),
        (
            "two are behind",
            with_indices(healthy(), vec![index("a", 1, 0, 5), index("b", 1, 1, 4)]),
            json!([update(json!({}))]),
        ),
        (
            "covers more than there is",
            with_indices(healthy(), vec![index("a", 1, 9, -3)]),
            json!([]),
        ),
        (
            "rows are not known",
            with_indices(
                healthy(),
                vec![IndexHealth {
                    num_unindexed_rows: None,
                    ..index("a", 1, 9, 0)
                }],
            ),
            json!([]),
        ),
        (
            "one in segments, one behind",
            with_indices(healthy(), vec![index("a", 5, 9, 3), index("b", 1, 9, 3)]),
            json!([merge("a", 5), update(json!({"index_names": ["b"]}))]),
        ),
        (
            "two in segments",
            with_indices(healthy(), vec![index("a", 2, 9, 0), index("b", 3, 9, 0)]),
            json!([merge("a", 2), merge("b", 3)]),
        ),
        (
            "no rows",
            HealthReport {
                num_rows: Some(0),
                ..with_indices(healthy(), vec![index("a", 2, 0, 0)])
            },
            json!([]),
        ),
        // Compaction.
        (
            "many fragments",
            fragmented(),
            json!([["compaction", ["compact", {}]]]),
        ),
        (
            "Lance sees nothing to do",
            HealthReport {
                compaction_tasks: Some(0),
                ..fragmented()
            },
            json!([]),
        ),
        (
            "Lance's tasks are not known",
            HealthReport {
                compaction_tasks: None,
                ..fragmented()
            },
            json!([]),
        ),
        (
            "we see nothing to do",
            with_outlook(fragmented(), |outlook| outlook.tasks = 0),
            json!([]),
        ),
        (
            "not worth it",
            with_outlook(fragmented(), |outlook| outlook.is_worthwhile = false),
            json!([]),
        ),
        (
            "wide rows",
            with_outlook(fragmented(), |outlook| {
                outlook.target_rows_per_fragment = Some(1342);
            }),
            json!([["compaction", ["compact", {"target_rows_per_fragment": 1342}]]]),
        ),
        (
            "an index loses its rows",
            with_indices(
                fragmented(),
                vec![
                    index("a", 1, 9, 0),
                    index("zone", 1, 9, 0),
                    index("zone_empty", 1, 0, 0),
                ],
            ),
            json!([["compaction", ["compact", {}], ["optimize_indices", {"index_names": ["zone"]}]]]),
        ),
        (
            "and is behind before",
            with_indices(fragmented(), vec![index("zone", 1, 0, 9)]),
            json!([
                update(json!({})),
                ["compaction", ["compact", {}], ["optimize_indices", {"index_names": ["zone"]}]]
            ]),
        ),
        // Files of columns.
        (
            "eleven files",
            with_files(healthy(), 11, 20),
            json!([["column_files", ["compact", everything]]]),
        ),
        ("eight files", with_files(healthy(), 8, 20), json!([])),
        (
            "in half of the fragments",
            with_files(healthy(), 9, 10),
            json!([["column_files", ["compact", everything]]]),
        ),
        ("in fewer", with_files(healthy(), 9, 9), json!([])),
        (
            "all are compacted anyway",
            with_files(fragmented(), 11, 20),
            json!([["compaction", ["compact", {}]]]),
        ),
        (
            "some are",
            with_files(
                with_outlook(fragmented(), |outlook| outlook.fragments_rewritten = 3),
                11,
                20,
            ),
            json!([
                ["compaction", ["compact", {}]],
                ["column_files", ["compact", everything]]
            ]),
        ),
        (
            "of wide rows, and an index loses them",
            with_indices(
                with_outlook(with_files(healthy(), 11, 20), |outlook| {
                    outlook.target_rows_per_fragment = Some(7);
                }),
                vec![index("zone", 1, 9, 0)],
            ),
            json!([["column_files",
                ["compact", {"materialize_deletions": true, "materialize_deletions_threshold": -1,
                             "target_rows_per_fragment": 7}],
                ["optimize_indices", {"index_names": ["zone"]}]]]),
        ),
        // What is under way.
        (
            "a compaction runs",
            with_task(
                with_files(
                    with_indices(fragmented(), vec![index("a", 1, 9, 1)]),
                    11,
                    20,
                ),
                JobOperation::Compact,
            ),
            json!([update(json!({}))]),
        ),
        (
            "an update runs",
            with_task(
                with_indices(fragmented(), vec![index("a", 2, 9, 1), index("b", 1, 9, 1)]),
                JobOperation::OptimizeIndices,
            ),
            json!([["compaction", ["compact", {}]]]),
        ),
        (
            "something else runs",
            with_task(fragmented(), JobOperation::CreateScalarIndex),
            json!([["compaction", ["compact", {}]]]),
        ),
        (
            "nobody wants space",
            with_versions(7, 1000, Some(8 * 24 * 3600)),
            json!([]),
        ),
    ];
    for (case, report, expected) in cases {
        let advice = advise(&report, false);
        assert_eq!(shown(&advice), expected, "{case}");
        check_jobs(&advice);
    }
}

#[test]
fn old_versions_where_space_is_wanted() {
    let week = json!([["old_versions", ["cleanup", {"older_than_seconds": 604_800}]]]);
    let hour = json!([["old_versions", ["cleanup", {"older_than_seconds": 3600}]]]);
    let newest = json!([["old_versions", ["cleanup", {"retain_versions": 1}]]]);
    let cases = [
        ((7, 1000, Some(604_801)), &week),
        ((7, 1000, None), &week),
        ((7, 1000, Some(604_800)), &hour),
        ((7, 1000, Some(3601)), &hour),
        ((7, 1000, Some(3600)), &newest),
        ((7, 1000, Some(0)), &newest),
        ((7, 0, Some(604_801)), &json!([])),
        ((1, 1000, Some(604_801)), &json!([])),
    ];
    for ((versions, reclaimable, age), expected) in cases {
        let report = with_versions(versions, reclaimable, age);
        let advice = advise(&report, true);
        assert_eq!(
            &shown(&advice),
            expected,
            "{versions} {reclaimable} {age:?}"
        );
        check_jobs(&advice);
        let report = with_task(report, JobOperation::Cleanup);
        assert_eq!(
            advise(&report, true),
            [],
            "{versions} {reclaimable} {age:?}"
        );
    }
}

/// Every job can be submitted as it is.
fn check_jobs(advice: &[Advice]) {
    for job in advice
        .iter()
        .flat_map(|advice| advice.job.iter().chain(&advice.then))
    {
        let body = serde_json::to_vec(job).unwrap();
        JobRequest::parse(&body).unwrap();
    }
}
