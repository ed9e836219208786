//! How far a running operation is, for whoever wants to watch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// A point that an operation has reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// How much of the work is done, 0 to 100. Goes back where an operation starts over.
    pub percent: u8,
    /// What it is doing, for a person: `rewrote 12 of 40 fragments`.
    pub message: String,
}

/// Where an operation reports to. Clones report to the same place; reporting never waits, and a
/// watcher that is slow misses reports, but never the last one.
#[derive(Clone, Debug)]
pub struct Progress {
    sender: Arc<watch::Sender<Report>>,
}

impl Progress {
    /// A progress at 0 % that nobody watches yet.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(Report::default())),
        }
    }

    /// What was reported last, now and whenever it changes.
    pub fn subscribe(&self) -> watch::Receiver<Report> {
        self.sender.subscribe()
    }

    /// Says how far the work is; more than 100 % counts as 100.
    pub fn report(&self, percent: u8, message: impl Into<String>) {
        let report = Report {
            percent: percent.min(100),
            message: message.into(),
        };
        self.sender.send_if_modified(|last| {
            let changed = *last != report;
            *last = report;
            changed
        });
    }

    /// Says that `done` of `total` parts of the stretch from `range.0` to `range.1` percent are done.
    pub fn report_part(&self, range: (u8, u8), done: u64, total: u64, message: impl Into<String>) {
        let (from, to) = range;
        let share = match total {
            0 => 1.0,
            _ => (done as f64 / total as f64).min(1.0),
        };
        let percent = f64::from(from) + share * f64::from(to.saturating_sub(from));
        self.report(percent as u8, message);
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_stretch() {
        let progress = Progress::new();
        let watcher = progress.subscribe();
        for (done, total, percent) in [(0, 4, 10), (1, 4, 30), (4, 4, 90), (9, 4, 90), (0, 0, 90)] {
            progress.report_part((10, 90), done, total, "working");
            assert_eq!(watcher.borrow().percent, percent, "{done} of {total}");
        }
    }

    #[test]
    fn the_same_report_twice_wakes_nobody() {
        let progress = Progress::new();
        let mut watcher = progress.subscribe();
        progress.report(120, "done");
        assert!(watcher.has_changed().unwrap());
        assert_eq!(watcher.borrow_and_update().percent, 100);
        progress.report(100, "done");
        assert!(!watcher.has_changed().unwrap());
    }
}
