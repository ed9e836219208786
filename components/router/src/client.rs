//! Where a request comes from, as the host tells.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use http::request::Parts;
use lance_maintenance_api::ApiError;
use lance_maintenance_guest::{request, settings};
use spin_sdk::http::Request;

/// The header in which Spin gives the client's address, over any that the client sent.
const ADDRESS_HEADER: &str = "spin-client-addr";

/// The host that a request names.
pub fn host(request: &Request) -> Option<&str> {
    request::header(request.headers(), "host").or_else(|| {
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str())
    })
}

/// The address that the request came from.
pub fn address(headers: &HeaderMap) -> Option<IpAddr> {
    let text = request::header(headers, ADDRESS_HEADER)?;
    text.parse::<SocketAddr>()
        .map(|address| address.ip())
        .or_else(|_| text.parse())
        .ok()
}

/// Whether the request came over TLS: to the host itself, or to what stands in front of it, which
/// the variable `tls_in_front` vouches for.
pub async fn is_secure(parts: &Parts) -> Result<bool, ApiError> {
    if parts.uri.scheme_str() == Some("https") {
        return Ok(true);
    }
    Ok(settings::setting("tls_in_front").await? == "true")
}
