//! What a task does to its table: one module per operation, and what they share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`compact`], [`meter`] | merges small fragments, drops deleted rows |
//! | [`scalar_index`] | creates an index on values or texts |
//! | [`vector_index`], [`vector_checks`] | creates an index on vectors |
//! | [`optimize_indices`] | brings indices up to date |
//! | [`cleanup`], [`branches`] | removes old versions |
//! | [`backfill`] | fills computed columns |
//! | [`preview`] | what a task would do, without doing it |
//! | [`index`] | what both kinds of index creation have in common |
//! | [`table`] | opening a table, finding its columns and indices |
//! | [`commit`] | marking our commits, finding them again, retrying |
//! | [`journal`], [`references`], [`left_behind`] | what was written, and what of it no version needs |
//! | [`store_watch`] | whether the store answers |
//! | `memory` | how much memory an operation is expected to need |
//! | [`supervisor`] | whoever runs the operation |
//! | [`errors`], [`redact`] | from an error of the library to one that a user can act on |
//! | [`unreadable`] | which file it was that could not be read |
//!
//! An operation knows its parameters and its context, nothing of queues or HTTP.

pub mod backfill;
pub mod branches;
pub mod cleanup;
pub mod commit;
pub mod compact;
pub mod errors;
pub mod index;
pub mod journal;
pub mod left_behind;
mod memory;
pub mod meter;
pub mod optimize_indices;
pub mod preview;
pub mod redact;
pub mod references;
pub mod scalar_index;
pub mod store_watch;
pub mod supervisor;
pub mod table;
pub mod unreadable;
pub mod vector_checks;
pub mod vector_index;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lance_io::object_store::{ObjectStoreParams, StorageOptionsAccessor};
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::{ErrorName, TaskError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

use self::errors::to_task_error;
use self::journal::Journal;
use self::redact::Redactor;
use self::store_watch::StoreWatch;
use self::supervisor::{
    Changed, Insisting, Measure, Phase, Phases, Refused, Stop, Supervisor, Unsupervised, canceled,
};
use self::table::Table;
use crate::progress::Progress;

/// How long a commit may take that is being made when the operation has to end.
const COMMIT: Duration = Duration::from_secs(8);
/// How long it may take to remove what a failed operation wrote.
const DISCARD: Duration = Duration::from_secs(30);

/// How long it may take to learn whether an attempt that has failed was lost.
const ASKING: Duration = Duration::from_secs(10);

/// The table that an operation works on, for whoever has to stop one that computes and hears nothing.
/// Clones share it.
#[derive(Clone, Debug, Default)]
pub struct WorkingOn(Arc<Mutex<Option<Table>>>);

impl WorkingOn {
    fn set(&self, table: &Table) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(table.clone());
    }

    /// Stops the operation without it: it can't write any more, nor commit, and what it wrote is removed.
    /// False if it is committing, or has not begun, and so has to be waited for.
    pub async fn stop(&self, ctx: &OperationContext) -> bool {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match table {
            Some(table) if table.journal.shut() => {
                // What can't be removed in time is left to the next task.
                let _ = timeout(DISCARD, commit::discard(&table, ctx)).await;
                true
            }
            _ => false,
        }
    }
}

/// What an operation may use besides its parameters.
#[derive(Clone, Debug)]
pub struct OperationContext {
    /// The task's id, with which its commits are marked.
    pub task_id: String,
    /// Which attempt at the task this is, from 1. From the second on, an operation first looks for
    /// a commit that an earlier attempt made.
    pub attempt: u32,
    /// The table's UUID in the catalog.
    pub table_id: String,
    /// The table's URI: `file://..`, `s3://..`, `oss://..`.
    pub location: String,
    /// Options of the object store, credentials among them. Never shown to anyone.
    pub storage_options: HashMap<String, String>,
    /// Where to say how far the work is.
    pub progress: Progress,
    /// Whoever runs the operation.
    pub supervisor: Arc<dyn Supervisor>,
    /// Which phase it is in.
    pub phases: Phases,
    /// Whether the table's store answers.
    pub store_watch: StoreWatch,
    /// What it works on.
    pub working_on: WorkingOn,
    /// How far an operation may go.
    pub limits: Limits,
}

impl OperationContext {
    /// The first attempt at a task, which nobody supervises.
    pub fn unsupervised(
        task_id: String,
        location: String,
        storage_options: HashMap<String, String>,
    ) -> Self {
        Self {
            table_id: task_id.clone(),
            task_id,
            attempt: 1,
            location,
            storage_options,
            progress: Progress::new(),
            supervisor: Arc::new(Unsupervised),
            phases: Phases::default(),
            store_watch: StoreWatch::default(),
            working_on: WorkingOn::default(),
            limits: Limits::default(),
        }
    }

    /// The same of an attempt that is made although its task is canceled.
    fn insisting(&self) -> Self {
        Self {
            supervisor: Arc::new(Insisting(Arc::clone(&self.supervisor))),
            ..self.clone()
        }
    }

    /// A phase begins.
    fn enter(&self, phase: Phase) {
        self.phases.enter(&*self.supervisor, Some(phase));
    }

    /// Waits for memory.
    async fn reserve(&self, bytes: u64) {
        self.enter(Phase::Wait);
        self.supervisor.reserve(bytes).await;
    }

    /// So much was changed.
    fn changed(&self, changed: Changed) {
        self.supervisor.measure(Measure::Changed(changed));
    }

    /// With what the table's store is opened.
    pub(crate) fn store_params(&self) -> ObjectStoreParams {
        let options = StorageOptionsAccessor::with_static_options(self.storage_options.clone());
        ObjectStoreParams {
            storage_options_accessor: Some(Arc::new(options)),
            ..ObjectStoreParams::default()
        }
    }
}

/// How far an operation may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// A cleanup never removes a version younger than this, whatever its parameters say, so that
    /// readers of an older version have the time to finish.
    pub minimum_version_age: Duration,
    /// How often an operation starts over after losing a commit to another writer.
    pub max_conflict_retries: u32,
    /// How many groups of fragments a compaction rewrites at the same time. Each holds a few
    /// batches of rows and one open file.
    pub concurrent_rewrites: usize,
    /// How long the table's store may take to answer a request before the operation fails.
    pub store_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            minimum_version_age: Duration::ZERO,
            max_conflict_retries: 5,
            concurrent_rewrites: std::thread::available_parallelism().map_or(2, usize::from),
            store_timeout: Duration::from_secs(300),
        }
    }
}

/// Something that can be done to a table; implemented by the parameters of each task type.
pub trait Operation {
    /// Does it to the table, which is at its newest version. The value is the `result` of the completed
    /// task.
    fn run(
        &self,
        table: &mut Table,
        ctx: &OperationContext,
    ) -> impl Future<Output = Result<Value, TaskError>> + Send;
}

/// Runs the task with these parameters, until it ends or is told to stop. What a failure or a stop
/// leaves that no version refers to is removed.
pub async fn run(params: &TaskParams, ctx: &OperationContext) -> Result<Value, TaskError> {
    ctx.enter(Phase::Plan);
    let outcome = match ctx.supervisor.is_canceled() {
        true => Err(canceled()),
        false => attempt(params, ctx).await,
    };
    let is_backfill = matches!(params, TaskParams::BackfillColumn(_));
    let outcome = match outcome {
        // What a backfill has committed is no reason to go on.
        Err(error) if error.error == ErrorName::Canceled && is_backfill => {
            Err(of_task(params, error))
        }
        // A canceled task had no effect: that of an attempt before would be one.
        Err(error) if error.error == ErrorName::Canceled && ctx.attempt > 1 => {
            look(params, ctx).await
        }
        outcome => outcome,
    };
    if is_backfill && !goes_on(&outcome, ctx).await {
        backfill::checkpoints::forget(ctx).await;
    }
    ctx.phases.enter(&*ctx.supervisor, None);
    outcome
}

/// Whether another attempt at the task may follow: it was stopped, or lost.
async fn goes_on(outcome: &Result<Value, TaskError>, ctx: &OperationContext) -> bool {
    match outcome.as_ref().map_err(|error| error.error) {
        Err(ErrorName::ServiceUnavailable) => true,
        // Without an answer it may be.
        Err(ErrorName::ConcurrentModification) => {
            let confirmed = timeout(ASKING, ctx.supervisor.confirm()).await;
            matches!(confirmed, Err(_) | Ok(Err(Refused::Lost)))
        }
        _ => false,
    }
}

/// The task's error where this is its operation's: what a backfill has committed stays when it is canceled.
pub fn of_task(params: &TaskParams, error: TaskError) -> TaskError {
    match (params, error.error) {
        (TaskParams::BackfillColumn(_), ErrorName::Canceled) => TaskError::new(
            ErrorName::Canceled,
            "The task was canceled while it ran: fragments that it had filled and committed by then stay \
             filled, and the rest is removed.",
        ),
        _ => error,
    }
}

async fn attempt(params: &TaskParams, ctx: &OperationContext) -> Result<Value, TaskError> {
    let mut table = ended(open(ctx), None, ctx).await?;
    ctx.working_on.set(&table);
    let journal = table.journal.clone();
    let outcome = ended(run_on(params, &mut table, ctx), Some(&journal), ctx).await;
    let is_open = outcome.is_err() || !table.journal.written().is_empty();
    if is_open && !table.journal.is_committing() {
        // A store that does not answer is not waited for: the next task sees to it.
        let _ = timeout(DISCARD, commit::discard(&table, ctx)).await;
    }
    outcome
}

/// What an earlier attempt at a task did that is canceled: if it has committed, the task is done. One
/// that was about to may still, held up for as long: then the task is done again, so that the two
/// conflict, and one of them comes about.
async fn look(params: &TaskParams, ctx: &OperationContext) -> Result<Value, TaskError> {
    let looking = async {
        let mut table = table::open(ctx).await?;
        left_behind::remove(&table, ctx, false).await;
        let failed = |error| to_task_error(&error, &Redactor::new(ctx));
        let found = commit::find_own_commit(&table.dataset, ctx, 0).await;
        if found.map_err(failed)?.is_some() {
            return run_on(params, &mut table, ctx).await.map(Some);
        }
        match left_behind::may_commit(&table, ctx).await.map_err(failed)? {
            true => Ok(None),
            false => Err(canceled()),
        }
    };
    let found = tokio::select! {
        found = looking => found?,
        what = ctx.store_watch.stalled(ctx.limits.store_timeout) => return Err(stalled(what, ctx)),
    };
    match found {
        Some(done) => Ok(done),
        None => attempt(params, &ctx.insisting()).await,
    }
}

/// The outcome of the work, unless it has to end before. One that is about to commit, or has, is given
/// the time to say so.
async fn ended<T>(
    work: impl Future<Output = Result<T, TaskError>>,
    journal: Option<&Journal>,
    ctx: &OperationContext,
) -> Result<T, TaskError> {
    let mut work = std::pin::pin!(work);
    let why = tokio::select! {
        outcome = &mut work => return outcome,
        what = ctx.store_watch.stalled(ctx.limits.store_timeout) => stalled(what, ctx),
        stop = ctx.supervisor.stopped() => stop.into(),
    };
    if journal.is_some_and(|journal| journal.is_committing() || journal.has_committed()) {
        if let Ok(outcome) = timeout(COMMIT, work).await {
            return outcome;
        }
        if why.error == ErrorName::Canceled {
            // It may have had its effect: the next attempt looks.
            return Err(Stop::Told.into());
        }
    }
    Err(why)
}

async fn open(ctx: &OperationContext) -> Result<Table, TaskError> {
    ctx.progress.report(0, "opening the table");
    let table = table::open(ctx).await?;
    // What other attempts commit from here on is newer than the version that was opened.
    ctx.supervisor.confirm().await?;
    left_behind::remove(&table, ctx, false).await;
    Ok(table)
}

/// The parameters with what was left out filled in.
fn effective(
    params: &TaskParams,
    table: &Table,
    ctx: &OperationContext,
) -> Result<TaskParams, TaskError> {
    match params {
        TaskParams::Compact(params) => compact::plan::effective(params, &table.dataset)
            .map(TaskParams::Compact)
            .map_err(|error| to_task_error(&error, &Redactor::new(ctx))),
        TaskParams::BackfillColumn(params) => Ok(TaskParams::BackfillColumn(
            backfill::settings::effective(params, ctx),
        )),
        TaskParams::ScalarIndex(_)
        | TaskParams::VectorIndex(_)
        | TaskParams::OptimizeIndices(_)
        | TaskParams::Cleanup(_) => Ok(params.clone()),
    }
}

async fn run_on(
    params: &TaskParams,
    table: &mut Table,
    ctx: &OperationContext,
) -> Result<Value, TaskError> {
    let given = params;
    let params = &effective(given, table, ctx)?;
    if params != given {
        ctx.supervisor.runs_with(params.clone());
    }
    // Boxed and of one type: futures of the library are nested so deeply that the compiler gives up
    // on what holds them.
    let operation: BoxFuture<'_, Result<Value, TaskError>> = match params {
        TaskParams::Compact(params) => params.run(table, ctx).boxed(),
        TaskParams::ScalarIndex(params) => params.run(table, ctx).boxed(),
        TaskParams::VectorIndex(params) => params.run(table, ctx).boxed(),
        TaskParams::OptimizeIndices(params) => params.run(table, ctx).boxed(),
        TaskParams::Cleanup(params) => params.run(table, ctx).boxed(),
        TaskParams::BackfillColumn(params) => params.run(table, ctx).boxed(),
    };
    let result = operation.await?;
    // With the task's commit, wherever it came from, those of its other attempts would conflict; unless
    // it makes several, of other fragments.
    if ctx.attempt > 1
        && !matches!(params, TaskParams::BackfillColumn(_))
        && let Ok(Some(_)) = commit::find_own_commit(&table.dataset, ctx, 0).await
    {
        left_behind::remove(table, ctx, true).await;
    }
    if let Ok(store) = table.dataset.object_store(None).await {
        ctx.changed(Changed {
            bytes_written: store.io_stats_snapshot().written_bytes,
            ..Changed::default()
        });
    }
    Ok(result)
}

fn stalled(what: &str, ctx: &OperationContext) -> TaskError {
    let limit = humantime::format_duration(ctx.limits.store_timeout);
    TaskError::new(
        ErrorName::ServiceUnavailable,
        format!(
            "The table's store does not answer: {what} has been waiting for more than {limit}. Submit \
             the task again when the store is well; if it is only slow, the worker needs a higher \
             store_timeout."
        ),
    )
}

/// A result as it is reported.
fn to_result<T: serde::Serialize>(result: &T) -> Result<Value, TaskError> {
    serde_json::to_value(result).map_err(|error| {
        TaskError::new(
            ErrorName::InternalError,
            format!("The result could not be written as JSON: {error}."),
        )
    })
}
