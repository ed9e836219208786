//! What all submits share: store the task, hand it to the worker.

use http::StatusCode;
use lance_maintenance_api::ApiError;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::SubmitResponse;
use lance_maintenance_dispatch::{Dispatch, TASKS_PATH};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::{Task, Tasks};

use crate::context::RequestContext;
use crate::{Reply, SpinStore, host, log, settings, worker};

/// Submits a task of the OSS API.
pub async fn submit(context: &RequestContext, params: TaskParams) -> Result<Reply, ApiError> {
    let task = task(context, params).await?;
    Ok(Reply::json(&SubmitResponse {
        task_id: task.submitted.task_id,
    }))
}

/// Stores a task durably, then hands it to the worker, or leaves a note for the worker to find. What is
/// answered with 200 is not lost.
pub async fn task(context: &RequestContext, params: TaskParams) -> Result<Task, ApiError> {
    let table = context.table()?;
    let quota = settings::number("task_quota").await?;
    let store = SpinStore::open()?;
    let task = Tasks::new(&store, &table.id).submit(
        table,
        params,
        &context.request_id,
        host::random(),
        quota,
        host::now_micros,
    )?;
    let dispatch = task.dispatch(1);
    if let Err(why) = hand_over(&dispatch).await {
        log::warn(format_args!(
            "task {} waits for the worker: {why}",
            dispatch.task_id
        ));
        Execution::new(&store).note(&dispatch)?;
    }
    Ok(task)
}

/// Hands a task to the worker.
async fn hand_over(dispatch: &Dispatch) -> Result<(), String> {
    let body = serde_json::to_vec(dispatch).map_err(|error| error.to_string())?;
    let answer = worker::post(
        TASKS_PATH,
        "application/json",
        body.into(),
        worker::QUEUE_NANOS,
    )
    .await
    .map_err(|error| error.detail)?;
    match answer.status {
        // 409: it has the task already.
        StatusCode::ACCEPTED | StatusCode::CONFLICT => Ok(()),
        status => Err(format!("the worker answered {status}")),
    }
}
