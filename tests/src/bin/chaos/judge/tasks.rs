//! Whether every task came to an end, once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use chrono::DateTime;
use serde_json::Value;

use crate::judge::findings::Findings;
use crate::load::{BACKFILL, Known, Record, TYPES};
use crate::observer::Seen;

/// What a task may fail for, when nothing is wrong with the service: writers were faster, a writer
/// replaced the table and with it the indices, the index is there already, and the worker was lost
/// too often.
const FAILURES: [&str; 3] = [
    "ConcurrentModification",
    "TableIndexNotFound",
    "TableIndexAlreadyExists",
];
/// How the failure of a task begins whose worker was killed each time.
const WORN_OUT: &str = "The worker was lost in";
/// The failure of a task that was canceled.
const CANCELED: &str = "Canceled";
/// What compactions commit beforehand, as often as they like.
const RESERVE: &str = "ReserveFragments";

/// How findings are called.
const LISTED: &str = "tasks that are gone, or should not be there";
const EFFECTS: &str = "effects that are missing, or came twice";
const OPEN: &str = "tasks that have not ended";
const FAILED: &str = "tasks that failed for no good reason";

/// All tasks that are listed at the end, by table and type.
pub type Listed = BTreeMap<(usize, usize), Vec<Value>>;

/// Numbers about the tasks.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// How tasks of each type ended.
    pub ends: BTreeMap<(&'static str, String), usize>,
    /// Tasks that were there although the answer to their submit was lost.
    pub found: usize,
    /// Commits that belong to a task.
    pub commits: usize,
    /// Tasks that committed and failed.
    pub failed_with_commit: usize,
    /// Versions that cleanups removed.
    pub versions_removed: u64,
    /// The longest time from a submit to an end, and its task.
    pub longest: Option<(Duration, String)>,
}

/// Compares what is listed with what clients know and what happened to the tables.
pub fn judge(known: &Known, listed: &Listed, seen: &[Seen], wrong: &mut Findings) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let commits = commits(seen, &mut outcomes);
    let mut there: BTreeSet<&str> = BTreeSet::new();
    for (place @ (table, task_type), tasks) in listed {
        let mut found = 0;
        for task in tasks {
            let id = task["task_id"].as_str().unwrap_or_default();
            if !there.insert(id) {
                wrong.add(LISTED, format!("the task {id} is listed twice"));
            }
            match known.accepted.get(id) {
                None => found += 1,
                Some(known) if (known.table, known.task_type) != *place => wrong.add(
                    LISTED,
                    format!(
                        "the task {id} is listed as {} of table {table}",
                        TYPES[*task_type].1
                    ),
                ),
                Some(known) if known.record == Record::Deleted => {
                    wrong.add(LISTED, format!("the task {id} was deleted and is listed"));
                }
                Some(_) => {}
            }
            let commits = commits.get(id).map(Vec::as_slice).unwrap_or_default();
            if commits.iter().any(|made| made.table != *table) {
                wrong.add(
                    EFFECTS,
                    format!("the task {id} of table {table} made {}", list(commits)),
                );
            }
            let canceled = known.canceled.contains(id);
            judge_one(
                id,
                *task_type,
                task,
                commits,
                canceled,
                &mut outcomes,
                wrong,
            );
        }
        let allowed = known.unknown.get(place).copied().unwrap_or_default();
        outcomes.found += found;
        if found > allowed {
            wrong.add(
                LISTED,
                format!(
                    "table {table} has {found} tasks of {} that nobody was told of, and {allowed} \
                 submits had no answer",
                    TYPES[*task_type].1
                ),
            );
        }
    }
    for (id, task) in &known.accepted {
        if task.record == Record::Kept && !there.contains(id.as_str()) {
            wrong.add(
                LISTED,
                format!(
                    "the accepted task {id} ({}, table {}, {}) is gone",
                    TYPES[task.task_type].1, task.table, task.body
                ),
            );
        }
    }
    let backfills = backfills(known, listed);
    for (id, commits) in &commits {
        if commits.len() > 1 && !backfills.contains(id.as_str()) {
            wrong.add(
                LISTED,
                format!("the task {id} committed more than once: {}", list(commits)),
            );
        }
        // A submit without an answer whose record is gone: nobody knew its id to delete it.
        if !there.contains(id.as_str()) && !known.accepted.contains_key(id) {
            wrong.add(
                EFFECTS,
                format!("there is a commit of a task {id} that there is not"),
            );
        }
    }
    outcomes
}

/// The tasks that may commit several times.
fn backfills<'a>(known: &'a Known, listed: &'a Listed) -> BTreeSet<&'a str> {
    let is_one = |task_type: usize| TYPES[task_type].1 == BACKFILL;
    let accepted = known.accepted.iter();
    let accepted = accepted.filter(|(_, task)| is_one(task.task_type));
    let there = listed.iter().filter(|(place, _)| is_one(place.1));
    accepted
        .map(|(id, _)| id.as_str())
        .chain(
            there.flat_map(|(_, tasks)| tasks.iter().filter_map(|task| task["task_id"].as_str())),
        )
        .collect()
}

/// Tasks' commits, but for what compactions reserve.
type Commits = BTreeMap<String, Vec<Made>>;

/// A commit of a task.
struct Made {
    table: usize,
    version: u64,
    operation: String,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            table,
            version,
            operation,
        } = self;
        write!(f, "version {version} of table {table} ({operation})")
    }
}

fn list(commits: &[Made]) -> String {
    let all: Vec<String> = commits.iter().map(Made::to_string).collect();
    all.join(", ")
}

fn commits(seen: &[Seen], outcomes: &mut Outcomes) -> Commits {
    let mut commits = Commits::new();
    let all = seen
        .iter()
        .enumerate()
        .flat_map(|(table, seen)| seen.commits.iter().map(move |commit| (table, commit)));
    for (table, (version, commit)) in all {
        if let Some(id) = &commit.task_id
            && commit.operation != RESERVE
        {
            outcomes.commits += 1;
            let made = Made {
                table,
                version: *version,
                operation: commit.operation.clone(),
            };
            commits.entry(id.clone()).or_default().push(made);
        }
    }
    commits
}

fn judge_one(
    id: &str,
    task_type: usize,
    task: &Value,
    commits: &[Made],
    canceled: bool,
    outcomes: &mut Outcomes,
    wrong: &mut Findings,
) {
    let name = TYPES[task_type].1;
    let completed = task["status"] == "completed";
    let end = match task["status"].as_str() {
        Some("completed") => "completed".to_owned(),
        Some("failed") => judge_failure(id, name, &task["error"], canceled, wrong),
        status => {
            wrong.add(
                OPEN,
                format!("the task {id} ({name}) has not ended: {status:?}"),
            );
            "not ended".to_owned()
        }
    };
    *outcomes.ends.entry((name, end)).or_default() += 1;
    if task["status"] == "failed" && !commits.is_empty() {
        outcomes.failed_with_commit += 1;
        let error = task["error"]["detail"].as_str().unwrap_or_default();
        // What a backfill committed stays.
        if !error.starts_with(WORN_OUT) && name != BACKFILL {
            wrong.add(
                EFFECTS,
                format!(
                    "the task {id} ({name}) failed and committed {}: {error}",
                    list(commits)
                ),
            );
        }
    }
    if completed {
        let removed = task["result"]["old_versions"].as_u64();
        outcomes.versions_removed += removed.unwrap_or_default();
        let expected = match (name, commits) {
            ("lance_cleanup", []) => None,
            // A version that was there already, if there was nothing to do.
            ("lance_compact", []) if task["result"]["fragments_removed"] == 0 => None,
            ("lance_optimize_indices", []) => None,
            (BACKFILL, commits) => {
                let last = commits.iter().map(|made| made.version).max();
                let says = task["result"]["version"].as_u64();
                (says < last).then(|| format!("says it made version {says:?}, and made {last:?}"))
            }
            (_, [Made { version, .. }]) => (task["result"]["version"] != *version).then(|| {
                format!(
                    "says it made version {}, and made {version}",
                    task["result"]["version"]
                )
            }),
            (_, []) => Some("completed and committed nothing".to_owned()),
            _ => None,
        };
        if let Some(what) = expected {
            wrong.add(
                EFFECTS,
                format!("the task {id} ({name}) {what}: {}", task["result"]),
            );
        }
    }
    let time = |name: &str| DateTime::parse_from_rfc3339(task[name].as_str().unwrap_or_default());
    if let (Ok(created), Ok(completed)) = (time("created_at"), time("completed_at")) {
        let took = (completed - created).to_std().unwrap_or_default();
        if outcomes
            .longest
            .as_ref()
            .is_none_or(|longest| longest.0 < took)
        {
            outcomes.longest = Some((took, format!("{name} {id}")));
        }
    }
}

/// How a task failed, in a word.
fn judge_failure(
    id: &str,
    name: &str,
    error: &Value,
    canceled: bool,
    wrong: &mut Findings,
) -> String {
    let kind = error["error"].as_str().unwrap_or_default();
    let detail = error["detail"].as_str().unwrap_or_default();
    if detail.starts_with(WORN_OUT) {
        return "failed: attempts used up".to_owned();
    }
    let expected = FAILURES.contains(&kind) || (canceled && kind == CANCELED);
    if !expected {
        wrong.add(
            FAILED,
            format!("the task {id} ({name}) failed with {kind}: {detail}"),
        );
    }
    format!("failed: {kind}")
}

#[cfg(test)]
#[path = "tasks_tests.rs"]
mod tests;
