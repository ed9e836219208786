//! DeleteLanceTask.

use lance_maintenance_guest::{Reply, SpinStore, context, host};
use lance_maintenance_store::tasks::Tasks;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, _body| {
        let task_id = context.task_id()?;
        let store = SpinStore::open()?;
        Tasks::new(&store, &context.table()?.id).delete(&task_id, host::now_micros)?;
        Ok(Reply::no_content())
    })
    .await
}
