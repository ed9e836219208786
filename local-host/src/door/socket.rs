//! A connection with a client that may be slow, or may not listen.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep, timeout};

use crate::door::framing::Framing;
use crate::door::limits::{LINGER_SIZE, LINGER_TIME, WRITE_TIME};

const HTTP2: &[u8] =
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
const TOO_SLOW: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What was seen of a connection, for those who answer its requests.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Framing>>);

impl Seen {
    /// Looks at it.
    pub fn get(&self) -> MutexGuard<'_, Framing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's connection.
pub struct Socket {
    /// Taken when it is closed.
    stream: Option<TcpStream>,
    seen: Seen,
    place: Option<OwnedSemaphorePermit>,
    /// Runs while the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// Whether anything was written since the last head began.
    answered: bool,
    /// Whether the client closed it or it broke.
    ended: bool,
}

impl Socket {
    /// `place` is the connection's place among all; it is free again when the connection is gone.
    pub fn new(stream: TcpStream, seen: Seen, place: OwnedSemaphorePermit) -> Self {
        Self {
            stream: Some(stream),
            seen,
            place: Some(place),
            stalled: None,
            answered: false,
            ended: false,
        }
    }

    fn write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.answered = true;
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if let Poll::Ready(result) = write(Pin::new(stream), cx) {
            self.stalled = None;
            self.ended |= result.is_err();
            return Poll::Ready(result);
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(sleep(WRITE_TIME)));
        ready!(stalled.as_mut().poll(cx));
        self.ended = true;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let before = buffer.filled().len();
        let result = ready!(Pin::new(stream).poll_read(cx, buffer));
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        self.ended |= bytes.is_empty();
        let seen = self.seen.clone();
        let mut framing = seen.get();
        self.answered &= !framing.is_between_requests();
        framing.see(bytes);
        Poll::Ready(result)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write_with(cx, |stream, cx| stream.poll_write_vectored(cx, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A TCP stream has nothing to flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for Socket {
    /// Whatever ended the connection, a client in the middle of a request gets to see its answer.
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        let framing = self.seen.get();
        if self.ended || framing.is_between_requests() {
            return;
        }
        // hyper says nothing in these cases.
        let last_words = if framing.is_http2() {
            HTTP2
        } else if framing.is_in_head() && !self.answered {
            TOO_SLOW
        } else {
            &[]
        };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(linger(stream, last_words, self.place.take()));
        }
    }
}

async fn linger(mut stream: TcpStream, last_words: &[u8], _place: Option<OwnedSemaphorePermit>) {
    let dropping = async {
        stream.write_all(last_words).await?;
        stream.shutdown().await?;
        let mut left = LINGER_SIZE;
        let mut scratch = [0; 4096];
        while left > 0 {
            match stream.read(&mut scratch).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        io::Result::Ok(())
    };
    // There is nobody to tell of a failure.
    let _ = timeout(LINGER_TIME, dropping).await;
}
