//! GetLanceTaskStatus.

use lance_maintenance_api::task::{GetTaskResponse, TaskInfo};
use lance_maintenance_guest::{Reply, SpinStore, context};
use lance_maintenance_store::tasks::Tasks;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, _body| {
        let task_id = context.task_id()?;
        let store = SpinStore::open()?;
        let tasks = Tasks::new(&store, &context.table()?.id);
        let task = tasks.get(&task_id)?;
        let progress = match context.with_progress {
            true => tasks.progress(&task)?,
            false => None,
        };
        let task_info = TaskInfo {
            progress,
            ..task.info()
        };
        Ok(Reply::json(&GetTaskResponse { task_info }))
    })
    .await
}
