//! ListLanceTasks.

use lance_maintenance_api::listing::ListTasksQuery;
use lance_maintenance_api::query::Query;
use lance_maintenance_guest::{Reply, SpinStore, context};
use lance_maintenance_store::tasks::Tasks;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, _body| {
        let table = context.table()?;
        let query = ListTasksQuery::parse(&Query::parse(&context.query)?, &table.id)?;
        let store = SpinStore::open()?;
        let listed = Tasks::new(&store, &table.id).list(&query, context.with_progress)?;
        Ok(Reply::json(&listed))
    })
    .await
}
