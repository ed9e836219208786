//! Answers that the host gives itself.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use wasmtime_wasi_http::{Error, WasiBody};

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
    response
}
