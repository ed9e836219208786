//! The HTTP/1.1 server in front of an application.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::TRANSFER_ENCODING;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmtime_wasi_http::WasiBody;

use crate::application::Application;
use crate::door::body::{self, Received};
use crate::door::limits::{self, HEAD_SIZE, HEAD_TIME};
use crate::door::socket::{Seen, Socket};
use crate::door::turns::{Length, Turns};
use crate::door::{Refusal, close_after, head};
use crate::reply;

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
    let places = Arc::new(Semaphore::new(limits::connections()));
    let server = Server {
        application: application.clone(),
        turns: Arc::default(),
    };
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, client, place)) => {
                let seen = Seen::default();
                let socket = Socket::new(stream, seen.clone(), place);
                let connection = Connection {
                    server: server.clone(),
                    client,
                    seen,
                    requests: AtomicUsize::new(0),
                };
                connections.spawn(connection.run(socket, shutdown.clone()));
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
    if timeout(CLOSING_TIME, ending).await.is_err() {
        tracing::warn!("shutting down with requests or background work unfinished");
    }
}

/// Those who come while all places are taken wait in the listener's queue.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, client) = listener.accept().await?;
    // An answer whose body follows its head would otherwise wait for the client's delayed ACK.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %client, "no TCP_NODELAY");
    }
    Ok((stream, client, place))
}

#[derive(Clone)]
struct Server {
    application: Arc<Application>,
    turns: Arc<Turns>,
}

struct Connection {
    server: Server,
    client: SocketAddr,
    seen: Seen,
    requests: AtomicUsize,
}

impl Connection {
    async fn run(self, socket: Socket, shutdown: CancellationToken) {
        let service = service_fn(|request| self.answer(request));
        let mut connection = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_header_size(HEAD_SIZE)
                .serve_connection(TokioIo::new(socket), service)
        );
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, client = %self.client, "connection ended");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<WasiBody>, Infallible> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let checked = self.seen.get().check(number);
        let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
        let answer = match checked {
            Ok(()) => self.server.answer(request, self.client).await,
            Err(refusal) => Err(refusal),
        };
        let mut answer = answer.unwrap_or_else(Refusal::answer);
        if is_chunked {
            close_after(&mut answer);
        }
        Ok(answer)
    }
}

impl Server {
    async fn answer(
        &self,
        request: Request<Incoming>,
        client: SocketAddr,
    ) -> Result<Response<WasiBody>, Refusal> {
        if let Some(path) = request.uri().path().strip_prefix(WELL_KNOWN) {
            return Ok(match path {
                "health" => reply::text(StatusCode::OK, "OK"),
                _ => reply::empty(StatusCode::NOT_FOUND),
            });
        }
        let uri = head::check(&request)?;
        let (mut parts, incoming) = request.into_parts();
        parts.uri = uri;
        let Received { body, upload } = body::receive(incoming).await?;
        let request = Request::from_parts(parts, body);

        let length = Length(request.body().size_hint().upper());
        let _turn = self.turns.wait(upload.as_ref().map(|_| length)).await?;
        let mut answer = self
            .application
            .serve(request, client, upload.clone())
            .await;
        match upload.map(|upload| upload.end()) {
            None | Some(Some(Ok(()))) => {}
            // The component can't know, and blames the client or fails.
            Some(Some(Err(refusal))) => return Err(refusal),
            Some(None) => close_after(&mut answer),
        }
        Ok(answer)
    }
}
