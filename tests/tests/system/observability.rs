//! What the service says about itself: metrics of the worker, and one request followed through the logs.

use std::fs;
use std::time::Duration;

use lance_maintenance_tests::client::Call;
use serde_json::{Value, json};

use crate::support::{busy, client, service};

async fn text_of(url: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    answer.text().await.unwrap()
}

/// The value of a metric of the worker; 0 if nothing was counted yet.
async fn metric(name: &str) -> f64 {
    let worker = service().facts().unwrap().worker;
    let text = text_of(&format!("{worker}/metrics")).await;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0.0, |value| value.parse().unwrap())
}

fn lines(log: &str) -> Vec<String> {
    let path = service().folder().join("logs").join(log);
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_request_can_be_followed_and_its_work_is_counted() {
    let table = busy("observability", "followed").await;
    let completed = r#"lance_worker_tasks_total{task_type="lance_compact",outcome="completed"}"#;
    let written = r#"lance_worker_written_bytes_total{task_type="lance_compact"}"#;
    let before = (metric(completed).await, metric(written).await);

    let call = Call::post(table.path("compact"), "{}");
    let answer = client().call(call).await.unwrap();
    let request_id = answer.header("x-oss-request-id").unwrap().to_owned();
    let task_id = answer.success().unwrap()["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let task = table.wait(&task_id, |_| ()).await.unwrap();
    assert_eq!(task["status"], "completed");

    // Others may have been counted as well.
    assert!(metric(completed).await >= before.0 + 1.0);
    assert!(metric(written).await > before.1);
    for phase in ["plan", "wait", "work", "commit"] {
        let name = format!(
            "lance_worker_phase_duration_seconds_count{{task_type=\"lance_compact\",phase=\"{phase}\"}}"
        );
        assert!(metric(&name).await >= 1.0, "{phase}");
    }

    // The application's line about the answer may come after the answer.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let of_request = |line: &&String| line.contains(&request_id);
    let application = lines("lance-local-host.log");
    let said: Vec<Value> = application
        .iter()
        .filter(of_request)
        .filter_map(|line| {
            let said = &line[line.find('{')?..];
            // The host puts the component behind it.
            let mut values = serde_json::Deserializer::from_str(said).into_iter();
            values.next()?.ok()
        })
        .collect();
    let answered = said
        .iter()
        .find(|line| line["message"] == "answered")
        .unwrap();
    let expected = json!({"method": "POST", "path": table.path("compact"), "status": 200});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(answered[name], *value, "{answered}");
    }
    let asked = application.iter().filter(|line| line.contains(&task_id));
    assert!(asked.filter(|line| line.contains("a worker asked")).count() >= 2);
    let worker = lines("lance-worker.log");
    let of_task = worker
        .iter()
        .filter(of_request)
        .filter(|line| line.contains(&task_id));
    for said in ["queued", "started", "completed"] {
        assert!(of_task.clone().any(|line| line.contains(said)), "{said}");
    }
}
