//! Columns of the Lance REST namespace: adding them, and filling those that are computed. The worker
//! knows the table's schema, so it is asked before anything is stored.

use lance_maintenance_api::jobs::JobId;
use lance_maintenance_api::namespace::check_body_id;
use lance_maintenance_api::namespace::columns::{
    AddColumnsRequest, AddColumnsResponse, BackfillColumnResponse,
};
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::params::{BackfillColumnParams, TaskParams};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{
    ADD_COLUMNS_PATH, AddColumns, CHECK_BACKFILL_PATH, PreviewTask,
};
use lance_maintenance_guest::{Reply, RequestContext, context, log, submit, worker};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let id = context.table_identifier()?;
        check_body_id(&body, &[id.namespace.as_str(), id.table.as_str()])?;
        match context.operation {
            Operation::AlterTableAddColumns => add_columns(context, &body).await,
            Operation::AlterTableBackfillColumns => backfill_column(context, &body).await,
            _ => Err(ApiError::new(
                ErrorName::NoSuchOperation,
                "This is not an operation on columns.",
            )),
        }
    })
    .await
}

async fn add_columns(context: &RequestContext, body: &[u8]) -> Result<Reply, ApiError> {
    let request = AddColumnsRequest::parse(body)?;
    let columns = AddColumns {
        location: context.table()?.location.clone(),
        branch: request.branch,
        columns: request.columns,
    };
    let added: AddColumnsResponse = worker::ask_to_write(ADD_COLUMNS_PATH, &columns).await?;
    Ok(Reply::json(&added))
}

async fn backfill_column(context: &RequestContext, body: &[u8]) -> Result<Reply, ApiError> {
    let params = TaskParams::BackfillColumn(BackfillColumnParams::parse(body)?);
    let table_id = &context.table()?.id;
    let question = PreviewTask {
        location: context.table()?.location.clone(),
        params: params.clone(),
    };
    match worker::ask::<_, serde_json::Value>(CHECK_BACKFILL_PATH, &question).await {
        Ok(_) => {}
        // The task waits for it as any does, and fails then if it has to.
        Err(error) if error.name == ErrorName::ServiceUnavailable => {
            log::warn(format_args!("a backfill is not checked: {error}"));
        }
        Err(error) => return Err(error),
    }
    let task = submit::task(context, params).await?;
    Ok(Reply::json(&BackfillColumnResponse {
        job_id: JobId::new(table_id, &task.submitted.task_id).to_string(),
    }))
}
