//! Which segments of an index are merged.

use lance::{Dataset, Error};
use lance_maintenance_api::params::OptimizeIndicesParams;
use lance_table::format::IndexMetadata;

use crate::operations::table::{covers, rows_of};

/// How many segments of an index stay where we choose what is merged.
const MOST_SEGMENTS: usize = 4;

/// Whether these are segments of an index on vectors.
pub fn is_vector(segments: &[&IndexMetadata]) -> bool {
    segments.iter().any(|segment| {
        segment
            .index_details
            .as_ref()
            .is_some_and(|details| details.type_url.ends_with("VectorIndexDetails"))
    })
}

/// What a task does to an index.
pub fn merge(params: &OptimizeIndicesParams, sizes: &Sizes, is_vector: bool) -> Merge {
    match (params.retrain, params.num_indices_to_merge) {
        (true, _) if is_vector => Merge::Retrain,
        // There is nothing to train: one segment is what is left to ask for.
        (true, _) => asked_for(i64::MAX, sizes),
        (false, Some(asked)) => asked_for(asked, sizes),
        (false, None) => choose(sizes, is_vector),
    }
}

/// Rows of an index's segments, oldest first, and of the table outside of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of each segment.
    pub segments: Vec<u64>,
    /// Rows of the table outside of them.
    pub unindexed: u64,
    /// Whether any fragment is outside; it may have no rows left.
    pub has_unindexed: bool,
}

impl Sizes {
    /// Those of an index that consists of these segments.
    pub async fn of(dataset: &Dataset, segments: &[&IndexMetadata]) -> Result<Self, Error> {
        let mut sizes = Self {
            segments: vec![0; segments.len()],
            ..Default::default()
        };
        for fragment in dataset.fragments().iter() {
            let rows = rows_of(dataset, fragment).await?;
            match segments
                .iter()
                .position(|segment| covers(segment, fragment))
            {
                Some(segment) => sizes.segments[segment] += rows,
                None => {
                    sizes.unindexed += rows;
                    sizes.has_unindexed = true;
                }
            }
        }
        Ok(sizes)
    }
}

/// Which segments are merged with the new rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// There is nothing to do.
    Nothing,
    /// All, into one that is built anew.
    Retrain,
    /// So many of the newest.
    Newest(usize),
}

/// What a task asked for, unless it would only copy a segment.
fn asked_for(asked: i64, sizes: &Sizes) -> Merge {
    let asked = usize::try_from(asked).unwrap_or(usize::MAX);
    match asked.min(sizes.segments.len()) {
        0 | 1 if !sizes.has_unindexed => Merge::Nothing,
        segments => Merge::Newest(segments),
    }
}

/// What we choose where a task does not say.
fn choose(sizes: &Sizes, is_vector: bool) -> Merge {
    let count = sizes.segments.len();
    // Without new rows, the newest segment is what the next older one is compared with. One segment
    // comes out of those that are merged and the new rows.
    let least = match (sizes.has_unindexed, is_vector) {
        (true, true) => 0,
        (true, false) | (false, _) => 1,
    };
    let least = least.max((count + 1).saturating_sub(MOST_SEGMENTS));
    let mut merged = 0;
    let mut rows = sizes.unindexed;
    for segment in sizes.segments.iter().rev() {
        if merged >= least && *segment > rows.saturating_mul(2) {
            break;
        }
        merged += 1;
        rows += segment;
    }
    match merged {
        // Partitions are split and joined where rows are added, and not for their own sake: the number
        // that an index was made with stays.
        0 | 1 if !sizes.has_unindexed => Merge::Nothing,
        merged => Merge::Newest(merged),
    }
}

/// What is left to do with segments on vectors that can't be merged.
pub fn instead_of_merging(sizes: &Sizes) -> Merge {
    match sizes.segments.len() {
        few if few < MOST_SEGMENTS && sizes.has_unindexed => Merge::Newest(0),
        few if few <= MOST_SEGMENTS && !sizes.has_unindexed => Merge::Nothing,
        _ => Merge::Retrain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(segments: &[u64], unindexed: u64) -> Sizes {
        Sizes {
            segments: segments.to_vec(),
            unindexed,
            has_unindexed: unindexed > 0,
        }
    }

    #[test]
    fn what_is_merged_without_a_number() {
        let cases = [
            // A large segment is left alone, new ones are merged among themselves.
            (sizes(&[1000], 100), true, Merge::Newest(0)),
            (sizes(&[1000, 100], 100), true, Merge::Newest(1)),
            (sizes(&[1000, 400], 100), true, Merge::Newest(0)),
            (sizes(&[2000, 400, 100], 100), true, Merge::Newest(2)),
            (sizes(&[1000], 500), true, Merge::Newest(1)),
            (sizes(&[0], 500), true, Merge::Newest(1)),
            // Four stay at the most.
            (sizes(&[8000, 2000, 500, 100], 10), true, Merge::Newest(1)),
            (
                sizes(&[80_000, 8000, 2000, 500, 100], 10),
                true,
                Merge::Newest(2),
            ),
            // An index on values takes its newest segment in.
            (sizes(&[1000], 1), false, Merge::Newest(1)),
            (sizes(&[1000, 1], 1), false, Merge::Newest(1)),
            // Nothing is new.
            (sizes(&[1000], 0), true, Merge::Nothing),
            (sizes(&[1000, 100], 0), true, Merge::Nothing),
            (sizes(&[1000, 900], 0), true, Merge::Newest(2)),
            (sizes(&[], 0), true, Merge::Nothing),
        ];
        for (sizes, is_vector, merge) in cases {
            assert_eq!(choose(&sizes, is_vector), merge, "{sizes:?}");
        }
    }

    #[test]
    fn segments_stay_few_and_rows_are_seldom_rewritten() {
        let mut segments = vec![1_000_000_u64];
        let mut written = 0;
        for _ in 0..1000 {
            let merge = choose(&sizes(&segments, 1000), true);
            let Merge::Newest(merged) = merge else {
                panic!("{merge:?}")
            };
            let rows: u64 = 1000 + segments.drain(segments.len() - merged..).sum::<u64>();
            segments.push(rows);
            written += rows;
            assert!(segments.len() <= MOST_SEGMENTS, "{segments:?}");
        }
        // Merging everything each time would write a hundred times as much.
        assert!(written < 20_000_000, "{written}");
    }

    #[test]
    fn what_is_done_where_nothing_can_be_merged() {
        for (sizes, merge) in [
            (sizes(&[10, 10, 10], 5), Merge::Newest(0)),
            (sizes(&[10, 10, 10, 10], 5), Merge::Retrain),
            (sizes(&[10, 10, 10, 10], 0), Merge::Nothing),
            (sizes(&[10, 10, 10, 10, 10], 0), Merge::Retrain),
        ] {
            assert_eq!(instead_of_merging(&sizes), merge, "{sizes:?}");
        }
    }

    #[test]
    fn what_a_task_asks_for() {
        for (asked, sizes, merge) in [
            (0, sizes(&[10], 5), Merge::Newest(0)),
            (2, sizes(&[10], 5), Merge::Newest(1)),
            (i64::MAX, sizes(&[10, 5], 0), Merge::Newest(2)),
            (0, sizes(&[10, 5], 0), Merge::Nothing),
            (1, sizes(&[10, 5], 0), Merge::Nothing),
            (2, sizes(&[10], 0), Merge::Nothing),
        ] {
            assert_eq!(asked_for(asked, &sizes), merge, "{asked} of {sizes:?}");
        }
    }
}
