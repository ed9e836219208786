//! Adds columns to a table, and says whether one can be filled.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use lance::dataset::{BatchUDF, NewColumnTransform};
use lance::{Dataset, Error};
use lance_core::datatypes::Schema as LanceSchema;
use lance_core::is_system_column;
use lance_maintenance_api::params::BackfillColumnParams;
use lance_maintenance_api::{ApiError, TaskError};
use lance_maintenance_dispatch::tables::{AddColumns, AddColumnsResponse, NewColumn, NewContent};
use uuid::Uuid;

use super::place::{Place, never_written, no_such_branch};
use crate::operations::backfill::binding::{Bound, Compiled, DECLARATION_KEY, EXPRESSION_KEY};
use crate::operations::backfill::pace::{self, bytes_of};
use crate::operations::backfill::source::Source;
use crate::operations::backfill::{self, mistake};
use crate::operations::commit::Retries;
use crate::operations::errors::is_retryable_conflict;
use crate::operations::redact::Redactor;
use crate::operations::table;

/// Rows that are computed at a time, or fewer where rows are wide.
const BATCH_ROWS: u32 = 32_768;
/// What is said where values take too long.
const TOO_LONG: &str = "their values take longer than a request may, and none was kept; add them as \
    'computed', and fill each with a backfill";
/// From which it is told how wide they are.
const SAMPLED_FRAGMENTS: usize = 16;
const SAMPLED_ROWS: u64 = 32;

/// Adds the columns in one commit: a computed one is null in all rows, and keeps its expression in its
/// field's metadata; any other has its expression's value in the rows that are there. Values that take
/// longer than so long are given up, as whoever asks would no longer wait for them.
pub async fn add(
    place: &Place,
    request: &AddColumns,
    longest: Duration,
) -> Result<AddColumnsResponse, ApiError> {
    let end = Instant::now() + longest;
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
        let (columns, read) = transform(place, &dataset, &request.columns, end)?;
        let rows = batch_rows(&dataset, read.as_deref())
            .await
            .map_err(|error| place.error(&error))?;
        let added = dataset.add_columns(columns, read, Some(rows)).await;
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

/// What adds the columns, and the columns that it reads.
fn transform(
    place: &Place,
    dataset: &Dataset,
    columns: &[NewColumn],
    end: Instant,
) -> Result<(NewColumnTransform, Option<Vec<String>>), ApiError> {
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
        let compiled = Compiled::expression(text, schema, &redactor)
            .map_err(|error| refused(of_column(error, name)))?;
        let field = Field::new(name, compiled.data_type.clone(), true);
        match &column.content {
            NewContent::Expression(_) => expressions.push((field, compiled)),
            NewContent::Computed(_) => {
                compiled
                    .check_computed()
                    .map_err(|error| refused(of_column(error, name)))?;
                let kept = HashMap::from([
                    (EXPRESSION_KEY.to_owned(), text.clone()),
                    (DECLARATION_KEY.to_owned(), Uuid::new_v4().to_string()),
                ]);
                computed.push(field.with_metadata(kept));
            }
        }
    }
    match (expressions.first(), computed.first()) {
        (Some((expression, _)), Some(computed)) => Err(ApiError::invalid(format!(
            "The columns '{}' and '{}' can't be added at once, as one has an 'expression' and the other \
             is 'computed': add them one after the other.",
            expression.name(),
            computed.name()
        ))),
        (Some(_), None) => evaluated(schema, expressions, end, &redactor),
        _ => {
            let nulls = NewColumnTransform::AllNulls(Arc::new(Schema::new(computed)));
            Ok((nulls, None))
        }
    }
}

/// How many rows to compute at a time: as many as fit, if all are as large as some from all over the table.
async fn batch_rows(dataset: &Dataset, read: Option<&[String]>) -> Result<u32, Error> {
    let Some(read) = read else {
        return Ok(BATCH_ROWS);
    };
    let read = dataset.schema().project(read)?;
    let fragments = dataset.get_fragments();
    let step = fragments.len().div_ceil(SAMPLED_FRAGMENTS).max(1);
    let mut most = u64::from(BATCH_ROWS);
    for fragment in fragments.iter().step_by(step) {
        let source = Source::open(fragment, &read, false).await?;
        let start = source.rows / 2;
        let end = source.rows.min(start + SAMPLED_ROWS);
        if start < end {
            let bytes = bytes_of(source.read(start..end).await?.columns());
            most = most.min(pace::BYTES * (end - start) / bytes.max(1));
        }
    }
    Ok(u32::try_from(most.max(1)).unwrap_or(BATCH_ROWS))
}

/// Columns that are computed at once.
fn evaluated(
    schema: &LanceSchema,
    columns: Vec<(Field, Compiled)>,
    end: Instant,
    redactor: &Redactor,
) -> Result<(NewColumnTransform, Option<Vec<String>>), ApiError> {
    let mut ids: Vec<i32> = columns
        .iter()
        .flat_map(|(_, compiled)| compiled.inputs.clone())
        .collect();
    if ids.is_empty() {
        // Something has to be read for the number of rows.
        ids.extend(schema.fields.first().map(|field| field.id));
    }
    let read = schema.project_by_ids(&ids, true);
    let paths = ids
        .iter()
        .map(|id| schema.field_path(*id))
        .collect::<Result<Vec<String>, Error>>()
        .map_err(|_| ApiError::invalid("The table's schema names a column that is not there."))?;
    let bound: Vec<Bound> = columns
        .iter()
        .map(|(_, compiled)| compiled.bind(&read, redactor))
        .collect::<Result<_, TaskError>>()
        .map_err(refused)?;
    let fields: Vec<Field> = columns.into_iter().map(|(field, _)| field).collect();
    let schema = Arc::new(Schema::new(fields));
    let output_schema = Arc::clone(&schema);
    let names: Vec<String> = read.fields.into_iter().map(|field| field.name).collect();
    let redactor = redactor.clone();
    let mapper = move |batch: &RecordBatch| {
        if Instant::now() >= end {
            return Err(Error::invalid_input(TOO_LONG));
        }
        let places = names
            .iter()
            .map(|name| batch.schema_ref().index_of(name))
            .collect::<Result<Vec<usize>, _>>()?;
        let batch = batch.project(&places)?;
        let values = bound
            .iter()
            .zip(schema.fields())
            .map(|(bound, field)| {
                let values = bound.values(&batch, field.data_type());
                values.map_err(|error| {
                    let reason = mistake::reason(&error, &redactor);
                    Error::invalid_input(format!("the value of '{}': {reason}", field.name()))
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&schema), values)?)
    };
    let transform = NewColumnTransform::BatchUDF(BatchUDF {
        mapper: Box::new(mapper),
        output_schema,
        result_checkpoint: None,
    });
    Ok((transform, Some(paths)))
}

fn check_name(dataset: &Dataset, name: &str) -> Result<(), ApiError> {
    if is_system_column(name) {
        return Err(ApiError::invalid(format!(
            "'{name}' is the name of a column of Lance's own."
        )));
    }
    // As Lance has it, which takes them for paths.
    if name.contains('.') {
        return Err(ApiError::invalid(format!(
            "'{name}' can't be the name of a column, as it has a dot."
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
    let detail = error.detail.trim_start_matches("Invalid user input: ");
    let detail = format!("The columns can't be added: {detail}");
    ApiError::new(error.name, detail)
}

fn refused(error: TaskError) -> ApiError {
    ApiError::new(error.error, error.detail)
}
