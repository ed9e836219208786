use std::time::Instant;

use futures::future::{BoxFuture, FutureExt};
use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{CLAIM_PATH, Dispatch, FINISH_PATH, HEARTBEAT_PATH, LEAVE_PATH};
use serde_json::{Value, json};

use super::*;
use crate::cli::LogFormat;
use crate::config::Limits;
use crate::operations::supervisor::Supervisor;
use crate::progress::Progress;
use crate::storage::StorageOptions;
use crate::testing::{FakeApplication, SECRET, dispatch};

/// Completes the task of slot 1, and never ends any other.
struct First;

impl Execute for First {
    fn execute(
        &self,
        dispatch: &Dispatch,
        _: Progress,
        supervisor: Arc<dyn Supervisor>,
    ) -> BoxFuture<'static, Result<Value, TaskError>> {
        match dispatch.task_id.slot() {
            1 => async { Ok(json!({})) }.boxed(),
            _ => async move {
                supervisor.stopped().await;
                Err(TaskError::new(ErrorName::ServiceUnavailable, "stopped"))
            }
            .boxed(),
        }
    }
}

#[tokio::test]
async fn takes_up_answers_and_stops() {
    let fake = FakeApplication::start().await;
    fake.list(vec![dispatch(1, "/a"), dispatch(2, "/b")]);
    let config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        application_url: fake.url(),
        worker_id: None,
        secret: SECRET.into(),
        storage: StorageOptions::default(),
        limits: Limits {
            max_concurrent_tasks: 2.try_into().unwrap(),
            ..Limits::default()
        },
        shutdown_grace: Duration::from_millis(300),
        log_format: LogFormat::Text,
    };
    let service = Service::start_with(config, Arc::new(First), Handle::current())
        .await
        .unwrap();
    let ends = fake.wait_for(FINISH_PATH, 1).await;
    assert_eq!(ends[0]["worker_id"], service.worker_id());
    assert!(
        service
            .worker_id()
            .ends_with(&format!("-{}", service.address().port()))
    );
    fake.wait_for(CLAIM_PATH, 2).await;
    fake.wait_for(HEARTBEAT_PATH, 1).await;

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/readyz", service.address());
    assert_eq!(client.get(&url).send().await.unwrap().status(), 200);

    let stopping = Instant::now();
    let stopped = tokio::spawn(service.stop());
    stopped.await.unwrap();
    assert!(stopping.elapsed() >= Duration::from_millis(300));
    assert!(client.get(&url).send().await.is_err());
    // The second task was handed back, not failed.
    assert_eq!(fake.steps(), ["claim", "claim", "finish"]);
    let left = fake.wait_for(LEAVE_PATH, 1).await;
    let task_id = dispatch(2, "/b").task_id;
    assert_eq!(
        left[0]["in_hand"],
        json!([{"table_id": "/b", "task_id": task_id, "attempt": 1}])
    );
}
