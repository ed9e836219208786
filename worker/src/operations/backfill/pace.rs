//! How many rows to read at a time: as many as fit, by what those before took.
//!
//! What rows take in memory can't be told from what their files take on disk: texts are often many times
//! as large.

use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{Array, ArrayRef};

/// Bytes of rows and of what is computed from them that are held at a time.
pub const BYTES: u64 = 16 << 20;
/// Rows to begin with.
const FIRST: u64 = 16;
/// How many times as many rows follow at the most.
const STEP: u64 = 8;

/// The number of rows to read next. It begins small, and grows as long as rows fit.
#[derive(Debug)]
pub struct Pace {
    rows: AtomicU64,
    most: u64,
}

impl Pace {
    /// At most so many rows, however small they are.
    pub fn new(most: u64) -> Self {
        let most = most.max(1);
        Self {
            rows: AtomicU64::new(FIRST.min(most)),
            most,
        }
    }

    /// How many rows to read next.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// So many rows took so many bytes.
    pub fn took(&self, rows: u64, bytes: u64) {
        let fitting = BYTES.saturating_mul(rows) / bytes.max(1);
        // A few rows say that they are too large, and nothing of how small the others are.
        let step = self.rows().max(rows.saturating_mul(STEP));
        self.rows
            .store(fitting.min(step).clamp(1, self.most), Ordering::Relaxed);
    }
}

/// The bytes of these values. Buffers may hold more than these.
pub fn bytes_of(columns: &[ArrayRef]) -> u64 {
    let bytes = columns.iter().map(|values| {
        let of_slice = values.to_data().get_slice_memory_size();
        of_slice.unwrap_or_else(|_| values.get_array_memory_size()) as u64
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn slices_count_for_what_they_are() {
        let texts = StringArray::from_iter_values((0..1000).map(|_| "0123456789"));
        let slice: ArrayRef = Arc::new(texts.slice(10, 10));
        // With where each of them begins.
        assert_eq!(bytes_of(&[Arc::clone(&slice), slice]), 2 * (100 + 10 * 4));
    }

    #[test]
    fn as_many_rows_as_fit() {
        let pace = Pace::new(10_000);
        let next = |rows: u64, row_bytes: u64| {
            pace.took(rows, rows * row_bytes);
            pace.rows()
        };
        assert_eq!(next(16, 8), 128);
        assert_eq!(next(128, 8), 1024);
        // The rest of a fragment.
        assert_eq!(next(3, 8), 1024);
        assert_eq!(next(1024, 8), 8192);
        assert_eq!(next(8192, 8), 10_000);
        assert_eq!(next(10_000, 16 << 10), 1024);
        assert_eq!(next(1024, 32 << 20), 1);
        assert_eq!(next(1, 1), 8);
        assert_eq!(Pace::new(5).rows(), 5);
    }
}
