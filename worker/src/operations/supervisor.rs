//! Whoever runs an operation, as the operation sees it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::{ErrorName, TaskError};
use serde::{Deserialize, Serialize};

/// What an operation asks of whoever runs it, and tells it.
#[async_trait]
pub trait Supervisor: Debug + Send + Sync {
    /// Whether the attempt is still the one that may change the table, and is to. Waits until that is
    /// certain.
    ///
    /// To be asked after a version was opened, since what a later attempt commits is then newer and
    /// found as a conflict; and before a commit, so that an attempt that was lost long ago does not
    /// even try.
    async fn confirm(&self) -> Result<(), Refused>;

    /// Whether it is known from the beginning that the task is to be stopped: then the attempt is made
    /// only to find out what those before have done.
    fn is_canceled(&self) -> bool;

    /// Returns when the operation has to stop, with the reason.
    async fn stopped(&self) -> Stop;

    /// Takes note of the parameters with which the operation runs, what was left out filled in.
    fn runs_with(&self, params: TaskParams);

    /// Returns once so many bytes of memory are free for the operation. What it holds then is given
    /// back when it ends. Only the first call of an operation waits, as two operations that each
    /// held some and waited for more would wait for each other.
    async fn reserve(&self, bytes: u64);

    /// Takes note of something that is counted.
    fn measure(&self, measure: Measure);
}

/// Why an attempt may not change the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// It is no longer the one that may.
    #[error("the attempt was lost")]
    Lost,
    /// The task is to be stopped.
    #[error("the task is canceled")]
    Canceled,
}

/// Why an operation has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The worker says so: it stops itself, the attempt was lost, or its time is over.
    Told,
    /// The task is canceled.
    Canceled,
}

impl From<Refused> for TaskError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Lost => Self::new(
                ErrorName::ConcurrentModification,
                "The attempt was lost: the worker was silent for too long, and another may be at the task.",
            ),
            Refused::Canceled => canceled(),
        }
    }
}

impl From<Stop> for TaskError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Told => Self::new(
                ErrorName::ServiceUnavailable,
                "The operation was told to stop.",
            ),
            Stop::Canceled => canceled(),
        }
    }
}

/// The error of a task that was stopped on request.
pub fn canceled() -> TaskError {
    TaskError::new(
        ErrorName::Canceled,
        "The task was canceled while it ran: it made no version, and what it had written is removed. \
         Versions that a cleanup had removed by then are gone.",
    )
}

/// What is counted of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A phase took so long.
    Phase(Phase, Duration),
    /// A commit was lost to another writer.
    Conflict,
    /// The operation starts over after one.
    Retry,
    /// So many files were removed that attempts wrote which never committed.
    OrphansRemoved(u64),
    /// So much was changed by a commit.
    Changed(Changed),
}

/// A part of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Opening the table, and deciding what to do.
    Plan,
    /// Waiting for memory.
    Wait,
    /// Rewriting rows, building an index, removing files.
    Work,
    /// Making the new version.
    Commit,
}

impl Phase {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Wait => "wait",
            Self::Work => "work",
            Self::Commit => "commit",
        }
    }
}

/// How much an operation changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changed {
    /// Rows that were rewritten or indexed.
    pub rows: u64,
    /// Fragments that were replaced.
    pub fragments: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Bytes that were removed.
    pub bytes_removed: u64,
}

/// Whoever runs an attempt that is made although its task is canceled.
#[derive(Clone, Debug)]
pub struct Insisting(pub Arc<dyn Supervisor>);

#[async_trait]
impl Supervisor for Insisting {
    async fn confirm(&self) -> Result<(), Refused> {
        match self.0.confirm().await {
            Err(Refused::Canceled) => Ok(()),
            answer => answer,
        }
    }

    fn is_canceled(&self) -> bool {
        false
    }

    async fn stopped(&self) -> Stop {
        match self.0.stopped().await {
            Stop::Canceled => std::future::pending().await,
            stop => stop,
        }
    }

    fn runs_with(&self, params: TaskParams) {
        self.0.runs_with(params);
    }

    async fn reserve(&self, bytes: u64) {
        self.0.reserve(bytes).await;
    }

    fn measure(&self, measure: Measure) {
        self.0.measure(measure);
    }
}

/// Nobody: the attempt is always the one, never has to stop, and memory is always free.
#[derive(Clone, Copy, Debug)]
pub struct Unsupervised;

#[async_trait]
impl Supervisor for Unsupervised {
    async fn confirm(&self) -> Result<(), Refused> {
        Ok(())
    }

    fn is_canceled(&self) -> bool {
        false
    }

    async fn stopped(&self) -> Stop {
        std::future::pending().await
    }

    fn runs_with(&self, _params: TaskParams) {}

    async fn reserve(&self, _bytes: u64) {}

    fn measure(&self, _measure: Measure) {}
}

/// Which phase an operation is in. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    current: Arc<Mutex<Option<(Phase, Instant)>>>,
}

impl Phases {
    /// A phase begins, and with it the one before ends; none ends the last one.
    pub fn enter(&self, supervisor: &dyn Supervisor, phase: Option<Phase>) {
        let next = phase.map(|phase| (phase, Instant::now()));
        // A pair is whole whatever panicked beside it.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.map(|(phase, _)| phase) == phase {
            return;
        }
        if let Some((phase, began)) = std::mem::replace(&mut *current, next) {
            supervisor.measure(Measure::Phase(phase, began.elapsed()));
        }
    }
}
