//! Whether everything is as it must be at the end.

pub mod files;
pub mod findings;
pub mod runs;
pub mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_index::is_system_index;

use crate::drive::Window;
use crate::judge::findings::Findings;
use crate::load::Odd;
use crate::observer::Seen;
use crate::rows::{self, Model};

/// After a fault is undone, what it broke may go on failing for so long.
const AFTERWARDS: Duration = Duration::from_secs(6);
/// How findings about rows are called.
const ROWS: &str = "rows";
/// A file's time may be a little later than the clock said when it was written.
const WRITTEN: Duration = Duration::from_millis(20);

/// Compares a table's rows with the model, by reading all of them and through its indices.
pub async fn rows(uri: &str, model: &Model, wrong: &mut Findings) -> anyhow::Result<()> {
    for difference in rows::differences(uri, model).await? {
        wrong.add(ROWS, format!("{uri}: {difference}"));
    }
    let dataset = Dataset::open(uri).await?;
    for (column, least) in [("value", 50), ("id", 100), (rows::SUM, 300)] {
        let counted = dataset
            .count_rows(Some(format!("{column} >= {least}")))
            .await?;
        let expected = model
            .iter()
            .filter(|(id, value)| {
                let found = match column {
                    "id" => **id,
                    "value" => **value,
                    _ => rows::sum(**id, **value),
                };
                found >= least
            })
            .count();
        if counted != expected {
            wrong.add(
                ROWS,
                format!(
                    "{uri}: a query counts {counted} rows with {column} >= {least}, of {expected}"
                ),
            );
        }
    }
    Ok(())
}

/// Every index that was created after the last overwrite, which drops all, is there.
pub async fn indices(uri: &str, seen: &Seen, wrong: &mut Findings) -> anyhow::Result<usize> {
    let dataset = Dataset::open(uri).await?;
    let there: Vec<String> = dataset
        .load_indices()
        .await?
        .iter()
        .filter(|index| !is_system_index(index))
        .map(|index| index.name.clone())
        .collect();
    let overwritten = seen
        .commits
        .iter()
        .rfind(|(_, commit)| commit.operation == "Overwrite")
        .map_or(0, |(version, _)| *version);
    for (version, commit) in seen.commits.range(overwritten + 1..) {
        for name in commit.indices.iter().filter(|name| !there.contains(name)) {
            wrong.add(
                "indices that are gone",
                format!(
                    "{uri}: the index '{name}' of version {version} is gone, and the table was not \
                 overwritten since"
                ),
            );
        }
    }
    Ok(there.len())
}

/// Versions that were gone before the observer looked at them: with them this campaign proves less.
pub fn observation(uri: &str, seen: &Seen, wrong: &mut Findings) {
    if !seen.unseen.is_empty() {
        wrong.add("versions that nobody saw", format!(
            "{uri}: the versions {:?} were removed before they were looked at, although none that \
             is younger than the worker's minimum may be",
            seen.unseen
        ));
    }
}

/// Answers that should not come; returns how often each came that a fault may be the reason of.
pub fn answers(odd: &[Odd], windows: &[Window], wrong: &mut Findings) -> BTreeMap<String, usize> {
    let mut explained = BTreeMap::new();
    for odd in odd {
        let is_explained = windows
            .iter()
            .any(|window| window.start <= odd.at && odd.at <= window.end + AFTERWARDS);
        if odd.always_wrong || !is_explained {
            let when = match is_explained {
                true => "during a fault",
                false => "with nothing broken",
            };
            wrong.add("answers", format!("{when}, an answer: {}", odd.what));
        } else {
            *explained.entry(odd.what.clone()).or_default() += 1;
        }
    }
    explained
}

/// What the workers' logs say of tables that two worked on.
pub fn overlaps(overlaps: &[runs::Overlap], wrong: &mut Findings) {
    for overlap in overlaps.iter().filter(|overlap| !overlap.excused) {
        wrong.add(
            "tasks at the same time on one table",
            format!(
                "at the same time on table {}: {}, and {}",
                overlap.first.table, overlap.first, overlap.second
            ),
        );
    }
}

/// Files that nobody accounts for, with what ran on the table when they were written.
pub fn files(files: &files::Files, runs: &[runs::Run], wrong: &mut Findings) {
    let kinds = [
        ("files that no version ever named", &files.orphans),
        ("files that a cleanup left", &files.left_by_cleanup),
    ];
    for (what, found) in kinds {
        for file in found.values().flatten() {
            let written_by: Vec<String> = runs
                .iter()
                .filter(|run| file.path.contains(&run.table))
                .filter(|run| run.start <= file.written && file.written <= run.end + WRITTEN)
                .map(runs::Run::to_string)
                .collect();
            wrong.add(
                what,
                format!(
                    "{}, {}",
                    file.path,
                    match written_by.is_empty() {
                        true => "written while no task ran on the table".to_owned(),
                        false => format!("written during {}", written_by.join(" and ")),
                    }
                ),
            );
        }
    }
}
