//! What the creation of any index has in common: the column, the name, building, committing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{Operation as Change, Transaction, TransactionBuilder};
use lance::index::{CreateIndexBuilder, DatasetIndexExt};
use lance::{Dataset, Error};
use lance_index::progress::IndexBuildProgress;
use lance_index::{IndexParams, IndexType};
use lance_maintenance_api::result::IndexResult;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::IndexMetadata;
use uuid::Uuid;

use super::commit::{
    Lost, Retries, begin_commit, committed, earlier_commit, settle, task_properties,
};
use super::errors::to_task_error;
use super::redact::Redactor;
use super::supervisor::{Changed, Phase};
use super::table::{Column, Table, coverage, find_column};
use super::{OperationContext, unreadable};
use crate::progress::Progress;

/// Names that Lance keeps for indices of its own.
const RESERVED_NAMES: &str = "__lance_";
const BUILDING: (u8, u8) = (5, 90);

/// An index that is to be created.
pub trait IndexSpec: Sync {
    /// The column as the task names it.
    fn column(&self) -> &str;
    /// The index's name; empty for the column's default.
    fn name(&self) -> &str;
    /// Whether an index of the name is replaced.
    fn replace(&self) -> bool;
    /// The type as the API names it.
    fn type_name(&self) -> &'static str;
    /// Whether the index may be on a part of the column, such as the elements of its lists.
    fn indexes_parts(&self) -> bool {
        false
    }
    /// What building it on so many rows is expected to need, in bytes.
    fn memory(&self, column: &Column, rows: u64) -> u64;
    /// Checks that such an index can be built on this column, and says how.
    fn prepare(
        &self,
        dataset: &Dataset,
        column: &Column,
    ) -> impl Future<Output = Result<(IndexType, Box<dyn IndexParams>), TaskError>> + Send;
}

/// Creates the index. If another writer changes the table in a way that the index would miss, it is
/// built again on the newest version.
pub async fn create(
    spec: &impl IndexSpec,
    table: &mut Table,
    ctx: &OperationContext,
) -> Result<IndexResult, TaskError> {
    let redactor = Redactor::new(ctx);
    let failed = |error: Error| to_task_error(&error, &redactor);
    if let Some(own) = earlier_commit(&table.dataset, ctx).await.map_err(failed)? {
        return from_transaction(spec, &table.dataset, &own.transaction, own.version)
            .await
            .map_err(failed);
    }
    let mut retries = Retries::new(&ctx.limits);
    loop {
        match create_once(spec, table, ctx).await? {
            Ok(result) => return Ok(result),
            Err(Lost::Committed(own)) => {
                return from_transaction(spec, &table.dataset, &own.transaction, own.version)
                    .await
                    .map_err(failed);
            }
            Err(Lost::Failed(error)) => return Err(failed(error)),
            Err(Lost::Conflict(error)) => {
                if !retries.another(&*ctx.supervisor).await {
                    return Err(failed(error));
                }
                table.refresh(ctx).await?;
            }
        }
    }
}

async fn create_once(
    spec: &impl IndexSpec,
    table: &mut Table,
    ctx: &OperationContext,
) -> Result<Result<IndexResult, Lost>, TaskError> {
    let redactor = Redactor::new(ctx);
    let failed = |error: Error| to_task_error(&error, &redactor);
    ctx.enter(Phase::Plan);
    ctx.progress.report(0, "checking the column");
    let dataset = &table.dataset;
    let column = find_column(dataset.schema(), spec.column())?;
    let name = match spec.name() {
        "" => column.default_index_name.clone(),
        name => name.to_owned(),
    };
    let existing = dataset.load_indices_by_name(&name).await.map_err(failed)?;
    check_name(spec, dataset, &column, &name, &existing)?;
    let (index_type, params) = spec.prepare(dataset, &column).await?;
    let rows = dataset.count_rows(None).await.map_err(failed)?;
    ctx.reserve(spec.memory(&column, rows as u64)).await;

    ctx.enter(Phase::Work);
    let uuid = Uuid::new_v4();
    let mut dataset = dataset.clone();
    let built = CreateIndexBuilder::new(&mut dataset, &[&column.path], index_type, params.as_ref())
        .name(name.clone())
        .replace(spec.replace())
        .index_uuid(uuid)
        .progress(Arc::new(BuildProgress::new(&ctx.progress)))
        .execute_uncommitted()
        .await;
    let index = match built {
        Ok(index) => index,
        Err(error) => {
            let fragments = dataset.fragments().clone();
            let column = Some(column.path.as_str());
            return Err(unreadable::explain(&dataset, &fragments, column, &error, &redactor).await);
        }
    };

    ctx.progress.report(BUILDING.1, "committing");
    let read_version = index.dataset_version;
    let change = Change::CreateIndex {
        new_indices: vec![index],
        removed_indices: existing,
    };
    let transaction = TransactionBuilder::new(read_version, change)
        .transaction_properties(Some(Arc::new(task_properties(ctx))))
        .build();
    begin_commit(table, ctx).await?;
    match CommitBuilder::new(Arc::new(dataset))
        .execute(transaction)
        .await
    {
        Ok(dataset) => {
            table.dataset = dataset;
            committed(table, ctx).await;
            let version = table.dataset.version_id();
            let result = describe(spec, &table.dataset, &name, uuid, version)
                .await
                .map_err(failed)?;
            ctx.changed(Changed {
                rows: result.num_indexed_rows,
                ..Changed::default()
            });
            ctx.progress.report(100, "committed");
            Ok(Ok(result))
        }
        Err(error) => Ok(Err(settle(table, ctx, read_version, error).await)),
    }
}

fn check_name(
    spec: &impl IndexSpec,
    dataset: &Dataset,
    column: &Column,
    name: &str,
    existing: &[IndexMetadata],
) -> Result<(), TaskError> {
    if name.starts_with(RESERVED_NAMES) {
        return Err(TaskError::new(
            ErrorName::InvalidInput,
            format!(
                "Index names that start with '{RESERVED_NAMES}' are Lance's own; choose another."
            ),
        ));
    }
    let Some(index) = existing.first() else {
        return Ok(());
    };
    let exists = |advice: &str| {
        let of = index
            .fields
            .first()
            .and_then(|field| dataset.schema().field_path(*field).ok())
            .unwrap_or_default();
        Err(TaskError::new(
            ErrorName::TableIndexAlreadyExists,
            format!("The table has an index '{name}' already, on column '{of}'; {advice}."),
        ))
    };
    if !spec.replace() {
        return exists("choose another name, or set 'replace'");
    }
    if !spec.indexes_parts() && index.fields.first() != Some(&column.field.id) {
        return exists(
            "an index can only be replaced by one on the same column, so choose another name",
        );
    }
    Ok(())
}

async fn from_transaction(
    spec: &impl IndexSpec,
    dataset: &Dataset,
    transaction: &Transaction,
    version: u64,
) -> Result<IndexResult, Error> {
    let index = match &transaction.operation {
        Change::CreateIndex { new_indices, .. } => new_indices.first(),
        _ => None,
    };
    let (name, uuid) = index
        .map(|index| (index.name.clone(), index.uuid))
        .unwrap_or_default();
    let mut dataset = dataset.clone();
    dataset.checkout_latest().await?;
    describe(spec, &dataset, &name, uuid, version).await
}

async fn describe(
    spec: &impl IndexSpec,
    dataset: &Dataset,
    name: &str,
    uuid: Uuid,
    version: u64,
) -> Result<IndexResult, Error> {
    let segments = dataset.load_indices_by_name(name).await?;
    Ok(IndexResult {
        index_name: name.to_owned(),
        column: spec.column().to_owned(),
        index_type: spec.type_name().to_owned(),
        index_uuid: uuid.to_string(),
        num_indexed_rows: coverage(dataset, &segments, name).await?.num_indexed_rows,
        version,
    })
}

/// Hands on what Lance reports while it builds. How many stages there are is not known beforehand,
/// so each takes a fixed share of what is left.
#[derive(Debug)]
pub struct BuildProgress {
    progress: Progress,
    stages_done: AtomicU32,
    total: std::sync::Mutex<(Option<u64>, String)>,
}

impl BuildProgress {
    const SHARE_LEFT: f64 = 0.7;

    /// Reports to `progress`.
    pub fn new(progress: &Progress) -> Self {
        Self {
            progress: progress.clone(),
            stages_done: AtomicU32::new(0),
            total: Default::default(),
        }
    }

    fn report(&self, part: f64, message: String) {
        let stages = f64::from(self.stages_done.load(Ordering::Relaxed)) + part;
        let done = 1.0 - Self::SHARE_LEFT.powf(stages);
        self.progress
            .report_part(BUILDING, (done * 1000.0) as u64, 1000, message);
    }
}

fn words(stage: &str) -> String {
    stage.replace('_', " ")
}

#[async_trait]
impl IndexBuildProgress for BuildProgress {
    async fn stage_start(&self, stage: &str, total: Option<u64>, unit: &str) -> Result<(), Error> {
        if let Ok(mut known) = self.total.lock() {
            *known = (total, unit.to_owned());
        }
        self.report(0.0, words(stage));
        Ok(())
    }

    async fn stage_progress(&self, stage: &str, completed: u64) -> Result<(), Error> {
        let (total, unit) = match self.total.lock() {
            Ok(known) => known.clone(),
            Err(_) => return Ok(()),
        };
        match total {
            Some(total) if total > 0 => self.report(
                (completed as f64 / total as f64).min(1.0),
                format!("{}: {completed} of {total} {unit}", words(stage)),
            ),
            _ => self.report(0.0, format!("{}: {completed} {unit}", words(stage))),
        }
        Ok(())
    }

    async fn stage_complete(&self, stage: &str) -> Result<(), Error> {
        self.stages_done.fetch_add(1, Ordering::Relaxed);
        self.report(0.0, format!("{}: done", words(stage)));
        Ok(())
    }
}
