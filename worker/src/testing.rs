//! An application that is none, for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_maintenance_api::task::{TaskId, TaskType};
use lance_maintenance_dispatch::{Dispatch, HEARTBEAT_PATH, TableRef, TakeUp, signature};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use crate::application::{Application, Patience};
use crate::time::unix_seconds;

pub const SECRET: &str = "shared";

/// The first attempt at a compaction of the table in this place, which is also the table's id.
pub fn dispatch(number: u64, location: &str) -> Dispatch {
    Dispatch {
        task_id: TaskId::new(TaskType::Compact, number, [7; 10]),
        attempt: 1,
        table: TableRef {
            id: location.to_owned(),
            arn: format!("acs:osstables:r:1:bucket/b/table/{location}"),
            location: location.to_owned(),
        },
        params: TaskParams::Compact(CompactParams::parse(b"", "reencode").unwrap()),
        request_id: format!("request-{number}"),
    }
}

/// Keeps every call that is signed as it should be, and answers as it was told.
#[derive(Clone)]
pub struct FakeApplication {
    url: Url,
    calls: watch::Sender<Vec<(String, Value)>>,
    answers: Arc<Mutex<HashMap<String, VecDeque<u16>>>>,
    listed: Arc<Mutex<Vec<Dispatch>>>,
}

impl FakeApplication {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self {
            url: Url::parse(&url).unwrap(),
            calls: watch::Sender::new(Vec::new()),
            answers: Arc::default(),
            listed: Arc::default(),
        };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        fake
    }

    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// A client that is quick to try again.
    pub fn client(&self) -> Application {
        let patience = Patience {
            first: Duration::from_millis(1),
            longest: Duration::from_millis(5),
            finish: Duration::from_secs(60),
        };
        Application::new(self.url(), SECRET.into(), "worker-1".to_owned(), patience).unwrap()
    }

    /// The statuses of the next calls of this path; 200 after that.
    pub fn answer(&self, path: &str, statuses: &[u16]) {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(path.to_owned()).or_default().extend(statuses);
    }

    /// What the next heartbeat that is answered with 200 lists.
    pub fn list(&self, tasks: Vec<Dispatch>) {
        *self.listed.lock().unwrap() = tasks;
    }

    /// The paths that were called, in order, without heartbeats and progress.
    pub fn steps(&self) -> Vec<String> {
        self.calls
            .borrow()
            .iter()
            .filter_map(|(path, _)| path.strip_prefix("/worker/v1/"))
            .filter(|step| matches!(*step, "claim" | "finish"))
            .map(str::to_owned)
            .collect()
    }

    /// Waits until a path has been called this often; the bodies of its calls.
    pub async fn wait_for(&self, path: &str, count: usize) -> Vec<Value> {
        let of_path = |calls: &[(String, Value)]| -> Vec<Value> {
            let calls = calls.iter().filter(|(called, _)| called == path);
            calls.map(|(_, body)| body.clone()).collect()
        };
        let mut calls = self.calls.subscribe();
        let waiting = calls.wait_for(|calls| of_path(calls).len() >= count);
        let calls = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        of_path(
            &calls
                .unwrap_or_else(|_| panic!("{count} calls of {path}"))
                .unwrap(),
        )
    }
}

async fn answer(State(fake): State<FakeApplication>, request: Request) -> (StatusCode, String) {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let body: Bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let header = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let verified = signature::verify(
        SECRET,
        parts.method.as_str(),
        &path,
        header(signature::TIMESTAMP_HEADER),
        header(signature::SIGNATURE_HEADER),
        &body,
        unix_seconds(),
    );
    if let Err(error) = verified {
        return (StatusCode::FORBIDDEN, error.to_string());
    }
    let next = fake
        .answers
        .lock()
        .unwrap()
        .get_mut(&path)
        .and_then(VecDeque::pop_front);
    let status = StatusCode::from_u16(next.unwrap_or(200)).unwrap();
    let text = if status == StatusCode::OK && path == HEARTBEAT_PATH {
        let tasks = std::mem::take(&mut *fake.listed.lock().unwrap());
        serde_json::to_string(&TakeUp {
            tasks,
            purges: Vec::new(),
        })
        .unwrap()
    } else {
        json!({}).to_string()
    };
    // Last, so that whoever waits for the call finds its answer decided.
    let body = serde_json::from_slice(&body).unwrap();
    fake.calls.send_modify(|calls| calls.push((path, body)));
    (status, text)
}
