//! The routes of [`lance_maintenance_dispatch::tables`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::post;
use axum::{Json, Router};
use futures::StreamExt;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{
    ADD_COLUMNS_PATH, AddColumns, AddColumnsResponse, CHECK_BACKFILL_PATH, COMMIT_PATH,
    CheckHealth, CommitVersion, DESCRIBE_PATH, DescribeTable, EXIST_PATH, Existing, HEALTH_PATH,
    HealthReport, ListVersions, PREVIEW_PATH, PURGE_PATH, Preview, PreviewTask, Purge,
    TableDescription, TableVersion, TablesExist, VERSIONS_PATH, Versions, WRITE_LIMIT, WRITE_PATH,
    WriteTable, Written,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Desk, Refusal, not_taken, unavailable, unreadable, verify};
use crate::intake::NotTaken;
use crate::tables::{columns, commit, describe, exist, health, preview, versions, write};

/// How long values of added columns may take: hosts give a request 30 seconds.
const ADD_TIME: Duration = Duration::from_secs(20);
/// When a write that found no place may be tried again, in seconds.
const RETRY_SECONDS: u64 = 1;
/// How long a close look at a table may take, the wait for others among it.
const LOOK: Duration = Duration::from_secs(25);
/// How long the body of such a write is read all the same.
const DRAIN: Duration = Duration::from_secs(5);

pub fn router() -> Router<Desk> {
    Router::new()
        .route(
            WRITE_PATH,
            post(write_table).layer(DefaultBodyLimit::max(WRITE_LIMIT)),
        )
        .route(DESCRIBE_PATH, post(describe_table))
        .route(EXIST_PATH, post(tables_exist))
        .route(VERSIONS_PATH, post(list_versions))
        .route(COMMIT_PATH, post(commit_version))
        .route(PURGE_PATH, post(purge_table))
        .route(HEALTH_PATH, post(check_health))
        .route(PREVIEW_PATH, post(preview_task))
        .route(ADD_COLUMNS_PATH, post(add_columns))
        .route(CHECK_BACKFILL_PATH, post(check_backfill))
}

async fn write_table(State(desk): State<Desk>, request: Request) -> Result<Json<Written>, Refusal> {
    if !desk.intake.is_open() {
        return Err(not_taken(NotTaken::Closed));
    }
    // Before the body is read, as bodies are what takes the memory.
    let Ok(place) = Arc::clone(&desk.writes).try_acquire_owned() else {
        // Whoever is still sending does not look for an answer.
        let _ = timeout(DRAIN, drain(request)).await;
        return Err(no_place());
    };
    let (uri, headers) = (request.uri().clone(), request.headers().clone());
    let body = Bytes::from_request(request, &())
        .await
        .map_err(|rejection| unreadable(&rejection, WRITE_LIMIT))?;
    verify(&desk.secret, &uri, &headers, &body)?;
    let Query(query) = Query::<WriteTable>::try_from_uri(&uri)
        .map_err(|error| ApiError::invalid(format!("The query can't be read: {error}.")))?;
    let tables = desk.tables.clone();
    let written = desk.run(async move {
        let written = write::write(&tables.place(&query.location).await?, query.mode, body).await;
        drop(place);
        written
    });
    Ok(Json(written.await?))
}

fn no_place() -> Refusal {
    Refusal {
        error: unavailable("As many tables are being written as may."),
        status: StatusCode::SERVICE_UNAVAILABLE,
        retry_after: Some(RETRY_SECONDS),
    }
}

/// Reads a body to its end, piece by piece.
async fn drain(request: Request) {
    let mut body = request.into_body().into_data_stream();
    while let Some(Ok(_)) = body.next().await {}
}

async fn describe_table(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<TableDescription>, Refusal> {
    let request: DescribeTable = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let described = desk.run(async move {
        let place = tables.place(&request.location).await?;
        describe::describe(&place, &request).await
    });
    Ok(Json(described.await?))
}

async fn tables_exist(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Existing>, Refusal> {
    let request: TablesExist = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let existing = desk.run(async move { exist::exist(&tables, request).await });
    Ok(Json(existing.await?))
}

async fn list_versions(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Versions>, Refusal> {
    let request: ListVersions = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let listed = desk.run(async move {
        let place = tables.place(&request.location).await?;
        versions::list(&place, &request).await
    });
    Ok(Json(listed.await?))
}

async fn commit_version(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<TableVersion>, Refusal> {
    let request: CommitVersion = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let committed = desk.run(async move {
        let place = tables.place(&request.location).await?;
        commit::commit(&place, &request).await
    });
    Ok(Json(committed.await?))
}

async fn purge_table(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, Refusal> {
    let request: Purge = desk.read(&uri, &headers, body)?;
    desk.purges.offer(request)?;
    Ok(StatusCode::ACCEPTED)
}

async fn check_health(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<HealthReport>, Refusal> {
    let request: CheckHealth = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let report = desk.look(async move {
        let place = tables.place(&request.location).await?;
        health::check(&place, &request).await
    });
    Ok(Json(report.await?))
}

async fn preview_task(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Preview>, Refusal> {
    let request: PreviewTask = desk.read(&uri, &headers, body)?;
    let tables = desk.tables.clone();
    let preview = desk.look(async move {
        let place = tables.place(&request.location).await?;
        preview::preview(&place, &request).await
    });
    Ok(Json(preview.await?))
}

async fn add_columns(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<AddColumnsResponse>, Refusal> {
    let request: AddColumns = desk.read(&uri, &headers, body)?;
    if !desk.intake.is_open() {
        return Err(not_taken(NotTaken::Closed));
    }
    // An expression writes as much as a table that is sent.
    let Ok(place) = Arc::clone(&desk.writes).try_acquire_owned() else {
        return Err(no_place());
    };
    let tables = desk.tables.clone();
    let added = desk.run(async move {
        let added = columns::add(&tables.place(&request.location).await?, &request, ADD_TIME).await;
        drop(place);
        added
    });
    Ok(Json(added.await?))
}

async fn check_backfill(
    State(desk): State<Desk>,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Value>, Refusal> {
    let request: PreviewTask = desk.read(&uri, &headers, body)?;
    let TaskParams::BackfillColumn(params) = request.params else {
        return Err(ApiError::invalid("The task is not a backfill.").into());
    };
    let tables = desk.tables.clone();
    let checked = desk.look(async move {
        let place = tables.place(&request.location).await?;
        columns::check_backfill(&place, &params).await
    });
    checked.await?;
    Ok(Json(json!({})))
}

impl Desk {
    /// Looks at a table closely, which may take memory and time: a few at a time, each for as long as
    /// whoever asks may wait.
    async fn look<Answer: Send + 'static>(
        &self,
        work: impl Future<Output = Result<Answer, ApiError>> + Send + 'static,
    ) -> Result<Answer, ApiError> {
        let looks = Arc::clone(&self.looks);
        self.run(async move {
            let looking = async {
                // Nobody closes it.
                let _look = looks.acquire_owned().await;
                work.await
            };
            timeout(LOOK, looking).await.unwrap_or_else(|_| {
                Err(unavailable(
                    "Looking at the table takes too long; try again when the worker or the table's store \
                     is less busy.",
                ))
            })
        })
        .await
    }

    /// Does it where operations run, as Lance computes in between. It goes on to its end when the
    /// caller does not wait: what is half written or half committed helps nobody.
    async fn run<Answer: Send + 'static>(
        &self,
        work: impl Future<Output = Result<Answer, ApiError>> + Send + 'static,
    ) -> Result<Answer, ApiError> {
        let answer = self.operations.spawn(work).await.unwrap_or_else(|_| {
            // The panic's text may hold anything: it went to the log, and stays there.
            Err(ApiError::new(
                ErrorName::InternalError,
                "The request broke off unexpectedly; the worker's log has more.",
            ))
        });
        // What whoever asked can't do anything about.
        if let Err(error) = &answer
            && matches!(
                error.name,
                ErrorName::InternalError
                    | ErrorName::PermissionDenied
                    | ErrorName::ServiceUnavailable
            )
        {
            tracing::warn!(%error, "a request about a table failed");
        }
        answer
    }
}

#[cfg(test)]
#[path = "tables_tests/mod.rs"]
mod tests;
