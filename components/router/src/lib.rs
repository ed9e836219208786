//! The public front of the application.
//!
//! What is common to all operations happens here, once and in this order: bucket, signature,
//! identifier, table, authorisation, format, `Content-MD5`. Then the operation's own component,
//! which can't be reached otherwise, gets the request with what was found out.

mod bucket;
mod routes;

use bytes::Bytes;
use http::request::Parts;
use lance_maintenance_api::identifier::{Delimiter, TableIdentifier};
use lance_maintenance_api::query::Query;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::{AuthError, RequestParts, Scheme, Secret};
use lance_maintenance_dispatch::TableRef;
use lance_maintenance_guest::reply::{self, Answer, REQUEST_ID_HEADER, TABLE_ID_HEADER};
use lance_maintenance_guest::{
    Reply, RequestContext, SpinStore, context, host, request, service, settings,
};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::catalog::{Catalog, LANCE_FORMAT};
use serde::Deserialize;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

use crate::routes::Route;

/// A client that asks for a running task's progress sends this header with the value `true`.
const PROGRESS_HEADER: &str = "x-lance-task-progress";

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    let request_id = host::request_id();
    let mut answer = match respond(request, &request_id).await {
        Ok(answer) => answer,
        Err(error) => Reply::error(&error, &request_id).into_answer(),
    };
    reply::insert(&mut answer, REQUEST_ID_HEADER, &request_id);
    answer
}

async fn respond(request: Request, request_id: &str) -> Result<Answer, ApiError> {
    let path = request.uri().path().to_owned();
    let raw_query = request.uri().query().unwrap_or_default().to_owned();
    let route = routes::find(request.method().as_str(), &path)?;
    let (component, table, task_id) = match route {
        Route::Health => return health(),
        Route::Catalog => ("catalog", None, None),
        Route::Maintenance {
            component,
            table,
            task_id,
        } => (component, Some(table), task_id),
    };
    let bucket = find_bucket(&request).await?;
    let (parts, body) = request::read(request).await?;
    let caller = authenticate(&parts, &path, &raw_query, &body).await?;

    let mut context = RequestContext {
        request_id: request_id.to_owned(),
        access_key_id: caller,
        bucket,
        method: parts.method.to_string(),
        path: path.clone(),
        query: raw_query,
        table: None,
        task_id: task_id.map(str::to_owned),
        with_progress: request::header(&parts.headers, PROGRESS_HEADER) == Some("true"),
    };
    if let Some(segment) = table {
        context.table = Some(find_table(&context, segment).await?);
    }
    check_content_md5(&parts, &body)?;
    let secret = settings::required("internal_secret").await?;
    let mut answer = service::call(component, &context, &secret, body).await?;
    if let Some(table) = context.table.filter(|_| answer.status().is_success()) {
        reply::insert(&mut answer, TABLE_ID_HEADER, &table.id);
    }
    Ok(answer)
}

/// 200 while the application works and reaches its store.
fn health() -> Result<Answer, ApiError> {
    SpinStore::open()?.get("health")?;
    Ok(Reply::json(&serde_json::json!({"status": "ok"})).into_answer())
}

async fn find_bucket(request: &Request) -> Result<String, ApiError> {
    let rules = bucket::Rules {
        domain: settings::setting("table_bucket_domain").await?,
        account_id: settings::setting("account_id").await?,
        default: settings::setting("default_bucket").await?,
        buckets: settings::list("table_buckets").await?,
    };
    let host = request::header(request.headers(), "host").or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    });
    rules.find(host.unwrap_or_default())
}

/// A credential of the variable `credentials`.
#[derive(Deserialize)]
struct Credential {
    access_key_id: String,
    secret_access_key: Secret,
}

/// The access key of the caller, if the request is signed as it should be.
async fn authenticate(
    parts: &Parts,
    path: &str,
    query: &str,
    body: &Bytes,
) -> Result<String, ApiError> {
    let text = settings::required("credentials").await?;
    let credentials: Vec<Credential> = serde_json::from_str(&text).map_err(|_| {
        // The error's own text could quote a secret.
        eprintln!("the variable 'credentials' is not a JSON list of credentials");
        settings::misconfigured()
    })?;
    let region = settings::setting("region").await?;
    let mut headers: Vec<(&str, &[u8])> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    if let (false, Some(authority)) = (parts.headers.contains_key("host"), parts.uri.authority()) {
        headers.push(("host", authority.as_str().as_bytes()));
    }
    let signed = RequestParts {
        method: parts.method.as_str(),
        path,
        query: Some(query),
        headers: &headers,
        body,
        scheme: Scheme::Http,
    };
    let now = i64::try_from(host::now_seconds()).unwrap_or(i64::MAX);
    lance_maintenance_auth::verify(&signed, &region, now, |access_key_id| {
        credentials
            .into_iter()
            .find(|credential| credential.access_key_id == access_key_id)
            .map(|credential| credential.secret_access_key)
    })
    .map(|caller| caller.access_key_id)
    .map_err(refused)
}

fn refused(error: AuthError) -> ApiError {
    let name = ErrorName::parse(error.name()).unwrap_or(ErrorName::AccessDenied);
    ApiError::new(name, error.to_string())
}

/// The table of a request: it must exist and be a Lance table. A caller whose signature is valid
/// belongs to the account, and the account may maintain its tables.
async fn find_table(context: &RequestContext, segment: &str) -> Result<TableRef, ApiError> {
    let query = Query::parse(&context.query)?;
    let id = TableIdentifier::parse(segment, &Delimiter::parse(query.get("delimiter"))?)?;
    let store = SpinStore::open()?;
    let table = Catalog::new(&store, &context.bucket).table(&id)?;
    if table.format != LANCE_FORMAT {
        return Err(ApiError::invalid(format!(
            "The table's format is {}; only {LANCE_FORMAT} tables are maintained here.",
            table.format
        )));
    }
    Ok(TableRef {
        arn: context::arn(&context.bucket, &table.id).await?,
        id: table.id,
        location: table.location,
    })
}

fn check_content_md5(parts: &Parts, body: &[u8]) -> Result<(), ApiError> {
    for value in parts.headers.get_all("content-md5") {
        lance_maintenance_auth::check_content_md5(value.as_bytes(), body).map_err(refused)?;
    }
    Ok(())
}
