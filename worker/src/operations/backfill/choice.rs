//! Which rows of a batch are to be computed, a bit per row.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use lance::Error;
use lance_core::ROW_LAST_UPDATED_AT_VERSION;
use lance_core::utils::deletion::DeletionVector;

use super::record::Record;

/// Which rows are not deleted; none if none is.
pub fn live(start: u64, rows: usize, deleted: Option<&DeletionVector>) -> Option<BooleanBuffer> {
    let deleted = deleted?;
    let live = BooleanBuffer::collect_bool(rows, |row| {
        let offset = u32::try_from(start + row as u64).unwrap_or(u32::MAX);
        !deleted.contains(offset)
    });
    (live.count_set_bits() < rows).then_some(live)
}

/// Which values are null.
pub fn null(values: &ArrayRef) -> BooleanBuffer {
    match values.logical_nulls() {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(values.len()),
    }
}

/// Which rows have yet to be computed, by what is known of the versions that changed them last: all, where
/// none was read.
pub fn to_do(
    record: &Record,
    batch: &RecordBatch,
    null: &BooleanBuffer,
) -> Result<BooleanBuffer, Error> {
    let rows = batch.num_rows();
    let Some(versions) = batch.column_by_name(ROW_LAST_UPDATED_AT_VERSION) else {
        return Ok(BooleanBuffer::new_set(rows));
    };
    let versions = versions
        .as_primitive_opt::<UInt64Type>()
        .ok_or_else(|| Error::internal("versions that are no numbers".to_owned()))?;
    let values = versions.values();
    // Rows were mostly changed together.
    if versions.null_count() == 0
        && let Some(first) = values.first()
        && values.iter().all(|version| version == first)
    {
        return Ok(
            match (
                record.is_to_do(*first, false),
                record.is_to_do(*first, true),
            ) {
                (true, _) => BooleanBuffer::new_set(rows),
                (false, true) => null.clone(),
                (false, false) => BooleanBuffer::new_unset(rows),
            },
        );
    }
    Ok(BooleanBuffer::collect_bool(rows, |row| {
        versions.is_null(row) || record.is_to_do(versions.value(row), null.value(row))
    }))
}

/// Which rows meet a condition with these values.
pub fn met(values: &ArrayRef) -> Result<BooleanBuffer, Error> {
    let values = values
        .as_boolean_opt()
        .ok_or_else(|| Error::internal("a condition that is none".to_owned()))?;
    Ok(match values.nulls() {
        Some(nulls) => values.values() & nulls.inner(),
        None => values.values().clone(),
    })
}

/// Of all rows those that are chosen, where `chosen` tells only of live ones.
pub fn spread(chosen: &BooleanBuffer, live: &BooleanArray) -> BooleanBuffer {
    let mut next = 0;
    BooleanBuffer::collect_bool(live.len(), |row| {
        if !live.value(row) {
            return false;
        }
        next += 1;
        chosen.value(next - 1)
    })
}

/// Those of the rows that are live.
pub fn both(rows: BooleanBuffer, live: Option<&BooleanBuffer>) -> BooleanArray {
    match live {
        Some(live) => BooleanArray::from(&rows & live),
        None => BooleanArray::from(rows),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, UInt64Array};

    use super::*;

    fn rows(buffer: &BooleanBuffer) -> Vec<usize> {
        buffer.set_indices().collect()
    }

    #[test]
    fn rows_are_chosen() {
        let deleted: DeletionVector = [11, 13].into_iter().collect();
        let live = live(10, 5, Some(&deleted)).unwrap();
        assert_eq!(rows(&live), [0, 2, 4]);
        assert!(super::live(20, 5, Some(&deleted)).is_none());
        let values: ArrayRef = Arc::new(Int64Array::from(vec![None, None, Some(1), Some(2), None]));
        let null = null(&values);
        assert_eq!(rows(&null), [0, 1, 4]);
        assert_eq!(rows(both(null.clone(), Some(&live)).values()), [0, 4]);
        let chosen = BooleanBuffer::from(vec![false, true, true]);
        assert_eq!(rows(&spread(&chosen, &live.into())), [2, 4]);

        let mut record = Record::default();
        record.complete(3);
        record.add(5, false);
        let to_do = |versions: Vec<u64>| {
            let versions: ArrayRef = Arc::new(UInt64Array::from(versions));
            let name = ROW_LAST_UPDATED_AT_VERSION;
            let batch = RecordBatch::try_from_iter([(name, versions)]).unwrap();
            rows(&super::to_do(&record, &batch, &null).unwrap())
        };
        assert_eq!(to_do(vec![3; 5]), Vec::<usize>::new());
        assert_eq!(to_do(vec![4; 5]), [0, 1, 2, 3, 4]);
        assert_eq!(to_do(vec![5; 5]), [0, 1, 4]);
        assert_eq!(to_do(vec![5, 3, 5, 4, 4]), [0, 3, 4]);
        let unknown = RecordBatch::try_from_iter([("c", values)]).unwrap();
        assert_eq!(
            rows(&super::to_do(&record, &unknown, &null).unwrap()).len(),
            5
        );
    }
}
