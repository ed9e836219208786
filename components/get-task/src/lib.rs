//! GetLanceTaskStatus.

use lance_maintenance_api::task::GetTaskResponse;
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
        let mut task_info = tasks.get(&task_id)?.info();
        if context.with_progress {
            task_info.progress = tasks.progress(&task_id)?;
        }
        Ok(Reply::json(&GetTaskResponse { task_info }))
    })
    .await
}
