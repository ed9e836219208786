//! What a campaign says at its end.

use std::collections::BTreeMap;

use crate::drive::Window;
use crate::judge::files::Files;
use crate::judge::runs::{Overlap, Run};
use crate::judge::tasks::Outcomes;
use crate::load::Known;
use crate::observer::Seen;
use crate::writer::Done;

/// All that is told.
pub struct Report<'a> {
    /// When the faults held.
    pub windows: &'a [Window],
    /// What clients know.
    pub known: &'a Known,
    /// Answers that a fault explains.
    pub explained: &'a BTreeMap<String, usize>,
    /// How tasks ended.
    pub outcomes: &'a Outcomes,
    /// What was seen of the tables.
    pub seen: &'a [Seen],
    /// What the writers did.
    pub done: &'a [Done],
    /// Indices at the end.
    pub indices: usize,
    /// The files.
    pub files: &'a Files,
    /// What the workers ran.
    pub runs: &'a [Run],
    /// What ran at the same time.
    pub overlaps: &'a [Overlap],
}

impl Report<'_> {
    /// Prints the numbers.
    pub fn print(&self) {
        println!("\nfaults");
        for (kind, count) in count(self.windows.iter().map(|window| window.fault.kind())) {
            println!("{count:7}  {kind}");
        }
        self.print_answers();
        self.print_tasks();
        self.print_tables();
    }

    fn print_answers(&self) {
        println!("\nanswers to clients");
        for ((operation, status), count) in &self.known.statuses {
            match status {
                0 => println!("{count:7}  {operation}: none"),
                status => println!("{count:7}  {operation}: {status}"),
            }
        }
        for (what, count) in self.explained {
            println!("{count:7}  during faults, {what}");
        }
    }

    fn print_tasks(&self) {
        println!("\ntasks");
        println!("{:7}  accepted", self.known.accepted.len());
        println!(
            "{:7}  there without an answer to their submit",
            self.outcomes.found
        );
        for ((task_type, end), count) in &self.outcomes.ends {
            println!("{count:7}  {task_type} {end}");
        }
        println!("{:7}  attempts that ran", self.runs.len());
        let again = self.runs.iter().filter(|run| run.attempt > 1).count();
        println!("{again:7}  of them not the first of their task");
        let excused = self.overlaps.iter().filter(|overlap| overlap.excused);
        println!(
            "{:7}  at the same time as another on their table, after a lost lease",
            excused.count()
        );
        println!("{:7}  commits of tasks", self.outcomes.commits);
        println!(
            "{:7}  tasks that failed after their commit",
            self.outcomes.failed_with_commit
        );
        if let Some((took, task)) = &self.outcomes.longest {
            println!(
                "{:7.1}  seconds at most from submit to end: {task}",
                took.as_secs_f64()
            );
        }
    }

    fn print_tables(&self) {
        let sum = |count: fn(&Done) -> u64| self.done.iter().map(count).sum::<u64>();
        println!("\ntables");
        println!("{:7}  tables", self.seen.len());
        println!("{:7}  rows", sum(|done| done.model.len() as u64));
        println!("{:7}  indices", self.indices);
        println!("{:7}  writes", sum(|done| done.commits));
        println!("{:7}  writes lost to other commits", sum(|done| done.lost));
        println!(
            "{:7}  writes that failed by word and not in fact",
            sum(|done| done.made_all_the_same)
        );
        let all = self.seen.iter().flat_map(|seen| seen.commits.values());
        for (operation, count) in count(all.map(|commit| commit.operation.as_str())) {
            println!("{count:7}  versions by {operation}");
        }
        println!(
            "{:7}  versions removed by cleanups",
            self.outcomes.versions_removed
        );
        println!("\nfiles");
        println!("{:7}  named by a version that is there", self.files.named);
        for (folder, count) in &self.files.writers {
            println!("{count:7}  of our own writers' lost commits, in {folder}");
        }
        println!(
            "{:7}  in the worker's book of uncommitted files",
            self.files.book
        );
        println!("{:7}  named there and by no version", self.files.in_book);
        for (folder, paths) in &self.files.left_by_cleanup {
            println!("{:7}  left by a cleanup, in {folder}", paths.len());
        }
        for (folder, paths) in &self.files.orphans {
            println!("{:7}  of nobody, in {folder}", paths.len());
        }
    }
}

fn count<'a>(items: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}
