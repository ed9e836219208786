//! What stands between the network and the application: limits, and what is no clear request.
//!
//! hyper reads and writes HTTP/1.1 and refuses most of what is malformed. Here is the rest: how much
//! and how long anything may be ([`limits`]), which heads are refused ([`head`]), requests whose end
//! is unclear ([`framing`]), bodies that are too large or come too slowly ([`body`]), clients that
//! don't read or go on sending after they were refused ([`socket`]), and more requests than there is
//! room for ([`turns`]).

pub mod body;
pub mod framing;
pub mod head;
pub mod limits;
pub mod socket;
pub mod turns;

use http::{HeaderValue, Response, StatusCode, header};
use wasmtime_wasi_http::WasiBody;

use crate::reply;

/// Why a request does not reach the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The status it is answered with.
    pub status: StatusCode,
    /// A few words for the client.
    pub reason: &'static str,
}

impl Refusal {
    /// A request that is malformed.
    pub const fn bad(reason: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            reason,
        }
    }

    /// A request that there is no room for just now.
    pub const fn busy(reason: &'static str) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            reason,
        }
    }

    /// The answer, after which the connection is closed: what follows on it can't be trusted to be
    /// another request.
    pub fn answer(self) -> Response<WasiBody> {
        let mut answer = reply::text(self.status, self.reason);
        close_after(&mut answer);
        answer
    }
}

/// Makes an answer the last one of its connection.
pub fn close_after<B>(answer: &mut Response<B>) {
    answer
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
}
