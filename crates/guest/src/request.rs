//! Reading requests.

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use lance_maintenance_api::{ApiError, ErrorName};
use spin_sdk::http::Request;

/// The largest body that is taken, in bytes.
pub const BODY_LIMIT: usize = 1024 * 1024;

/// Reads a request: its head, and its whole body up to [`BODY_LIMIT`].
pub async fn read(request: Request) -> Result<(Parts, Bytes), ApiError> {
    let (parts, mut body) = request.into_parts();
    if content_length(&parts.headers).is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::invalid("The body was cut short."))?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > BODY_LIMIT {
                return Err(too_large());
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

fn too_large() -> ApiError {
    ApiError::new(
        ErrorName::RequestTooLarge,
        format!("The body is larger than {BODY_LIMIT} bytes."),
    )
}
