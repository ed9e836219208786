//! Instances of one component: made when requests need them, used again, ended when their time is
//! up.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use wasmtime::component::GuestTaskId;
use wasmtime::{Engine, Store, StoreContextMut};
use wasmtime_wasi_http::WasiHttpView;
use wasmtime_wasi_http::handler::{
    HandlerState, Instance, Proxy, ShouldAccept, WorkerExpiration, WorkerState, WorkerStatus,
};
use wasmtime_wasi_http::p3::bindings::ServicePre;

use crate::door::body::Upload;
use crate::guest::{Capabilities, Guest};

/// How long a guest may take until it answers, and after that with work it left running. Time in
/// which it waits for its client's body does not count.
pub const REQUEST_TIME: Duration = Duration::from_secs(30);

/// How long an instance waits for another request.
const IDLE_TIME: Duration = Duration::from_secs(10);

/// How many requests an instance serves at the same time; one that traps takes the others with it.
const CONCURRENT_REQUESTS: usize = 16;

/// How many requests an instance serves in its life, which bounds what a guest can leak.
const REQUESTS: usize = 1000;

/// Tells instances that the host is shutting down, and the host when the last one is gone.
#[derive(Clone, Default)]
pub struct Lifetimes {
    closing: CancellationToken,
    instances: TaskTracker,
}

impl Lifetimes {
    /// Ends idle instances, and waits until the busy ones are done.
    pub async fn close(&self) {
        self.closing.cancel();
        self.instances.close();
        self.instances.wait().await;
    }
}

/// Makes instances of one component.
pub struct Pool {
    /// What to run them in.
    pub engine: Engine,
    /// The component, linked.
    pub service: ServicePre<Guest>,
    /// What it may use.
    pub capabilities: Capabilities,
    /// When to stop.
    pub lifetimes: Lifetimes,
}

impl HandlerState for Pool {
    type StoreData = Guest;
    type WorkerExpiration = Expiration;
    type WorkerState = Worker;

    async fn instantiate(&self) -> wasmtime::Result<Instance<Guest, Expiration, Worker>> {
        let mut store = Guest::store(&self.engine, self.capabilities.clone());
        let starting = self.service.instantiate_async(&mut store);
        let service = tokio::time::timeout(REQUEST_TIME, starting)
            .await
            .map_err(|_| wasmtime::Error::msg("the component took too long to start"))??;
        let uploads = Uploads::default();
        Ok(Instance {
            store,
            proxy: Proxy::P3(service),
            view: Guest::http,
            expiration: Expiration {
                sleep: Box::pin(tokio::time::sleep(IDLE_TIME)),
                closing: Box::pin(self.lifetimes.closing.clone().cancelled_owned()),
                uploads: uploads.clone(),
            },
            state: Worker {
                component: self.capabilities.component.clone(),
                uploads,
                _alive: self.lifetimes.instances.token(),
            },
        })
    }
}

/// The bodies of which a part was still to come, of the requests that one instance serves.
#[derive(Clone, Default)]
struct Uploads(Arc<Mutex<Vec<Weak<Upload>>>>);

impl Uploads {
    fn add(&self, upload: &Arc<Upload>) {
        let mut uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uploads.retain(|upload| upload.strong_count() > 0);
        uploads.push(Arc::downgrade(upload));
    }

    /// Whether there ever was one.
    fn any(&self) -> bool {
        let uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The latest one stays.
        !uploads.is_empty()
    }

    /// How long the slowest client was waited for.
    fn waited(&self) -> Duration {
        let uploads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = |upload: &Weak<Upload>| Some(upload.upgrade()?.waited());
        uploads.iter().filter_map(waited).max().unwrap_or_default()
    }
}

/// When an instance's time is up.
pub struct Expiration {
    sleep: Pin<Box<Sleep>>,
    uploads: Uploads,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl WorkerExpiration for Expiration {
    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        status: WorkerStatus,
        start: Instant,
    ) -> Poll<()> {
        let idle = status == WorkerStatus::Idle;
        if self.closing.as_mut().poll(cx).is_ready() && idle {
            return Poll::Ready(());
        }
        let time = if idle { IDLE_TIME } else { REQUEST_TIME };
        loop {
            let deadline = (start + time + self.uploads.waited()).into();
            if self.sleep.deadline() != deadline {
                self.sleep.as_mut().reset(deadline);
            }
            ready!(self.sleep.as_mut().poll(cx));
            // A client that is waited for moves the deadline while that is being reached.
            if start + time + self.uploads.waited() <= Instant::now() {
                return Poll::Ready(());
            }
        }
    }
}

/// One living instance.
pub struct Worker {
    component: Arc<str>,
    uploads: Uploads,
    _alive: TaskTrackerToken,
}

impl WorkerState for Worker {
    type StoreData = Guest;
    /// The request's body, if a part of it is still to come.
    type RequestData = Option<Arc<Upload>>;

    fn should_accept_request(&self, concurrent: usize, total: usize) -> ShouldAccept {
        // A large body may need all the memory that an instance may have: two in one would end both, and
        // what else is in it. And the memory is given back only when the instance ends.
        if total >= REQUESTS || self.uploads.any() {
            ShouldAccept::Never
        } else if concurrent >= CONCURRENT_REQUESTS {
            ShouldAccept::No
        } else {
            ShouldAccept::Yes
        }
    }

    fn on_request_start(
        &self,
        _: StoreContextMut<'_, Guest>,
        upload: Option<Arc<Upload>>,
        _: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        let Some(upload) = upload else {
            return Box::pin(tokio::time::sleep(REQUEST_TIME));
        };
        self.uploads.add(&upload);
        Box::pin(own_time(upload))
    }

    fn drop(&self, store: Store<Guest>, result: wasmtime::Result<()>) {
        if let Err(error) = result {
            tracing::error!(component = &*self.component, "instance ended: {error:#}");
        }
        drop(store);
    }
}

/// Ends when a guest has had its time, apart from that in which it waited for its client.
async fn own_time(upload: Arc<Upload>) {
    let start = Instant::now();
    let before = upload.waited();
    loop {
        let deadline = start + REQUEST_TIME + upload.waited().saturating_sub(before);
        if deadline <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(deadline.into()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wasmtime_wasi_http::handler::{ShouldAccept, WorkerState};

    use super::{CONCURRENT_REQUESTS, Lifetimes, REQUESTS, Uploads, Worker};
    use crate::door::body::Upload;

    #[test]
    fn how_many_requests_an_instance_takes() {
        let cases = [
            (false, 0, 0, "yes"),
            (false, 1, 1, "yes"),
            (false, CONCURRENT_REQUESTS, CONCURRENT_REQUESTS, "no"),
            (false, 0, REQUESTS, "never"),
            (true, 1, 1, "never"),
            (true, 0, 1, "never"),
        ];
        for (uploads_one, concurrent, total, expected) in cases {
            let worker = Worker {
                component: "c".into(),
                uploads: Uploads::default(),
                _alive: Lifetimes::default().instances.token(),
            };
            if uploads_one {
                worker.uploads.add(&Arc::<Upload>::default());
            }
            let answer = match worker.should_accept_request(concurrent, total) {
                ShouldAccept::Yes => "yes",
                ShouldAccept::No => "no",
                ShouldAccept::Never => "never",
            };
            assert_eq!(answer, expected, "{uploads_one} {concurrent} {total}");
        }
    }
}
