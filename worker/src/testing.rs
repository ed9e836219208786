//! An application that is none, and a server without the rest of the worker, for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_maintenance_api::task::{TaskId, TaskType};
use lance_maintenance_dispatch::tables::Purge;
use lance_maintenance_dispatch::{
    CLAIM_PATH, Dispatch, HEARTBEAT_PATH, TableRef, TakeUp, signature,
};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use url::Url;

use crate::application::{Application, Patience};
use crate::heartbeat::Contact;
use crate::intake::Intake;
use crate::memory::MemoryBudget;
use crate::metrics::Metrics;
use crate::operations::Limits;
use crate::purges::Purges;
use crate::server::{self, Desk};
use crate::storage::StorageOptions;
use crate::tables::Tables;
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
    listed: Arc<Mutex<TakeUp>>,
    /// How many more claims of a table's tasks have to wait for their turn.
    waits: Arc<Mutex<HashMap<String, usize>>>,
    /// The path whose answers say that the task is to be stopped.
    canceled: Arc<Mutex<Option<&'static str>>>,
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
            waits: Arc::default(),
            canceled: Arc::default(),
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
            turn: Duration::from_millis(20),
        };
        Application::new(self.url(), SECRET.into(), "worker-1".to_owned(), patience).unwrap()
    }

    /// The statuses of the next calls of this path; 200 after that.
    pub fn answer(&self, path: &str, statuses: &[u16]) {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(path.to_owned()).or_default().extend(statuses);
    }

    /// Has the next claims of a table's tasks wait for their turn.
    pub fn make_wait(&self, table_id: &str, claims: usize) {
        self.waits
            .lock()
            .unwrap()
            .insert(table_id.to_owned(), claims);
    }

    /// Has the answers to calls of this path say that the task is to be stopped.
    pub fn cancel_on(&self, path: &'static str) {
        *self.canceled.lock().unwrap() = Some(path);
    }

    /// Whether a claim has to wait.
    fn waits(&self, claim: &Value) -> bool {
        let mut waits = self.waits.lock().unwrap();
        let left = waits.get_mut(claim["table_id"].as_str().unwrap_or_default());
        left.filter(|left| **left > 0)
            .map(|left| *left -= 1)
            .is_some()
    }

    /// What the next heartbeat that is answered with 200 lists.
    pub fn list(&self, tasks: Vec<Dispatch>) {
        self.listed.lock().unwrap().tasks = tasks;
    }

    /// The purges that the next heartbeat that is answered with 200 lists.
    pub fn list_purges(&self, purges: Vec<Purge>) {
        self.listed.lock().unwrap().purges = purges;
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

/// A server, its intake, and the application that hears of purges.
pub struct Served {
    pub url: String,
    pub desk: Desk,
    pub intake: Arc<Intake>,
    pub fake: FakeApplication,
    pub client: Client,
}

impl Served {
    /// A server with room for so many tasks.
    pub async fn with_room(room: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (fake, intake) = (FakeApplication::start().await, Intake::new(room));
        let tables = Tables::new(StorageOptions::default(), Limits::default());
        let purges = Purges::new(
            tables.clone(),
            Arc::clone(&intake),
            fake.client(),
            Handle::current(),
        );
        let desk = Desk {
            intake: Arc::clone(&intake),
            contact: Contact::default(),
            tables,
            purges,
            writes: Arc::new(Semaphore::new(4)),
            looks: Arc::new(Semaphore::new(4)),
            operations: Handle::current(),
            secret: SECRET.into(),
            metrics: Metrics::new(),
            memory: MemoryBudget::new(1 << 30),
        };
        let router = server::router(desk.clone());
        tokio::spawn(axum::serve(listener, router).into_future());
        let client = Client::builder().no_proxy().build().unwrap();
        Self {
            url,
            desk,
            intake,
            fake,
            client,
        }
    }

    /// Posts a body that was signed with this secret, so many seconds ago.
    pub async fn post(
        &self,
        path: &str,
        body: &[u8],
        secret: &str,
        age: u64,
    ) -> (u16, HeaderMap, Value) {
        let time = unix_seconds() - age;
        let signature = signature::sign(secret, "POST", path, time, body);
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .header(signature::TIMESTAMP_HEADER, time)
            .header(signature::SIGNATURE_HEADER, signature)
            .body(body.to_owned());
        read(request).await
    }
}

/// Sends a request: status, headers, and the body if it is JSON.
pub async fn read(request: RequestBuilder) -> (u16, HeaderMap, Value) {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    (status, headers, body)
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
    let body = serde_json::from_slice(&body).unwrap();
    let text = match path.as_str() {
        HEARTBEAT_PATH if status == StatusCode::OK => {
            let listed = std::mem::take(&mut *fake.listed.lock().unwrap());
            serde_json::to_string(&listed).unwrap()
        }
        CLAIM_PATH if fake.waits(&body) => json!({"wait": true}).to_string(),
        path if *fake.canceled.lock().unwrap() == Some(path) => {
            json!({"canceled": true}).to_string()
        }
        _ => json!({}).to_string(),
    };
    // Last, so that whoever waits for the call finds its answer decided.
    fake.calls.send_modify(|calls| calls.push((path, body)));
    (status, text)
}
