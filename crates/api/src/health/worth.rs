//! When a compaction is worth what it rewrites, and how many rows a fragment should have where rows
//! are wide. Lance plans by rows alone: with rows of 200 kB its default target of a million makes
//! fragments of 200 GB, and until one is full every compaction rewrites all of it for a few new rows.

/// What may be rewritten for each fragment that is gone afterwards, in bytes.
const BYTES_PER_FRAGMENT: u64 = 64 << 20;
/// The share of deleted rows from which dropping them is worth rewriting their fragments: Lance's own
/// default.
const DELETED_SHARE: f64 = 0.1;
/// Fragments that would be larger than this have wide rows, in bytes.
const LARGEST_FRAGMENT: u64 = 8 << 30;
/// What a fragment with wide rows should have, in bytes.
const WIDE_FRAGMENT: u64 = 256 << 20;

/// What a compaction takes and gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Fragments that are fewer afterwards.
    pub fragments_removed: u64,
    /// Rows that are rewritten.
    pub rows_rewritten: u64,
    /// Deleted rows that are gone.
    pub deleted_rows_dropped: u64,
    /// Bytes that are rewritten, as far as they are known.
    pub bytes_rewritten: u64,
}

impl Exchange {
    /// Whether it is worth it: little is rewritten for each fragment that is gone, or a good part of
    /// what is rewritten was deleted.
    pub fn is_worthwhile(self) -> bool {
        let rows = self.rows_rewritten + self.deleted_rows_dropped;
        if rows > 0 && self.deleted_rows_dropped as f64 / rows as f64 >= DELETED_SHARE {
            return true;
        }
        match self.bytes_rewritten.checked_div(self.fragments_removed) {
            Some(bytes) => bytes <= BYTES_PER_FRAGMENT,
            None => false,
        }
    }
}

/// The rows that a fragment should have in place of `target_rows`, if a row of so many bytes is so wide
/// that such fragments would be too large.
pub fn better_target(target_rows: u64, row_bytes: u64) -> Option<u64> {
    let is_wide = target_rows.saturating_mul(row_bytes) > LARGEST_FRAGMENT;
    is_wide.then(|| (WIDE_FRAGMENT / row_bytes.max(1)).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worth_it() {
        const MIB: u64 = 1 << 20;
        let cases = [
            // Many small fragments.
            ((19, 1714, 286, 166_036), true),
            // One that is nearly full, and a few rows more.
            ((1, 900_020, 0, 90 * MIB), false),
            ((3, 900_060, 0, 90 * MIB), true),
            // Deleted rows, in one fragment.
            ((0, 900, 100, 90 * MIB), true),
            ((0, 950, 50, 90 * MIB), false),
            // Nothing.
            ((0, 0, 0, 0), false),
        ];
        for ((removed, rows, deleted, bytes), expected) in cases {
            let exchange = Exchange {
                fragments_removed: removed,
                rows_rewritten: rows,
                deleted_rows_dropped: deleted,
                bytes_rewritten: bytes,
            };
            assert_eq!(exchange.is_worthwhile(), expected, "{exchange:?}");
        }
    }

    #[test]
    fn wide_rows_get_a_target_by_their_bytes() {
        let cases = [
            (1 << 20, 100, None),
            (1 << 20, 6144, None),
            (1 << 20, 200_000, Some(1342)),
            (1342, 200_000, None),
            (1 << 20, 1 << 40, Some(1)),
            (1 << 20, 0, None),
        ];
        for (target, row, better) in cases {
            assert_eq!(better_target(target, row), better, "{target} rows of {row}");
        }
    }
}
