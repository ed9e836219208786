//! Tasks that are canceled: all of a task is done, or nothing of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;
use lance_worker::operations::commit::begin_commit;
use lance_worker::operations::run;
use lance_worker::operations::supervisor::{Measure, Refused, Stop, Supervisor};

use crate::attempts::{check_files, commits, prepared, rewritten, writing};
use crate::support::compact;

/// Cancels a task at some point.
#[derive(Debug)]
struct Canceling {
    /// It was canceled before.
    before: bool,
    /// So many questions are answered with yes.
    confirmations: AtomicU32,
    /// It is told to stop after so long.
    stop: Option<Duration>,
}

impl Default for Canceling {
    fn default() -> Self {
        Self {
            before: false,
            confirmations: AtomicU32::new(u32::MAX),
            stop: None,
        }
    }
}

#[async_trait]
impl Supervisor for Canceling {
    async fn confirm(&self) -> Result<(), Refused> {
        match self.confirmations.fetch_sub(1, Ordering::SeqCst) {
            0 => Err(Refused::Canceled),
            _ => Ok(()),
        }
    }

    fn is_canceled(&self) -> bool {
        self.before
    }

    async fn stopped(&self) -> Stop {
        match self.stop {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
        Stop::Canceled
    }

    fn runs_with(&self, _: TaskParams) {}

    async fn reserve(&self, _: u64) {}

    fn measure(&self, _: Measure) {}
}

fn before() -> Canceling {
    Canceling {
        before: true,
        ..Canceling::default()
    }
}

/// At the question after opening, and at that before the commit.
fn at(confirmations: u32) -> Canceling {
    Canceling {
        confirmations: AtomicU32::new(confirmations),
        ..Canceling::default()
    }
}

fn after(millis: u64) -> Canceling {
    Canceling {
        stop: Some(Duration::from_millis(millis)),
        ..Canceling::default()
    }
}

#[tokio::test]
async fn a_canceled_task_had_no_effect() {
    for (params, first) in writing() {
        let table = prepared(&first).await;
        let version = table.open().await.version_id();
        for (attempt, canceling) in [
            (1, before()),
            (2, before()),
            (1, at(0)),
            (1, at(1)),
            (2, at(1)),
            (1, after(0)),
            (2, after(0)),
        ] {
            let case = format!("{params:?} {attempt} {canceling:?}");
            let mut ctx = table.context();
            ctx.attempt = attempt;
            ctx.supervisor = Arc::new(canceling);
            let error = run(&params, &ctx).await.unwrap_err();
            assert_eq!(error.error, ErrorName::Canceled, "{case}: {error}");
            assert_eq!(table.open().await.version_id(), version, "{case}");
            check_files(&table, &case).await;
        }
    }
}

#[tokio::test]
async fn whenever_it_is_stopped_all_is_done_or_nothing() {
    for (params, first) in writing() {
        let table = prepared(&first).await;
        for millis in [1, 2, 5, 10, 20, 40, 80] {
            let case = format!("{params:?} {millis}");
            let mut ctx = table.context();
            ctx.supervisor = Arc::new(after(millis));
            let outcome = run(&params, &ctx).await;
            check_files(&table, &case).await;
            let made = commits(&table, &ctx).await;
            match outcome {
                Ok(_) => break,
                Err(error) => {
                    assert_eq!(error.error, ErrorName::Canceled, "{case}: {error}");
                    assert_eq!(made, 0, "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn what_an_attempt_before_has_done_is_done() {
    for (params, first) in writing() {
        let table = prepared(&first).await;
        let mut ctx = table.context();
        let done = run(&params, &ctx).await.unwrap();
        let version = table.open().await.version_id();
        for canceling in [before(), at(0), after(0), after(3)] {
            let case = format!("{params:?} {canceling:?}");
            ctx.attempt = 2;
            ctx.supervisor = Arc::new(canceling);
            assert_eq!(run(&params, &ctx).await.unwrap(), done, "{case}");
            assert_eq!(table.open().await.version_id(), version, "{case}");
            assert_eq!(commits(&table, &ctx).await, 1, "{case}");
            check_files(&table, &case).await;
        }
    }
}

/// The first attempt was told that it may commit, and was held up right then. Nobody knows whether it
/// still will: so that it can't, the task is done.
#[tokio::test]
async fn what_an_attempt_before_may_still_do_is_done() {
    let params = compact("{}");
    let table = prepared(&None).await;
    let mut ctx = table.context();
    let held_up = rewritten(&table, &ctx).await;
    begin_commit(&held_up, &ctx).await.unwrap();
    ctx.attempt = 2;
    ctx.supervisor = Arc::new(before());
    let done = run(&params, &ctx).await.unwrap();
    assert_eq!(done["fragments_added"], 1);
    assert_eq!(commits(&table, &ctx).await, 1);
    check_files(&table, "").await;
}
