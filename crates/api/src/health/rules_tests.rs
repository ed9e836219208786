use std::collections::BTreeMap;

use super::*;
use crate::health::advice::advise;
use crate::health::samples::*;

#[test]
fn reasons() {
    let budgeted = HealthReport {
        compaction_budget: Some(BTreeMap::from([(
            "max_source_rows".to_owned(),
            "500".to_owned(),
        )])),
        ..with_indices(fragmented(), vec![index("zone", 1, 9, 0)])
    };
    let wide = with_outlook(fragmented(), |outlook| {
        outlook.target_rows_per_fragment = Some(1342);
    });
    let cases = [
        (
            with_missing(&["data/1.lance"], &[]),
            "The newest version refers to 1 file or index folder that is not there, such as \
             data/1.lance; what needs them fails. Bring them back from a copy, or restore a version that \
             does without them: no job does.",
        ),
        (
            with_missing(&[], &["_indices/u", "_indices/v"]),
            "The newest version refers to 2 files or index folders that are not there, such as \
             _indices/u; what needs them fails. Create the index anew: no job does.",
        ),
        (
            with_indices(healthy(), vec![index("a", 5, 9, 3)]),
            "The index 'a' consists of 5 segments, and a query looks into each: merging makes them one. \
             It also takes in the 3 rows that are not covered.",
        ),
        (
            with_indices(healthy(), vec![index("a", 1, 9, 1)]),
            "The index 'a' does not cover 1 row, which every query reads one by one: an update adds them.",
        ),
        (
            with_indices(healthy(), vec![index("a", 1, 9, 1), index("b", 1, 8, 2)]),
            "The indices 'a', 'b' do not cover up to 2 rows, which every query reads one by one: an \
             update adds them.",
        ),
        (
            budgeted,
            "20 fragments would become 1, and 286 deleted rows be dropped, for 166.0 kB rewritten. The \
             index 'zone' no longer covers rows once they are rewritten: update it afterwards. The table \
             limits what one run takes on (max_source_rows = 500), so that one job may do only a part.",
        ),
        (
            wide,
            "20 fragments would become 1, and 286 deleted rows be dropped, for 166.0 kB rewritten. Rows \
             are so wide that a fragment should not have more than 1342.",
        ),
        (
            with_files(healthy(), 11, 20),
            "A fragment has up to 11 data files, since columns were added one by one; a compaction of \
             everything makes them one. It rewrites every fragment, 166.0 kB in all.",
        ),
        (
            with_versions(7, 1_234_567, Some(10)),
            "Of 7 versions, a cleanup removes all but the newest, and frees 1.2 MB at the most: they \
             can't be brought back. Versions with tags stay, and make the job fail unless \
             error_if_tagged_old_versions is false.",
        ),
    ];
    for (report, reason) in cases {
        let advice = advise(&report, true);
        assert_eq!(
            advice.first().map(|advice| advice.reason.as_str()),
            Some(reason)
        );
    }
}

#[test]
fn numbers_that_rules_looked_at() {
    let advice = advise(&fragmented(), false);
    assert_eq!(
        Value::Object(advice[0].numbers.clone()),
        json!({"compaction_tasks": 1, "num_fragments": 20, "tasks": 1, "fragments_rewritten": 20,
               "fragments_added": 1, "rows_rewritten": 1714, "deleted_rows_dropped": 286,
               "bytes_rewritten": 166_036})
    );
}

#[test]
fn sizes_for_a_person() {
    for (bytes, expected) in [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (166_036, "166.0 kB"),
        (5_000_000_000, "5.0 GB"),
        (u64::MAX, "18446.7 PB"),
    ] {
        assert_eq!(size(bytes), expected);
    }
}
