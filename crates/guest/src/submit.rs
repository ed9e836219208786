//! What the five submits share: store the task, hand it to the worker.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use lance_maintenance_api::ApiError;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::SubmitResponse;
use lance_maintenance_dispatch::{Dispatch, TASKS_PATH, signature};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::Tasks;
use spin_sdk::http::{FullBody, send};
use spin_sdk::wasip3::http::types::RequestOptions;
use spin_sdk::wasip3::http_compat::RequestOptionsExtension;

use crate::context::RequestContext;
use crate::{Reply, SpinStore, host, settings};

/// How long the worker may take to answer, in nanoseconds. It only queues.
const WORKER_NANOS: u64 = 2_000_000_000;

/// Submits a task: stores it durably, then hands it to the worker, or leaves a note for the worker
/// to find. What is answered with 200 is not lost.
pub async fn submit(context: &RequestContext, params: TaskParams) -> Result<Reply, ApiError> {
    let table = context.table()?;
    let quota = settings::number("task_quota").await?;
    let store = SpinStore::open()?;
    let task = Tasks::new(&store, &table.id).submit(
        table,
        params,
        &context.request_id,
        host::random(),
        quota,
        host::now_micros(),
    )?;
    let dispatch = task.dispatch(1);
    if let Err(why) = hand_over(&dispatch).await {
        eprintln!("task {} waits for the worker: {why}", dispatch.task_id);
        Execution::new(&store).note(&dispatch)?;
    }
    Ok(Reply::json(&SubmitResponse {
        task_id: dispatch.task_id,
    }))
}

/// Hands a task to the worker.
async fn hand_over(dispatch: &Dispatch) -> Result<(), String> {
    let url = settings::setting("worker_url")
        .await
        .map_err(|error| error.detail)?;
    let secret = settings::required("worker_secret")
        .await
        .map_err(|error| error.detail)?;
    let body = serde_json::to_vec(dispatch).map_err(|error| error.to_string())?;
    let now = host::now_seconds();
    let options = RequestOptions::new();
    // A host that knows no timeouts has its own.
    let _ = options.set_connect_timeout(Some(WORKER_NANOS));
    let _ = options.set_first_byte_timeout(Some(WORKER_NANOS));
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{TASKS_PATH}", url.trim_end_matches('/')))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(
            signature::SIGNATURE_HEADER,
            signature::sign(&secret, "POST", TASKS_PATH, now, &body),
        )
        .header(signature::TIMESTAMP_HEADER, now.to_string())
        .extension(RequestOptionsExtension(options))
        .body(FullBody::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let response = send(request).await.map_err(|error| error.to_string())?;
    match response.status() {
        // 409: it has the task already.
        StatusCode::ACCEPTED | StatusCode::CONFLICT => Ok(()),
        status => Err(format!("the worker answered {status}")),
    }
}
