//! SubmitLanceTableOptimizeIndicesTask.

use lance_maintenance_api::params::{OptimizeIndicesParams, TaskParams};
use lance_maintenance_guest::{context, submit};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let params = OptimizeIndicesParams::parse(&body)?;
        submit::submit(context, TaskParams::OptimizeIndices(params)).await
    })
    .await
}
