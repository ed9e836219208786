//! What the runner runs: a seam between queueing and Lance.

use std::sync::Arc;

use futures::future::BoxFuture;
use lance_maintenance_api::TaskError;
use lance_maintenance_dispatch::Dispatch;
use serde_json::Value;

use crate::operations::supervisor::Supervisor;
use crate::progress::Progress;

/// Does the work of a task.
pub trait Execute: Send + Sync {
    /// Does it; the value is the task's result. It ends soon after the supervisor tells it to stop,
    /// and at once when the future is dropped.
    fn execute(
        &self,
        dispatch: &Dispatch,
        progress: Progress,
        supervisor: Arc<dyn Supervisor>,
    ) -> BoxFuture<'static, Result<Value, TaskError>>;
}
