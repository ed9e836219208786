//! The lines between a worker and a process that runs an operation for it.

use std::collections::HashMap;
use std::fmt;

use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_dispatch::Dispatch;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cli::LogFormat;
use crate::operations::Limits;
use crate::operations::supervisor::{Measure, Refused, Stop};
use crate::progress::Report;

/// What the operation is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToOperation {
    /// The first line: what to do.
    Run(Box<Order>),
    /// The answer to [`FromOperation::Confirm`]: whether the attempt may go on.
    Confirmed(Result<(), Refused>),
    /// The answer to [`FromOperation::Reserve`].
    Reserved,
    /// It has to stop, and leave nothing behind.
    Stop(Stop),
}

/// What to do.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// The task.
    pub dispatch: Dispatch,
    /// Options of the table's store, credentials among them.
    pub storage_options: HashMap<String, String>,
    /// How far the operation may go.
    pub limits: Limits,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Whether the task is to be stopped: only to find out what an earlier attempt did.
    pub is_canceled: bool,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("dispatch", &self.dispatch)
            .finish_non_exhaustive()
    }
}

/// What the operation says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromOperation {
    /// How far it is.
    Progress(Report),
    /// It asks whether its attempt is still the one.
    Confirm,
    /// It needs so many bytes of memory.
    Reserve(u64),
    /// It has heard that it has to stop, and does.
    Stopping,
    /// The parameters with which it runs.
    RunsWith(Box<TaskParams>),
    /// Something that is counted.
    Measure(Measure),
    /// The last line: the task's result, or why there is none.
    End(Result<Value, TaskError>),
}
