//! Opening a table, and finding columns and indices in it.

use std::sync::Arc;

use lance::dataset::builder::DatasetBuilder;
use lance::index::DatasetIndexExt;
use lance::{Dataset, Error};
use lance_core::datatypes::{Field, Schema};
use lance_index::is_system_index;
use lance_io::object_store::{ChainedWrappingObjectStore, ObjectStoreParams};
use lance_maintenance_api::result::IndexCoverage;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::{Fragment, IndexMetadata};
use url::Url;

use super::OperationContext;
use super::errors::to_task_error;
use super::journal::{Journal, Place};
use super::redact::Redactor;

const NAMES_SHOWN: usize = 50;
/// The scheme of local files that are read and written like those of any object store.
const WATCHED_LOCAL: &str = "file-object-store";

/// A table as an attempt works on it. Clones share the book.
#[derive(Clone, Debug)]
pub struct Table {
    /// The version that is looked at.
    pub dataset: Dataset,
    /// The attempt's book about what it writes there.
    pub journal: Journal,
}

impl Table {
    /// Goes to the newest version.
    pub async fn refresh(&mut self, ctx: &OperationContext) -> Result<(), TaskError> {
        let refreshed = self.dataset.checkout_latest().await;
        refreshed.map_err(|error| to_task_error(&error, &Redactor::new(ctx)))?;
        // What other attempts commit from here on is newer.
        Ok(ctx.supervisor.confirm().await?)
    }
}

/// Opens the newest version of the table.
///
/// Where there is no Lance table the error says whether there is nothing at all or something else.
/// Nothing is written either way.
pub async fn open(ctx: &OperationContext) -> Result<Table, TaskError> {
    let failed = |error: &Error| to_task_error(error, &Redactor::new(ctx));
    let journal = Journal::new(place(ctx).await.map_err(|error| failed(&error))?, ctx);
    let params = ObjectStoreParams {
        object_store_wrapper: Some(Arc::new(ChainedWrappingObjectStore::new(vec![
            Arc::new(journal.clone()),
            Arc::new(ctx.store_watch.clone()),
        ]))),
        ..ctx.store_params()
    };
    let dataset = match builder(ctx, params).load().await {
        Ok(dataset) => whole(dataset)?,
        Err(Error::DatasetNotFound { .. }) => return Err(not_a_table(ctx).await),
        Err(error) => return Err(unreadable_version(failed(&error))),
    };
    journal.begin(dataset.version_id());
    Ok(Table { dataset, journal })
}

/// Where an attempt writes, whether a table is there or not.
pub async fn place(ctx: &OperationContext) -> Result<Place, Error> {
    let building = builder(ctx, ctx.store_params()).build_object_store();
    let (store, base, _) = building.await?;
    Ok(Place {
        store: store.inner.clone(),
        base,
        is_local: store.scheme() == WATCHED_LOCAL,
    })
}

/// Lance takes a manifest full of zeros, such as a crash of a machine may leave, for version 0 of an
/// empty table, and a cleanup would remove everything.
fn whole(dataset: Dataset) -> Result<Dataset, TaskError> {
    let (found, named) = (dataset.version_id(), dataset.manifest_location().version);
    if found == named {
        return Ok(dataset);
    }
    Err(TaskError::new(
        ErrorName::InvalidTableState,
        format!(
            "The table's newest version can't be read: the manifest of version {named} says that \
             it is of version {found}."
        ),
    ))
}

/// What fails while a table is opened, and is not known to be something else, is its manifest.
fn unreadable_version(error: TaskError) -> TaskError {
    match error.error {
        ErrorName::InternalError => TaskError::new(
            ErrorName::InvalidTableState,
            format!("The table's newest version can't be read: {}", error.detail),
        ),
        _ => error,
    }
}

/// Each opening gets a session of its own: what one task caches or reads is no other's.
fn builder(ctx: &OperationContext, params: ObjectStoreParams) -> DatasetBuilder {
    DatasetBuilder::from_uri(watched(&ctx.location)).with_store_params(params)
}

/// The location in the spelling with which Lance does all of its reading and writing through an
/// object store, where it is seen: files it would write on its own.
pub(super) fn watched(location: &str) -> String {
    let url = match location.starts_with('/') {
        true => Url::from_file_path(location).ok(),
        false => Url::parse(location).ok(),
    };
    match url {
        Some(url) if url.scheme() == "file" => {
            format!("{WATCHED_LOCAL}://{}", url.path())
        }
        _ => location.to_owned(),
    }
}

async fn not_a_table(ctx: &OperationContext) -> TaskError {
    let nothing = || {
        TaskError::new(
            ErrorName::TableNotFound,
            "There is no Lance table at the table's location, nor anything else.",
        )
    };
    let (store, path, _) = match builder(ctx, ctx.store_params()).build_object_store().await {
        Ok(built) => built,
        Err(error) => return to_task_error(&error, &Redactor::new(ctx)),
    };
    match store.read_dir(path).await {
        Ok(names) if names.is_empty() => nothing(),
        Ok(names) => TaskError::new(
            ErrorName::InvalidInput,
            format!(
                "What lies at the table's location is not a Lance table: it has no versions, but {}.",
                some_of(&names, 5)
            ),
        ),
        // A folder that isn't there can't be listed on some stores.
        Err(_) => nothing(),
    }
}

fn some_of(names: &[String], shown: usize) -> String {
    let mut text = names
        .iter()
        .take(shown)
        .map(|name| format!("'{name}'"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > shown {
        text.push_str(&format!(" and {} more", names.len() - shown));
    }
    text
}

/// A column, as Lance names it.
#[derive(Clone, Debug)]
pub struct Column {
    /// The path in the schema's own spelling, with names quoted where SQL asks for it.
    pub path: String,
    /// The index name that goes with the column where none is given.
    pub default_index_name: String,
    /// The field at the end of the path.
    pub field: Field,
}

/// Finds the column of this name or dotted path; upper and lower case only count where two columns
/// differ in nothing else.
pub fn find_column(schema: &Schema, column: &str) -> Result<Column, TaskError> {
    let fields = schema.resolve_case_insensitive(column).unwrap_or_default();
    let Some(field) = fields.last() else {
        return Err(TaskError::new(
            ErrorName::TableColumnNotFound,
            format!(
                "The table has no column '{column}'. Its columns are {}.",
                some_of(&schema.field_paths(), NAMES_SHOWN)
            ),
        ));
    };
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let path = lance_core::datatypes::format_field_path(&names);
    let shown = if names.iter().any(|name| name.contains('.')) {
        path.clone()
    } else {
        names.join(".")
    };
    Ok(Column {
        path,
        default_index_name: format!("{shown}_idx"),
        field: (*field).clone(),
    })
}

/// The segments of all indices of the newest version, those that Lance keeps for itself left out.
pub async fn user_indices(dataset: &Dataset) -> Result<Vec<IndexMetadata>, Error> {
    let indices = dataset.load_indices().await?;
    Ok(indices
        .iter()
        .filter(|index| !is_system_index(index))
        .cloned()
        .collect())
}

/// The names of all indices, sorted.
pub fn index_names(segments: &[IndexMetadata]) -> Vec<String> {
    let mut names: Vec<String> = segments
        .iter()
        .map(|segment| segment.name.clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// An index of this name does not exist; `existing` are those that do.
pub fn no_such_index(name: &str, existing: &[String]) -> TaskError {
    let existing = match existing {
        [] => "The table has no indices.".to_owned(),
        names => format!("The table's indices are {}.", some_of(names, NAMES_SHOWN)),
    };
    TaskError::new(
        ErrorName::TableIndexNotFound,
        format!("The table has no index '{name}'. {existing}"),
    )
}

/// How many of the table's rows the index of this name covers.
pub async fn coverage(
    dataset: &Dataset,
    segments: &[IndexMetadata],
    name: &str,
) -> Result<IndexCoverage, Error> {
    let mut coverage = IndexCoverage {
        name: name.to_owned(),
        ..Default::default()
    };
    for fragment in dataset.fragments().iter() {
        let rows = rows_of(dataset, fragment).await?;
        let covered = segments
            .iter()
            .filter(|segment| segment.name == name)
            .any(|segment| covers(segment, fragment));
        match covered {
            true => coverage.num_indexed_rows += rows,
            false => coverage.num_unindexed_rows += rows,
        }
    }
    Ok(coverage)
}

/// Whether the segment covers the fragment.
pub fn covers(segment: &IndexMetadata, fragment: &Fragment) -> bool {
    let Ok(id) = u32::try_from(fragment.id) else {
        return false;
    };
    segment
        .fragment_bitmap
        .as_ref()
        .is_some_and(|fragments| fragments.contains(id))
}

/// Types of index that can't follow rows into the fragments that a compaction writes, as Lance calls
/// their details: what is rewritten they no longer cover (measured with 14.0.2 for the first).
const LEFT_BEHIND: [&str; 4] = [
    "ZoneMapIndexDetails",
    "BloomFilterIndexDetails",
    "RTreeIndexDetails",
    "FMIndexDetails",
];

/// Whether the segment covers fewer rows when these fragments are rewritten.
pub fn loses_coverage<'a>(
    segment: &IndexMetadata,
    mut fragments: impl Iterator<Item = &'a Fragment>,
) -> bool {
    let is_left_behind = segment.index_details.as_ref().is_some_and(|details| {
        LEFT_BEHIND
            .iter()
            .any(|name| details.type_url.ends_with(name))
    });
    is_left_behind && fragments.any(|fragment| covers(segment, fragment))
}

/// The rows of the fragment that are not deleted; old tables don't note the number.
pub async fn rows_of(dataset: &Dataset, fragment: &Fragment) -> Result<u64, Error> {
    if let Some(rows) = fragment.num_rows() {
        return Ok(rows as u64);
    }
    let Some(fragment) = usize::try_from(fragment.id)
        .ok()
        .and_then(|id| dataset.get_fragment(id))
    else {
        return Ok(0);
    };
    Ok(fragment.count_rows(None).await? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_files_are_watched() {
        for (location, expected) in [
            ("file:///w/t.lance", "file-object-store:///w/t.lance"),
            ("file:/w/t.lance", "file-object-store:///w/t.lance"),
            (
                "file://localhost/w/t.lance",
                "file-object-store:///w/t.lance",
            ),
            (
                "file:///w/a%20b%25.lance",
                "file-object-store:///w/a%20b%25.lance",
            ),
            ("/w/a b%.lance", "file-object-store:///w/a%20b%25.lance"),
            ("s3://b/t.lance", "s3://b/t.lance"),
            ("oss://b/t%20.lance", "oss://b/t%20.lance"),
        ] {
            assert_eq!(watched(location), expected, "{location}");
        }
    }
}
