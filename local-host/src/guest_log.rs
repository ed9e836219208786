//! What guests write to standard output and standard error, as lines in the log.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};

/// A line that is longer is logged in pieces of this many bytes.
const LONGEST_LINE: usize = 8 << 10;

/// One stream of one instance.
#[derive(Clone)]
pub struct GuestLog {
    component: Arc<str>,
    pending: Arc<Mutex<Vec<u8>>>,
}

impl GuestLog {
    /// A stream that logs under the component's name.
    pub fn new(component: Arc<str>) -> Self {
        Self {
            component,
            pending: Arc::default(),
        }
    }

    fn write(&self, bytes: &[u8]) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            pending.extend_from_slice(piece);
            if piece.ends_with(b"\n") || pending.len() >= LONGEST_LINE {
                self.log(&pending);
                pending.clear();
            }
        }
    }

    fn log(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if !line.is_empty() {
            tracing::info!(target: "guest", component = &*self.component, "{line}");
        }
    }
}

impl Drop for GuestLog {
    fn drop(&mut self) {
        // The last handle has the rest of an unfinished line.
        if Arc::strong_count(&self.pending) == 1 {
            let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            if !pending.is_empty() {
                self.log(&pending);
            }
        }
    }
}

impl IsTerminal for GuestLog {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestLog {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for GuestLog {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
