//! Which task ran where and when, as the workers' logs tell it, and which ran at the same time on
//! one table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use serde_json::Value;

use crate::drive::Window;
use crate::plan::{Fault, Link, Trouble};
use crate::process::Life;

/// A worker that was silent for less keeps what it runs: the lease without one heartbeat.
const LEASE: Duration = Duration::from_secs(25);
/// Between two faults that follow each other so closely no heartbeat may get through.
const NO_HEARTBEAT: Duration = Duration::from_secs(2);
/// The lines with which a run ends.
const ENDS: [&str; 3] = [
    "completed",
    "failed",
    "stopped: the attempt was lost or is handed back",
];

/// An attempt at a task, on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The worker.
    pub worker: usize,
    /// The table's id.
    pub table: String,
    /// The task.
    pub task: String,
    /// The number of the attempt.
    pub attempt: u64,
    /// Since when it ran.
    pub start: SystemTime,
    /// Until when: the worker's own word, or the end of its process.
    pub end: SystemTime,
    /// How it ended, in the worker's word; none if its process ended.
    pub word: Option<&'static str>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: SystemTime| {
            let since = time.duration_since(SystemTime::UNIX_EPOCH);
            since.unwrap_or_default().as_secs_f64()
        };
        write!(
            f,
            "task {} attempt {} on worker {} from {:.3} to {:.3} ({})",
            self.task,
            self.attempt,
            self.worker,
            seconds(self.start),
            seconds(self.end),
            self.word.unwrap_or("the worker was killed")
        )
    }
}

/// Two runs at the same time on one table.
#[derive(Clone, Debug)]
pub struct Overlap {
    /// The one that began first.
    pub first: Run,
    /// The other.
    pub second: Run,
    /// Whether the first one's worker had been silent for longer than its lease.
    pub excused: bool,
}

/// Reads a worker's log. What has no end in it ended with the worker's process, or at `now`.
pub fn runs(worker: usize, log: &str, lives: &[Life], now: SystemTime) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut open: BTreeMap<String, Run> = BTreeMap::new();
    for line in log.lines() {
        // Its first line on standard output is for people.
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let Some(at) = line["timestamp"].as_str().and_then(time) else {
            continue;
        };
        let message = line["message"].as_str().unwrap_or_default();
        let word = |name: &str| line["span"][name].as_str().unwrap_or_default().to_owned();
        let task = word("task_id");
        if message == "started" {
            let run = Run {
                worker,
                table: word("table_id"),
                task: task.clone(),
                attempt: line["attempt"].as_u64().unwrap_or_default(),
                start: at,
                end: end_of_life(lives, at).unwrap_or(now),
                word: None,
            };
            runs.extend(open.insert(task, run));
        } else if let Some(word) = ENDS.into_iter().find(|end| *end == message)
            && let Some(run) = open.remove(&task)
        {
            // A new life of the worker ends nothing of the one before.
            runs.push(match at <= run.end {
                true => Run {
                    end: at,
                    word: Some(word),
                    ..run
                },
                false => run,
            });
        }
    }
    runs.extend(open.into_values());
    runs.sort_by_key(|run| run.start);
    runs
}

fn time(text: &str) -> Option<SystemTime> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.into())
}

/// When the process ended that ran at a time, if it did.
fn end_of_life(lives: &[Life], at: SystemTime) -> Option<SystemTime> {
    let life = lives.iter().rev().find(|life| life.start <= at)?;
    life.end
}

/// Every two runs that were on one table at the same time.
pub fn overlaps(runs: &[Run], windows: &[Window]) -> Vec<Overlap> {
    let mut tables: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        tables.entry(&run.table).or_default().push(run);
    }
    let mut overlaps = Vec::new();
    for mut runs in tables.into_values() {
        runs.sort_by_key(|run| run.start);
        for (number, first) in runs.iter().enumerate() {
            for second in &runs[number + 1..] {
                if second.start < first.end {
                    overlaps.push(Overlap {
                        first: (*first).clone(),
                        second: (*second).clone(),
                        excused: lost_its_lease(first, second.start, windows),
                    });
                }
            }
        }
    }
    overlaps
}

/// Whether the worker of a run may have been silent for longer than its lease before a time.
fn lost_its_lease(run: &Run, before: SystemTime, windows: &[Window]) -> bool {
    silences(run.worker, windows)
        .into_iter()
        .any(|(start, end)| {
            let until = end.min(before);
            end > run.start
                && until
                    .duration_since(start)
                    .is_ok_and(|silent| silent >= LEASE)
        })
}

/// When a worker could not tell the application that it lives.
fn silences(worker: usize, windows: &[Window]) -> Vec<(SystemTime, SystemTime)> {
    let mut silent: Vec<(SystemTime, SystemTime)> = windows
        .iter()
        .filter(|window| silences_worker(window.fault, worker))
        .map(|window| (window.start, window.end))
        .collect();
    silent.sort();
    let mut joined: Vec<(SystemTime, SystemTime)> = Vec::new();
    for (start, end) in silent {
        match joined.last_mut() {
            Some(last) if start <= last.1 + NO_HEARTBEAT => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

fn silences_worker(fault: Fault, worker: usize) -> bool {
    match fault {
        Fault::StopWorker(stopped, _) => stopped == worker,
        Fault::Http(Link::Application(link), trouble, _) => {
            link == worker && !matches!(trouble, Trouble::Delay(_))
        }
        Fault::Http(..) | Fault::KillWorker(..) | Fault::EndWorker(..) => false,
        Fault::KillNode(..) | Fault::StopRedis(_) | Fault::KillRedis(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn line(seconds: u64, message: &str, task: &str) -> String {
        format!(
            r#"{{"timestamp":"1970-01-01T00:{:02}:{:02}.000000Z","level":"INFO","message":"{message}","attempt":1,"span":{{"table_id":"T","task_id":"{task}","name":"task"}}}}"#,
            seconds / 60,
            seconds % 60
        )
    }

    #[test]
    fn a_run_ends_with_a_word_or_with_its_worker() {
        let log = [
            "lance-worker listens".to_owned(),
            line(1, "started", "a"),
            line(2, "completed", "a"),
            line(3, "started", "b"),
            // Killed at 5, and again from 6 on.
            line(7, "started", "b"),
            line(9, "failed", "b"),
            line(10, "started", "c"),
        ]
        .join("\n");
        let lives = [
            Life {
                start: at(0),
                end: Some(at(5)),
            },
            Life {
                start: at(6),
                end: None,
            },
        ];
        let runs: Vec<_> = runs(0, &log, &lives, at(99))
            .into_iter()
            .map(|run| (run.task, run.start, run.end))
            .collect();
        let expected = [("a", 1, 2), ("b", 3, 5), ("b", 7, 9), ("c", 10, 99)];
        assert_eq!(
            runs,
            expected.map(|(task, start, end)| (task.to_owned(), at(start), at(end)))
        );
    }

    #[test]
    fn runs_at_the_same_time_are_found_and_excused_after_a_long_silence() {
        let run = |worker, table: &str, start, end| Run {
            worker,
            table: table.to_owned(),
            task: format!("{worker}{start}"),
            attempt: 1,
            start: at(start),
            end: at(end),
            word: None,
        };
        let stopped = |worker, start, end| Window {
            fault: Fault::StopWorker(worker, 1000 * (end - start)),
            start: at(start),
            end: at(end),
        };
        let found = |runs: &[Run], windows: &[Window]| -> Vec<bool> {
            overlaps(runs, windows)
                .iter()
                .map(|overlap| overlap.excused)
                .collect()
        };
        let apart = [run(0, "T", 1, 5), run(1, "T", 5, 9), run(2, "U", 2, 3)];
        assert!(found(&apart, &[]).is_empty());
        let same = [run(0, "T", 10, 50), run(1, "T", 45, 60)];
        for (windows, expected) in [
            (vec![], false),
            (vec![stopped(0, 12, 50)], true),
            (vec![stopped(0, 30, 50)], false),
            (vec![stopped(1, 12, 50)], false),
            (vec![stopped(0, 12, 30), stopped(0, 31, 50)], true),
        ] {
            assert_eq!(found(&same, &windows), [expected], "{windows:?}");
        }
    }
}
