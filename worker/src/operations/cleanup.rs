//! Cleanup: old versions go, and the files that only they need.
//!
//! A version goes when it meets every condition that is given: older than `older_than`, not among
//! the newest `retain_versions`, and in any case older than the worker's minimum age. Versions with
//! a tag, and the newest, stay. Files that no version names stay too, unless Lance knows them to be
//! left over from a write more than seven days ago; files that are not a table's are not looked at.
//!
//! It makes no version, so there is no commit to find again when it is attempted once more, and it
//! needs none: which versions go follows from the table alone, those that an attempt before has
//! removed are not there to be removed again, and the newest, on which everything else is built, never
//! goes. Two at the same time do what one would. What is not the same is the result, which counts
//! what the last attempt removed.

use chrono::{TimeDelta, Utc};
use lance::Error;
use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance_maintenance_api::params::CleanupParams;
use lance_maintenance_api::result::CleanupResult;
use lance_maintenance_api::{ErrorName, TaskError};
use serde_json::Value;
use tracing::warn;

use super::errors::to_task_error;
use super::redact::Redactor;
use super::supervisor::{Changed, Phase};
use super::table::Table;
use super::{Operation, OperationContext, to_result};

impl Operation for CleanupParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        let older_than = match self.older_than.as_str() {
            "" => None,
            text => Some(parse_age(text)?),
        };
        let dataset = &table.dataset;
        let mut policy = CleanupPolicyBuilder::default()
            .delete_unverified(false)
            .error_if_tagged_old_versions(false);
        if let Some(age) = age(older_than, ctx)? {
            policy = policy.before_timestamp(Utc::now() - age);
        }
        if let Ok(versions @ 1..) = usize::try_from(self.retain_versions) {
            policy = policy
                .retain_n_versions(dataset, versions)
                .await
                .map_err(failed)?;
        }
        ctx.progress.report(
            10,
            format!(
                "looking through {} versions",
                dataset.count_versions().await.map_err(failed)?
            ),
        );
        ctx.enter(Phase::Work);
        let stats = dataset
            .cleanup(policy.build())
            .execute()
            .await
            .map_err(failed)?;
        if stats.failed_deletes > 0 {
            // The versions are gone all the same; the next cleanup finds the files again.
            warn!(
                files = stats.failed_deletes,
                "some files could not be removed"
            );
        }
        ctx.progress
            .report(100, format!("removed {} versions", stats.old_versions));
        ctx.changed(Changed {
            bytes_removed: stats.bytes_removed,
            ..Changed::default()
        });
        to_result(&CleanupResult {
            bytes_removed: stats.bytes_removed,
            old_versions: stats.old_versions,
            data_files_removed: stats.data_files_removed,
            transaction_files_removed: stats.transaction_files_removed,
            index_files_removed: stats.index_files_removed,
            deletion_files_removed: stats.deletion_files_removed,
            failed_deletes: stats.failed_deletes,
        })
    }
}

/// The age that a version must have, of what the task asks for and what the worker demands.
fn age(asked: Option<TimeDelta>, ctx: &OperationContext) -> Result<Option<TimeDelta>, TaskError> {
    let minimum = TimeDelta::from_std(ctx.limits.minimum_version_age).map_err(|_| {
        TaskError::new(
            ErrorName::InternalError,
            "The worker's minimum age of versions is out of range; have its configuration corrected.",
        )
    })?;
    Ok(match asked {
        Some(asked) => Some(asked.max(minimum)),
        None if minimum > TimeDelta::zero() => Some(minimum),
        None => None,
    })
}

/// Parses an age: digits, then one of `d h m s`, nothing else (API facts, section 6).
fn parse_age(text: &str) -> Result<TimeDelta, TaskError> {
    // Ages beyond this are before any clock's beginning, and no dates can be computed with them.
    const MOST_SECONDS: i64 = 10_000 * 366 * 86_400;
    let parsed = || {
        let unit = text.chars().next_back()?;
        let digits = &text[..text.len() - unit.len_utf8()];
        let seconds = match unit {
            'd' => 86_400,
            'h' => 3_600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let seconds = digits.parse::<i64>().ok()?.checked_mul(seconds)?;
        TimeDelta::try_seconds(seconds).filter(|_| seconds <= MOST_SECONDS)
    };
    parsed().ok_or_else(|| {
        TaskError::new(
            ErrorName::InvalidInput,
            format!(
                "'older_than' is '{text}', which is not an age: it takes a whole number and one \
                 unit of d, h, m or s (^[0-9]+[dhms]$), such as 7d or 36h, up to 10000 years."
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (text, seconds) in [
            ("7d", 604_800),
            ("168h", 604_800),
            ("30m", 1_800),
            ("45s", 45),
            ("0d", 0),
            ("007d", 604_800),
        ] {
            assert_eq!(parse_age(text).unwrap().num_seconds(), seconds, "{text}");
        }
        for text in [
            "1w",
            "1.5d",
            "-7d",
            "+7d",
            "1h30m",
            "7D",
            "7 d",
            " 7d",
            "7d ",
            "d",
            "7",
            "7é",
            "٧d",
            "99999999999999999999d",
            "9223372036854775807d",
            "9223372036854775807s",
        ] {
            let error = parse_age(text).unwrap_err();
            assert_eq!(error.error, ErrorName::InvalidInput);
            assert!(error.detail.contains(text) && error.detail.contains("[dhms]"));
        }
    }
}
