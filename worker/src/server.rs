//! What the worker serves: tasks from the application, what the catalog asks about tables, and two
//! checks and its metrics for whoever supervises it.
//!
//! | request | answers |
//! |---|---|
//! | `POST /v1/tasks` | 202 queued, 409 has it already, 429 full, 400, 401, 413, 503 stopping |
//! | `POST /v1/tasks/cancel` | 202, whether it has the task or not; 400, 401, 413 |
//! | `POST /v1/tables/...` | see [`lance_maintenance_dispatch::tables`]; 400, 401, 413, 503 |
//! | `GET /healthz` | 200 while the worker lives |
//! | `GET /readyz` | 200 while the application answers, else 503 |
//! | `GET /metrics` | 200, the text format of Prometheus |

mod tables;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{
    CANCEL_PATH, Dispatch, HEARTBEAT_SECONDS, TASKS_PATH, TaskAddress, signature,
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::heartbeat::Contact;
use crate::intake::{Intake, NotTaken};
use crate::logging::task_span;
use crate::memory::MemoryBudget;
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::purges::Purges;
use crate::queue::Refused;
use crate::tables::Tables;
use crate::time::unix_seconds;

/// The largest body that is read, in bytes; that of a table's rows apart.
pub const MAX_BODY: usize = 1 << 20;
/// The header that carries the id of a request, which `instance` of an error repeats.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-oss-request-id");

/// What the handlers need.
#[derive(Clone, Debug)]
pub struct Desk {
    /// Where tasks go.
    pub intake: Arc<Intake>,
    /// Whether the application answers.
    pub contact: Contact,
    /// The tables that can be asked about.
    pub tables: Tables,
    /// Where dropped tables go.
    pub purges: Arc<Purges>,
    /// A permit for each table that may be written at the same time.
    pub writes: Arc<Semaphore>,
    /// A permit for each table that may be looked at closely at the same time: its health, a preview.
    pub looks: Arc<Semaphore>,
    /// The runtime on which Lance is called.
    pub operations: Handle,
    /// What messages are signed with.
    pub secret: SecretString,
    /// What is counted.
    pub metrics: Metrics,
    /// The memory that operations share.
    pub memory: MemoryBudget,
}

/// The worker's routes.
pub fn router(desk: Desk) -> Router {
    Router::new()
        .route(TASKS_PATH, post(take_task))
        .route(CANCEL_PATH, post(cancel_task))
        .merge(tables::router())
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .fallback(no_such_operation)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(desk)
}

async fn take_task(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Refusal> {
    let dispatch: Dispatch = desk.read(&uri, &headers, body)?;
    let _span = task_span(&dispatch).entered();
    desk.intake.offer(dispatch).map_err(not_taken)?;
    tracing::info!("queued");
    Ok(StatusCode::ACCEPTED)
}

async fn cancel_task(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Refusal> {
    let task: TaskAddress = desk.read(&uri, &headers, body)?;
    desk.intake.cancel(&task.task_id);
    Ok(StatusCode::ACCEPTED)
}

impl Desk {
    /// The message, once its signature is checked.
    fn read<Message: DeserializeOwned>(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        body: Result<Bytes, BytesRejection>,
    ) -> Result<Message, Refusal> {
        let body = body.map_err(|rejection| unreadable(&rejection, MAX_BODY))?;
        verify(&self.secret, uri, headers, &body)?;
        let message = serde_json::from_slice(&body)
            .map_err(|error| ApiError::invalid(format!("The message can't be read: {error}.")))?;
        Ok(message)
    }
}

async fn healthy() -> Response {
    Json(json!({"status": "alive"})).into_response()
}

async fn ready(State(desk): State<Desk>) -> Result<Response, Refusal> {
    if !desk.intake.is_open() {
        return Err(not_taken(NotTaken::Closed));
    }
    if !desk.contact.is_fresh() {
        return Err(unavailable("The application does not answer the worker's heartbeats.").into());
    }
    Ok(Json(json!({"status": "ready", "room": desk.intake.room()})).into_response())
}

async fn metrics(State(desk): State<Desk>) -> Result<Response, Refusal> {
    let text = desk.metrics.text(&desk.intake, &desk.memory);
    let text = text.map_err(|_| {
        ApiError::new(
            ErrorName::InternalError,
            "The metrics can't be written down.",
        )
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

async fn no_such_operation() -> Refusal {
    ApiError::new(
        ErrorName::NoSuchOperation,
        "There is nothing under this path.",
    )
    .into()
}

async fn method_not_allowed() -> Refusal {
    ApiError::new(
        ErrorName::MethodNotAllowed,
        "This path takes another method.",
    )
    .into()
}

/// Checks a message that was posted. What is signed is the path with the query, as it came.
fn verify(
    secret: &SecretString,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), Refusal> {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    signature::verify(
        secret.expose_secret(),
        "POST",
        path,
        header(signature::TIMESTAMP_HEADER),
        header(signature::SIGNATURE_HEADER),
        body,
        unix_seconds(),
    )
    .map_err(|error| Refusal {
        status: StatusCode::UNAUTHORIZED,
        error: ApiError::new(
            ErrorName::AccessDenied,
            format!("Only the application is served: {error}."),
        ),
        retry_after: None,
    })
}

fn unreadable(rejection: &BytesRejection, limit: usize) -> ApiError {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("The body may be {limit} bytes at most.");
        ApiError::new(ErrorName::RequestTooLarge, detail)
    } else {
        ApiError::invalid("The body can't be read.")
    }
}

fn not_taken(why: NotTaken) -> Refusal {
    match why {
        NotTaken::Refused(Refused::Duplicate) => ApiError::new(
            ErrorName::ConcurrentModification,
            "The worker has this task in hand already.",
        )
        .into(),
        NotTaken::Refused(Refused::Full) => Refusal {
            status: StatusCode::TOO_MANY_REQUESTS,
            error: unavailable("As many tasks wait here as may."),
            retry_after: Some(HEARTBEAT_SECONDS),
        },
        NotTaken::Closed => unavailable("The worker is stopping.").into(),
    }
}

fn unavailable(detail: &str) -> ApiError {
    ApiError::new(ErrorName::ServiceUnavailable, detail)
}

/// A request that is refused, as it is answered.
struct Refusal {
    status: StatusCode,
    error: ApiError,
    /// In seconds.
    retry_after: Option<u64>,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self {
            status: StatusCode::from_u16(error.name.status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error,
            retry_after: None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let request_id = Uuid::new_v4().simple().to_string();
        let mut response = (self.status, Json(self.error.body(&request_id))).into_response();
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            headers.insert(REQUEST_ID, value);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
