//! How a table is: what its newest version says, and what a listing of its folder adds. Nothing is
//! written, and no data file is read unless the table is so old that its manifest lacks a number.
//!
//! Sections are looked at one by one, each within its own time: one that fails leaves the others be.
//!
//! | module | what it holds |
//! |---|---|
//! | [`fragments`] | rows, fragments and their sizes |
//! | [`compaction`] | what a compaction would do |
//! | [`history`] | versions, and what holds them: tags and branches |
//! | [`indices`] | what indices cover |
//! | [`files`], [`elsewhere`] | bytes, and files that are not there |

pub mod compaction;
pub mod elsewhere;
pub mod files;
pub mod fragments;
pub mod history;
pub mod indices;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, join};
use lance::Error;
use lance_maintenance_api::health::HealthReport;
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_maintenance_dispatch::tables::CheckHealth;
use tokio::time::{Instant, timeout_at};

use self::files::Files;
use super::place::{Place, never_written};
use crate::operations::table;

/// How long a section may take.
const SECTION: Duration = Duration::from_secs(20);
/// What a directory namespace notes about a table that nobody has written to.
const NOTES: [&str; 2] = [".lance-reserved", ".lance-deregistered"];
/// The settings of automatic cleanup.
const AUTO_CLEANUP: &str = "lance.auto_cleanup.";

/// The health of the newest version.
pub async fn check(place: &Place, request: &CheckHealth) -> Result<HealthReport, ApiError> {
    let chain = place.chain(None)?;
    let Some(dataset) = in_time(place.open(&chain, None)).await? else {
        return Err(nothing_written(place).await);
    };
    let dataset = &dataset;
    let failed = |error: Error| place.error(&error);
    let average_row_bytes = fragments::average_row_bytes(dataset);

    // What others look at, too.
    let (num_rows, versions, tags, branches) = join!(
        in_time(dataset.count_rows(None).map(|rows| rows.map_err(failed))),
        in_time(history::versions(place).map(|found| found.map_err(failed))),
        in_time(history::tags(dataset).map(|found| found.map_err(failed))),
        in_time(history::branches(dataset).map(|found| found.map_err(failed))),
    );
    let held = history::held(&tags, &branches);
    let rows = num_rows.as_ref().ok().map(|rows| *rows as u64);
    let (fragments, sizes, tasks, outlook, oldest, indices, Files { bytes, missing }) = join!(
        in_time(fragments::numbers(dataset).map(|found| found.map_err(failed))),
        in_time(fragments::sizes(dataset).map(|found| found.map_err(failed))),
        in_time(compaction::tasks(dataset).map(|found| found.map_err(failed))),
        in_time(compaction::outlook(place, dataset, average_row_bytes)),
        in_time(history::oldest(place, dataset, &versions)),
        in_time(indices::describe(dataset, rows).map(|found| found.map_err(failed))),
        files::look(place, dataset, held, request.check_files),
    );

    let mut errors = Errors::default();
    let fragments = errors.keep("fragments", fragments);
    let fragments = fragments.as_ref();
    let (compaction_tasks, compaction_budget) = errors.keep("compaction", tasks).unzip();
    let bytes = errors.keep("bytes", bytes).map(|(bytes, warning)| {
        errors.note("reclaimable", warning);
        bytes
    });
    let config = dataset.config().iter();
    Ok(HealthReport {
        table: place.ctx.location.clone(),
        version: Some(dataset.version_id()),
        num_rows: errors.keep("num_rows", num_rows).map(|rows| rows as u64),
        num_fragments: fragments.map(|found| found.fragments),
        num_deleted_rows: fragments.map(|found| found.deleted_rows),
        small_fragment_threshold_rows: fragments.map(|found| found.small_below),
        num_small_fragments: fragments.map(|found| found.small),
        compaction_tasks,
        compaction_budget,
        num_versions: errors
            .keep("versions", versions)
            .map(|versions| versions.len() as u64),
        tags: errors.keep("tags", tags).map(|tags| {
            let versions = tags.into_iter().map(|(name, tag)| (name, tag.version));
            versions.collect()
        }),
        auto_cleanup: Some(
            config
                .filter(|(key, _)| key.starts_with(AUTO_CLEANUP))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ),
        indices: errors.keep("indices", indices),
        branches: errors
            .keep("branches", branches)
            .map(|branches| branches.into_keys().collect()),
        oldest_version: errors.keep("oldest_version", oldest).flatten(),
        bytes,
        average_row_bytes,
        fragment_sizes: errors.keep("fragment_sizes", sizes),
        column_files: Some(fragments::column_files(dataset)),
        compaction: errors.keep("outlook", outlook),
        missing: missing.and_then(|missing| errors.keep("missing", missing)),
        tasks: None,
        advice: Vec::new(),
        errors: errors.0,
    })
}

/// Why sections are missing.
#[derive(Debug, Default)]
struct Errors(BTreeMap<String, String>);

impl Errors {
    fn keep<T>(&mut self, section: &str, found: Result<T, ApiError>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                self.note(section, Some(error.detail));
                None
            }
        }
    }

    fn note(&mut self, section: &str, text: Option<String>) {
        self.0.extend(text.map(|text| (section.to_owned(), text)));
    }
}

/// The section, or that it takes too long.
fn in_time<'a, T: Send + 'a>(
    section: impl Future<Output = Result<T, ApiError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, ApiError>> {
    until(Instant::now() + SECTION, section)
}

/// The part of a section that has to end by then. Boxed: futures of the library are nested so deeply
/// that the compiler gives up on what holds them.
fn until<'a, T: Send + 'a>(
    end: Instant,
    section: impl Future<Output = Result<T, ApiError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, ApiError>> {
    async move {
        timeout_at(end, section).await.unwrap_or_else(|_| {
            Err(ApiError::new(
                ErrorName::ServiceUnavailable,
                format!(
                    "Not known: the table's store took longer than {} seconds. Check again later.",
                    SECTION.as_secs()
                ),
            ))
        })
    }
    .boxed()
}

/// The answer where there is no version: that nothing was written, or what else lies there.
async fn nothing_written(place: &Place) -> ApiError {
    match place.store.read_dir(place.base.clone()).await {
        Ok(names) if names.iter().all(|name| NOTES.contains(&name.as_str())) => never_written(),
        // A folder that isn't there can't be listed on some stores.
        Err(error) if error.is_not_found() => never_written(),
        Err(error) => place.error(&error),
        // As a task on it would fail.
        Ok(_) => match table::open(&place.ctx).await {
            Err(error) => of_task(error),
            Ok(_) => ApiError::new(
                ErrorName::ServiceUnavailable,
                "The table was being written for the first time. Check again.",
            ),
        },
    }
}

fn of_task(TaskError { error, detail, .. }: TaskError) -> ApiError {
    ApiError::new(error, detail)
}
