//! Makes a table, or its next version, of an Arrow IPC stream.

use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_schema::Schema;
use axum::body::Bytes;
use lance::dataset::transaction::{Operation, Transaction};
use lance::dataset::{CommitBuilder, InsertBuilder, WriteDestination, WriteParams};
use lance::{Dataset, Error};
use lance_core::is_system_column;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{WriteMode, Written};

use super::create_only::CreateOnly;
use super::place::Place;
use super::rows::Rows;
use super::uncommitted::Uncommitted;
use crate::operations::commit::{find_own_commit, task_properties};

/// Writes the stream's rows. What a write that fails has written is removed again, unless a version
/// may refer to it.
pub async fn write(place: &Place, mode: WriteMode, stream: Bytes) -> Result<Written, ApiError> {
    let rows = Rows::read(stream).map_err(|reason| unreadable(&reason))?;
    let broken = rows.broken();
    check_schema(place, &rows.schema())?;
    let existing = place.open(&place.chain(None)?, None).await?.map(Arc::new);
    if mode == WriteMode::Create && existing.is_some() {
        return Err(already_there());
    }
    let before = existing.as_ref().map_or(0, |table| table.version_id());
    let mut params = WriteParams {
        mode: match existing {
            Some(_) => lance::dataset::WriteMode::Overwrite,
            None => lance::dataset::WriteMode::Create,
        },
        store_params: Some(place.params.clone()),
        session: Some(Arc::clone(&place.session)),
        transaction_properties: Some(Arc::new(task_properties(&place.ctx))),
        ..WriteParams::default()
    };
    if mode == WriteMode::Create {
        params.commit_handler = Some(Arc::new(CreateOnly(Arc::clone(&place.handler))));
    }
    let destination = || match &existing {
        Some(table) => WriteDestination::Dataset(Arc::clone(table)),
        None => WriteDestination::Uri(&place.ctx.location),
    };
    // Lance removes what it has written where it fails half-way.
    let transaction = InsertBuilder::new(destination())
        .with_params(&params)
        .execute_uncommitted_stream(Box::new(rows) as Box<dyn RecordBatchReader + Send>)
        .await
        .map_err(|error| match broken.reason() {
            Some(reason) => unreadable(&reason),
            None => not_written(place, &error),
        })?;
    let uncommitted = match &transaction.operation {
        Operation::Overwrite { fragments, .. } => Uncommitted::of(place, fragments),
        _ => Uncommitted::default(),
    };
    // Others may have made versions since; the one that a new table begins with may even be gone.
    if mode == WriteMode::Create {
        let newest = place.newest(&place.chain(None)?).await;
        if !matches!(newest, Ok(None)) {
            uncommitted.remove(place).await;
            newest?;
            return Err(already_there());
        }
    }
    match commit(destination(), &params, transaction).await {
        Ok(table) => Ok(Written {
            version: table.version_id(),
        }),
        Err(error) => settle(place, before, uncommitted, &error).await,
    }
}

async fn commit(
    destination: WriteDestination<'_>,
    params: &WriteParams,
    transaction: Transaction,
) -> Result<Dataset, Error> {
    let mut commit = CommitBuilder::new(destination)
        .use_stable_row_ids(params.enable_stable_row_ids)
        .enable_v2_manifest_paths(params.enable_v2_manifest_paths);
    if let Some(handler) = &params.commit_handler {
        commit = commit.with_commit_handler(Arc::clone(handler));
    }
    if let Some(store) = &params.store_params {
        commit = commit.with_store_params(store.clone());
    }
    if let Some(session) = &params.session {
        commit = commit.with_session(Arc::clone(session));
    }
    commit.execute(transaction).await
}

/// Finds out what became of a commit that ended with `error`, and removes what it would have
/// referred to unless a version refers to it or may yet.
async fn settle(
    place: &Place,
    before: u64,
    uncommitted: Uncommitted,
    error: &Error,
) -> Result<Written, ApiError> {
    let found = match place.open(&place.chain(None)?, None).await {
        Ok(Some(table)) => find_own_commit(&table, &place.ctx, before)
            .await
            .map_err(|error| place.error(&error)),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    };
    match found {
        Ok(Some(own)) => {
            return Ok(Written {
                version: own.version,
            });
        }
        Ok(None) if !error.is_commit_status_unknown() => uncommitted.remove(place).await,
        Ok(None) | Err(_) => {
            tracing::warn!(error = %place.error(error), "files of a write of unknown outcome stay");
        }
    }
    Err(not_written(place, error))
}

fn not_written(place: &Place, error: &Error) -> ApiError {
    match error {
        Error::DatasetAlreadyExists { .. } => already_there(),
        // The stream itself is sound: its types or names are what can't be stored.
        Error::Schema { .. } | Error::SchemaMismatch { .. } | Error::NotSupported { .. } => {
            bad_schema(&place.error(error).detail)
        }
        _ => place.error(error),
    }
}

fn check_schema(place: &Place, schema: &Schema) -> Result<(), ApiError> {
    if let Some(field) = schema.fields().iter().find(|f| is_system_column(f.name())) {
        return Err(bad_schema(&format!(
            "'{}' is the name of a column of Lance's own.",
            field.name()
        )));
    }
    lance_core::datatypes::Schema::try_from(schema)
        .map(drop)
        .map_err(|error| bad_schema(&place.error(&error).detail))
}

fn already_there() -> ApiError {
    ApiError::new(
        ErrorName::TableAlreadyExists,
        "There is a table at the table's location already.",
    )
}

fn bad_schema(reason: &str) -> ApiError {
    ApiError::new(
        ErrorName::TableSchemaValidationError,
        format!("A table can't have this schema: {reason}"),
    )
}

fn unreadable(reason: &str) -> ApiError {
    ApiError::invalid(format!(
        "The body can't be read as an Arrow IPC stream: {reason}."
    ))
}
