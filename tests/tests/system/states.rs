//! The states of a task, and what may be deleted in which. The service's own worker is halted here;
//! the test itself does what a worker does.

use std::time::{SystemTime, UNIX_EPOCH};

use lance_maintenance_dispatch::{CLAIM_PATH, FINISH_PATH, PROGRESS_PATH, signature};
use lance_maintenance_tests::client::{Answer, Call, Table};
use lance_maintenance_tests::harness::{Server, signal};
use serde_json::{Value, json};

use crate::support::{
    Refusal, TASK_NOT_FOUND, TASK_STATE_CONFLICT, assert_accepted, assert_refused, declared_by,
};

const LOST: Refusal = (409, "ConcurrentModification", 14);

/// A worker that does not answer, until this is dropped.
struct Halted(u32);

impl Halted {
    fn new(server: &Server) -> Self {
        let process = server.facts().unwrap().worker_pid.unwrap();
        signal("STOP", process).unwrap();
        Self(process)
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        signal("CONT", self.0).unwrap();
    }
}

/// A message of a worker.
struct Worker<'a> {
    server: &'a Server,
    name: &'a str,
}

impl Worker<'_> {
    async fn send(&self, path: &str, table_id: &str, task_id: &str, more: Value) -> Answer {
        let text = std::fs::read(self.server.folder().join("secrets.json")).unwrap();
        let secrets: Value = serde_json::from_slice(&text).unwrap();
        let mut message = json!({
            "worker_id": self.name, "table_id": table_id, "task_id": task_id, "attempt": 1,
        });
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        let body = message.to_string();
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let secret = secrets["worker_secret"].as_str().unwrap();
        let signed = signature::sign(secret, "POST", path, now, body.as_bytes());
        let call = Call::post(path, body)
            .header(signature::SIGNATURE_HEADER, signed)
            .header(signature::TIMESTAMP_HEADER, now.to_string());
        self.server.client().unwrap().send(call).await.unwrap()
    }
}

async fn info(table: &Table, task_id: &str) -> Value {
    let path = table.path(&format!("tasks/{task_id}"));
    table.client().get(&path).await.unwrap()["task_info"].clone()
}

async fn delete(table: &Table, task_id: &str) -> Answer {
    let call = Call::delete(table.path(&format!("tasks/{task_id}")));
    table.client().call(call).await.unwrap()
}

#[tokio::test]
async fn from_submitted_to_deleted() {
    let server = Server::start(&[]).unwrap();
    let client = server.client().unwrap();
    let table = declared_by(&client, "states", "t").await;
    let table_id = table.uuid().await.unwrap();
    let halted = Halted::new(&server);
    let (own, other) = (
        Worker {
            server: &server,
            name: "own",
        },
        Worker {
            server: &server,
            name: "other",
        },
    );
    let ends = [
        (
            json!({"completed": {"fragments_removed": 3, "version": 9}}),
            "completed",
        ),
        (
            json!({"failed": {"error": "TableColumnNotFound", "code": 12, "detail": "No such."}}),
            "failed",
        ),
    ];
    for (outcome, ended) in ends {
        let task_id = table.submit("compact", json!({})).await.unwrap();
        let task = info(&table, &task_id).await;
        for (field, value) in [
            ("status", json!("submitted")),
            ("started_at", json!("")),
            ("completed_at", json!("")),
            ("result", json!({})),
            ("error", json!(null)),
        ] {
            assert_eq!(task[field], value, "{field}");
        }
        assert_refused(
            &delete(&table, &task_id).await,
            TASK_STATE_CONFLICT,
            "submitted",
        );

        // One worker gets it, and asks again because the answer was lost.
        for (worker, status) in [(&own, 200), (&other, 409), (&own, 200)] {
            let answer = worker
                .send(CLAIM_PATH, &table_id, &task_id, json!({}))
                .await;
            assert_eq!(answer.status, status, "{}", worker.name);
        }
        let progress = json!({"percent": 40, "message": "rewriting"});
        let answer = other
            .send(PROGRESS_PATH, &table_id, &task_id, progress.clone())
            .await;
        assert_refused(&answer, LOST, "another's progress");
        let answer = own
            .send(PROGRESS_PATH, &table_id, &task_id, progress.clone())
            .await;
        assert_eq!(answer.status, 200);
        let task = info(&table, &task_id).await;
        assert_eq!(task["status"], "running");
        assert_ne!(task["started_at"], "");
        assert_eq!(task["completed_at"], "");
        // Not part of the documented answer, so it is there for those who ask.
        assert_eq!(task["progress"], Value::Null);
        assert_eq!(table.task(&task_id).await.unwrap()["progress"], progress);
        assert_refused(
            &delete(&table, &task_id).await,
            TASK_STATE_CONFLICT,
            "running",
        );

        let end = json!({"outcome": outcome});
        let answer = other
            .send(FINISH_PATH, &table_id, &task_id, end.clone())
            .await;
        assert_refused(&answer, LOST, "another's end");
        for _ in 0..2 {
            let answer = own
                .send(FINISH_PATH, &table_id, &task_id, end.clone())
                .await;
            assert_eq!(answer.status, 200);
        }
        let otherwise = json!({"outcome": {"completed": {"version": 1}}});
        let answer = own.send(FINISH_PATH, &table_id, &task_id, otherwise).await;
        assert_refused(&answer, LOST, "another end");
        let task = info(&table, &task_id).await;
        assert_eq!(task["status"], ended);
        assert_ne!(task["completed_at"], "");
        match ended {
            "completed" => {
                assert_eq!(task["result"], outcome["completed"]);
                assert_eq!(task["error"], Value::Null);
            }
            _ => {
                assert_eq!(task["result"], json!({}));
                assert_eq!(task["error"], outcome["failed"]);
            }
        }

        assert_accepted(&delete(&table, &task_id).await, &table_id, ended);
        assert_refused(&delete(&table, &task_id).await, TASK_NOT_FOUND, "deleted");
        let get = Call::get(table.path(&format!("tasks/{task_id}")));
        assert_refused(&client.call(get).await.unwrap(), TASK_NOT_FOUND, "deleted");
        assert!(table.tasks("lance_compact", 10).await.unwrap().is_empty());
        let answer = own.send(CLAIM_PATH, &table_id, &task_id, json!({})).await;
        assert_refused(&answer, TASK_NOT_FOUND, "a claim of what was deleted");
    }

    // What waited for the worker is run once it is back.
    let task_id = table.submit("compact", json!({})).await.unwrap();
    assert_eq!(info(&table, &task_id).await["status"], "submitted");
    drop(halted);
    let task = table.wait(&task_id, |_| {}).await.unwrap();
    assert_eq!(task["error"]["error"], "TableNotFound", "{task}");
}
