//! Answers that the host gives itself.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Full};
use wasmtime_wasi_http::{Error, WasiBody};

use crate::door::limits::RETRY_AFTER;

/// A status and nothing else.
pub fn empty(status: StatusCode) -> Response<WasiBody> {
    with_status(status, Empty::new().map_err(Error::from).boxed_unsync())
}

/// A status and a few words.
pub fn text(status: StatusCode, text: &'static str) -> Response<WasiBody> {
    let body = Full::new(Bytes::from_static(text.as_bytes()));
    with_status(status, body.map_err(Error::from).boxed_unsync())
}

fn with_status(status: StatusCode, body: WasiBody) -> Response<WasiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::{empty, text};

    #[test]
    fn those_that_there_is_no_room_for_are_told_when_to_come_back() {
        for (status, pause) in [
            (StatusCode::SERVICE_UNAVAILABLE, Some("1")),
            (StatusCode::INTERNAL_SERVER_ERROR, None),
            (StatusCode::BAD_REQUEST, None),
        ] {
            for answer in [empty(status), text(status, "why")] {
                assert_eq!(answer.status(), status);
                let told = answer.headers().get("retry-after");
                assert_eq!(told.map(|value| value.to_str().unwrap()), pause, "{status}");
            }
        }
    }
}
