//! What the runner runs: a seam between queueing and Lance.

use futures::future::{BoxFuture, FutureExt};
use lance_maintenance_api::TaskError;
use lance_maintenance_dispatch::Dispatch;
use serde_json::Value;

use crate::operations::{self, OperationContext};
use crate::progress::Progress;
use crate::storage::StorageOptions;

/// Does the work of a task. Dropping the future stops the work at its next step.
pub trait Execute: Send + Sync {
    /// Does it; the value is the task's result.
    fn execute(
        &self,
        dispatch: &Dispatch,
        progress: Progress,
    ) -> BoxFuture<'static, Result<Value, TaskError>>;
}

/// Does the work with Lance.
#[derive(Clone, Debug)]
pub struct LanceExecutor {
    /// The options of the stores that the tables lie in.
    pub storage: StorageOptions,
    /// How far operations may go.
    pub limits: operations::Limits,
}

impl Execute for LanceExecutor {
    fn execute(
        &self,
        dispatch: &Dispatch,
        progress: Progress,
    ) -> BoxFuture<'static, Result<Value, TaskError>> {
        let params = dispatch.params.clone();
        let context = OperationContext {
            task_id: dispatch.task_id.to_string(),
            attempt: dispatch.attempt,
            location: dispatch.table.location.clone(),
            storage_options: self.storage.for_location(&dispatch.table.location),
            progress,
            limits: self.limits.clone(),
        };
        async move { operations::run(&params, &context).await }.boxed()
    }
}
