//! How a backfill goes about it: what its parameters leave out, filled in.

use std::time::Duration;

use lance_maintenance_api::params::BackfillColumnParams;

use crate::operations::OperationContext;

/// Rows that are computed at a time.
const TASK_ROWS: i64 = 65_536;
/// Rows of a checkpoint.
const CHECKPOINT_ROWS: i64 = 1_048_576;
/// Seconds after which one is kept that has fewer.
const FLUSH_SECONDS: f64 = 30.0;
/// Fragments of one commit.
const COMMIT_FRAGMENTS: i64 = 64;
/// The rows of a fragment fit into 32 bits.
const MOST_ROWS: i64 = u32::MAX as i64;

/// How a backfill goes about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Fragments that are filled at the same time.
    pub fragments: usize,
    /// Parts of each that are computed at the same time.
    pub parts: usize,
    /// Rows of such a part.
    pub part_rows: u32,
    /// Rows of a checkpoint at the most.
    pub checkpoint_rows: u64,
    /// Rows of one that is kept before it has as many.
    pub least_checkpoint_rows: u64,
    /// When it is.
    pub flush: Duration,
    /// Whether checkpoints are left out of values that are computed about as fast as they would be read
    /// back: where nothing is said of checkpoints.
    pub only_costly: bool,
    /// Fragments of one commit.
    pub commit_fragments: usize,
}

/// The parameters with what was left out filled in. What is not said of checkpoints stays open.
pub fn effective(params: &BackfillColumnParams, ctx: &OperationContext) -> BackfillColumnParams {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    let allowed = ctx.limits.concurrent_rewrites.max(1) as i64;
    BackfillColumnParams {
        concurrency: Some(params.concurrency.unwrap_or(allowed).min(allowed)),
        intra_applier_concurrency: Some(
            params.intra_applier_concurrency.unwrap_or(2).min(2 * cores),
        ),
        task_size: Some(params.task_size.unwrap_or(TASK_ROWS).min(MOST_ROWS)),
        commit_granularity: Some(params.commit_granularity.unwrap_or(COMMIT_FRAGMENTS)),
        ..params.clone()
    }
}

fn checkpoint_rows(params: &BackfillColumnParams) -> i64 {
    let rows = params.checkpoint_size.unwrap_or(CHECKPOINT_ROWS);
    let rows = rows.max(params.min_checkpoint_size.unwrap_or(1));
    rows.min(params.max_checkpoint_size.unwrap_or(MOST_ROWS))
}

impl Settings {
    /// Those of these parameters.
    pub fn of(params: &BackfillColumnParams, ctx: &OperationContext) -> Self {
        let params = effective(params, ctx);
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let count = |value| number(value).map_or(1, |value| value.max(1));
        let size = |value| usize::try_from(count(value)).unwrap_or(usize::MAX);
        let checkpoint_rows = count(Some(checkpoint_rows(&params)));
        // No part is larger than what a checkpoint may hold.
        let part_rows = count(params.task_size).min(checkpoint_rows);
        let seconds = params
            .batch_checkpoint_flush_interval_seconds
            .unwrap_or(FLUSH_SECONDS);
        Self {
            fragments: size(params.concurrency),
            parts: size(params.intra_applier_concurrency),
            part_rows: u32::try_from(part_rows).unwrap_or(u32::MAX),
            checkpoint_rows,
            least_checkpoint_rows: number(params.min_checkpoint_size).unwrap_or(1),
            flush: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
            only_costly: params.checkpoint_size.is_none()
                && params.min_checkpoint_size.is_none()
                && params.max_checkpoint_size.is_none()
                && params.batch_checkpoint_flush_interval_seconds.is_none(),
            commit_fragments: size(params.commit_granularity),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn sizes_keep_to_each_other() {
        let ctx = OperationContext::unsupervised("t".into(), "file:///t".into(), HashMap::new());
        let case = |body: &str| {
            let params = BackfillColumnParams::parse(body.as_bytes()).unwrap();
            let settings = Settings::of(&params, &ctx);
            assert_eq!(settings.only_costly, !body.contains("checkpoint"));
            (settings.part_rows, settings.checkpoint_rows)
        };
        let cases = [
            (r#"{"column":"c"}"#, (65_536, 1_048_576)),
            (
                r#"{"column":"c","task_size":7,"checkpoint_size":3}"#,
                (3, 3),
            ),
            (
                r#"{"column":"c","checkpoint_size":3,"min_checkpoint_size":5}"#,
                (5, 5),
            ),
            (
                r#"{"column":"c","task_size":2,"checkpoint_size":30,"max_checkpoint_size":10}"#,
                (2, 10),
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(case(body), expected, "{body}");
        }
    }
}
