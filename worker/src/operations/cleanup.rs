//! Cleanup: old versions go, and the files that only they need.
//!
//! A version goes when it meets every condition that is given: older than `older_than`, not among
//! the newest `retain_versions`, and in any case older than the worker's minimum age. The newest stays,
//! and so do versions with a tag, unless the task is to fail where one would go. Files that no version names stay too, unless Lance knows them to be
//! left over from a write more than seven days ago; files that are not a table's are not looked at.
//!
//! It makes no version, so there is no commit to find again when it is attempted once more, and it
//! needs none: which versions go follows from the table alone, those that an attempt before has
//! removed are not there to be removed again, and the newest, on which everything else is built, never
//! goes. Two at the same time do what one would. What is not the same is the result, which counts
//! what the last attempt removed.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use lance::dataset::cleanup::{CleanupPolicy, CleanupPolicyBuilder, RemovalStats};
use lance::{Dataset, Error};
use lance_maintenance_api::params::CleanupParams;
use lance_maintenance_api::preview::CleanupPreview;
use lance_maintenance_api::result::CleanupResult;
use lance_maintenance_api::{ErrorName, TaskError};
use serde_json::Value;
use tracing::warn;

use super::branches::named_by_branches;
use super::errors::to_task_error;
use super::redact::Redactor;
use super::supervisor::{Changed, Phase};
use super::table::Table;
use super::{Operation, OperationContext, to_result};

impl Operation for CleanupParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        ctx.progress.report(0, "looking at tags and branches");
        let dataset = &named_by_branches(&table.dataset, ctx).await?;
        let plan = Plan::of(self, dataset, ctx).await?;
        ctx.progress.report(
            10,
            format!(
                "looking through {} versions",
                dataset.count_versions().await.map_err(failed)?
            ),
        );
        ctx.enter(Phase::Work);
        let stats = dataset
            .cleanup(plan.policy)
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
        to_result(&result(&stats))
    }
}

/// What the task would remove from the table whose newest version `dataset` is at.
pub async fn preview(
    params: &CleanupParams,
    dataset: &Dataset,
    ctx: &OperationContext,
) -> Result<CleanupPreview, TaskError> {
    let redactor = Redactor::new(ctx);
    let failed = |error: Error| to_task_error(&error, &redactor);
    let dataset = &named_by_branches(dataset, ctx).await?;
    let plan = Plan::of(params, dataset, ctx).await?;
    let versions = dataset.count_versions().await.map_err(failed)?;
    let explanation = dataset
        .cleanup(plan.policy)
        .with_max_candidate_files(0)
        .explain()
        .await
        .map_err(failed)?;
    let removed = result(&explanation.stats);
    Ok(CleanupPreview {
        versions_kept: (versions as u64).saturating_sub(removed.old_versions),
        failed_deletes: removed.failed_deletes,
        removed: CleanupResult {
            failed_deletes: 0,
            ..removed
        },
        version: dataset.version_id(),
        tags_kept: plan.tags,
        options: None,
    })
}

fn result(stats: &RemovalStats) -> CleanupResult {
    CleanupResult {
        bytes_removed: stats.bytes_removed,
        old_versions: stats.old_versions,
        data_files_removed: stats.data_files_removed,
        transaction_files_removed: stats.transaction_files_removed,
        index_files_removed: stats.index_files_removed,
        deletion_files_removed: stats.deletion_files_removed,
        failed_deletes: stats.failed_deletes,
    }
}

/// Which versions go.
struct Plan {
    policy: CleanupPolicy,
    /// Tags of versions that would go without them.
    tags: BTreeMap<String, u64>,
}

impl Plan {
    async fn of(
        params: &CleanupParams,
        dataset: &Dataset,
        ctx: &OperationContext,
    ) -> Result<Self, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        let older_than = match params.older_than.as_str() {
            "" => None,
            text => Some(parse_age(text)?),
        };
        let mut policy = CleanupPolicyBuilder::default()
            .delete_unverified(false)
            .error_if_tagged_old_versions(params.error_if_tagged_old_versions);
        if let Some(age) = age(older_than, ctx)? {
            policy = policy.before_timestamp(Utc::now() - age);
        }
        if let Ok(versions @ 1..) = usize::try_from(params.retain_versions) {
            policy = policy
                .retain_n_versions(dataset, versions)
                .await
                .map_err(failed)?;
        }
        let policy = policy.build();
        let tags = tags_in_the_way(dataset, &policy).await.map_err(failed)?;
        if params.error_if_tagged_old_versions && !tags.is_empty() {
            return Err(tagged(&tags));
        }
        Ok(Self { policy, tags })
    }
}

/// The tags that hold a version which would go without them.
async fn tags_in_the_way(
    dataset: &Dataset,
    policy: &CleanupPolicy,
) -> Result<BTreeMap<String, u64>, Error> {
    let mut found = BTreeMap::new();
    for (name, tag) in dataset.tags().list().await? {
        if tag.branch.is_some() || tag.version == dataset.version_id() {
            continue;
        }
        match dataset.checkout_version(tag.version).await {
            Ok(tagged) if policy.should_clean(tagged.manifest()) => {
                found.insert(name, tag.version);
            }
            Ok(_) => {}
            // A tag without a version holds none.
            Err(Error::DatasetNotFound { .. } | Error::VersionNotFound { .. }) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn tagged(tags: &BTreeMap<String, u64>) -> TaskError {
    let tags: Vec<String> = tags
        .iter()
        .map(|(name, version)| format!("'{name}' (version {version})"))
        .collect();
    TaskError::new(
        ErrorName::InvalidInput,
        format!(
            "Versions that would be removed have tags: {}. Delete the tags if these versions may go, or \
             set 'error_if_tagged_old_versions' to false, which keeps them and removes the others.",
            tags.join(", ")
        ),
    )
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
