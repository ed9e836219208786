//! SubmitLanceTableCleanupTask.

use lance_maintenance_api::params::{CleanupParams, TaskParams};
use lance_maintenance_guest::{context, submit};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let params = CleanupParams::parse(&body)?;
        submit::submit(context, TaskParams::Cleanup(params)).await
    })
    .await
}
