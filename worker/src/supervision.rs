//! The supervisor of a running attempt.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_dispatch::Claim;
use tokio::sync::watch;

use crate::application::{Application, CallError};
use crate::memory::{MemoryBudget, Share};
use crate::metrics::TaskMetrics;
use crate::operations::supervisor::{Measure, Refused, Stop, Supervisor};
use crate::progress::Report;

/// What an attempt asks and tells, answered by the application, the worker's memory and its metrics.
#[derive(Debug)]
pub struct Supervision {
    application: Application,
    claim: Claim,
    reports: watch::Receiver<Report>,
    memory: MemoryBudget,
    share: Mutex<Option<Share>>,
    metrics: TaskMetrics,
    state: watch::Sender<State>,
    /// Whether the task was canceled when the attempt was granted.
    only_looks: bool,
    params: Mutex<Option<TaskParams>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_lost: bool,
    is_canceled: bool,
    stop: Option<Stop>,
}

impl Supervision {
    /// Of the attempt that was claimed so and reports its progress so. `only_looks`: its task was
    /// canceled by then.
    pub fn new(
        application: Application,
        claim: Claim,
        only_looks: bool,
        reports: watch::Receiver<Report>,
        memory: MemoryBudget,
        metrics: TaskMetrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            application,
            claim,
            reports,
            memory,
            share: Mutex::default(),
            metrics,
            state: watch::Sender::default(),
            only_looks,
            params: Mutex::default(),
        })
    }

    /// Tells the operation to stop.
    pub fn stop(&self, why: Stop) {
        self.state.send_modify(|state| state.stop = Some(why));
    }

    /// Notes that the task is to be stopped.
    pub fn cancel(&self) {
        self.state.send_modify(|state| state.is_canceled = true);
    }

    /// Returns when the task is to be stopped and the attempt does more than look.
    pub async fn canceled(&self) {
        match self.only_looks {
            true => std::future::pending().await,
            false => self.wait_for(|state| state.is_canceled).await,
        }
    }

    /// Whether the task is to be stopped.
    pub fn was_canceled(&self) -> bool {
        self.only_looks || self.state.borrow().is_canceled
    }

    /// The parameters with which the operation ran, if they were not all given.
    pub fn params(&self) -> Option<TaskParams> {
        self.params
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns when the operation has asked whether its attempt is still the one, and it is not.
    pub async fn lost(&self) {
        self.wait_for(|state| state.is_lost).await;
    }

    /// Whether it has.
    pub fn is_lost(&self) -> bool {
        self.state.borrow().is_lost
    }

    async fn wait_for(&self, reached: impl Fn(&State) -> bool) {
        // An error says that the sender is gone, which lives as long as this.
        let _ = self.state.subscribe().wait_for(reached).await;
    }
}

#[async_trait]
impl Supervisor for Supervision {
    async fn confirm(&self) -> Result<(), Refused> {
        let report = self.reports.borrow().clone();
        match self.application.confirm(&self.claim, report).await {
            Ok(claimed) if claimed.canceled => {
                self.cancel();
                Err(Refused::Canceled)
            }
            Ok(_) => Ok(()),
            // What it refuses it does not know of as ours.
            Err(CallError::Lost(_) | CallError::Refused(_) | CallError::Unreachable(_)) => {
                self.state.send_modify(|state| state.is_lost = true);
                Err(Refused::Lost)
            }
        }
    }

    fn is_canceled(&self) -> bool {
        self.only_looks
    }

    async fn stopped(&self) -> Stop {
        let mut state = self.state.subscribe();
        // An error says that the sender is gone, which lives as long as this.
        match state.wait_for(|state| state.stop.is_some()).await {
            Ok(state) => state.stop.unwrap_or(Stop::Told),
            Err(_) => Stop::Told,
        }
    }

    fn runs_with(&self, params: TaskParams) {
        *self.params.lock().unwrap_or_else(PoisonError::into_inner) = Some(params);
    }

    async fn reserve(&self, bytes: u64) {
        let has_one = || {
            let share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
            share.is_some()
        };
        if !has_one() {
            let share = self.memory.reserve(bytes).await;
            *self.share.lock().unwrap_or_else(PoisonError::into_inner) = share;
        }
    }

    fn measure(&self, measure: Measure) {
        self.metrics.measure(measure);
    }
}
