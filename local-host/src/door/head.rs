//! Which heads are refused, beyond those that hyper refuses, and which URI a request has.

use http::header::{HOST, TRANSFER_ENCODING};
use http::uri::{Authority, Scheme};
use http::{Request, StatusCode, Uri};

use crate::door::Refusal;
use crate::door::limits::TARGET_SIZE;
use crate::outbound::INTERNAL_DOMAIN;

const NO_PATH: Refusal = Refusal::bad("the request's path does not start with /");
const NO_HOST: Refusal = Refusal::bad("the Host header is not a host");

/// The request's URI with scheme and authority, which come from the `Host` header. The path and
/// query stay as they are, byte for byte.
pub fn check<B>(request: &Request<B>) -> Result<Uri, Refusal> {
    if target_size(request.uri()) > TARGET_SIZE {
        return Err(Refusal {
            status: StatusCode::URI_TOO_LONG,
            reason: "the request's target is too long",
        });
    }
    let mut encodings = request.headers().get_all(TRANSFER_ENCODING).iter();
    if let Some(encoding) = encodings.next()
        && (!encoding.as_bytes().eq_ignore_ascii_case(b"chunked") || encodings.next().is_some())
    {
        return Err(Refusal {
            status: StatusCode::NOT_IMPLEMENTED,
            reason: "no transfer encoding but chunked is understood",
        });
    }
    let host = host(request)?;
    if !request.uri().path().starts_with('/') {
        return Err(NO_PATH);
    }
    let mut parts = request.uri().clone().into_parts();
    if parts.authority.is_some_and(|authority| authority != host) {
        return Err(Refusal::bad(
            "the Host header differs from the request's URI",
        ));
    }
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(host);
    Uri::from_parts(parts).map_err(|_| NO_PATH)
}

fn target_size(uri: &Uri) -> usize {
    let authority = uri.authority().map_or(0, |host| host.as_str().len());
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    authority + path
}

fn host<B>(request: &Request<B>) -> Result<Authority, Refusal> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host
            .to_str()
            .ok()
            .and_then(|host| host.parse::<Authority>().ok())
            .ok_or(NO_HOST)?,
        (None, _) => return Err(Refusal::bad("the Host header is missing")),
        (Some(_), Some(_)) => return Err(Refusal::bad("there is more than one Host header")),
    };
    if host.host().is_empty() || host.as_str().contains('@') {
        return Err(NO_HOST);
    }
    // Only components call components by their internal names.
    if is_internal(host.host()) {
        return Err(Refusal::bad("the Host header is an internal name"));
    }
    Ok(host)
}

/// Whether it is Spin's domain for components or lies in it, in whatever spelling.
fn is_internal(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    host.strip_suffix(INTERNAL_DOMAIN)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::check;

    #[test]
    fn keeps_the_path_as_it_came() {
        for path in [
            "/",
            "/v1/table/a$b/index?x",
            "/a%24b%2Fc/..%2f?task=1&status",
            "//double///slash/",
            "/?a=b?c",
        ] {
            for prefix in ["", "http://lance.localhost:3000"] {
                let request = Request::get(format!("{prefix}{path}"))
                    .header("host", "lance.localhost:3000")
                    .body(())
                    .unwrap();
                let uri = check(&request).unwrap();
                assert_eq!(
                    uri.to_string(),
                    format!("http://lance.localhost:3000{path}")
                );
            }
        }
    }

    #[test]
    fn takes_hosts_as_they_are() {
        for host in [
            "a",
            "A.Example.",
            "127.0.0.1:3000",
            "[::1]:3000",
            "xspin.internal",
            "spin.internal.example.com",
        ] {
            let request = Request::get("/").header("host", host).body(()).unwrap();
            let uri = check(&request).unwrap();
            assert_eq!(uri.authority().unwrap().as_str(), host);
        }
    }

    #[test]
    fn refuses_what_is_unclear() {
        let long = format!("/{}", "a".repeat(16 << 10));
        let cases = [
            ("/", &[][..], 400, "missing"),
            (
                "/",
                &[("host", "a"), ("host", "b")][..],
                400,
                "more than one",
            ),
            (
                "/",
                &[("host", "a"), ("host", "a")][..],
                400,
                "more than one",
            ),
            ("/", &[("host", "a b")][..], 400, "not a host"),
            ("/", &[("host", "")][..], 400, "not a host"),
            ("/", &[("host", ":80")][..], 400, "not a host"),
            ("/", &[("host", "a/b")][..], 400, "not a host"),
            ("/", &[("host", "b@a")][..], 400, "not a host"),
            (
                "/",
                &[("host", "compact.spin.internal")][..],
                400,
                "internal name",
            ),
            (
                "/",
                &[("host", "Compact.Spin.Internal.:80")][..],
                400,
                "internal name",
            ),
            (
                "/",
                &[("host", "a.b.spin.internal")][..],
                400,
                "internal name",
            ),
            ("/", &[("host", "spin.internal")][..], 400, "internal name"),
            ("http://b/", &[("host", "a")][..], 400, "differs"),
            ("http://b@a/", &[("host", "a")][..], 400, "differs"),
            ("*", &[("host", "a")][..], 400, "start with /"),
            ("a:80", &[("host", "a:80")][..], 400, "start with /"),
            (&long, &[("host", "a")][..], 414, "too long"),
            (
                "/",
                &[("host", "a"), ("transfer-encoding", "gzip, chunked")][..],
                501,
                "chunked",
            ),
        ];
        for (uri, headers, status, says) in cases {
            let mut request = Request::get(uri);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let error = check(&request.body(()).unwrap()).unwrap_err();
            assert_eq!(error.status.as_u16(), status, "{uri} {headers:?}");
            assert!(error.reason.contains(says), "{uri} {headers:?}: {error:?}");
        }
    }
}
