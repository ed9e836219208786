//! Calls to the worker.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use lance_maintenance_api::error::ErrorBody;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::signature;
use serde::Serialize;
use serde::de::DeserializeOwned;
use spin_sdk::http::body::IncomingBodyExt;
use spin_sdk::http::{FullBody, send};
use spin_sdk::wasip3::http::types::RequestOptions;
use spin_sdk::wasip3::http_compat::RequestOptionsExtension;

use crate::{host, log, settings};

/// How long the worker may take to take something up, in nanoseconds. It only queues.
pub const QUEUE_NANOS: u64 = 2_000_000_000;
/// How long the worker may take to look at a table, in nanoseconds.
pub const LOOK_NANOS: u64 = 30_000_000_000;
/// How long the worker may take to write a table, in nanoseconds.
pub const WRITE_NANOS: u64 = 120_000_000_000;

/// What the worker answered.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
}

/// Sends something to the worker. `target` is path and query. Fails if the worker does not answer.
pub async fn post(
    target: &str,
    content_type: &str,
    body: Bytes,
    nanos: u64,
) -> Result<Answer, ApiError> {
    let url = settings::required("worker_url").await?;
    let secret = settings::required("worker_secret").await?;
    let now = host::now_seconds();
    let options = RequestOptions::new();
    // A host that knows no timeouts has its own.
    let _ = options.set_connect_timeout(Some(QUEUE_NANOS));
    let _ = options.set_first_byte_timeout(Some(nanos));
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}{target}", url.trim_end_matches('/')))
        .header(header::CONTENT_TYPE, content_type)
        .header(
            signature::SIGNATURE_HEADER,
            signature::sign(&secret, "POST", target, now, &body),
        )
        .header(signature::TIMESTAMP_HEADER, now.to_string())
        .extension(RequestOptionsExtension(options))
        .body(FullBody::new(body))
        .map_err(|error| unreachable(&error.to_string()))?;
    let response = send(request)
        .await
        .map_err(|error| unreachable(&error.to_string()))?;
    let (parts, body) = response.into_parts();
    let body = body
        .bytes()
        .await
        .map_err(|error| unreachable(&error.to_string()))?;
    Ok(Answer {
        status: parts.status,
        body,
    })
}

/// Asks the worker something about tables; its refusals are the service's.
pub async fn ask<Q: Serialize, A: DeserializeOwned>(
    target: &str,
    question: &Q,
) -> Result<A, ApiError> {
    ask_within(target, question, LOOK_NANOS).await
}

/// Has the worker write to a table; its refusals are the service's.
pub async fn ask_to_write<Q: Serialize, A: DeserializeOwned>(
    target: &str,
    order: &Q,
) -> Result<A, ApiError> {
    ask_within(target, order, WRITE_NANOS).await
}

async fn ask_within<Q: Serialize, A: DeserializeOwned>(
    target: &str,
    question: &Q,
    nanos: u64,
) -> Result<A, ApiError> {
    let body = serde_json::to_vec(question).map_err(|_| unreadable("the question"))?;
    let answer = post(target, "application/json", body.into(), nanos).await?;
    answer.json()
}

impl Answer {
    /// What a success holds, or the refusal.
    pub fn json<A: DeserializeOwned>(&self) -> Result<A, ApiError> {
        if self.status.is_success() {
            return serde_json::from_slice(&self.body).map_err(|_| unreadable("the answer"));
        }
        let refusal: ErrorBody = serde_json::from_slice(&self.body)
            .map_err(|_| unreadable(&format!("the answer {}", self.status)))?;
        Err(match self.status {
            // The two don't share a secret, or a clock: nothing that a client could mend.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                unreadable(&format!("the worker believes nothing: {}", refusal.detail))
            }
            _ => ApiError::new(refusal.error, refusal.detail),
        })
    }
}

fn unreachable(why: &str) -> ApiError {
    log::warn(format_args!("the worker does not answer: {why}"));
    ApiError::new(
        ErrorName::ServiceUnavailable,
        "The worker that works on tables does not answer just now; try again.",
    )
}

fn unreadable(what: &str) -> ApiError {
    log::warn(format_args!("worker: {what} can't be read"));
    ApiError::new(ErrorName::InternalError, "The service failed; try again.")
}
