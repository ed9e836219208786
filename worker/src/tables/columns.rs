//! Adds columns to a table, and says whether one can be filled.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema};
use lance::dataset::NewColumnTransform;
use lance::{Dataset, Error};
use lance_core::is_system_column;
use lance_maintenance_api::params::BackfillColumnParams;
use lance_maintenance_api::{ApiError, TaskError};
use lance_maintenance_dispatch::tables::{AddColumns, AddColumnsResponse, NewColumn, NewContent};

use super::place::{Place, never_written, no_such_branch};
use crate::operations::backfill::{self, binding};
use crate::operations::commit::Retries;
use crate::operations::errors::is_retryable_conflict;
use crate::operations::redact::Redactor;
use crate::operations::table;

/// Adds the columns in one commit: a computed one is null in all rows, and keeps its expression in its
/// field's metadata; any other has its expression's value in the rows that are there.
pub async fn add(place: &Place, request: &AddColumns) -> Result<AddColumnsResponse, ApiError> {
    let chain = place.chain(request.branch.as_deref())?;
    place.check_branch(&chain).await?;
    let mut retries = Retries::new(&place.ctx.limits);
    loop {
        let Some(mut dataset) = place.open(&chain, None).await? else {
            return Err(match &chain.branch {
                Some(branch) => no_such_branch(branch),
                None => never_written(),
            });
        };
        let columns = transform(place, &dataset, &request.columns)?;
        let added = dataset.add_columns(columns, None, None).await;
        match added {
            Ok(()) => {
                return Ok(AddColumnsResponse {
                    version: dataset.version_id(),
                });
            }
            Err(error) if is_retryable_conflict(&error) => {
                if !retries.another(&*place.ctx.supervisor).await {
                    return Err(place.error(&error));
                }
            }
            Err(error) => return Err(not_added(place, &error)),
        }
    }
}

/// Whether the task can run on the newest version: refused as it would fail at its beginning.
pub async fn check_backfill(place: &Place, params: &BackfillColumnParams) -> Result<(), ApiError> {
    let table = table::open(&place.ctx).await.map_err(refused)?;
    backfill::check(params, &table.dataset, &place.ctx)
        .await
        .map_err(refused)
}

fn transform(
    place: &Place,
    dataset: &Dataset,
    columns: &[NewColumn],
) -> Result<NewColumnTransform, ApiError> {
    let redactor = Redactor::new(&place.ctx);
    let schema = dataset.schema();
    let mut expressions = Vec::new();
    let mut computed = Vec::new();
    for column in columns {
        let name = &column.name;
        check_name(dataset, name)?;
        let text = match &column.content {
            NewContent::Expression(text) | NewContent::Computed(text) => text,
        };
        let compiled = binding::Compiled::expression(text, schema, &redactor)
            .map_err(|error| refused(of_column(error, name)))?;
        match &column.content {
            NewContent::Expression(_) => expressions.push((name.clone(), text.clone())),
            NewContent::Computed(_) => {
                let kept = HashMap::from([(binding::EXPRESSION_KEY.to_owned(), text.clone())]);
                computed.push(Field::new(name, compiled.data_type, true).with_metadata(kept));
            }
        }
    }
    match (expressions.first(), computed.first()) {
        (Some((expression, _)), Some(computed)) => Err(ApiError::invalid(format!(
            "The columns '{expression}' and '{}' can't be added at once, as one has an 'expression' and \
             the other is 'computed': add them one after the other.",
            computed.name()
        ))),
        (Some(_), None) => Ok(NewColumnTransform::SqlExpressions(expressions)),
        _ => Ok(NewColumnTransform::AllNulls(Arc::new(Schema::new(
            computed,
        )))),
    }
}

fn check_name(dataset: &Dataset, name: &str) -> Result<(), ApiError> {
    if is_system_column(name) {
        return Err(ApiError::invalid(format!(
            "'{name}' is the name of a column of Lance's own."
        )));
    }
    let fields = &dataset.schema().fields;
    match fields.iter().any(|field| field.name == name) {
        true => Err(ApiError::invalid(format!(
            "The table has a column '{name}' already."
        ))),
        false => Ok(()),
    }
}

fn of_column(mut error: TaskError, name: &str) -> TaskError {
    error.detail = format!("The column '{name}' can't be added. {}", error.detail);
    error
}

fn not_added(place: &Place, error: &Error) -> ApiError {
    let error = place.error(error);
    let detail = format!("The columns can't be added: {}", error.detail);
    ApiError::new(error.name, detail)
}

fn refused(error: TaskError) -> ApiError {
    ApiError::new(error.error, error.detail)
}
