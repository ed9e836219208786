use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{BoxFuture, FutureExt, pending};
use lance_maintenance_dispatch::{CLAIM_PATH, FINISH_PATH, PROGRESS_PATH};
use serde_json::json;
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::operations::supervisor::Supervisor;
use crate::testing::{FakeApplication, dispatch};

pub type Outcome = Result<Value, TaskError>;

/// An operation that is a closure.
struct Operation<F>(F);

impl<F> Execute for Operation<F>
where
    F: Fn(Dispatch, Progress) -> BoxFuture<'static, Outcome> + Send + Sync,
{
    fn execute(
        &self,
        dispatch: &Dispatch,
        progress: Progress,
        supervisor: Arc<dyn Supervisor>,
    ) -> BoxFuture<'static, Outcome> {
        let operation = self.0(dispatch.clone(), progress);
        async move {
            tokio::select! {
                outcome = operation => outcome,
                _ = supervisor.stopped() => {
                    Err(TaskError::new(ErrorName::ServiceUnavailable, "stopped"))
                }
            }
        }
        .boxed()
    }
}

pub struct Bench {
    pub fake: FakeApplication,
    pub intake: Arc<Intake>,
    pub runner: Runner,
    _halt: watch::Sender<bool>,
}

impl Bench {
    pub async fn new(
        operation: impl Fn(Dispatch, Progress) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Self {
        let fake = FakeApplication::start().await;
        let intake = Intake::new(9);
        let halt = watch::Sender::new(false);
        let runner = Runner {
            intake: Arc::clone(&intake),
            application: fake.client(),
            executor: Arc::new(Operation(operation)),
            operations: Handle::current(),
            max_concurrent: 2,
            task_timeout: Duration::from_secs(60),
            memory: MemoryBudget::new(1 << 30),
            metrics: Metrics::new(),
            halt: halt.subscribe(),
        };
        Self {
            fake,
            intake,
            runner,
            _halt: halt,
        }
    }

    pub fn offer(&self, number: u64, location: &str) {
        self.intake.offer(dispatch(number, location)).unwrap();
    }

    pub fn start(&self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(self.runner.clone().run())
    }

    pub async fn ends(&self, count: usize) -> Vec<Value> {
        self.fake.wait_for(FINISH_PATH, count).await
    }
}

fn done() -> BoxFuture<'static, Outcome> {
    async { Ok(json!({"version": 2})) }.boxed()
}

#[tokio::test]
async fn claims_then_runs_then_finishes() {
    let bench = Bench::new(|_, _| done()).await;
    bench.offer(1, "/a");
    bench.start();
    let ends = bench.ends(1).await;
    assert_eq!(bench.fake.steps(), ["claim", "finish"]);
    let mut end = ends[0].clone();
    // Drawn at each start.
    let incarnation = end.as_object_mut().unwrap().remove("incarnation");
    assert_eq!(incarnation.unwrap().as_str().unwrap().len(), 32);
    assert_eq!(
        end,
        json!({
            "worker_id": "worker-1",
            "table_id": "/a",
            "task_id": dispatch(1, "/a").task_id,
            "attempt": 1,
            "outcome": {"completed": {"version": 2}},
        })
    );
}

#[tokio::test]
async fn an_attempt_that_is_somebody_elses_is_skipped() {
    for status in [409, 404, 400] {
        let bench =
            Bench::new(|task, _| async move { Ok(json!({"slot": task.task_id.slot()})) }.boxed())
                .await;
        bench.fake.answer(CLAIM_PATH, &[status]);
        bench.offer(1, "/a");
        bench.offer(2, "/a");
        bench.start();
        let ends = bench.ends(1).await;
        assert_eq!(ends[0]["outcome"]["completed"]["slot"], 2, "{status}");
        assert_eq!(bench.fake.steps(), ["claim", "claim", "finish"], "{status}");
    }
}

/// A task whose table another worker is at keeps its table's other tasks waiting, and no place.
#[tokio::test]
async fn a_task_waits_for_its_turn_without_a_place() {
    let mut bench =
        Bench::new(|task, _| async move { Ok(json!({"slot": task.task_id.slot()})) }.boxed()).await;
    bench.runner.max_concurrent = 1;
    bench.fake.make_wait("/a", 3);
    bench.offer(1, "/a");
    bench.offer(2, "/a");
    bench.offer(3, "/b");
    bench.start();
    let ends = bench.ends(3).await;
    let slots: Vec<&Value> = ends
        .iter()
        .map(|end| &end["outcome"]["completed"]["slot"])
        .collect();
    assert_eq!(slots, [3, 1, 2]);
    let claims = bench.fake.wait_for(CLAIM_PATH, 6).await;
    assert_eq!(claims.len(), 6);
}

#[tokio::test]
async fn a_worker_stops_though_a_task_waits_for_its_turn() {
    let bench = Bench::new(|_, _| done()).await;
    bench.fake.make_wait("/a", 1_000_000);
    bench.offer(1, "/a");
    let running = bench.start();
    bench.fake.wait_for(CLAIM_PATH, 2).await;
    bench.intake.close();
    tokio::time::timeout(Duration::from_secs(5), running)
        .await
        .unwrap()
        .unwrap();
    assert!(!bench.fake.steps().contains(&"finish".to_owned()));
}

#[tokio::test]
async fn claims_and_ends_are_repeated_until_the_application_answers() {
    let bench = Bench::new(|_, _| done()).await;
    bench.fake.answer(CLAIM_PATH, &[503, 500, 403]);
    bench.fake.answer(FINISH_PATH, &[503, 503, 502]);
    bench.offer(1, "/a");
    bench.start();
    let ends = bench.ends(4).await;
    assert!(ends.iter().all(|end| *end == ends[0]));
    let steps = bench.fake.steps().join(" ");
    assert_eq!(steps, "claim claim claim claim finish finish finish finish");
}

#[tokio::test]
async fn how_operations_fail() {
    let bench = Bench::new(|task, _| match task.task_id.slot() {
        1 => async { panic!("secret text") }.boxed(),
        2 => async { Err(TaskError::new(ErrorName::TableNotFound, "No table.")) }.boxed(),
        3 => async { Ok(json!(3)) }.boxed(),
        _ => done(),
    })
    .await;
    for number in 1..=4 {
        bench.offer(number, "/a");
    }
    bench.start();
    let ends = bench.ends(4).await;
    let errors: Vec<_> = ends
        .iter()
        .map(|end| end["outcome"]["failed"]["error"].as_str())
        .collect();
    let internal = Some("InternalError");
    assert_eq!(errors, [internal, Some("TableNotFound"), internal, None]);
    let detail = ends[0]["outcome"]["failed"]["detail"].as_str().unwrap();
    assert!(!detail.contains("secret"), "{detail}");
    assert!(detail.contains(dispatch(1, "/a").task_id.as_str()));
}

/// Sets a flag when the operation that holds it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_operation_over_its_time_is_stopped_and_failed() {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let mut bench = Bench::new(move |task, _| {
        if task.task_id.slot() == 2 {
            return done();
        }
        let flag = Flag(Arc::clone(&flag));
        async move {
            let _flag = flag;
            pending().await
        }
        .boxed()
    })
    .await;
    bench.runner.task_timeout = Duration::from_millis(100);
    bench.offer(1, "/a");
    bench.offer(2, "/a");
    bench.start();
    let ends = bench.ends(2).await;
    assert!(dropped.load(Ordering::SeqCst));
    let error = &ends[0]["outcome"]["failed"];
    assert_eq!(error["error"], "ServiceUnavailable");
    let detail = error["detail"].as_str().unwrap();
    assert!(detail.contains("time limit of 100ms"), "{detail}");
    assert_eq!(ends[1]["outcome"]["completed"]["version"], 2);
}

#[tokio::test]
async fn one_table_waits_and_two_run_side_by_side() {
    // Opens when two operations are at it, which two of one table never are.
    let both = Arc::new(Barrier::new(2));
    let bench = Bench::new({
        let both = Arc::clone(&both);
        move |_, _| {
            let both = Arc::clone(&both);
            async move {
                both.wait().await;
                done().await
            }
            .boxed()
        }
    })
    .await;
    bench.offer(1, "/a");
    bench.offer(2, "/a");
    bench.offer(3, "/b/");
    bench.offer(4, "/b");
    bench.start();
    bench.ends(4).await;
    // Of each table, one was claimed only after the other had ended.
    assert_eq!(bench.fake.steps()[..3], ["claim", "claim", "finish"]);
}

#[tokio::test]
async fn no_second_claim_while_the_table_is_busy() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let bench = Bench::new({
        let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
        move |_, _| {
            let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
            async move {
                entered.notify_one();
                release.notified().await;
                done().await
            }
            .boxed()
        }
    })
    .await;
    bench.offer(1, "/a");
    bench.offer(2, "/a");
    bench.start();
    entered.notified().await;
    assert_eq!(bench.fake.steps(), ["claim"]);
    assert_eq!(bench.intake.in_hand().len(), 2);
    release.notify_one();
    entered.notified().await;
    assert_eq!(bench.fake.steps(), ["claim", "finish", "claim"]);
    release.notify_one();
    bench.ends(2).await;
}

#[tokio::test]
async fn progress_is_passed_on_and_a_lost_attempt_stops() {
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&dropped);
    let bench = Bench::new(move |task, progress| {
        if task.task_id.slot() == 2 {
            return done();
        }
        let flag = Flag(Arc::clone(&flag));
        async move {
            let _flag = flag;
            for percent in 1..=50 {
                progress.report(percent, "working");
                tokio::task::yield_now().await;
            }
            pending().await
        }
        .boxed()
    })
    .await;
    bench.fake.answer(PROGRESS_PATH, &[503, 409]);
    bench.offer(1, "/a");
    bench.offer(2, "/a");
    bench.start();
    let ends = bench.ends(1).await;
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(ends[0]["outcome"]["completed"]["version"], 2);
    let reports = bench.fake.wait_for(PROGRESS_PATH, 2).await;
    // Many reports at once became two.
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[1]["percent"], 50);
    assert_eq!(reports[1]["message"], "working");
    assert_eq!(bench.fake.steps(), ["claim", "claim", "finish"]);
}

#[tokio::test]
async fn closing_waits_for_what_runs_and_starts_nothing() {
    let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let bench = Bench::new({
        let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
        move |_, _| {
            let (entered, release) = (Arc::clone(&entered), Arc::clone(&release));
            async move {
                entered.notify_one();
                release.notified().await;
                done().await
            }
            .boxed()
        }
    })
    .await;
    bench.offer(1, "/a");
    bench.offer(2, "/b");
    bench.fake.answer(CLAIM_PATH, &[200]);
    bench.fake.answer(CLAIM_PATH, &[503; 100]);
    let running = bench.start();
    entered.notified().await;
    // One runs, one is still asking for its claim.
    bench.fake.wait_for(CLAIM_PATH, 2).await;
    bench.offer(3, "/c");
    bench.intake.close();
    assert!(bench.intake.offer(dispatch(4, "/d")).is_err());
    release.notify_one();
    running.await.unwrap();
    let steps = bench.fake.steps();
    assert_eq!(steps.iter().filter(|step| *step == "finish").count(), 1);
    let claims = bench.fake.wait_for(CLAIM_PATH, 2).await;
    assert!(claims.iter().all(|claim| claim["table_id"] != "/c"));
    // What was not claimed is the application's again.
    assert_eq!(bench.intake.in_hand().len(), 1);
    assert_eq!(bench.intake.in_hand()[0].task.table_id, "/c");
}
