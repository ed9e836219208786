//! The rules: each looks at some numbers of a report, and says what to do about them.

use serde_json::{Map, Value, json};

use super::advice::{Advice, AdvisedJob, Rule};
use super::{CompactionOutlook, HealthReport, IndexHealth};
use crate::jobs::JobOperation;

/// Data files of a fragment from which on there are too many.
const MANY_FILES: u64 = 8;
/// Ages that a cleanup leaves alone, in seconds: that of the oldest version decides which.
const WEEK: u64 = 7 * 24 * 3600;
const HOUR: u64 = 3600;
/// Names that a sentence holds at the most.
const NAMED: usize = 5;

/// Files are missing.
pub fn missing_files(report: &HealthReport) -> Option<Advice> {
    let missing = report.missing.as_ref()?;
    let mut names = missing.data_files.iter().chain(&missing.index_folders);
    let first = names.next()?;
    let what_helps = match missing.data_files.is_empty() {
        true => "Create the index anew",
        false => "Bring them back from a copy, or restore a version that does without them",
    };
    Some(Advice {
        rule: Rule::MissingFiles,
        reason: format!(
            "The newest version refers to {} that {} not there, such as {first}; what needs them \
             fails. {what_helps}: no job does.",
            count(
                missing.num_files,
                "file or index folder",
                "files or index folders"
            ),
            if missing.num_files == 1 { "is" } else { "are" },
        ),
        numbers: object(json!({
            "num_files": missing.num_files,
            "data_files": missing.data_files.len(),
            "index_folders": missing.index_folders.len(),
        })),
        job: None,
        then: None,
    })
}

/// Indices consist of several segments, or are behind: of a table without rows none is.
pub fn indices(report: &HealthReport) -> Vec<Advice> {
    let indices = match report.num_rows {
        Some(0) => &[],
        _ => report.indices.as_deref().unwrap_or_default(),
    };
    let (scattered, whole): (Vec<_>, Vec<_>) =
        indices.iter().partition(|index| index.num_segments > 1);
    let mut advice: Vec<Advice> = scattered.iter().copied().map(index_segments).collect();
    let behind: Vec<_> = whole.into_iter().filter(|index| is_behind(index)).collect();
    advice.extend(unindexed_rows(&behind, scattered.is_empty()));
    advice
}

fn is_behind(index: &IndexHealth) -> bool {
    index.num_unindexed_rows.is_some_and(|rows| rows > 0)
}

fn index_segments(index: &IndexHealth) -> Advice {
    let also = match index.num_unindexed_rows {
        Some(rows) if rows > 0 => {
            format!(" It also takes in the {rows} rows that are not covered.")
        }
        _ => String::new(),
    };
    Advice {
        rule: Rule::IndexSegments,
        reason: format!(
            "The index '{}' consists of {} segments, and a query looks into each: merging makes them \
             one.{also}",
            index.name, index.num_segments
        ),
        numbers: object(json!({
            "num_segments": index.num_segments,
            "num_unindexed_rows": index.num_unindexed_rows,
        })),
        job: Some(job(
            JobOperation::OptimizeIndices,
            json!({"index_names": [index.name], "num_indices_to_merge": index.num_segments}),
        )),
        then: None,
    }
}

/// One job for all that are behind; for these alone if others have a job of their own.
fn unindexed_rows(behind: &[&IndexHealth], all: bool) -> Option<Advice> {
    let most = behind
        .iter()
        .filter_map(|index| index.num_unindexed_rows)
        .max()?;
    let names = names(behind);
    let reason = match behind {
        [_] => format!(
            "The index {} does not cover {}, which every query reads one by one: an update adds them.",
            shown(&names),
            count(most.unsigned_abs(), "row", "rows")
        ),
        _ => format!(
            "The indices {} do not cover up to {}, which every query reads one by one: an update adds \
             them.",
            shown(&names),
            count(most.unsigned_abs(), "row", "rows")
        ),
    };
    let rows = behind.iter().map(|index| {
        let rows = json!(index.num_unindexed_rows);
        (index.name.clone(), rows)
    });
    Some(Advice {
        rule: Rule::UnindexedRows,
        reason,
        numbers: object(json!({ "num_unindexed_rows": Map::from_iter(rows) })),
        job: Some(match all {
            true => job(JobOperation::OptimizeIndices, json!({})),
            false => job(
                JobOperation::OptimizeIndices,
                json!({ "index_names": names }),
            ),
        }),
        then: None,
    })
}

/// Fragments are small, or rows deleted, and it is worth it to rewrite them.
pub fn compaction(report: &HealthReport) -> Option<Advice> {
    let outlook = wanted_compaction(report)?;
    let dropped = match outlook.deleted_rows_dropped {
        0 => String::new(),
        rows => format!(
            ", and {} be dropped",
            count(rows, "deleted row", "deleted rows")
        ),
    };
    let mut reason = format!(
        "{} would become {}{dropped}, for {} rewritten.",
        count(outlook.fragments_rewritten, "fragment", "fragments"),
        outlook.fragments_added,
        size(outlook.bytes_rewritten),
    );
    if let Some(rows) = outlook.target_rows_per_fragment {
        reason.push_str(&format!(
            " Rows are so wide that a fragment should not have more than {rows}."
        ));
    }
    let (lost, then) = lost_coverage(report);
    reason.push_str(&lost);
    if let Some(budget) = report
        .compaction_budget
        .as_ref()
        .filter(|set| !set.is_empty())
    {
        let set: Vec<_> = budget
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let what_follows = match outlook.is_over_budget {
            true => {
                "which is too little for the first group of fragments: raise that first, no job does \
                     anything before"
            }
            false => "so that one job may do only a part",
        };
        reason.push_str(&format!(
            " The table limits what one run takes on ({}), {what_follows}.",
            set.join(", ")
        ));
    }
    let mut numbers = numbers_of(outlook);
    numbers.insert(
        "compaction_tasks".to_owned(),
        json!(report.compaction_tasks),
    );
    numbers.insert("num_fragments".to_owned(), json!(report.num_fragments));
    let options = match outlook.target_rows_per_fragment {
        Some(rows) => json!({ "target_rows_per_fragment": rows }),
        None => json!({}),
    };
    Some(Advice {
        rule: Rule::Compaction,
        reason,
        numbers,
        job: (!outlook.is_over_budget).then(|| job(JobOperation::Compact, options)),
        then: then.filter(|_| !outlook.is_over_budget),
    })
}

/// The compaction that is worth it.
fn wanted_compaction(report: &HealthReport) -> Option<&CompactionOutlook> {
    let outlook = report.compaction.as_ref()?;
    let is_wanted = report.compaction_tasks? > 0 && outlook.tasks > 0 && outlook.is_worthwhile;
    is_wanted.then_some(outlook)
}

fn numbers_of(outlook: &CompactionOutlook) -> Map<String, Value> {
    object(json!({
        "tasks": outlook.tasks,
        "fragments_rewritten": outlook.fragments_rewritten,
        "fragments_added": outlook.fragments_added,
        "rows_rewritten": outlook.rows_rewritten,
        "deleted_rows_dropped": outlook.deleted_rows_dropped,
        "bytes_rewritten": outlook.bytes_rewritten,
    }))
}

/// Warns about indices that a compaction takes rows from, and the job that gives them back.
fn lost_coverage(report: &HealthReport) -> (String, Option<AdvisedJob>) {
    let losing: Vec<_> = report
        .indices
        .iter()
        .flatten()
        .filter(|index| index.loses_coverage_in_compaction)
        // What is behind may have been updated by the time.
        .filter(|index| index.num_rows_indexed > 0 || is_behind(index))
        .collect();
    if losing.is_empty() {
        return (String::new(), None);
    }
    let names = names(&losing);
    let warning = match losing[..] {
        [_] => format!(
            " The index {} no longer covers rows once they are rewritten: update it afterwards.",
            shown(&names)
        ),
        _ => format!(
            " The indices {} no longer cover rows once they are rewritten: update them afterwards.",
            shown(&names)
        ),
    };
    let update = job(
        JobOperation::OptimizeIndices,
        json!({ "index_names": names }),
    );
    (warning, Some(update))
}

/// Fragments consist of many files. Not where most fragments are whole, since all are rewritten, nor
/// where a compaction that is wanted anyway rewrites all.
pub fn column_files(report: &HealthReport) -> Option<Advice> {
    let files = report.column_files.as_ref()?;
    let fragments = report.num_fragments?;
    let are_many = files.most_per_fragment > MANY_FILES
        && files.num_fragments_with_several.saturating_mul(2) >= fragments;
    let is_done =
        wanted_compaction(report).is_some_and(|outlook| outlook.fragments_rewritten >= fragments);
    if !are_many || is_done {
        return None;
    }
    let sizes = report.fragment_sizes.iter().flatten();
    let bytes: u64 = sizes.map(|sizes| sizes.bytes).sum();
    let (lost, then) = lost_coverage(report);
    let mut options = json!({"materialize_deletions": true, "materialize_deletions_threshold": -1});
    // Else it would merge wide rows into fragments that are too large.
    let outlook = report.compaction.as_ref();
    if let Some(rows) = outlook.and_then(|outlook| outlook.target_rows_per_fragment) {
        options["target_rows_per_fragment"] = json!(rows);
    }
    Some(Advice {
        rule: Rule::ColumnFiles,
        reason: format!(
            "A fragment has up to {} data files, since columns were added one by one; a compaction of \
             everything makes them one. It rewrites every fragment, {} in all.{lost}",
            files.most_per_fragment,
            size(bytes),
        ),
        numbers: object(json!({
            "num_files": files.num_files,
            "most_per_fragment": files.most_per_fragment,
            "num_fragments_with_several": files.num_fragments_with_several,
            "num_fragments": fragments,
            "bytes_rewritten": bytes,
        })),
        job: Some(job(JobOperation::Compact, options)),
        then,
    })
}

/// Old versions hold files.
pub fn old_versions(report: &HealthReport) -> Option<Advice> {
    let reclaimable = report.bytes.as_ref()?.reclaimable;
    let versions = report.num_versions?;
    if reclaimable == 0 || versions <= 1 {
        return None;
    }
    let age = report
        .oldest_version
        .as_ref()
        .map(|oldest| oldest.age_seconds);
    let (options, which) = match age {
        Some(age) if age <= HOUR => (json!({ "retain_versions": 1 }), "all but the newest"),
        Some(age) if age <= WEEK => (
            json!({ "older_than_seconds": HOUR }),
            "those older than an hour",
        ),
        // What is not known may be old.
        _ => (
            json!({ "older_than_seconds": WEEK }),
            "those older than seven days",
        ),
    };
    Some(Advice {
        rule: Rule::OldVersions,
        reason: format!(
            "Of {versions} versions, a cleanup removes {which}, and frees {} at the most: they can't be \
             brought back. Versions with tags stay, and make the job fail unless \
             error_if_tagged_old_versions is false.",
            size(reclaimable)
        ),
        numbers: object(json!({
            "num_versions": versions,
            "reclaimable_bytes": reclaimable,
            "oldest_version_age_seconds": age,
            "num_tags": report.tags.as_ref().map(|tags| tags.len()),
        })),
        job: Some(job(JobOperation::Cleanup, options)),
        then: None,
    })
}

fn job(operation: JobOperation, options: Value) -> AdvisedJob {
    AdvisedJob {
        operation,
        options: object(options),
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn names(indices: &[&IndexHealth]) -> Vec<String> {
    indices.iter().map(|index| index.name.clone()).collect()
}

fn shown(names: &[String]) -> String {
    let first: Vec<_> = names
        .iter()
        .take(NAMED)
        .map(|name| format!("'{name}'"))
        .collect();
    match names.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn count(number: u64, one: &str, several: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    }
}

/// Bytes, for a person.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let mut size = bytes as f64;
    let mut shown = format!("{bytes} bytes");
    for unit in UNITS {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        shown = format!("{size:.1} {unit}");
    }
    shown
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
