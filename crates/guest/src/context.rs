//! What the router tells a component about a request: verified, and signed with the application's
//! own secret, so that a component believes the router only.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::HeaderMap;
use lance_maintenance_api::identifier::{Delimiter, TableIdentifier};
use lance_maintenance_api::jobs::JobId;
use lance_maintenance_api::location;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::query::Query;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{TableRef, signature};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spin_sdk::http::Request;

use crate::reply::{Answer, Reply};
use crate::{host, log, request, settings};

/// The header in which the context travels.
const CONTEXT_HEADER: &str = "x-lance-context";
/// What the context's signature is made over, in the place of a path.
const CONTEXT_SCOPE: &str = "context";

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The access key that signed the request.
    pub access_key_id: String,
    /// The user who holds it.
    pub user: String,
    /// The user's identity policy.
    pub policy: Option<Value>,
}

/// A request after the router's checks: who asks, and what for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestContext {
    /// The request's id.
    pub request_id: String,
    /// Who sent it.
    pub caller: Caller,
    /// The client's address, if the host tells.
    pub source_address: Option<IpAddr>,
    /// Whether the request came over TLS.
    pub secure_transport: bool,
    /// The table bucket.
    pub bucket: String,
    /// The operation.
    pub operation: Operation,
    /// What the path has for the `{...}` of the operation's path, still encoded.
    pub segments: Vec<String>,
    /// The raw query of the original request.
    pub query: String,
    /// The table, for what concerns one that exists.
    pub table: Option<TableRef>,
    /// Whether the answer should say how far a task is.
    pub with_progress: bool,
}

impl RequestContext {
    /// The headers that carry the context to a component.
    pub fn headers(&self, secret: &str) -> Result<[(&'static str, String); 3], ApiError> {
        let text = serde_json::to_vec(self).map_err(|_| not_from_the_router())?;
        let now = host::now_seconds();
        Ok([
            (
                signature::SIGNATURE_HEADER,
                signature::sign(secret, "", CONTEXT_SCOPE, now, &text),
            ),
            (signature::TIMESTAMP_HEADER, now.to_string()),
            (CONTEXT_HEADER, URL_SAFE_NO_PAD.encode(text)),
        ])
    }

    /// The context that a request carries, if the router made it.
    fn read(headers: &HeaderMap, secret: &str) -> Result<Self, ApiError> {
        let text = request::header(headers, CONTEXT_HEADER)
            .and_then(|value| URL_SAFE_NO_PAD.decode(value).ok())
            .ok_or_else(not_from_the_router)?;
        signature::verify(
            secret,
            "",
            CONTEXT_SCOPE,
            request::header(headers, signature::TIMESTAMP_HEADER),
            request::header(headers, signature::SIGNATURE_HEADER),
            &text,
            host::now_seconds(),
        )
        .map_err(|_| not_from_the_router())?;
        serde_json::from_slice(&text).map_err(|_| not_from_the_router())
    }

    /// The table in question.
    pub fn table(&self) -> Result<&TableRef, ApiError> {
        self.table.as_ref().ok_or_else(not_from_the_router)
    }

    /// The task in question; what is no task id names no task.
    pub fn task_id(&self) -> Result<TaskId, ApiError> {
        TaskId::parse(self.segment(1)?).ok_or_else(TaskId::not_found)
    }

    /// The job in question; what is no job id names no job.
    pub fn job_id(&self) -> Result<JobId, ApiError> {
        JobId::parse(self.segment(0)?).ok_or_else(JobId::not_found)
    }

    /// The location in the path, if that names the table by one.
    pub fn table_location(&self) -> Result<Option<String>, ApiError> {
        let name = self.table_name()?;
        Ok(location::is_location(&name).then(|| location::normalised(&name)))
    }

    /// Fails unless a body that names a table names the one in the path.
    pub fn check_table_of_body(&self, name: Option<&str>) -> Result<(), ApiError> {
        let is_the_same = |name: &str| -> Result<bool, ApiError> {
            let location = &self.table()?.location;
            Ok(location::normalised(name) == *location || name == self.table_name()?)
        };
        match name {
            Some(name) if !is_the_same(name)? => Err(ApiError::invalid(
                "'table' in the body names another table than the path.",
            )),
            _ => Ok(()),
        }
    }

    /// What the path calls the table.
    fn table_name(&self) -> Result<String, ApiError> {
        percent_decode_str(self.segment(0)?)
            .decode_utf8()
            .map(|name| name.into_owned())
            .map_err(|_| ApiError::invalid("The table's id is not UTF-8."))
    }

    /// The identifier of the table that the path names.
    pub fn table_identifier(&self) -> Result<TableIdentifier, ApiError> {
        let query = Query::parse(&self.query)?;
        let delimiter = Delimiter::parse(query.get("delimiter"))?;
        TableIdentifier::parse(self.segment(0)?, &delimiter)
    }

    /// What the path has for a `{...}`, still encoded.
    pub fn segment(&self, at: usize) -> Result<&str, ApiError> {
        self.segments
            .get(at)
            .map(String::as_str)
            .ok_or_else(not_from_the_router)
    }
}

fn not_from_the_router() -> ApiError {
    ApiError::new(
        ErrorName::AccessDenied,
        "This component serves the application's router only.",
    )
}

/// Serves a request to a private component: reads the context and the body, and puts the outcome
/// of `operation` into words.
pub async fn serve(
    request: Request,
    operation: impl AsyncFnOnce(&RequestContext, Bytes) -> Result<Reply, ApiError>,
) -> Answer {
    let context = match settings::required("internal_secret").await {
        Ok(secret) => RequestContext::read(request.headers(), &secret),
        Err(error) => Err(error),
    };
    let reply = match context {
        Ok(context) => {
            log::begin(&context.request_id);
            let limit = request::limit(context.operation);
            let outcome = match request::read(request, limit).await {
                Ok((_, body)) => operation(&context, body).await,
                Err(error) => Err(error),
            };
            Reply::of(outcome, &context.request_id)
        }
        Err(error) => Reply::error(&error, &host::request_id()),
    };
    reply.into_answer()
}
