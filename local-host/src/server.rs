//! The HTTP/1.1 server in front of an application.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::application::Application;
use crate::outbound::internal_component;
use crate::reply;

/// How many requests are inside components at once; further ones wait. Calls between components
/// don't count, so this is well below the number of instances.
const REQUESTS_INSIDE: usize = 256;

/// How long a connection may be without a complete request.
const HEADER_TIME: Duration = Duration::from_secs(60);

/// How long a shutdown waits for requests that are being answered, and for work that guests left
/// running.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// Paths under it belong to Spin and never reach a component.
const WELL_KNOWN: &str = "/.well-known/spin/";

/// Serves until `shutdown` is cancelled, then lets what is running come to its end, within
/// ten seconds.
pub async fn serve(
    listener: TcpListener,
    application: Arc<Application>,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    let inside = Arc::new(Semaphore::new(REQUESTS_INSIDE));
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => {
                let server = Server {
                    application: application.clone(),
                    inside: inside.clone(),
                };
                connections.spawn(connection(stream, client, server, shutdown.clone()));
            }
            Err(error) => {
                // Out of file descriptors, say: others will be closed meanwhile.
                tracing::warn!(%error, "can't accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let ending = async {
        connections.wait().await;
        application.close().await;
    };
    if tokio::time::timeout(CLOSING_TIME, ending).await.is_err() {
        tracing::warn!("shutting down with requests or background work unfinished");
    }
}

async fn connection(
    stream: TcpStream,
    client: SocketAddr,
    server: Server,
    shutdown: CancellationToken,
) {
    // An answer whose body follows its head would otherwise wait for the client's delayed ACK.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %client, "no TCP_NODELAY");
    }
    let service = service_fn(|request| server.answer(request, client));
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .serve_connection(TokioIo::new(stream), service)
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, %client, "connection ended");
    }
}

struct Server {
    application: Arc<Application>,
    inside: Arc<Semaphore>,
}

impl Server {
    async fn answer(
        &self,
        request: Request<Incoming>,
        client: SocketAddr,
    ) -> Result<Response<WasiBody>, Infallible> {
        let mut request = request.map(|body| body.map_err(Error::from).boxed_unsync());
        if let Some(path) = request.uri().path().strip_prefix(WELL_KNOWN) {
            return Ok(match path {
                "health" => reply::text(StatusCode::OK, "OK"),
                _ => reply::empty(StatusCode::NOT_FOUND),
            });
        }
        let uri = match absolute_uri(&request) {
            Ok(uri) => uri,
            Err(reason) => return Ok(reply::text(StatusCode::BAD_REQUEST, reason)),
        };
        *request.uri_mut() = uri;
        let Ok(_permit) = self.inside.acquire().await else {
            return Ok(reply::empty(StatusCode::SERVICE_UNAVAILABLE));
        };
        Ok(self.application.serve(request, client).await)
    }
}

/// The request's URI with scheme and authority, which come from the `Host` header. The path and
/// query stay as they are, byte for byte.
fn absolute_uri<B>(request: &Request<B>) -> Result<Uri, &'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host
            .to_str()
            .ok()
            .and_then(|host| host.parse::<Authority>().ok())
            .ok_or("the Host header is not a host")?,
        (None, _) => return Err("the Host header is missing"),
        (Some(_), Some(_)) => return Err("there is more than one Host header"),
    };
    // Only components call components by their internal names.
    if internal_component(&host).is_some() {
        return Err("the Host header is an internal name");
    }
    const NO_PATH: &str = "the request's path does not start with /";
    if !request.uri().path().starts_with('/') {
        return Err(NO_PATH);
    }
    let mut parts = request.uri().clone().into_parts();
    if parts.authority.is_some_and(|authority| authority != host) {
        return Err("the Host header differs from the request's URI");
    }
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(host);
    Uri::from_parts(parts).map_err(|_| NO_PATH)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::absolute_uri;

    #[test]
    fn keeps_the_path_as_it_came() {
        for path in [
            "/",
            "/v1/table/a$b/index?x",
            "/a%24b%2Fc/..%2f?task=1&status",
            "//double///slash/",
            "/?a=b?c",
        ] {
            let request = Request::get(path)
                .header("host", "lance.localhost:3000")
                .body(())
                .unwrap();
            let uri = absolute_uri(&request).unwrap();
            assert_eq!(
                uri.to_string(),
                format!("http://lance.localhost:3000{path}")
            );
        }
    }

    #[test]
    fn refuses_unclear_hosts() {
        for (uri, hosts, says) in [
            ("/", &[][..], "missing"),
            ("/", &["a", "b"][..], "more than one"),
            ("/", &["a b"][..], "not a host"),
            ("/", &["compact.spin.internal"][..], "internal name"),
            ("/", &["compact.spin.internal:80"][..], "internal name"),
            ("http://b/", &["a"][..], "differs"),
            ("*", &["a"][..], "start with /"),
        ] {
            let mut request = Request::get(uri);
            for host in hosts {
                request = request.header("host", *host);
            }
            let error = absolute_uri(&request.body(()).unwrap()).unwrap_err();
            assert!(error.contains(says), "{uri} {hosts:?}: {error}");
        }
    }
}
