//! The side of the process that runs an operation.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lance_maintenance_api::params::TaskParams;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::Instrument;

use super::messages::{FromOperation, Order, ToOperation};
use crate::logging;
use crate::operations::store_watch::StoreWatch;
use crate::operations::supervisor::{Measure, Phases, Refused, Stop, Supervisor};
use crate::operations::{self, OperationContext};
use crate::progress::Progress;

/// The shortest time between two reports of progress.
const REPORT_PAUSE: Duration = Duration::from_millis(200);

/// Runs the operation that standard input tells of.
pub fn run() -> ExitCode {
    let Some(ToOperation::Run(order)) = io::stdin().lock().lines().next().and_then(read) else {
        eprintln!("this is for the worker to start, not for people");
        return ExitCode::FAILURE;
    };
    logging::start(order.log_format);
    let (answers, answered) = mpsc::unbounded_channel();
    let stop = watch::Sender::new(None);
    let line = Line {
        out: Arc::new(Mutex::new(io::stdout())),
        asking: Arc::new(tokio::sync::Mutex::new(answered)),
        stop: stop.subscribe(),
        is_canceled: order.is_canceled,
    };
    std::thread::spawn(move || {
        for message in io::stdin().lock().lines().map_while(read) {
            match message {
                ToOperation::Confirmed(_) | ToOperation::Reserved => drop(answers.send(message)),
                ToOperation::Stop(why) => drop(stop.send_replace(Some(why))),
                ToOperation::Run(_) => {}
            }
        }
        // The worker is gone: nobody may be told what is done, and another may be at the task soon.
        std::process::exit(1);
    });
    let runtime = match Builder::new_multi_thread()
        .thread_name("operation")
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "an operation can't start");
            return ExitCode::FAILURE;
        }
    };
    let span = logging::task_span(&order.dispatch);
    runtime.block_on(operate(*order, line).instrument(span));
    // What computes can't be interrupted, and is not waited for.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

async fn operate(order: Order, line: Line) {
    let progress = Progress::new();
    let mut reports = progress.subscribe();
    let reporting = line.clone();
    let reporting = tokio::spawn(async move {
        while reports.changed().await.is_ok() {
            let report = reports.borrow_and_update().clone();
            reporting.say(&FromOperation::Progress(report));
            sleep(REPORT_PAUSE).await;
        }
    });
    let context = OperationContext {
        task_id: order.dispatch.task_id.to_string(),
        attempt: order.dispatch.attempt,
        table_id: order.dispatch.table.id.clone(),
        location: order.dispatch.table.location.clone(),
        storage_options: order.storage_options,
        progress,
        supervisor: Arc::new(line.clone()),
        phases: Phases::default(),
        store_watch: StoreWatch::default(),
        limits: order.limits,
    };
    let outcome = operations::run(&order.dispatch.params, &context).await;
    reporting.abort();
    let last = context.progress.subscribe().borrow().clone();
    line.say(&FromOperation::Progress(last));
    line.say(&FromOperation::End(outcome));
}

/// The worker at the other end.
#[derive(Clone, Debug)]
struct Line {
    out: Arc<Mutex<io::Stdout>>,
    /// Held by the one who waits for an answer.
    asking: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<ToOperation>>>,
    stop: watch::Receiver<Option<Stop>>,
    is_canceled: bool,
}

impl Line {
    fn say(&self, message: &FromOperation) {
        let Ok(mut text) = serde_json::to_vec(message) else {
            return;
        };
        text.push(b'\n');
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if out.write_all(&text).and_then(|()| out.flush()).is_err() {
            // Like the end of standard input.
            std::process::exit(1);
        }
    }

    async fn ask(&self, question: &FromOperation) -> ToOperation {
        let mut answers = self.asking.lock().await;
        self.say(question);
        match answers.recv().await {
            Some(answer) => answer,
            // The process is about to end.
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Supervisor for Line {
    async fn confirm(&self) -> Result<(), Refused> {
        match self.ask(&FromOperation::Confirm).await {
            ToOperation::Confirmed(answer) => answer,
            _ => Err(Refused::Lost),
        }
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled
    }

    async fn stopped(&self) -> Stop {
        let mut stop = self.stop.clone();
        // An error says that the sender is gone, and with it the process.
        let why = match stop.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(Stop::Told),
            Err(_) => Stop::Told,
        };
        self.say(&FromOperation::Stopping);
        why
    }

    fn runs_with(&self, params: TaskParams) {
        self.say(&FromOperation::RunsWith(Box::new(params)));
    }

    async fn reserve(&self, bytes: u64) {
        self.ask(&FromOperation::Reserve(bytes)).await;
    }

    fn measure(&self, measure: Measure) {
        self.say(&FromOperation::Measure(measure));
    }
}

fn read(line: io::Result<String>) -> Option<ToOperation> {
    serde_json::from_str(&line.ok()?).ok()
}
