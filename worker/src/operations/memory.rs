//! How much memory an operation is expected to need, so that those that run side by side fit into
//! the worker's budget. Rough, from above: what Lance holds at a time, as far as its settings and the
//! sizes in the manifest tell.

use lance_core::datatypes::Field;

use super::backfill::pace;
use super::backfill::settings::Settings;
use super::meter::Work;

const MIB: u64 = 1 << 20;
/// What a process that has opened a table needs whatever it does.
const BASE: u64 = 128 * MIB;
/// Rows that Lance reads at a time.
const BATCH_ROWS: u64 = 8192;
/// Batches that are read ahead, decoded and encoded of each group that is rewritten.
const BATCHES: u64 = 16;
/// What a file that is being written holds back, and its upload.
const WRITER: u64 = 64 * MIB;
/// What sorting and inverting hold before they go to disk.
const SPILL: u64 = 512 * MIB;
/// What is held of each row while an index is put together: its address, its key's place, its code.
const ROW: u64 = 32;

/// Rewriting so much, so many groups of fragments at a time.
pub fn compaction(work: Work, rewrites: u64) -> u64 {
    let row = work.bytes.checked_div(work.rows).unwrap_or(0);
    let batch = row.saturating_mul(BATCH_ROWS.min(work.rows)).min(32 * MIB);
    BASE + rewrites * (BATCHES * batch + WRITER)
}

/// Filling a column of so much: parts of fragments that are read, computed and written, and what is held
/// back for checkpoints.
pub fn backfill(work: Work, settings: &Settings) -> u64 {
    const HELD: u64 = 64 * MIB;
    let parts = 3 * settings.parts as u64;
    let fragments = (settings.fragments as u64).min(work.fragments);
    let each = parts.saturating_mul(pace::BYTES) + HELD + WRITER;
    fragments.saturating_mul(each).saturating_add(BASE)
}

/// Building an index on the values or texts of so many rows.
pub fn scalar_index(rows: u64) -> u64 {
    let spilled = SPILL.min(rows.saturating_mul(1024));
    rows.saturating_mul(ROW).saturating_add(BASE + spilled)
}

/// Building an index on the vectors of so many rows, of which `sampled` are held to train it.
pub fn vector_index(field: &Field, rows: u64, sampled: u64) -> u64 {
    let vector = vector_bytes(field);
    let spilled = SPILL.min(rows.saturating_mul(vector));
    let trained = sampled.min(rows).saturating_mul(vector).saturating_mul(2);
    rows.saturating_mul(ROW)
        .saturating_add(trained)
        .saturating_add(BASE + spilled)
}

/// Bringing the indices of so many rows up to date.
pub fn indices(rows: u64) -> u64 {
    scalar_index(rows)
}

/// The bytes of a vector; of a list of vectors, those of one of them.
fn vector_bytes(field: &Field) -> u64 {
    use arrow_schema::DataType;
    fn bytes(of: &DataType) -> u64 {
        match of {
            DataType::FixedSizeList(item, length) => {
                u64::try_from(*length).unwrap_or(0) * bytes(item.data_type())
            }
            DataType::List(item) | DataType::LargeList(item) => bytes(item.data_type()),
            other => other.primitive_width().unwrap_or(4) as u64,
        }
    }
    bytes(&field.data_type())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_with_what_is_held_and_no_further() {
        let work = |rows, bytes| Work {
            fragments: 1,
            rows,
            bytes,
        };
        // Many small rows, one wide row, none at all.
        assert_eq!(
            compaction(work(1 << 20, 100 << 20), 1),
            BASE + WRITER + BATCHES * 100 * 8192
        );
        assert_eq!(
            compaction(work(1, 1 << 40), 2),
            BASE + 2 * (WRITER + BATCHES * 32 * MIB)
        );
        assert_eq!(compaction(work(0, 0), 1), BASE + WRITER);
        assert!(scalar_index(u64::MAX) > SPILL);
        assert_eq!(scalar_index(0), BASE);
    }

    #[test]
    fn knows_the_size_of_a_vector() {
        use arrow_schema::{DataType, Field as ArrowField};
        let item = |of| std::sync::Arc::new(ArrowField::new("item", of, true));
        let vectors = DataType::FixedSizeList(item(DataType::Float32), 100);
        let cases = [
            (vectors.clone(), 400),
            (DataType::FixedSizeList(item(DataType::UInt8), 16), 16),
            (DataType::List(item(vectors)), 400),
        ];
        for (of, bytes) in cases {
            let field = Field::try_from(&ArrowField::new("v", of, true)).unwrap();
            assert_eq!(vector_bytes(&field), bytes);
        }
    }
}
