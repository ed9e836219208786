//! What a task does to its table: one module per operation, and what they share.
//!
//! | module | what it holds |
//! |---|---|
//! | [`compact`], [`meter`] | merges small fragments, drops deleted rows |
//! | [`scalar_index`] | creates an index on values or texts |
//! | [`vector_index`], [`vector_checks`] | creates an index on vectors |
//! | [`optimize_indices`] | brings indices up to date |
//! | [`cleanup`] | removes old versions |
//! | [`index`] | what both kinds of index creation have in common |
//! | [`table`] | opening a table, finding its columns and indices |
//! | [`commit`] | marking our commits, finding them again, retrying, removing what never got committed |
//! | [`errors`], [`redact`] | from an error of the library to one that a user can act on |
//! | [`unreadable`] | which file it was that could not be read |
//!
//! An operation knows its parameters and its context, nothing of queues or HTTP.

pub mod cleanup;
pub mod commit;
pub mod compact;
pub mod errors;
pub mod index;
pub mod meter;
pub mod optimize_indices;
pub mod redact;
pub mod scalar_index;
pub mod table;
pub mod unreadable;
pub mod vector_checks;
pub mod vector_index;

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::{ErrorName, TaskError};
use serde_json::Value;

use crate::progress::Progress;

/// What an operation may use besides its parameters.
#[derive(Clone, Debug)]
pub struct OperationContext {
    /// The task's id, with which its commits are marked.
    pub task_id: String,
    /// Which attempt at the task this is, from 1. From the second on, an operation first looks for
    /// a commit that an earlier attempt made.
    pub attempt: u32,
    /// The table's URI: `file://..`, `s3://..`, `oss://..`.
    pub location: String,
    /// Options of the object store, credentials among them. Never shown to anyone.
    pub storage_options: HashMap<String, String>,
    /// Where to say how far the work is.
    pub progress: Progress,
    /// How far an operation may go.
    pub limits: Limits,
}

/// How far an operation may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A cleanup never removes a version younger than this, whatever its parameters say, so that
    /// readers of an older version have the time to finish.
    pub minimum_version_age: Duration,
    /// How often an operation starts over after losing a commit to another writer.
    pub max_conflict_retries: u32,
    /// How many groups of fragments a compaction rewrites at the same time. Each holds a few
    /// batches of rows and one open file.
    pub concurrent_rewrites: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            minimum_version_age: Duration::ZERO,
            max_conflict_retries: 5,
            concurrent_rewrites: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

/// Something that can be done to a table; implemented by the parameters of each task type.
pub trait Operation {
    /// Does it. The value is the `result` of the completed task.
    fn run(&self, ctx: &OperationContext) -> impl Future<Output = Result<Value, TaskError>> + Send;
}

/// Runs the task with these parameters.
///
/// Dropping the future stops the operation. A panic is the caller's to catch: the runner polls this
/// in a task of its own, and knows by that task's end that nothing works on the table any more.
pub async fn run(params: &TaskParams, ctx: &OperationContext) -> Result<Value, TaskError> {
    // Boxed and of one type: futures of the library are nested so deeply that the compiler gives up
    // on what holds them.
    let operation: BoxFuture<'_, Result<Value, TaskError>> = match params {
        TaskParams::Compact(params) => params.run(ctx).boxed(),
        TaskParams::ScalarIndex(params) => params.run(ctx).boxed(),
        TaskParams::VectorIndex(params) => params.run(ctx).boxed(),
        TaskParams::OptimizeIndices(params) => params.run(ctx).boxed(),
        TaskParams::Cleanup(params) => params.run(ctx).boxed(),
    };
    operation.await
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
