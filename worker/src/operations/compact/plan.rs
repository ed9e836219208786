//! What a compaction would rewrite.
//!
//! Lance plans, and of its groups those stay whose rewriting leaves something better behind. Budgets
//! are applied to what is left: groups that are passed over must not use them up.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use lance::dataset::optimize::{
    CompactionMode as LanceMode, CompactionOptions, CompactionPlan, TaskData, plan_compaction,
};
use lance::{Dataset, Error};
use lance_maintenance_api::health::CompactionOutlook;
use lance_maintenance_api::health::worth::Exchange;
use lance_maintenance_api::params::{CompactParams, CompactionMode};
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::Fragment;

use crate::operations::commit::task_properties;
use crate::operations::errors::to_task_error;
use crate::operations::meter::Work;
use crate::operations::redact::Redactor;
use crate::operations::{OperationContext, memory, unreadable};

/// Where Lance's writer begins another file if nothing else is said.
const MAX_BYTES_PER_FILE: u64 = 90 << 30;
/// What Lance's writer holds of a column before it counts, so that limits have an effect in steps of it.
const WRITER_BUFFER: u64 = 8 << 20;

/// The parameters with what a job left out filled in: from the table's configuration, else Lance's
/// default.
pub fn effective(params: &CompactParams, dataset: &Dataset) -> Result<CompactParams, Error> {
    let table = CompactionOptions::from_dataset_config(dataset.config())?;
    let to_i64 = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    Ok(CompactParams {
        target_rows_per_fragment: params
            .target_rows_per_fragment
            .or(Some(to_i64(table.target_rows_per_fragment))),
        materialize_deletions: params
            .materialize_deletions
            .or(Some(table.materialize_deletions)),
        materialize_deletions_threshold: params
            .materialize_deletions_threshold
            // By way of its digits: 0.1 is 0.1, and not what f32 makes of it.
            .or_else(|| {
                table
                    .materialize_deletions_threshold
                    .to_string()
                    .parse()
                    .ok()
            }),
        max_rows_per_group: params
            .max_rows_per_group
            .or(Some(to_i64(table.max_rows_per_group))),
        max_bytes_per_file: params
            .max_bytes_per_file
            .or(Some(table.max_bytes_per_file.map_or(0, to_i64))),
        compaction_mode: params.compaction_mode.or(Some(match table.compaction_mode {
            None | Some(LanceMode::Reencode) => CompactionMode::Reencode,
            Some(LanceMode::TryBinaryCopy) => CompactionMode::TryBinaryCopy,
            Some(LanceMode::ForceBinaryCopy) => CompactionMode::ForceBinaryCopy,
        })),
        table_budgets: params.table_budgets,
    })
}

/// A planned compaction of one version of a table.
#[derive(Debug)]
pub struct Compaction {
    pub(super) plan: CompactionPlan,
    /// The groups that there would be without a budget.
    pub tasks_without_budget: usize,
    /// The budgets that apply, by their names.
    pub budgets: BTreeMap<&'static str, u64>,
}

impl Compaction {
    /// Plans the compaction of the version that `dataset` is at.
    pub async fn plan(
        dataset: &Dataset,
        params: &CompactParams,
        ctx: &OperationContext,
    ) -> Result<Self, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        let params = effective(params, dataset).map_err(failed)?;
        let (mut options, budgets) = options(&params, dataset).map_err(failed)?;
        options.transaction_properties = Some(Arc::new(task_properties(ctx)));
        let mut plan = match plan_compaction(dataset, &options).await {
            Ok(plan) => plan,
            Err(error) => {
                let fragments = dataset.fragments().clone();
                return Err(
                    unreadable::explain(dataset, &fragments, None, &error, &redactor).await,
                );
            }
        };
        let options = &plan.options;
        if !(options.materialize_deletions && options.materialize_deletions_threshold < 0.0) {
            let max_bytes = max_bytes(options);
            plan.tasks
                .retain(|task| is_gain(&task.fragments, max_bytes));
        }
        let tasks_without_budget = plan.num_tasks();
        budgets.limit(&mut plan.tasks, dataset).map_err(failed)?;
        if plan.num_tasks() == 0 && tasks_without_budget > 0 {
            return Err(budgets.too_small());
        }
        if plan.options.batch_size.is_none() {
            plan.options.batch_size = batch_size(&plan);
        }
        Ok(Self {
            plan,
            tasks_without_budget,
            budgets: budgets.named(),
        })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.plan.num_tasks() == 0
    }

    /// The fragments that are rewritten.
    pub fn fragments(&self) -> impl Iterator<Item = &Fragment> {
        self.plan.tasks.iter().flat_map(|task| &task.fragments)
    }

    /// How much that is.
    pub(super) fn work(&self) -> Work {
        Work::of(self.fragments())
    }

    /// What the rewriting is expected to need, in bytes.
    pub(super) fn memory(&self, ctx: &OperationContext) -> u64 {
        let rewrites = ctx
            .limits
            .concurrent_rewrites
            .clamp(1, self.plan.num_tasks().max(1));
        memory::compaction(self.work(), rewrites as u64)
    }

    /// What comes of it.
    pub fn outlook(&self) -> CompactionOutlook {
        let work = self.work();
        let rows_rewritten = self.fragments().map(live_rows).sum::<u64>();
        let deleted_rows_dropped = work.rows.saturating_sub(rows_rewritten);
        let fragments_added = self.plan.tasks.iter().map(|task| self.outputs(task)).sum();
        let exchange = Exchange {
            fragments_removed: work.fragments.saturating_sub(fragments_added),
            rows_rewritten,
            deleted_rows_dropped,
            bytes_rewritten: work.bytes,
        };
        CompactionOutlook {
            target_rows_per_fragment: None,
            tasks: self.plan.num_tasks() as u64,
            fragments_rewritten: work.fragments,
            fragments_added,
            rows_rewritten,
            deleted_rows_dropped,
            bytes_rewritten: work.bytes,
            is_worthwhile: exchange.is_worthwhile(),
            is_over_budget: false,
        }
    }

    /// How many fragments Lance makes of a group: as many as the target fits into its rows, and more
    /// where files are limited by bytes.
    fn outputs(&self, task: &TaskData) -> u64 {
        let rows: u64 = task.fragments.iter().map(live_rows).sum();
        if rows == 0 {
            return 0;
        }
        let target = self.plan.options.target_rows_per_fragment as u64;
        let by_rows = rows.checked_div(target).unwrap_or(1).max(1);
        let work = Work::of(&task.fragments);
        let live = u128::from(work.bytes) * u128::from(rows) / u128::from(work.rows.max(1));
        let limit = u128::from(file_bytes(max_bytes(&self.plan.options)));
        by_rows.max(u64::try_from(live.div_ceil(limit)).unwrap_or(u64::MAX))
    }
}

/// The budgets of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Budgets {
    fragments: Option<u64>,
    rows: Option<u64>,
    bytes: Option<u64>,
}

impl Budgets {
    /// Keeps groups, in their order, as long as they stay within every budget, as Lance does.
    fn limit(self, tasks: &mut Vec<TaskData>, dataset: &Dataset) -> Result<(), Error> {
        let columns: HashSet<i32> = dataset.schema().field_ids().into_iter().collect();
        let (mut fragments, mut rows, mut bytes) = (0, 0, 0);
        let mut kept = 0;
        for task in tasks.iter() {
            fragments += task.fragments.len() as u64;
            rows += task.fragments.iter().map(live_rows).sum::<u64>();
            if self.bytes.is_some() {
                bytes += source_bytes(task, &columns)?;
            }
            let is_over = |budget: Option<u64>, used| budget.is_some_and(|budget| used > budget);
            if is_over(self.fragments, fragments)
                || is_over(self.rows, rows)
                || is_over(self.bytes, bytes)
            {
                break;
            }
            kept += 1;
        }
        tasks.truncate(kept);
        Ok(())
    }

    fn named(self) -> BTreeMap<&'static str, u64> {
        let all = [
            ("max_source_fragments", self.fragments),
            ("max_source_rows", self.rows),
            ("max_source_bytes", self.bytes),
        ];
        let set = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        set.collect()
    }

    fn too_small(self) -> TaskError {
        let budgets: Vec<String> = self
            .named()
            .into_iter()
            .map(|(name, value)| format!("lance.compaction.{name} = {value}"))
            .collect();
        TaskError::new(
            ErrorName::InvalidInput,
            format!(
                "The table's budget for one run is too small for the first group of fragments that needs \
                 to be compacted, so that nothing would be done. Raise it in the table's configuration: {}.",
                budgets.join(", ")
            ),
        )
    }
}

/// The bytes of a group's files that hold columns the table still has.
fn source_bytes(task: &TaskData, columns: &HashSet<i32>) -> Result<u64, Error> {
    let mut bytes = 0;
    for fragment in &task.fragments {
        let overlays = fragment.overlays.iter().map(|overlay| &overlay.data_file);
        for file in fragment.files.iter().chain(overlays) {
            if !file.fields.iter().any(|field| columns.contains(field)) {
                continue;
            }
            let size = file.file_size_bytes.get().ok_or_else(|| {
                Error::invalid_input(format!(
                    "The table has a budget by bytes, lance.compaction.max_source_bytes, and does not note \
                     the size of its file '{}': remove that budget from its configuration.",
                    file.path
                ))
            })?;
            bytes += u64::from(size);
        }
    }
    Ok(bytes)
}

/// What Lance is told to plan with, all budgets left out, and the budgets.
fn options(
    params: &CompactParams,
    dataset: &Dataset,
) -> Result<(CompactionOptions, Budgets), Error> {
    let mut options = CompactionOptions::from_dataset_config(dataset.config())?;
    if params.table_budgets {
        // A budget of nothing is refused.
        options.validate()?;
    }
    let table = Budgets {
        fragments: options
            .max_source_fragments
            .take()
            .map(|value| value as u64),
        rows: options.max_source_rows.take().map(|value| value as u64),
        bytes: options.max_source_bytes.take(),
    };
    let budgets = match params.table_budgets {
        true => table,
        false => Budgets::default(),
    };
    if let Some(rows) = params.target_rows_per_fragment {
        options.target_rows_per_fragment = to_usize(rows);
    }
    if let Some(materialize) = params.materialize_deletions {
        options.materialize_deletions = materialize;
    }
    if let Some(share) = params.materialize_deletions_threshold {
        options.materialize_deletions_threshold = threshold(share);
    }
    if let Some(rows) = params.max_rows_per_group {
        options.max_rows_per_group = to_usize(rows);
    }
    options.max_bytes_per_file = match params.max_bytes_per_file {
        None => options.max_bytes_per_file,
        Some(0) => None,
        Some(bytes) => Some(to_usize(bytes)),
    };
    if let Some(mode) = params.compaction_mode {
        options.compaction_mode = Some(match mode {
            CompactionMode::Reencode => LanceMode::Reencode,
            CompactionMode::TryBinaryCopy => LanceMode::TryBinaryCopy,
            CompactionMode::ForceBinaryCopy => LanceMode::ForceBinaryCopy,
        });
    }
    Ok((options, budgets))
}

/// The threshold as Lance takes it, on the same side of 0 and 1 as the one that was given: below 0
/// every fragment is rewritten, from 1 on none.
fn threshold(given: f64) -> f32 {
    match given {
        below if below < 0.0 => -1.0,
        share if share < 1.0 => (share as f32).min(1.0_f32.next_down()),
        _ => 1.0,
    }
}

/// Parameters are not negative; one that is too large for the machine is as good as its largest.
fn to_usize(value: i64) -> usize {
    usize::try_from(value).unwrap_or(if value < 0 { 0 } else { usize::MAX })
}

/// Where a file ends, in bytes.
fn max_bytes(options: &CompactionOptions) -> u64 {
    options
        .max_bytes_per_file
        .map_or(MAX_BYTES_PER_FILE, |bytes| bytes as u64)
}

/// What a file comes to that ends there, in bytes.
fn file_bytes(max_bytes: u64) -> u64 {
    let buffers = max_bytes.div_ceil(WRITER_BUFFER).max(1);
    buffers.saturating_mul(WRITER_BUFFER)
}

/// The rows of a fragment that are not deleted, as far as the manifest knows.
fn live_rows(fragment: &Fragment) -> u64 {
    fragment.num_rows().unwrap_or(0) as u64
}

/// Whether rewriting the fragments leaves fewer. Lance plans by rows alone: files that are as large
/// as they may be, with fewer rows than the target, it would rewrite every time.
fn is_gain(fragments: &[Fragment], max_bytes: u64) -> bool {
    let is_whole = |fragment: &Fragment| {
        fragment.deletion_file.is_none()
            && fragment.files.len() == 1
            && fragment.overlays.is_empty()
    };
    // A single one is planned for something else that is wrong with it.
    if fragments.len() == 1 || !fragments.iter().all(is_whole) {
        return true;
    }
    let files = Work::of(fragments).bytes.div_ceil(file_bytes(max_bytes));
    files < fragments.len() as u64
}

/// Rows to read at a time where they are so wide that Lance's own number would hold too much in
/// memory: about 32 MiB worth.
fn batch_size(plan: &CompactionPlan) -> Option<usize> {
    const BATCH_BYTES: u64 = 32 << 20;
    const LANCE_BATCH_ROWS: u64 = 8192;
    let work = Work::of(plan.tasks.iter().flat_map(|task| &task.fragments));
    let row_bytes = work.bytes.checked_div(work.rows)?.max(1);
    let rows = BATCH_BYTES / row_bytes;
    (rows < LANCE_BATCH_ROWS)
        .then(|| usize::try_from(rows.max(1)).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_stay_on_their_side() {
        for (given, lance) in [
            (0.1, 0.1_f32),
            (-1.0, -1.0),
            (-1e-60, -1.0),
            (1.0, 1.0),
            (2.5, 1.0),
            (0.999_999_999_99, 1.0_f32.next_down()),
        ] {
            assert_eq!(threshold(given), lance, "{given}");
        }
    }
}
