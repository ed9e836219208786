use serde_json::Value;

use super::*;
use crate::testing::{SECRET, Served, dispatch, read};

fn check_envelope(headers: &HeaderMap, body: &Value, error: &str, code: i64) {
    assert_eq!(body["error"], error);
    assert_eq!(body["code"], code);
    assert_eq!(body["instance"], headers[REQUEST_ID].to_str().unwrap());
    assert!(body["detail"].as_str().is_some_and(|text| !text.is_empty()));
}

#[tokio::test]
async fn tasks() {
    let worker = Served::with_room(2).await;
    let task = |number| serde_json::to_vec(&dispatch(number, "/a")).unwrap();
    let large = vec![b' '; MAX_BODY + 1];
    let none = ("", 0);
    let denied = ("AccessDenied", 15);
    let invalid = ("InvalidInput", 13);
    let cases = [
        ("good", task(1), SECRET, 0, 202, none),
        (
            "same",
            task(1),
            SECRET,
            0,
            409,
            ("ConcurrentModification", 14),
        ),
        ("delayed", task(2), SECRET, 290, 202, none),
        ("full", task(3), SECRET, 0, 429, ("ServiceUnavailable", 17)),
        (
            "same when full",
            task(2),
            SECRET,
            0,
            409,
            ("ConcurrentModification", 14),
        ),
        ("other secret", task(3), "other", 0, 401, denied),
        ("expired", task(3), SECRET, 310, 401, denied),
        ("empty", vec![], SECRET, 0, 400, invalid),
        ("no JSON", b"{".to_vec(), SECRET, 0, 400, invalid),
        ("no task", b"{}".to_vec(), SECRET, 0, 400, invalid),
        ("no UTF-8", vec![0xff], SECRET, 0, 400, invalid),
        ("bad JSON unsigned", b"{".to_vec(), "other", 0, 401, denied),
        (
            "large",
            large.clone(),
            SECRET,
            0,
            413,
            ("RequestTooLarge", 13),
        ),
        (
            "large unsigned",
            large,
            "other",
            0,
            413,
            ("RequestTooLarge", 13),
        ),
    ];
    for (name, body, secret, age, status, (error, code)) in cases {
        let (seen, headers, body) = worker.post(TASKS_PATH, &body, secret, age).await;
        assert_eq!(seen, status, "{name}: {body}");
        if status != 202 {
            check_envelope(&headers, &body, error, code);
        }
        assert_eq!(headers.contains_key("retry-after"), status == 429, "{name}");
    }
    worker.intake.close();
    let (status, headers, body) = worker.post(TASKS_PATH, &task(4), SECRET, 0).await;
    assert_eq!(status, 503);
    check_envelope(&headers, &body, "ServiceUnavailable", 17);
    assert_eq!(worker.intake.in_hand().len(), 2);
}

#[tokio::test]
async fn what_is_not_a_signed_task() {
    let worker = Served::with_room(1).await;
    let cases = [
        ("POST", TASKS_PATH, 401, "AccessDenied"),
        ("POST", "/v1/tables/describe", 401, "AccessDenied"),
        ("POST", "/v1/tables/exist", 401, "AccessDenied"),
        ("POST", "/v1/tables/versions", 401, "AccessDenied"),
        ("POST", "/v1/tables/commit", 401, "AccessDenied"),
        ("POST", "/v1/tables/purge", 401, "AccessDenied"),
        ("POST", "/v1/tables/write", 401, "AccessDenied"),
        ("GET", "/v1/tables/write", 405, "MethodNotAllowed"),
        ("GET", TASKS_PATH, 405, "MethodNotAllowed"),
        ("POST", "/healthz", 405, "MethodNotAllowed"),
        ("GET", "/", 404, "NoSuchOperation"),
        ("POST", "/v1/tasks/", 404, "NoSuchOperation"),
        // No heartbeat has been answered yet.
        ("GET", "/readyz", 503, "ServiceUnavailable"),
    ];
    for (method, path, status, error) in cases {
        let method = method.parse().unwrap();
        let request = worker
            .client
            .request(method, format!("{}{path}", worker.url));
        let (seen, headers, body) = read(request).await;
        assert_eq!(seen, status, "{path}");
        let code = body["code"].as_i64().unwrap();
        check_envelope(&headers, &body, error, code);
    }
    let request = worker.client.get(format!("{}/healthz", worker.url));
    assert_eq!(read(request).await.0, 200);
}

#[tokio::test]
async fn metrics_say_how_things_are_and_what_was_counted() {
    use std::time::Duration;

    use lance_maintenance_api::task::TaskType;

    use crate::metrics::Ended;
    use crate::operations::supervisor::{Changed, Measure, Phase};

    let worker = Served::with_room(9).await;
    for number in 1..=3 {
        worker.intake.offer(dispatch(number, "/a")).unwrap();
    }
    let _running = worker.intake.next().await.unwrap();
    let _share = worker.desk.memory.reserve(100 << 20).await;
    worker.desk.metrics.heartbeat_unanswered();
    let compactions = worker.desk.metrics.of(TaskType::Compact);
    compactions.ended(Ended::Completed, Duration::from_secs(2));
    compactions.ended(Ended::Lost, Duration::from_secs(100));
    for measure in [
        Measure::Phase(Phase::Work, Duration::from_secs(3)),
        Measure::Conflict,
        Measure::Retry,
        Measure::OrphansRemoved(5),
        Measure::Changed(Changed {
            rows: 7,
            fragments: 2,
            bytes_written: 11,
            bytes_removed: 13,
        }),
    ] {
        compactions.measure(measure);
    }
    let request = worker.client.get(format!("{}/metrics", worker.url));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], CONTENT_TYPE);
    let text = response.text().await.unwrap();
    let of = "{task_type=\"lance_compact\"}";
    for line in [
        "tasks_waiting 2".to_owned(),
        "tasks_running 1".to_owned(),
        "memory_budget_bytes 1073741824".to_owned(),
        "memory_reserved_bytes 104857600".to_owned(),
        "heartbeats_unanswered_total 1".to_owned(),
        "tasks_total{task_type=\"lance_compact\",outcome=\"completed\"} 1".to_owned(),
        "tasks_total{task_type=\"lance_compact\",outcome=\"lost\"} 1".to_owned(),
        format!("task_duration_seconds_sum{of} 102.0"),
        "phase_duration_seconds_count{task_type=\"lance_compact\",phase=\"work\"} 1".to_owned(),
        format!("commit_conflicts_total{of} 1"),
        format!("commit_retries_total{of} 1"),
        format!("orphans_removed_total{of} 5"),
        format!("changed_rows_total{of} 7"),
        format!("changed_fragments_total{of} 2"),
        format!("written_bytes_total{of} 11"),
        format!("removed_bytes_total{of} 13"),
    ] {
        let line = format!("lance_worker_{line}");
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    let oldest = text
        .lines()
        .find_map(|line| line.strip_prefix("lance_worker_oldest_waiting_seconds "));
    assert!(oldest.unwrap().parse::<u64>().unwrap() < 60);
    assert!(text.ends_with("# EOF\n"));
}
