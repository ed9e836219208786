//! What a task would do to a table as it is.

use lance::Dataset;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::preview::Preview;
use lance_maintenance_api::{ErrorName, TaskError};

use super::{OperationContext, cleanup, compact, optimize_indices};

/// What the task would do to the table whose newest version `dataset` is at; or why it would fail.
pub async fn preview(
    params: &TaskParams,
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<Preview, TaskError> {
    match params {
        TaskParams::Compact(params) => compact::preview::preview(params, dataset, ctx)
            .await
            .map(Preview::Compact),
        TaskParams::OptimizeIndices(params) => {
            optimize_indices::preview::preview(params, dataset, ctx)
                .await
                .map(Preview::OptimizeIndices)
        }
        TaskParams::Cleanup(params) => cleanup::preview(params, dataset, ctx)
            .await
            .map(Preview::Cleanup),
        TaskParams::ScalarIndex(_) | TaskParams::VectorIndex(_) => Err(TaskError::new(
            ErrorName::Unsupported,
            "There is no preview of creating an index.",
        )),
        TaskParams::BackfillColumn(_) => Err(TaskError::new(
            ErrorName::Unsupported,
            "There is no preview of a backfill.",
        )),
    }
}
