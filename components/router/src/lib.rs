//! The public front of the application.
//!
//! What is common to all operations happens here, once and in this order: operation, bucket,
//! signature, identifier, table, authorisation, format, `Content-MD5`. Then the operation's own
//! component, which can't be reached otherwise, gets the request with what was found out.

mod authenticate;
mod bucket;
mod client;

use http::request::Parts;
use http::{StatusCode, header};
use lance_maintenance_api::jobs::JobId;
use lance_maintenance_api::operation::{self, Subject};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::Realm;
use lance_maintenance_auth::policy::Policy;
use lance_maintenance_dispatch::TableRef;
use lance_maintenance_guest::reply::{self, Answer, REQUEST_ID_HEADER, TABLE_ID_HEADER};
use lance_maintenance_guest::{
    Authority, Caller, Reply, RequestContext, SpinStore, authority, credentials, host, log,
    request, service, settings,
};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::catalog::{Catalog, LANCE_FORMAT, TableRecord};
use serde_json::json;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

/// A client that asks for a running task's progress sends this header with the value `true`.
const PROGRESS_HEADER: &str = "x-lance-task-progress";
/// Where the application says whether it works. Not signed.
const HEALTH_PATH: &str = "/healthz";

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    let request_id = host::request_id();
    log::begin(&request_id);
    let began = host::now_micros();
    let method = request.method().to_string();
    let path = request.uri().path().to_owned();
    let mut answer = match respond(request, &request_id).await {
        Ok(answer) => answer,
        Err(error) => Reply::error(&error, &request_id).into_answer(),
    };
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        // A client may expect it to say which would be (RFC 9110, section 15.5.6).
        reply::insert(&mut answer, header::ALLOW.as_str(), &allowed(&path));
    }
    reply::insert(&mut answer, REQUEST_ID_HEADER, &request_id);
    // Health checks that find nothing are not worth a line, and queries may hold signatures.
    if path != HEALTH_PATH || !answer.status().is_success() {
        let fields = json!({
            "method": method,
            "path": path,
            "status": answer.status().as_u16(),
            "millis": (host::now_micros() - began) / 1000,
        });
        log::info("answered", fields);
    }
    answer
}

/// The methods that a path takes.
fn allowed(path: &str) -> String {
    match path {
        HEALTH_PATH => "GET".to_owned(),
        _ => operation::methods(path).join(", "),
    }
}

async fn respond(request: Request, request_id: &str) -> Result<Answer, ApiError> {
    let path = request.uri().path().to_owned();
    let raw_query = request.uri().query().unwrap_or_default().to_owned();
    if path == HEALTH_PATH {
        return health(request.method().as_str()).await;
    }
    let found = operation::find(request.method().as_str(), &path)?;
    let operation = found.operation;
    let rules = bucket::Rules {
        domain: settings::setting("table_bucket_domain").await?,
        account_id: settings::setting("account_id").await?,
        default: settings::setting("default_bucket").await?,
        buckets: settings::list("table_buckets").await?,
    };
    let bucket = rules.find(client::host(&request).unwrap_or_default())?;
    let (parts, body) = request::read(request, request::limit(operation)).await?;
    let store = SpinStore::open()?;
    let region = settings::setting("region").await?;
    let realm = Realm {
        region: &region,
        account_id: &rules.account_id,
        bucket: &bucket,
    };
    let credential = authenticate::credential(&parts, &body, &realm, &store).await?;

    let mut context = RequestContext {
        request_id: request_id.to_owned(),
        caller: Caller {
            access_key_id: credential.access_key_id,
            user: credential.user,
            policy: credential
                .policy
                .as_ref()
                .map(|policy| policy.as_json().clone()),
        },
        source_address: client::address(&parts.headers),
        secure_transport: client::is_secure(&parts).await?,
        bucket,
        operation,
        segments: found.segments.into_iter().map(str::to_owned).collect(),
        query: raw_query,
        table: None,
        with_progress: request::header(&parts.headers, PROGRESS_HEADER) == Some("true"),
    };
    context.table = authorise(&context, credential.policy, &store).await?;
    check_content_md5(&parts, &body)?;
    let secret = settings::required("internal_secret").await?;
    let mut answer = service::call(operation.component(), &context, &secret, body).await?;
    if let Some(table) = context.table.filter(|_| answer.status().is_success()) {
        reply::insert(&mut answer, TABLE_ID_HEADER, &table.id);
    }
    Ok(answer)
}

/// 200 while the application is set up, works and reaches its store.
async fn health(method: &str) -> Result<Answer, ApiError> {
    if method != "GET" {
        return Err(ApiError::new(
            ErrorName::MethodNotAllowed,
            "This path takes GET.",
        ));
    }
    credentials::fixed().await?;
    authority::check_settings().await?;
    SpinStore::open()?.get("health")?;
    Ok(Reply::json(&serde_json::json!({"status": "ok"})).into_answer())
}

/// Fails unless the caller may do what is asked for; returns the table that it is about. A table
/// is looked up first, since what may be done to it depends on which one it is.
async fn authorise(
    context: &RequestContext,
    identity: Option<Policy>,
    store: &SpinStore,
) -> Result<Option<TableRef>, ApiError> {
    let authority = Authority::with_identity(context, identity, store).await?;
    let action = context.operation.action();
    match context.operation.subject() {
        Subject::Bucket => authority.check_bucket(action)?,
        // The component knows whose keys they are.
        Subject::Credentials => {}
        Subject::Table | Subject::TableOrUri | Subject::Job => {
            let table = find_table(context, store)?;
            authority.check_table(action, &table.id, table.policy.as_ref())?;
            check_format(&table)?;
            return Ok(Some(TableRef {
                arn: authority.table_arn(&table.id),
                id: table.id,
                location: table.location,
            }));
        }
    }
    Ok(None)
}

/// The table that a request names: by its identifier, its location, or one of its jobs.
fn find_table(context: &RequestContext, store: &SpinStore) -> Result<TableRecord, ApiError> {
    let catalog = Catalog::new(store, &context.bucket);
    match context.operation.subject() {
        Subject::Job => {
            let job_id = context.job_id()?;
            let table = catalog.table_with_id(&job_id.table_id)?;
            table.ok_or_else(JobId::not_found)
        }
        Subject::TableOrUri => match context.table_location()? {
            Some(location) => catalog.table_at(&location),
            None => catalog.table(&context.table_identifier()?),
        },
        _ => catalog.table(&context.table_identifier()?),
    }
}

fn check_format(table: &TableRecord) -> Result<(), ApiError> {
    if table.format == LANCE_FORMAT {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "The table's format is {}; only {LANCE_FORMAT} tables are served here.",
        table.format
    )))
}

fn check_content_md5(parts: &Parts, body: &[u8]) -> Result<(), ApiError> {
    for value in parts.headers.get_all("content-md5") {
        lance_maintenance_auth::check_content_md5(value.as_bytes(), body)
            .map_err(authenticate::refused)?;
    }
    Ok(())
}
