//! Instances of one component: made when requests need them, used again, ended when their time is
//! up.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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

use crate::guest::{Capabilities, Guest};

/// How long a guest may take until it answers, and after that with work it left running.
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
        Ok(Instance {
            store,
            proxy: Proxy::P3(service),
            view: Guest::http,
            expiration: Expiration {
                sleep: Box::pin(tokio::time::sleep(IDLE_TIME)),
                closing: Box::pin(self.lifetimes.closing.clone().cancelled_owned()),
            },
            state: Worker {
                component: self.capabilities.component.clone(),
                _alive: self.lifetimes.instances.token(),
            },
        })
    }
}

/// When an instance's time is up.
pub struct Expiration {
    sleep: Pin<Box<Sleep>>,
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
        let deadline = start + if idle { IDLE_TIME } else { REQUEST_TIME };
        if self.sleep.deadline() != deadline.into() {
            self.sleep.as_mut().reset(deadline.into());
        }
        self.sleep.as_mut().poll(cx)
    }
}

/// One living instance.
pub struct Worker {
    component: Arc<str>,
    _alive: TaskTrackerToken,
}

impl WorkerState for Worker {
    type StoreData = Guest;
    type RequestData = ();

    fn should_accept_request(&self, concurrent: usize, total: usize) -> ShouldAccept {
        if total >= REQUESTS {
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
        _: (),
        _: GuestTaskId,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        Box::pin(tokio::time::sleep(REQUEST_TIME))
    }

    fn drop(&self, store: Store<Guest>, result: wasmtime::Result<()>) {
        if let Err(error) = result {
            tracing::error!(component = &*self.component, "instance ended: {error:#}");
        }
        drop(store);
    }
}
