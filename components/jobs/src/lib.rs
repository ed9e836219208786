//! Jobs: tasks with the names and meanings of the maintenance skill.

use bytes::Bytes;
use lance_maintenance_api::jobs::listing::{ListJobsQuery, ListJobsResponse};
use lance_maintenance_api::jobs::request::options;
use lance_maintenance_api::jobs::{JobId, JobRequest, JobStatus};
use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::query::Query;
use lance_maintenance_api::task::TaskInfo;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::{CANCEL_PATH, TaskAddress};
use lance_maintenance_guest::{
    Reply, RequestContext, SpinStore, context, host, log, submit, worker,
};
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::{Task, Tasks};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| match context.operation {
        Operation::SubmitMaintenanceJob => submit_job(context, &body).await,
        Operation::ListMaintenanceJobs => list_jobs(context),
        Operation::GetMaintenanceJob => get_job(context),
        Operation::CancelMaintenanceJob => cancel_job(context).await,
        _ => Err(ApiError::new(
            ErrorName::NoSuchOperation,
            "This is not an operation on jobs.",
        )),
    })
    .await
}

async fn submit_job(context: &RequestContext, body: &[u8]) -> Result<Reply, ApiError> {
    let request = JobRequest::parse(body)?;
    context.check_table_of_body(request.table.as_deref())?;
    let task = submit::task(context, request.params).await?;
    let store = SpinStore::open()?;
    status(&store, task).map(|status| Reply::json(&status))
}

fn list_jobs(context: &RequestContext) -> Result<Reply, ApiError> {
    let table = context.table()?;
    let marker = Marker::new(&table.id, "jobs");
    let query = ListJobsQuery::parse(&Query::parse(&context.query)?, marker)?;
    let store = SpinStore::open()?;
    let page = Tasks::new(&store, &table.id).all(query.from, query.limit)?;
    let jobs = page.tasks.into_iter().map(|task| status(&store, task));
    Ok(Reply::json(&ListJobsResponse {
        jobs: jobs.collect::<Result<_, _>>()?,
        page_token: page.next.map(|place| marker.encode_places(&place)),
    }))
}

fn get_job(context: &RequestContext) -> Result<Reply, ApiError> {
    let JobId { table_id, task_id } = context.job_id()?;
    let store = SpinStore::open()?;
    let task = Tasks::new(&store, &table_id)
        .get(&task_id)
        .map_err(as_job)?;
    status(&store, task).map(|status| Reply::json(&status))
}

/// Asks that a job be stopped, and says where it stands: one that has ended stays as it is.
async fn cancel_job(context: &RequestContext) -> Result<Reply, ApiError> {
    let JobId { table_id, task_id } = context.job_id()?;
    let address = TaskAddress { table_id, task_id };
    let store = SpinStore::open()?;
    let task = Execution::new(&store)
        .cancel(&address, host::now_micros)
        .map_err(as_job)?;
    if !task.status().is_terminal()
        && let Err(why) = tell_worker(&address).await
    {
        log::warn(format_args!(
            "task {} is stopped at its worker's next heartbeat: {why}",
            address.task_id
        ));
    }
    status(&store, task).map(|status| Reply::json(&status))
}

/// Tells the worker at once; another that has the task learns of it by itself.
async fn tell_worker(address: &TaskAddress) -> Result<(), ApiError> {
    let body: Bytes = serde_json::to_vec(address).unwrap_or_default().into();
    let nanos = worker::QUEUE_NANOS;
    worker::post(CANCEL_PATH, "application/json", body, nanos).await?;
    Ok(())
}

/// A job as it is shown, with how far it is.
fn status(store: &SpinStore, task: Task) -> Result<JobStatus, ApiError> {
    let given = options(&task.submitted.params);
    let table_id = task.submitted.table.id.clone();
    let cancel_requested = task.canceled && !task.status().is_terminal();
    let progress = Tasks::new(store, &table_id).progress(&task)?;
    let info = TaskInfo {
        progress,
        ..task.info()
    };
    Ok(JobStatus {
        cancel_requested,
        ..JobStatus::new(&table_id, info, given)
    })
}

/// That there is no such task is said of a job.
fn as_job(error: ApiError) -> ApiError {
    match error.name {
        ErrorName::TaskNotFound => JobId::not_found(),
        _ => error,
    }
}
