//! What a task would do to a table.

use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::tables::{Preview, PreviewTask};

use super::place::Place;
use crate::operations;

/// Says what the task would do to the newest version. Refused as the task would fail.
pub async fn preview(place: &Place, request: &PreviewTask) -> Result<Preview, ApiError> {
    let table = operations::table::open(&place.ctx).await.map_err(refused)?;
    operations::preview::preview(&request.params, &table.dataset, &place.ctx)
        .await
        .map_err(refused)
}

fn refused(error: lance_maintenance_api::TaskError) -> ApiError {
    ApiError::new(error.error, error.detail)
}
