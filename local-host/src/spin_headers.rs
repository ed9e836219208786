//! The headers that Spin adds to a request before a component sees it.

use std::net::SocketAddr;

use http::header::HOST;
use http::{HeaderName, HeaderValue, Request};

const CLIENT_ADDR: HeaderName = HeaderName::from_static("spin-client-addr");
const PATH_INFO: HeaderName = HeaderName::from_static("spin-path-info");
const FULL_URL: HeaderName = HeaderName::from_static("spin-full-url");
const MATCHED_ROUTE: HeaderName = HeaderName::from_static("spin-matched-route");
const BASE_PATH: HeaderName = HeaderName::from_static("spin-base-path");
const RAW_COMPONENT_ROUTE: HeaderName = HeaderName::from_static("spin-raw-component-route");
const COMPONENT_ROUTE: HeaderName = HeaderName::from_static("spin-component-route");

/// Adds them to a request that came by `route`, whose wildcard stands for `path_info`. What the
/// sender put under these names is replaced.
pub fn add<B>(request: &mut Request<B>, route: &str, path_info: &str, client: SocketAddr) {
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    let host = request
        .headers()
        .get(HOST)
        .map_or(&b"localhost"[..], HeaderValue::as_bytes);
    let full_url = [b"http://", host, path.as_bytes()].concat();
    let prefix = route.strip_suffix("/...").unwrap_or(route);
    let client = client.to_string();
    for (name, value) in [
        (CLIENT_ADDR, client.as_bytes()),
        (PATH_INFO, path_info.as_bytes()),
        (FULL_URL, &full_url),
        (MATCHED_ROUTE, route.as_bytes()),
        (BASE_PATH, b"/"),
        (RAW_COMPONENT_ROUTE, route.as_bytes()),
        (COMPONENT_ROUTE, prefix.as_bytes()),
    ] {
        match HeaderValue::from_bytes(value) {
            Ok(value) => request.headers_mut().insert(name, value),
            // Never the sender's own value in its place.
            Err(_) => request.headers_mut().remove(name),
        };
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    #[test]
    fn replaces_what_the_sender_claims() {
        let mut request = Request::get("http://lance.localhost/a/b%2Fc?x&y=1")
            .header("host", "lance.localhost")
            .header("spin-client-addr", "10.0.0.1:1")
            .body(())
            .unwrap();
        super::add(
            &mut request,
            "/a/...",
            "/b%2Fc",
            "127.0.0.1:7".parse().unwrap(),
        );
        for (name, value) in [
            ("spin-client-addr", "127.0.0.1:7"),
            ("spin-path-info", "/b%2Fc"),
            ("spin-full-url", "http://lance.localhost/a/b%2Fc?x&y=1"),
            ("spin-matched-route", "/a/..."),
            ("spin-component-route", "/a"),
            ("spin-base-path", "/"),
        ] {
            let values: Vec<_> = request.headers().get_all(name).iter().collect();
            assert_eq!(values, [value], "{name}");
        }
    }
}
