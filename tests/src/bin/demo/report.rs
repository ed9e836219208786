//! What the demo shows: a line for each step, a table of states, a list of checks.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stdout};
use std::time::Instant;

use lance_maintenance_tests::inspect::TableState;
use serde_json::Value;

/// Width of a step's name.
const NAME: usize = 20;

/// A step: one line, which on a terminal changes while the step goes on.
pub struct Step {
    name: String,
    started: Instant,
    live: bool,
    shown: Cell<i64>,
}

impl Step {
    /// Begins a step.
    pub fn begin(name: &str) -> Self {
        let step = Self {
            name: name.to_owned(),
            started: Instant::now(),
            live: stdout().is_terminal(),
            shown: Cell::new(-1),
        };
        step.progress(0, "");
        step
    }

    /// Shows how far the step is.
    pub fn progress(&self, percent: i64, doing: &str) {
        if self.live && self.shown.replace(percent) != percent {
            print!("\r\x1b[K{:NAME$} {percent:3} %  {doing}", self.name);
            // A terminal that is gone needs no progress.
            let _ = stdout().flush();
        }
    }

    /// Ends the step.
    pub fn end(self, said: &str) {
        let start = if self.live { "\r\x1b[K" } else { "" };
        let seconds = self.started.elapsed().as_secs_f64();
        println!("{start}{:NAME$} {seconds:5.1} s  {said}", self.name);
    }
}

/// A task's result in a few words: its numbers.
pub fn result_of(result: &Value) -> String {
    let mut words = Vec::new();
    for (name, value) in result.as_object().into_iter().flatten() {
        match value {
            Value::Number(number) if number.as_u64() != Some(0) => {
                words.push(format!("{} {number}", name.replace('_', " ")));
            }
            Value::Array(items) => words.extend(items.iter().filter_map(|item| {
                let name = item["name"].as_str()?;
                Some(format!("{name} {}", item["num_indexed_rows"]))
            })),
            _ => {}
        }
    }
    words.join(", ")
}

/// Prints states of the table side by side.
pub fn states(states: &[(&str, &TableState)]) {
    type Look = fn(&TableState) -> u64;
    let looks: [(&str, Look); 7] = [
        ("rows", |state| state.rows as u64),
        ("fragments", |state| state.fragments as u64),
        ("deleted rows, stored", |state| state.deleted_rows as u64),
        ("versions", |state| state.versions.len() as u64),
        ("bytes", |state| state.bytes),
        ("indexed rows", |state| state.coverage().0),
        ("unindexed rows", |state| state.coverage().1),
    ];
    println!();
    print!("{:NAME$}", "");
    for (name, _) in states {
        print!("  {name:>20}");
    }
    println!();
    for (name, look) in looks {
        print!("{name:NAME$}");
        for (_, state) in states {
            print!("  {:>20}", look(state));
        }
        println!();
    }
    println!();
}

/// What has to hold.
#[derive(Default)]
pub struct Checks {
    failed: usize,
}

impl Checks {
    /// Prints whether something holds.
    pub fn add(&mut self, what: &str, holds: bool) {
        println!("{}  {what}", if holds { "ok  " } else { "OFF " });
        self.failed += usize::from(!holds);
    }

    /// Whether everything held.
    pub fn all_hold(&self) -> bool {
        self.failed == 0
    }
}
