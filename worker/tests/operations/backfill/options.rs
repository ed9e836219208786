//! What each option does.

use super::*;

#[tokio::test]
async fn commits_and_fragments() {
    // Versions beside the one that notes what is filled; rows filled and left.
    let cases = [
        (r#"{"column":"c"}"#, 1, 1000, 0),
        (r#"{"column":"c","commit_granularity":3}"#, 4, 1000, 0),
        (
            r#"{"column":"c","commit_granularity":1,"concurrency":1}"#,
            10,
            1000,
            0,
        ),
        (r#"{"column":"c","num_frags":4}"#, 1, 400, 600),
        (r#"{"column":"c","read_version":1}"#, 1, 1000, 100),
        (
            r#"{"column":"c","task_size":7,"intra_applier_concurrency":5}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","task_size":7,"checkpoint_size":3}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","min_checkpoint_size":30,"max_checkpoint_size":40}"#,
            1,
            1000,
            0,
        ),
        (
            r#"{"column":"c","batch_checkpoint_flush_interval_seconds":0.001,"task_size":10}"#,
            1,
            1000,
            0,
        ),
    ];
    for stable in [false, true] {
        for (body, commits, filled, left) in cases {
            let table = declared(stable).await;
            if body.contains("read_version") {
                table.append_batch(numbers(1000..1100)).await;
            }
            let before = table.open().await.version_id();
            let result = fill(&table, body).await;
            assert_eq!(
                result.version - before,
                commits + u64::from(stable),
                "{body}"
            );
            assert_eq!(
                (result.rows_filled, result.rows_left),
                (filled, left),
                "{body}"
            );
            assert_eq!(result.fragments_left, left.div_ceil(100), "{body}");
            let found = values(&table, "c").await;
            let right = found.iter().filter(|(id, c)| **c == Some(*id * 10 + 1));
            assert_eq!(right.count() as u64, filled, "{body}");
            check_files(&table, body).await;
            // What is left is filled by the next, and nothing else.
            let rest = fill(&table, r#"{"column":"c"}"#).await;
            assert_eq!((rest.rows_filled, rest.rows_left), (left, 0), "{body}");
            check_values(&table, |id| Some(id * 10 + 1)).await;
        }
    }
}
