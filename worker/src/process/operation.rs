//! The side of the process that runs an operation.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use lance_maintenance_api::params::TaskParams;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{Instrument, Span};

use super::messages::{FromOperation, Order, ToOperation};
use crate::logging;
use crate::operations::store_watch::StoreWatch;
use crate::operations::supervisor::{Measure, Phases, Refused, Stop, Supervisor};
use crate::operations::{self, OperationContext, WorkingOn};
use crate::progress::Progress;

/// How long an operation may take to hear that it has to stop before it is stopped without it: shorter than
/// the worker waits until it kills the process.
const DEAF: Duration = Duration::from_secs(2);
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
        heard: Arc::default(),
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
    let (params, context) = context(*order, &line);
    std::thread::spawn({
        let (params, context, line) = (params.clone(), context.clone(), line.clone());
        let span = span.clone();
        move || stop_deaf(&params, &context, &line, &span)
    });
    runtime.block_on(operate(params, context, line).instrument(span));
    // What computes can't be interrupted, and is not waited for.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}

/// What to do, and what with.
fn context(order: Order, line: &Line) -> (TaskParams, OperationContext) {
    let dispatch = order.dispatch;
    let context = OperationContext {
        task_id: dispatch.task_id.to_string(),
        attempt: dispatch.attempt,
        table_id: dispatch.table.id,
        location: dispatch.table.location,
        storage_options: order.storage_options,
        progress: Progress::new(),
        supervisor: Arc::new(line.clone()),
        phases: Phases::default(),
        store_watch: StoreWatch::default(),
        working_on: WorkingOn::default(),
        limits: order.limits,
    };
    (dispatch.params, context)
}

async fn operate(params: TaskParams, context: OperationContext, line: Line) {
    let mut reports = context.progress.subscribe();
    let reporting = line.clone();
    let reporting = tokio::spawn(async move {
        while reports.changed().await.is_ok() {
            let report = reports.borrow_and_update().clone();
            reporting.say(&FromOperation::Progress(report));
            sleep(REPORT_PAUSE).await;
        }
    });
    let outcome = operations::run(&params, &context).await;
    reporting.abort();
    let last = context.progress.subscribe().borrow().clone();
    line.say(&FromOperation::Progress(last));
    line.say(&FromOperation::End(outcome));
}

/// Stops an operation that computes and does not hear that it has to stop, on a thread of its own: the
/// library computes for long without looking up. It ends with the process.
fn stop_deaf(params: &TaskParams, context: &OperationContext, line: &Line, span: &Span) {
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let stopping = async {
        let mut stop = line.stop.clone();
        let why = match stop.wait_for(Option::is_some).await {
            Ok(why) => why.unwrap_or(Stop::Told),
            // The process is about to end.
            Err(_) => return,
        };
        sleep(DEAF).await;
        if line.heard.load(Ordering::SeqCst) || context.attempt > 1 {
            // What an attempt before has done is to be found out.
            return;
        }
        line.say(&FromOperation::Stopping);
        if context.working_on.stop(context).await {
            tracing::info!("stopped while it computed");
            let error = operations::of_task(params, why.into());
            line.say(&FromOperation::End(Err(error)));
            std::process::exit(0);
        }
    };
    runtime.block_on(stopping.instrument(span.clone()));
}

/// The worker at the other end.
#[derive(Clone, Debug)]
struct Line {
    out: Arc<Mutex<io::Stdout>>,
    /// Held by the one who waits for an answer.
    asking: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<ToOperation>>>,
    stop: watch::Receiver<Option<Stop>>,
    /// Whether the operation has heard that it has to stop.
    heard: Arc<AtomicBool>,
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
        self.heard.store(true, Ordering::SeqCst);
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
