//! Tasks that are to be stopped, whoever says so.

use futures::future::{BoxFuture, FutureExt};
use lance_maintenance_dispatch::{CLAIM_PATH, PROGRESS_PATH};
use serde_json::json;

use super::tests::{Bench, Outcome};
use super::*;
use crate::operations::supervisor::{Stop, Supervisor, canceled};
use crate::testing::dispatch;

/// An operation that runs until it is told to stop, and then ends so.
#[derive(Clone)]
struct Stoppable(Outcome);

impl Execute for Stoppable {
    fn execute(
        &self,
        _: &Dispatch,
        progress: Progress,
        supervisor: Arc<dyn Supervisor>,
    ) -> BoxFuture<'static, Outcome> {
        let outcome = self.0.clone();
        async move {
            if supervisor.is_canceled() {
                return outcome;
            }
            progress.report(1, "working");
            match supervisor.stopped().await {
                Stop::Canceled => outcome,
                Stop::Told => Err(TaskError::new(ErrorName::InvalidInput, "not canceled")),
            }
        }
        .boxed()
    }
}

async fn bench(outcome: Outcome) -> Bench {
    let mut bench = Bench::new(|_, _| unreachable!()).await;
    bench.runner.executor = Arc::new(Stoppable(outcome));
    bench
}

fn outcome_of(end: &Value) -> Value {
    match &end["outcome"]["failed"]["error"] {
        Value::Null => end["outcome"]["completed"].clone(),
        error => error.clone(),
    }
}

#[tokio::test]
async fn whoever_says_so() {
    // As the operation has it: stopped, or done by then.
    for (outcome, end) in [
        (Err(canceled()), json!("Canceled")),
        (Ok(json!({"version": 2})), json!({"version": 2})),
    ] {
        // The answer to the claim, that to a report, and another way such as a heartbeat.
        for path in [Some(CLAIM_PATH), Some(PROGRESS_PATH), None] {
            let bench = bench(outcome.clone()).await;
            if let Some(path) = path {
                bench.fake.cancel_on(path);
            }
            bench.offer(1, "/a");
            bench.start();
            if path.is_none() {
                bench.fake.wait_for(PROGRESS_PATH, 1).await;
                bench.intake.cancel(&dispatch(1, "/a").task_id);
            }
            assert_eq!(outcome_of(&bench.ends(1).await[0]), end, "{path:?}");
        }
    }
}

/// Whether such an attempt has committed the next one finds out.
#[tokio::test]
async fn after_an_end_that_says_nothing_the_next_attempt_looks() {
    let error = TaskError::new(ErrorName::ServiceUnavailable, "killed");
    let bench = bench(Err(error)).await;
    bench.offer(1, "/a");
    bench.start();
    bench.fake.wait_for(PROGRESS_PATH, 1).await;
    bench.fake.cancel_on(CLAIM_PATH);
    bench.intake.cancel(&dispatch(1, "/a").task_id);
    let ends = bench.ends(1).await;
    assert_eq!(ends[0]["attempt"], 2);
    assert_eq!(outcome_of(&ends[0]), json!("ServiceUnavailable"));
    assert_eq!(bench.fake.steps(), ["claim", "claim", "finish"]);
}

#[tokio::test]
async fn only_what_is_in_hand_is_canceled() {
    let bench = bench(Err(canceled())).await;
    let later = dispatch(1, "/a");
    bench.intake.cancel(&later.task_id);
    bench.intake.offer(later.clone()).unwrap();
    let told = bench.intake.canceled(&later.task_id);
    assert!(told.now_or_never().is_none());
    bench.intake.cancel(&later.task_id);
    bench.intake.canceled(&later.task_id).await;
    // What is let go of is forgotten.
    drop(bench.intake.next().await);
    bench.intake.offer(later.clone()).unwrap();
    assert!(
        bench
            .intake
            .canceled(&later.task_id)
            .now_or_never()
            .is_none()
    );
}
