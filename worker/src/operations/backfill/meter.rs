//! How far a backfill is.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::operations::meter::REWRITING;
use crate::progress::Progress;

/// Reports how many of the rows that are to be computed are.
#[derive(Debug)]
pub struct RowMeter {
    progress: Progress,
    total: u64,
    done: AtomicU64,
}

impl RowMeter {
    /// So many are done of those that are to be.
    pub fn new(progress: &Progress, done: u64, total: u64) -> Self {
        Self {
            progress: progress.clone(),
            total,
            done: AtomicU64::new(done),
        }
    }

    /// So many more are.
    pub fn done(&self, rows: u64) {
        let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
        let message = format!("computed {done} of {} rows", self.total);
        self.progress
            .report_part(REWRITING, done, self.total, message);
    }
}
