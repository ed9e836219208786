//! Reading requests.

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::{ApiError, ErrorName};
use spin_sdk::http::Request;

/// The largest body that is taken, in bytes.
pub const BODY_LIMIT: usize = 1024 * 1024;
/// The largest body of a CreateTable, in bytes: an instance of a component has 128 MiB of memory,
/// and the body is in it as a whole, since its digest is checked before anything is written.
/// Larger tables are declared and written by the client itself.
pub const TABLE_LIMIT: usize = 32 * 1024 * 1024;

/// The largest body of an operation, in bytes.
pub fn limit(operation: Operation) -> usize {
    match operation {
        Operation::CreateTable => TABLE_LIMIT,
        _ => BODY_LIMIT,
    }
}

/// Reads a request: its head, and its whole body of at most `limit` bytes.
pub async fn read(request: Request, limit: usize) -> Result<(Parts, Bytes), ApiError> {
    let (parts, mut body) = request.into_parts();
    let length = content_length(&parts.headers);
    if length.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let expected = length.and_then(|length| usize::try_from(length).ok());
    let mut bytes = BytesMut::with_capacity(expected.unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::invalid("The body was cut short."))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(too_large(limit));
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok((parts, bytes.freeze()))
}

/// The value of a header, if it is there once and is text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    header(headers, header::CONTENT_LENGTH.as_str())?
        .parse()
        .ok()
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        ErrorName::RequestTooLarge,
        format!("The body is larger than {limit} bytes."),
    )
}
