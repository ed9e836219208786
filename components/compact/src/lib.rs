//! SubmitLanceTableCompactTask.

use lance_maintenance_api::params::{CompactParams, TaskParams};
use lance_maintenance_guest::{context, settings, submit};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let default_mode = settings::setting("compaction_mode").await?;
        let params = CompactParams::parse(&body, &default_mode)?;
        submit::submit(context, TaskParams::Compact(params)).await
    })
    .await
}
