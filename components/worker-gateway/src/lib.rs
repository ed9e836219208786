//! What the workers call. Believes messages that are signed with the secret that application and
//! workers share, and nothing else.

use bytes::Bytes;
use http::HeaderMap;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::PURGED_PATH;
use lance_maintenance_dispatch::{
    CLAIM_PATH, Claimed, FINISH_PATH, HEARTBEAT_PATH, LEAVE_PATH, PROGRESS_PATH, signature,
};
use lance_maintenance_guest::reply::{self, REQUEST_ID_HEADER};
use lance_maintenance_guest::{Reply, SpinStore, host, log, request, settings};
use lance_maintenance_store::catalog::Purges;
use lance_maintenance_store::execution::Execution;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    let request_id = host::request_id();
    log::begin(&request_id);
    let mut answer = Reply::of(respond(request).await, &request_id).into_answer();
    reply::insert(&mut answer, REQUEST_ID_HEADER, &request_id);
    answer
}

async fn respond(request: Request) -> Result<Reply, ApiError> {
    let (parts, body) = request::read(request, request::BODY_LIMIT).await?;
    let (method, path) = (parts.method.as_str(), parts.uri.path());
    verify(method, path, &parts.headers, &body).await?;
    if method != "POST" {
        return Err(ApiError::new(
            ErrorName::MethodNotAllowed,
            "This path takes POST.",
        ));
    }

    let store = SpinStore::open()?;
    let outcome = serve(path, &body, &store);
    if [CLAIM_PATH, FINISH_PATH, LEAVE_PATH].contains(&path) {
        note(path, &body, &outcome);
    }
    outcome
}

fn serve(path: &str, body: &Bytes, store: &SpinStore) -> Result<Reply, ApiError> {
    let execution = Execution::new(store);
    let now = host::now_micros;
    match path {
        CLAIM_PATH => return Ok(Reply::json(&execution.claim(&message(body)?, now)?)),
        PROGRESS_PATH => return Ok(Reply::json(&execution.progress(&message(body)?)?)),
        PURGED_PATH => Purges::new(store).done(&message(body)?, now())?,
        FINISH_PATH => execution.finish(message(body)?, now)?,
        LEAVE_PATH => execution.leave(&message(body)?)?,
        HEARTBEAT_PATH => {
            return Ok(Reply::json(&execution.heartbeat(&message(body)?, now)?));
        }
        _ => {
            return Err(ApiError::new(
                ErrorName::NoSuchOperation,
                "There is no operation under this path.",
            ));
        }
    }
    Ok(Reply::json(&Claimed::default()))
}

/// Logs who asked for what.
fn note(path: &str, body: &Bytes, outcome: &Result<Reply, ApiError>) {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let fields = json!({
        "path": path,
        "worker_id": message["worker_id"],
        "task_id": message["task_id"],
        "attempt": message["attempt"],
        "refused": outcome.as_ref().err().map(|error| error.detail.as_str()),
    });
    log::info("a worker asked", fields);
}

async fn verify(
    method: &str,
    path: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<(), ApiError> {
    let secret = settings::required("worker_secret").await?;
    signature::verify(
        &secret,
        method,
        path,
        request::header(headers, signature::TIMESTAMP_HEADER),
        request::header(headers, signature::SIGNATURE_HEADER),
        body,
        host::now_seconds(),
    )
    .map_err(|error| {
        ApiError::new(
            ErrorName::AccessDenied,
            format!("This path is for workers: {error}."),
        )
    })
}

fn message<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("The message can't be read: {error}.")))
}
