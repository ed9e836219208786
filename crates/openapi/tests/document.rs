//! The document as a whole.

use std::collections::BTreeSet;

use lance_maintenance_api::health::HealthReport;
use lance_maintenance_api::jobs::{JobRequest, JobStatus};
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::params::{BackfillColumnParams, CompactParams};
use lance_maintenance_api::preview::{
    CleanupPreview, CompactPreview, IndexPreview, OptimizeIndicesPreview, Preview,
};
use lance_maintenance_api::result::BackfillColumnResult;
use lance_maintenance_api::task::{GetTaskResponse, TaskStatus};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::Credential;
use lance_maintenance_openapi::operations::{COMMON, entry};
use lance_maintenance_openapi::{document, text};
use serde_json::{Value, json};

const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

#[test]
fn the_stored_document_is_up_to_date() {
    let stored = std::fs::read_to_string(STORED).unwrap_or_default();
    assert!(
        stored == text(),
        "docs/openapi.json is not up to date. Write it anew:\n\n    \
         cargo run -p lance-maintenance-openapi > docs/openapi.json\n"
    );
}

#[test]
fn every_operation_is_there_once() {
    let document = document();
    for operation in Operation::ALL {
        let method = operation.method().to_ascii_lowercase();
        let described = &document["paths"][operation.path()][&method];
        assert_eq!(described["operationId"], operation.name());
        let description = described["description"].as_str().unwrap();
        assert!(description.contains(operation.action()), "{description}");
        let statuses: BTreeSet<&str> = described["responses"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for name in COMMON.iter().chain(entry(*operation).errors) {
            assert!(statuses.contains(name.status().to_string().as_str()));
        }
        assert_eq!(
            statuses.contains("500"),
            *operation == Operation::SubmitLanceTableCompactTask,
            "{operation:?}"
        );
    }
    let operations: usize = document["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| path.as_object().unwrap().len())
        .sum();
    // And the health check.
    assert_eq!(operations, Operation::ALL.len() + 1);
}

#[test]
fn references_lead_somewhere_and_components_are_used() {
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses", "headers"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(found.contains(&reference), "{reference} is not used");
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.insert(reference.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(elements) => elements.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// What the API's types become on the wire fits the schemas that are made of them.
#[test]
fn answers_fit_their_schemas() {
    let task = |status: &str, result: Value, error: Value| {
        json!({"task_info": {
            "task_id": "10000000000111111111111111111111",
            "task_type": "lance_cleanup",
            "params": {
                "older_than": "7d",
                "retain_versions": 0,
                "delete_unverified": false,
                "error_if_tagged_old_versions": false,
            },
            "status": status,
            "created_at": "2026-09-18T04:00:00.000000+00:00",
            "started_at": "",
            "completed_at": "",
            "result": result,
            "error": error,
        }})
    };
    let cleaned = json!({
        "bytes_removed": 1,
        "old_versions": 1,
        "data_files_removed": 0,
        "transaction_files_removed": 0,
        "index_files_removed": 0,
        "deletion_files_removed": 0,
    });
    let failed = json!({"error": "TableNotFound", "code": 4, "detail": "Gone."});
    let mut wrong_id = task("submitted", json!({}), Value::Null);
    wrong_id["task_info"]["task_id"] = json!("1");
    let credential = Credential::parse(
        br#"{"access_key_id":"a","secret_access_key":"12345678","expires_at":"2027-01-01T00:00:00Z",
            "policy":{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}}"#,
    );
    let credential = serde_json::to_value(credential.unwrap().info()).unwrap();
    let refusal = ApiError::new(ErrorName::TaskNotFound, "No such task.").body("R");
    let cases = [
        (
            "GetTaskResponse",
            task("submitted", json!({}), Value::Null),
            true,
        ),
        (
            "GetTaskResponse",
            task("completed", cleaned.clone(), Value::Null),
            true,
        ),
        ("GetTaskResponse", task("failed", json!({}), failed), true),
        (
            "GetTaskResponse",
            task("completed", json!({"x": 1}), Value::Null),
            false,
        ),
        ("GetTaskResponse", wrong_id, false),
        ("CleanupResult", cleaned, true),
        ("CleanupResult", json!({"bytes_removed": 1}), false),
        ("Credential", credential, true),
        ("ErrorBody", serde_json::to_value(refusal).unwrap(), true),
        (
            "ErrorBody",
            json!({"error": "Nonsense", "code": 1, "detail": "", "instance": ""}),
            false,
        ),
        ("Empty", json!({}), true),
        (
            "DropTableResponse",
            json!({"id": ["a", "b"], "location": "x", "properties": {}}),
            true,
        ),
        (
            "DropTableResponse",
            json!({"id": ["a", "b"], "properties": {}}),
            false,
        ),
    ];
    fit(cases);
    let read: GetTaskResponse =
        serde_json::from_value(task("paused", json!({}), Value::Null)).unwrap();
    assert_eq!(
        read.task_info.status,
        TaskStatus::Other("paused".to_owned())
    );
}

fn fit(cases: impl IntoIterator<Item = (&'static str, Value, bool)>) {
    let mut schema = document();
    for (name, answer, fits) in cases {
        schema["$ref"] = json!(format!("#/components/schemas/{name}"));
        let valid = jsonschema::draft202012::is_valid(&schema, &answer);
        assert_eq!(valid, fits, "{name}: {answer}");
    }
}

/// What was left out of a job is null in the task that it is, until that has run.
#[test]
fn tasks_that_were_submitted_as_jobs_fit() {
    let task = |params: Value| {
        json!({"task_info": {
            "task_id": "10000000000111111111111111111111",
            "task_type": "lance_compact",
            "params": params,
            "status": "submitted",
            "created_at": "2026-09-18T04:00:00.000000+00:00",
            "started_at": "",
            "completed_at": "",
            "result": {},
            "error": null,
        }})
    };
    let request = JobRequest::parse(br#"{"operation":"compact"}"#).unwrap();
    let stored = serde_json::to_value(request.params).unwrap();
    let filled = CompactParams::parse(b"", "reencode").unwrap();
    let mut wrong = stored["params"].clone();
    wrong["target_rows_per_fragment"] = json!("5");
    fit([
        ("GetTaskResponse", task(stored["params"].clone()), true),
        (
            "GetTaskResponse",
            task(serde_json::to_value(filled).unwrap()),
            true,
        ),
        ("GetTaskResponse", task(wrong), false),
    ]);
}

/// A backfill as it is shown as a task and as a job.
#[test]
fn backfills_fit_their_schemas() {
    let task = |params: Value, result: Value| {
        json!({"task_info": {
            "task_id": "60000000000111111111111111111111",
            "task_type": "lance_backfill_column",
            "params": params,
            "status": "completed",
            "created_at": "2026-11-30T04:00:00.000000+00:00",
            "started_at": "2026-11-30T04:00:01.000000+00:00",
            "completed_at": "2026-11-30T04:00:02.000000+00:00",
            "result": result,
            "error": null,
        }})
    };
    let params = BackfillColumnParams::parse(br#"{"column":"c","where":"id > 5","task_size":7}"#);
    let params = serde_json::to_value(params.unwrap()).unwrap();
    let mut wrong = params.clone();
    wrong["task_size"] = json!("7");
    let result = serde_json::to_value(BackfillColumnResult {
        column: "c".to_owned(),
        rows_filled: 10,
        fragments_filled: 1,
        version: 3,
        ..BackfillColumnResult::default()
    })
    .unwrap();
    let mut of_job = result.clone();
    of_job.as_object_mut().unwrap().remove("version");
    let job = |result: &Value| {
        json!({
            "job_id": "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab.60000000000111111111111111111111",
            "state": "succeeded",
            "operation": "backfill_column",
            "options": params,
            "task_id": "60000000000111111111111111111111",
            "created_at": "2026-11-30T04:00:00.000000+00:00",
            "started_at": "2026-11-30T04:00:01.000000+00:00",
            "completed_at": "2026-11-30T04:00:02.000000+00:00",
            "result": result,
            "version": 3,
        })
    };
    fit([
        (
            "GetTaskResponse",
            task(params.clone(), result.clone()),
            true,
        ),
        ("GetTaskResponse", task(params.clone(), json!({})), true),
        ("GetTaskResponse", task(wrong, result.clone()), false),
        (
            "GetTaskResponse",
            task(params.clone(), of_job.clone()),
            false,
        ),
        ("JobStatus", job(&of_job), true),
        ("JobStatus", job(&json!({"column": "c"})), false),
        ("AddColumnsResponse", json!({"version": 2}), true),
        ("AddColumnsResponse", json!({}), false),
        ("BackfillColumnResponse", json!({"job_id": "x"}), true),
        ("BackfillColumnResponse", json!({"task_id": "x"}), false),
    ]);
}

#[test]
fn jobs_and_reports_fit_their_schemas() {
    let job = |state: &str, more: Value| {
        let mut job = json!({
            "job_id": "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab.10000000000111111111111111111111",
            "state": state,
            "operation": "compact",
            "options": {},
            "task_id": "10000000000111111111111111111111",
            "created_at": "2026-09-18T04:00:00.000000+00:00",
            "started_at": "",
            "completed_at": "",
        });
        for (name, value) in more.as_object().unwrap() {
            job[name] = value.clone();
        }
        // Nothing is in the cases that the type does not know.
        if let Ok(read) = serde_json::from_value::<JobStatus>(job.clone()) {
            assert_eq!(serde_json::to_value(read).unwrap(), job);
        }
        job
    };
    let compacted = json!({
        "fragments_removed": 20, "fragments_added": 1, "files_removed": 20, "files_added": 1,
    });
    let succeeded = job(
        "succeeded",
        json!({
            "result": compacted, "version": 8,
            "progress": {"percent": 100, "message": "done"},
        }),
    );
    let report = HealthReport {
        table: "s3://b/t.lance".to_owned(),
        num_rows: Some(7),
        ..HealthReport::default()
    };
    let mut advised = serde_json::to_value(&report).unwrap();
    advised["advice"] = json!([{
        "rule": "compaction", "reason": "Small.", "numbers": {"tasks": 1},
        "job": {"operation": "compact", "options": {}},
        "then": {"operation": "optimize_indices", "options": {"index_names": ["z"]}},
    }, {
        "rule": "missing_files", "reason": "Gone.", "numbers": {}, "job": null,
    }]);
    let mut misnamed = advised.clone();
    misnamed["advice"][0]["rule"] = json!("Compaction");
    let mut indexed = serde_json::to_value(&report).unwrap();
    indexed["indices"] = json!([{
        "name": "i", "index_type": "BTree", "num_segments": 1, "num_rows_indexed": 5,
        "num_unindexed_rows": null, "loses_coverage_in_compaction": false,
    }]);
    let previews = [
        Preview::Compact(CompactPreview::default()),
        Preview::OptimizeIndices(OptimizeIndicesPreview {
            indices: vec![IndexPreview::default()],
            ..OptimizeIndicesPreview::default()
        }),
        Preview::Cleanup(CleanupPreview::default()),
    ];
    fit(previews.map(|preview| ("Preview", serde_json::to_value(preview).unwrap(), true)));
    let canceled = json!({"error": {"code": "canceled", "message": "Stopped."}});
    fit([
        ("JobStatus", job("queued", json!({})), true),
        (
            "JobStatus",
            job("running", json!({"cancel_requested": true})),
            true,
        ),
        ("JobStatus", succeeded.clone(), true),
        ("JobStatus", job("canceled", canceled), true),
        ("JobStatus", job("completed", json!({})), false),
        ("JobStatus", job("succeeded", json!({"result": {}})), false),
        (
            "JobStatus",
            job("failed", json!({"error": {"code": "x", "message": ""}})),
            false,
        ),
        ("ListJobsResponse", json!({"jobs": [succeeded]}), true),
        (
            "ListJobsResponse",
            json!({"jobs": [], "page_token": "x"}),
            true,
        ),
        ("HealthReport", serde_json::to_value(&report).unwrap(), true),
        ("HealthReport", advised, true),
        ("HealthReport", misnamed, false),
        ("HealthReport", indexed, true),
        ("HealthReport", json!({}), false),
        ("Preview", json!({"tasks": 1}), false),
    ]);
}
