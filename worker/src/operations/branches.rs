//! How branches name the table that they were made from.
//!
//! A branch refers to the files of its table by the URI with which the table was opened when the branch
//! was made. Lance's cleanup compares that with the URI with which the table is open now, as text: where
//! the two are spelt differently (`/t`, `file:///t`, `file:///t/`) it takes the branch for one that needs
//! nothing of the table, and removes its files (measured with 14.0.2). So a table is cleaned up under the
//! name that its branches have for it, and not at all where they do not agree.

use std::collections::BTreeSet;
use std::sync::Arc;

use lance::dataset::builder::DatasetBuilder;
use lance::{Dataset, Error};
use lance_io::object_store::ObjectStoreParams;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::BasePath;
use url::Url;

use super::OperationContext;
use super::errors::to_task_error;
use super::redact::Redactor;

/// The same version of the table, under the name that its branches have for it.
pub async fn named_by_branches(
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<Dataset, TaskError> {
    let failed = |error: Error| to_task_error(&error, &Redactor::new(ctx));
    let names = names(dataset).await.map_err(failed)?;
    let mut others = names.iter().filter(|name| *name != dataset.uri());
    let named = match (others.next(), names.len()) {
        (None, _) => return Ok(dataset.clone()),
        (Some(name), 1) => open(dataset, name, ctx).await.map_err(failed)?,
        (Some(_), _) => return Err(disagree(&names)),
    };
    let is_the_same = named.uri() != dataset.uri()
        && names.contains(named.uri())
        && named.branch_location().path == dataset.branch_location().path
        && named.version_id() == dataset.version_id();
    match is_the_same {
        true => Ok(named),
        false => Err(disagree(&names)),
    }
}

/// The names by which branches refer to this table.
async fn names(dataset: &Dataset) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for branch in dataset.list_branches().await?.into_keys() {
        let branch = dataset.checkout_branch(&branch).await?;
        let bases = branch.manifest().base_paths.values();
        for base in bases {
            if is_here(base, dataset)? {
                names.insert(base.path.clone());
            }
        }
    }
    Ok(names)
}

/// Whether a base that a branch refers to is the folder of this table.
fn is_here(base: &BasePath, dataset: &Dataset) -> Result<bool, Error> {
    let host = |uri: &str| {
        let url = Url::parse(uri).ok();
        url.and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default()
    };
    let path = base.extract_path(dataset.session().store_registry())?;
    Ok(path == dataset.branch_location().path && host(&base.path) == host(dataset.uri()))
}

async fn open(dataset: &Dataset, name: &str, ctx: &OperationContext) -> Result<Dataset, Error> {
    let params = ObjectStoreParams {
        object_store_wrapper: Some(Arc::new(ctx.store_watch.clone())),
        ..ctx.store_params()
    };
    DatasetBuilder::from_uri(name)
        .with_store_params(params)
        .with_version(dataset.version_id())
        .load()
        .await
}

fn disagree(names: &BTreeSet<String>) -> TaskError {
    let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    TaskError::new(
        ErrorName::InvalidTableState,
        format!(
            "The table's branches refer to its folder under names that can't be brought together ({}), and \
             a cleanup would remove files that they need. Nothing was removed. Delete the branches that \
             are of no use any more, or make them anew with the table opened by its location.",
            names.join(", ")
        ),
    )
}
