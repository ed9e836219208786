//! How far a rewriting of fragments is.

use std::sync::Arc;

use lance::Dataset;
use lance_io::object_store::ObjectStore;
use lance_table::format::Fragment;

use crate::progress::Progress;

/// The stretch of the progress that rewriting takes.
pub const REWRITING: (u8, u8) = (5, 90);

/// How much there is to rewrite, as far as the manifest knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Fragments.
    pub fragments: u64,
    /// Rows, deleted ones among them.
    pub rows: u64,
    /// Bytes of their data files.
    pub bytes: u64,
}

impl Work {
    /// What these fragments amount to.
    pub fn of<'a>(fragments: impl IntoIterator<Item = &'a Fragment>) -> Self {
        let mut work = Self::default();
        for fragment in fragments {
            work.fragments += 1;
            work.rows += fragment.physical_rows.unwrap_or(0) as u64;
            work.bytes += fragment
                .files
                .iter()
                .filter_map(|file| file.file_size_bytes.get())
                .map(u64::from)
                .sum::<u64>();
        }
        work
    }
}

/// Reports how far the rewriting is: by the bytes that were read so far, since a single group may be
/// most of the work, and by fragments in words.
pub struct Meter<'a> {
    progress: &'a Progress,
    store: Option<Arc<ObjectStore>>,
    bytes_before: u64,
    total: Work,
    done: Work,
}

impl<'a> Meter<'a> {
    /// Starts at nothing done of `total`.
    pub async fn new(dataset: &Dataset, progress: &'a Progress, total: Work) -> Self {
        let store = dataset.object_store(None).await.ok();
        let bytes_before = store
            .as_ref()
            .map_or(0, |store| store.io_stats_snapshot().read_bytes);
        Self {
            progress,
            store,
            bytes_before,
            total,
            done: Work::default(),
        }
    }

    /// These were rewritten.
    pub fn finished(&mut self, fragments: &[Fragment]) {
        let work = Work::of(fragments);
        self.done.fragments += work.fragments;
        self.done.rows += work.rows;
        self.done.bytes += work.bytes;
        self.report();
    }

    /// Says how far it is now.
    pub fn report(&self) {
        let read = self
            .store
            .as_ref()
            .map_or(0, |store| store.io_stats_snapshot().read_bytes)
            .saturating_sub(self.bytes_before);
        let bytes = read.min(self.total.bytes).max(self.done.bytes);
        let message = format!(
            "rewrote {} of {} fragments ({} of {} rows)",
            self.done.fragments, self.total.fragments, self.done.rows, self.total.rows
        );
        self.progress
            .report_part(REWRITING, bytes, self.total.bytes, message);
    }
}
