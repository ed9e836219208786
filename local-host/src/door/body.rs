//! Bodies of requests: how large they may be and how slowly they may come.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use wasmtime_wasi_http::{Error, WasiBody};

use crate::door::Refusal;
use crate::door::limits::{AHEAD_SIZE, BODY_PACE, BODY_SIZE, Pace};

const TOO_LARGE: Refusal = Refusal {
    status: StatusCode::PAYLOAD_TOO_LARGE,
    reason: "the body is too large",
};
const TOO_SLOW: Refusal = Refusal {
    status: StatusCode::REQUEST_TIMEOUT,
    reason: "the body came too slowly",
};
const CUT_SHORT: Refusal = Refusal::bad("the body was cut short");

/// A body that reaches a component before all of it is here, as those see it who wait for the
/// answer.
#[derive(Debug, Default)]
pub struct Upload(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waited: Duration,
    waiting_since: Option<Instant>,
    end: Option<Result<(), Refusal>>,
}

impl Upload {
    /// How long the client was waited for. Time in which the component did not ask for more does
    /// not count.
    pub fn waited(&self) -> Duration {
        let state = self.state();
        let now = state.waiting_since.map(|since| since.elapsed());
        state.waited + now.unwrap_or_default()
    }

    /// Whether all of it is here, or why it will never be; `None` while neither is so.
    pub fn end(&self) -> Option<Result<(), Refusal>> {
        self.state().end
    }

    fn stop_waiting(&self) {
        let mut state = self.state();
        if let Some(since) = state.waiting_since.take() {
            state.waited += since.elapsed();
        }
    }

    fn fail(&self, refusal: Refusal) -> Error {
        self.state().end.get_or_insert(Err(refusal));
        error(refusal)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What components see of a body that is refused.
pub fn error(refusal: Refusal) -> Error {
    match refusal {
        TOO_LARGE => Error::HttpRequestBodySize(None),
        TOO_SLOW => Error::ConnectionReadTimeout,
        _ => Error::ConnectionTerminated,
    }
}

/// A body of which the beginning is here.
pub struct Received {
    /// For the component.
    pub body: WasiBody,
    /// For the others, if a part is still to come.
    pub upload: Option<Arc<Upload>>,
}

/// Waits for a body, or for as much of it as is kept here.
pub async fn receive<B>(incoming: B) -> Result<Received, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Error>,
{
    receive_at(BODY_PACE, BODY_SIZE, incoming).await
}

async fn receive_at<B>(pace: Pace, limit: u64, incoming: B) -> Result<Received, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Error>,
{
    if incoming.is_end_stream() {
        let body = incoming.map_err(Into::into).boxed_unsync();
        return Ok(Received { body, upload: None });
    }
    if incoming.size_hint().lower() > limit {
        return Err(TOO_LARGE);
    }
    let mut rest = Metered::new(pace, limit, incoming);
    let mut ahead = BytesMut::new();
    let mut trailers = None;
    while !rest.is_end_stream() && ahead.len() < AHEAD_SIZE {
        match rest.frame().await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => ahead.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            },
            Some(Err(_)) | None => break,
        }
    }
    let upload = rest.upload.clone();
    let rest = match upload.end() {
        Some(Ok(())) => None,
        Some(Err(refusal)) => return Err(refusal),
        None => Some(rest),
    };
    let upload = rest.as_ref().map(|_| upload);
    let body = Assembled {
        ahead: (!ahead.is_empty()).then(|| ahead.freeze()),
        trailers,
        rest,
    };
    Ok(Received {
        body: body.boxed_unsync(),
        upload,
    })
}

/// What came ahead, and then the rest.
struct Assembled<B> {
    ahead: Option<Bytes>,
    trailers: Option<HeaderMap>,
    rest: Option<Metered<B>>,
}

impl<B> Body for Assembled<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(ahead) = self.ahead.take() {
            return Poll::Ready(Some(Ok(Frame::data(ahead))));
        }
        if let Some(trailers) = self.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.is_none()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(Metered::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.len() as u64);
        let rest = self.rest.as_ref().map(Metered::size_hint);
        let mut hint = rest.unwrap_or_else(|| SizeHint::with_exact(0));
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint.set_lower(hint.lower().saturating_add(ahead));
        hint
    }
}

/// A body that fails when it is too large or too slow.
struct Metered<B> {
    incoming: B,
    upload: Arc<Upload>,
    pace: Pace,
    limit: u64,
    received: u64,
    timer: Pin<Box<Sleep>>,
}

impl<B> Metered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    fn new(pace: Pace, limit: u64, incoming: B) -> Self {
        Self {
            incoming,
            upload: Arc::default(),
            pace,
            limit,
            received: 0,
            timer: Box::pin(sleep(pace.silence)),
        }
    }

    /// When the client has been waited for too long.
    fn deadline(&self) -> Instant {
        let mut state = self.upload.state();
        let since = *state.waiting_since.get_or_insert_with(Instant::now);
        let allowed = self.pace.allowed(self.received);
        since + allowed.saturating_sub(state.waited).min(self.pace.silence)
    }
}

impl<B> Body for Metered<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Error>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(Err(refusal)) = self.upload.end() {
            return Poll::Ready(Some(Err(self.upload.fail(refusal))));
        }
        let Poll::Ready(result) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            let deadline = self.deadline().into();
            if self.timer.deadline() != deadline {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(cx));
            self.upload.stop_waiting();
            return Poll::Ready(Some(Err(self.upload.fail(TOO_SLOW))));
        };
        self.upload.stop_waiting();
        Poll::Ready(match result {
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, Bytes::len) as u64;
                self.received = self.received.saturating_add(size);
                if self.received > self.limit {
                    return Poll::Ready(Some(Err(self.upload.fail(TOO_LARGE))));
                }
                if self.incoming.is_end_stream() {
                    self.upload.state().end = Some(Ok(()));
                }
                Some(Ok(frame))
            }
            Some(Err(error)) => {
                self.upload.fail(CUT_SHORT);
                Some(Err(error.into()))
            }
            None => {
                self.upload.state().end = Some(Ok(()));
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl<B> Drop for Metered<B> {
    /// A component that has enough waits no longer.
    fn drop(&mut self) {
        self.upload.stop_waiting();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures::StreamExt;
    use futures::stream;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Frame;
    use wasmtime_wasi_http::Error;

    use super::{CUT_SHORT, Received, TOO_LARGE, TOO_SLOW, receive_at};
    use crate::door::limits::{AHEAD_SIZE, Pace};

    const LIMIT: u64 = 300 << 10;
    const PACE: Pace = Pace {
        silence: Duration::from_millis(200),
        grace: Duration::from_millis(400),
        bytes_per_second: 64 << 10,
        total: Duration::from_secs(5),
    };

    /// A body of pieces: how many milliseconds each is waited for, and its size; -1 cuts it short.
    async fn receive(pieces: &[(u64, isize)]) -> Result<Received, super::Refusal> {
        let pieces = stream::iter(pieces.to_vec()).then(|(milliseconds, size)| async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            let size = usize::try_from(size).map_err(|_| Error::ConnectionTerminated)?;
            Ok::<_, Error>(Frame::data(Bytes::from(vec![b'x'; size])))
        });
        receive_at(PACE, LIMIT, StreamBody::new(Box::pin(pieces))).await
    }

    #[tokio::test]
    async fn small_bodies_are_whole() {
        for (pieces, size) in [
            (&[][..], 0),
            (&[(0, 0)][..], 0),
            (&[(0, 3)][..], 3),
            (&[(150, 3), (150, 4)][..], 7),
        ] {
            let received = receive(pieces).await.unwrap();
            assert!(received.upload.is_none(), "{pieces:?}");
            let body = received.body.collect().await.unwrap().to_bytes();
            assert_eq!(body.len(), size, "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn what_never_reaches_a_component() {
        let drips = [(50, 1); 20];
        for (pieces, refusal) in [
            (&[(0, 1), (5000, 1)][..], TOO_SLOW),
            (&drips[..], TOO_SLOW),
            (&[(0, 10), (0, -1)][..], CUT_SHORT),
        ] {
            let error = receive(pieces).await.err();
            assert_eq!(error, Some(refusal), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn large_bodies_go_on_inside() {
        const AHEAD: isize = AHEAD_SIZE as isize;
        let drips = [&[(0, AHEAD)][..], &[(50, 1); 40]].concat();
        let brisk = [&[(0, AHEAD)][..], &[(100, 16 << 10); 10]].concat();
        let endless = [(0, AHEAD); 6];
        for (pieces, end) in [
            (&[(0, AHEAD), (0, 5)][..], Ok(())),
            (&brisk[..], Ok(())),
            (&endless[..], Err(TOO_LARGE)),
            (&drips[..], Err(TOO_SLOW)),
            (&[(0, AHEAD), (5000, 1)][..], Err(TOO_SLOW)),
            (&[(0, AHEAD), (0, -1)][..], Err(CUT_SHORT)),
        ] {
            let received = receive(pieces).await.unwrap();
            let upload = received.upload.unwrap();
            assert_eq!(upload.end(), None, "{pieces:?}");
            let body = received.body.collect().await;
            assert_eq!(upload.end(), Some(end), "{pieces:?}");
            assert_eq!(body.is_ok(), end.is_ok(), "{pieces:?}");
            if let Ok(body) = body {
                let size: isize = pieces.iter().map(|(_, size)| size).sum();
                assert_eq!(body.to_bytes().len(), size as usize, "{pieces:?}");
            }
        }
    }

    #[tokio::test]
    async fn only_waiting_for_the_client_counts() {
        let ahead = AHEAD_SIZE as isize;
        let received = receive(&[(0, ahead), (0, 1), (100, 1)]).await.unwrap();
        let (mut body, upload) = (received.body, received.upload.unwrap());
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert!(upload.waited() < Duration::from_millis(100));
        body.frame().await.unwrap().unwrap();
        let waited = upload.waited();
        assert!(waited >= Duration::from_millis(90), "{waited:?}");
    }
}
