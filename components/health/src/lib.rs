//! Looks at tables without changing them: their health, and what a job would do. The worker reads the
//! table; the tasks that wait or run, and the advice, are added here.

use lance_maintenance_api::health::advice::advise;
use lance_maintenance_api::health::{HealthReport, OpenTask};
use lance_maintenance_api::jobs::{JobId, JobRequest, JobState};
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::preview::Preview;
use lance_maintenance_api::query::Query;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{CheckHealth, HEALTH_PATH, PREVIEW_PATH, PreviewTask};
use lance_maintenance_guest::{Reply, RequestContext, SpinStore, context, worker};
use lance_maintenance_store::tasks::Tasks;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

/// How many of a table's newest tasks are looked at for those that wait or run.
const NEWEST_TASKS: usize = 200;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| match context.operation {
        Operation::GetTableHealth => health(context).await,
        Operation::PreviewMaintenanceJob => preview(context, &body).await,
        _ => Err(ApiError::new(
            ErrorName::NoSuchOperation,
            "This is not an operation that looks at tables.",
        )),
    })
    .await
}

async fn health(context: &RequestContext) -> Result<Reply, ApiError> {
    let query = Query::parse(&context.query)?;
    let check_files = query.boolean("check_files")?.unwrap_or(false);
    let wants_space = query.boolean("reclaim")?.unwrap_or(false);
    let table = context.table()?;
    let question = CheckHealth {
        location: table.location.clone(),
        check_files,
    };
    let mut report: HealthReport = worker::ask(HEALTH_PATH, &question).await?;
    match open_tasks(&table.id) {
        Ok(tasks) => report.tasks = Some(tasks),
        Err(error) => drop(report.errors.insert("tasks".to_owned(), error.detail)),
    }
    report.advice = advise(&report, wants_space);
    Ok(Reply::json(&report))
}

/// The table's tasks that wait or run.
fn open_tasks(table_id: &str) -> Result<Vec<OpenTask>, ApiError> {
    let store = SpinStore::open()?;
    let newest = Tasks::new(&store, table_id).all(None, NEWEST_TASKS)?;
    let open = newest.tasks.into_iter().map(|task| task.info());
    Ok(open
        .filter(|task| !task.status.is_terminal())
        .map(|task| OpenTask {
            job_id: JobId::new(table_id, &task.task_id).to_string(),
            operation: task.params.task_type().into(),
            state: JobState::of(&task),
            created_at: task.created_at,
        })
        .collect())
}

async fn preview(context: &RequestContext, body: &[u8]) -> Result<Reply, ApiError> {
    let request = JobRequest::parse(body)?;
    context.check_table_of_body(request.table.as_deref())?;
    let question = PreviewTask {
        location: context.table()?.location.clone(),
        params: request.params,
    };
    let preview: Preview = worker::ask(PREVIEW_PATH, &question).await?;
    Ok(Reply::json(&preview))
}
