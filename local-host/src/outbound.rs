//! Requests that guests send: who may reach what, and calls inside the application.

use std::sync::{Arc, Weak};

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::BodyExt;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody,
    WasiHttpHooks, default_send_request,
};

use crate::allowed_hosts::AllowedHost;
use crate::application::Application;

/// `http://<component>.spin.internal` is that component, not a place on the network.
pub const INTERNAL_DOMAIN: &str = "spin.internal";

/// Where one component may send requests.
#[derive(Clone)]
pub struct Outbound {
    component: Arc<str>,
    allowed: Arc<[AllowedHost]>,
    /// Weak, because the application owns the components that hold this.
    application: Weak<Application>,
}

type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Sending = Box<dyn Future<Output = Result<(Response<WasiBody>, Io), Error>> + Send>;

impl Outbound {
    /// The permission of `component`, part of `application`.
    pub fn new(
        component: Arc<str>,
        allowed: Vec<AllowedHost>,
        application: Weak<Application>,
    ) -> Self {
        Self {
            component,
            allowed: allowed.into(),
            application,
        }
    }
}

/// The component an authority means, if it means one: `<component>.spin.internal`.
pub fn internal_component(authority: &Authority) -> Option<&str> {
    let (component, domain) = authority.host().split_once('.')?;
    domain
        .eq_ignore_ascii_case(INTERNAL_DOMAIN)
        .then_some(component)
}

fn is_forbidden(name: &HeaderName) -> bool {
    *name != HOST && DEFAULT_FORBIDDEN_HEADERS.contains(name)
}

fn host_header(uri: &Uri) -> Result<HeaderValue, Error> {
    let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?;
    HeaderValue::from_str(authority.as_str()).map_err(|_| Error::HttpRequestUriInvalid)
}

impl WasiHttpHooks for Outbound {
    /// Guests see the `host` header of the requests they serve, as on Spin.
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_forbidden)
    }

    /// Set below: a `host` that the guest gave must not stand beside it.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        mut request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _response_read: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Sending {
        request.headers_mut().remove(HOST);
        if !self
            .allowed
            .iter()
            .any(|allowed| allowed.allows(request.uri()))
        {
            tracing::warn!(
                component = &*self.component,
                host = request
                    .uri()
                    .authority()
                    .map(Authority::as_str)
                    .unwrap_or_default(),
                "outgoing request refused: not in allowed_outbound_hosts"
            );
            return Box::new(std::future::ready(Err(Error::HttpRequestDenied)));
        }

        let internal = request.uri().authority().and_then(internal_component);
        if let Some(component) = internal.map(str::to_owned) {
            let application = self.application.upgrade();
            return Box::new(async move {
                let application = application.ok_or(Error::ConnectionTerminated)?;
                let response = application.chain(&component, request).await?;
                Ok((response, Box::new(std::future::ready(Ok(()))) as Io))
            });
        }

        Box::new(async move {
            let host = host_header(request.uri())?;
            request.headers_mut().insert(HOST, host);
            let (response, io) = default_send_request(request, options).await?;
            Ok((response.map(BodyExt::boxed_unsync), Box::new(io) as Io))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::internal_component;

    #[test]
    fn finds_components() {
        for (authority, component) in [
            ("compact.spin.internal", Some("compact")),
            ("compact.spin.internal:80", Some("compact")),
            ("compact.SPIN.internal", Some("compact")),
            ("spin.internal", None),
            ("a.b.spin.internal", None),
            ("compact.spin.internal.example.com", None),
            ("localhost:3000", None),
        ] {
            let authority = authority.parse().unwrap();
            assert_eq!(internal_component(&authority), component, "{authority}");
        }
    }
}
