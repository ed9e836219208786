//! Calls to other components of the application.

use bytes::Bytes;
use http::{Method, Request};
use lance_maintenance_api::{ApiError, ErrorName};
use spin_sdk::http::body::IncomingBodyExt;
use spin_sdk::http::{FullBody, send};

use crate::context::RequestContext;
use crate::log;
use crate::reply::Answer;

/// Calls a private component of the application with a request's context and body.
pub async fn call(
    component: &str,
    context: &RequestContext,
    secret: &str,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://{component}.spin.internal/"));
    for (name, value) in context.headers(secret)? {
        request = request.header(name, value);
    }
    let request = request
        .body(FullBody::new(body))
        .map_err(|_| unreachable(component))?;
    let response = send(request).await.map_err(|error| {
        log::warn(format_args!(
            "the component '{component}' can't be called: {error}"
        ));
        unreachable(component)
    })?;
    let (parts, body) = response.into_parts();
    let body = body.bytes().await.map_err(|_| unreachable(component))?;
    Ok(http::Response::from_parts(parts, FullBody::new(body)))
}

fn unreachable(component: &str) -> ApiError {
    log::warn(format_args!("the component '{component}' did not answer"));
    ApiError::new(ErrorName::InternalError, "The service failed; try again.")
}
