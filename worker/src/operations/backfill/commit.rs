//! Makes versions of filled fragments: several per task, each marked with the task and with how many rows
//! it filled, so that a later attempt's result adds up.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{
    DataReplacementGroup, Operation as Change, Transaction, TransactionBuilder, UpdateMap,
    UpdateMapEntry,
};
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_maintenance_api::result::BackfillColumnResult;
use lance_table::format::Fragment;
use tracing::warn;

use super::Column;
use super::checkpoints::Checkpoints;
use super::fragment::Filled;
use super::record::Record;
use crate::operations::OperationContext;
use crate::operations::commit::{
    Lost, OwnCommit, begin_commit, committed, own_commits, settle, task_properties,
};
use crate::operations::errors::to_task_error;
use crate::operations::meter::REWRITING;
use crate::operations::redact::Redactor;
use crate::operations::supervisor::Changed;
use crate::operations::table::Table;

/// The transaction property that says how many rows a commit filled.
pub const ROWS_PROPERTY: &str = "lance-maintenance.rows-filled";

/// The commits of a task, and what they amount to.
pub struct Commits {
    /// What is known of rows that are filled, where the table tracks their versions.
    pub record: Option<Record>,
    /// Fragments that are filled, as far as this task goes.
    pub done: BTreeSet<u64>,
    /// The result so far.
    pub result: BackfillColumnResult,
    field_id: i32,
    is_filtered: bool,
    /// What the table says of filled rows.
    stored: Option<Record>,
    /// Fragments that were computed and needed no new file.
    unchanged: usize,
    checkpoints: Arc<Checkpoints>,
}

impl Commits {
    /// Begins with what earlier attempts committed.
    pub async fn begin(
        table: &Table,
        ctx: &OperationContext,
        column: &Column,
        checkpoints: Arc<Checkpoints>,
    ) -> Result<Self, TaskError> {
        let dataset = &table.dataset;
        let field_id = column.computed.field.id;
        let stored = dataset
            .manifest()
            .uses_stable_row_ids()
            .then(|| Record::read(dataset, field_id, &column.computed.text));
        let mut commits = Self {
            record: stored.clone(),
            done: BTreeSet::new(),
            result: BackfillColumnResult::default(),
            field_id,
            is_filtered: column.is_filtered(),
            stored,
            unchanged: 0,
            checkpoints,
        };
        if ctx.attempt > 1 {
            let failed = |error: Error| to_task_error(&error, &Redactor::new(ctx));
            for own in own_commits(dataset, ctx, 0).await.map_err(failed)? {
                commits.add_earlier(&own);
            }
        }
        Ok(commits)
    }

    fn add_earlier(&mut self, own: &OwnCommit) {
        let Change::DataReplacement { replacements } = &own.transaction.operation else {
            return;
        };
        self.result.fragments_filled += replacements.len() as u64;
        self.result.rows_filled += rows_of(&own.transaction);
        self.done.extend(replacements.iter().map(|of| of.0));
        if let Some(record) = &mut self.record {
            record.add(own.version, !self.is_filtered);
        }
    }

    /// How many fragments count towards those that are to be filled at the most.
    pub fn fragments_tried(&self) -> usize {
        usize::try_from(self.result.fragments_filled).unwrap_or(usize::MAX) + self.unchanged
    }

    /// Makes filled fragments the table's newest version. False if others have changed some of them.
    pub async fn commit(
        &mut self,
        table: &mut Table,
        ctx: &OperationContext,
        filled: Vec<Filled>,
    ) -> Result<bool, TaskError> {
        let redactor = Redactor::new(ctx);
        let failed = |error: Error| to_task_error(&error, &redactor);
        let mut is_whole = true;
        // What can be seen to conflict is left out, as a conflict would cost the others too.
        let newest = newest(&table.dataset).await.map_err(failed)?;
        let mut groups = Vec::new();
        let mut written = Vec::new();
        for filled in filled {
            if !has_same_rows(&newest, filled.fragment.metadata()) {
                is_whole = false;
                continue;
            }
            match &filled.group {
                None => {
                    self.unchanged += 1;
                    self.fill(&filled).await;
                }
                Some(group) => {
                    groups.push(group.clone());
                    written.push(filled);
                }
            }
        }
        if groups.is_empty() {
            return Ok(is_whole);
        }
        ctx.progress.report(REWRITING.1, "committing");
        let rows: u64 = written.iter().map(|filled| filled.outcome.computed).sum();
        let mut properties = task_properties(ctx);
        properties.insert(ROWS_PROPERTY.to_owned(), rows.to_string());
        let read_version = newest.version_id();
        let change = Change::DataReplacement {
            replacements: groups.clone(),
        };
        let transaction = build(read_version, change, properties);
        begin_commit(table, ctx).await?;
        let made = CommitBuilder::new(Arc::new(newest))
            .execute(transaction)
            .await;
        let version = match made {
            Ok(dataset) => {
                // The plan's own version is what the rest of it is read from.
                let version = dataset.version_id();
                committed(table, ctx).await;
                version
            }
            Err(error) => match settle(table, ctx, read_version, error).await {
                Lost::Committed(own) if has_files(&own.transaction, &groups) => own.version,
                Lost::Committed(_) | Lost::Conflict(_) => return Ok(false),
                Lost::Failed(Error::IncompatibleTransaction { .. }) => return Ok(false),
                Lost::Failed(error) => return Err(failed(error)),
            },
        };
        table.journal.go_on();
        let is_clean = self
            .is_clean(&table.dataset, read_version, version, &groups)
            .await;
        let mut outdated = false;
        for filled in &written {
            outdated |= filled.outcome.outdated;
            self.fill(filled).await;
        }
        if let Some(record) = &mut self.record
            && is_clean
            && !outdated
        {
            record.add(version, !self.is_filtered);
        }
        if !is_clean {
            for filled in &written {
                self.done.remove(&(filled.fragment.id() as u64));
            }
        }
        self.result.fragments_filled += written.len() as u64;
        ctx.changed(Changed {
            rows,
            fragments: written.len() as u64,
            ..Changed::default()
        });
        Ok(is_whole)
    }

    async fn fill(&mut self, filled: &Filled) {
        self.done.insert(filled.fragment.id() as u64);
        self.result.rows_filled += filled.outcome.computed;
        self.result.rows_resumed += filled.resumed;
        self.checkpoints.forget(filled.fragment.metadata()).await;
    }

    /// Whether what others committed between the version that was looked at and ours left the
    /// fragments alone. All of their rows count as changed by our commit: what others changed right
    /// before can't be told from it any more.
    async fn is_clean(
        &self,
        dataset: &Dataset,
        read_version: u64,
        version: u64,
        groups: &[DataReplacementGroup],
    ) -> bool {
        for between in read_version + 1..version {
            let Ok(read) = dataset.read_version_transaction(between).await else {
                return false;
            };
            let changed: Vec<u64> = match read.transaction.map(|of| of.operation) {
                None => return false,
                Some(Change::Update {
                    updated_fragments, ..
                }) => updated_fragments.iter().map(|of| of.id).collect(),
                Some(Change::DataReplacement { replacements }) => {
                    replacements.iter().map(|of| of.0).collect()
                }
                Some(Change::DataOverlay { groups }) => {
                    groups.iter().map(|of| of.fragment_id).collect()
                }
                Some(_) => Vec::new(),
            };
            if groups.iter().any(|group| changed.contains(&group.0)) {
                return false;
            }
        }
        true
    }

    /// Whether a fragment that was being filled is no longer in the table.
    pub async fn is_outrun(&self, table: &Table) -> bool {
        match newest(&table.dataset).await {
            Ok(newest) => table.dataset.fragments().iter().any(|fragment| {
                !self.done.contains(&fragment.id) && !has_same_rows(&newest, fragment)
            }),
            Err(_) => false,
        }
    }

    /// Has the table remember which rows are filled, if that is other than before.
    pub async fn write_record(
        &mut self,
        table: &mut Table,
        ctx: &OperationContext,
    ) -> Result<(), TaskError> {
        let Some(mut record) = self.record.clone() else {
            return Ok(());
        };
        if self.result.rows_filled == 0 {
            return Ok(());
        }
        if self.result.rows_left == 0 && !self.is_filtered {
            record.complete(table.dataset.version_id());
        }
        if self.stored.as_ref() == Some(&record) {
            return Ok(());
        }
        let entry = UpdateMapEntry {
            key: Record::key(self.field_id),
            value: record.text(),
        };
        let change = Change::UpdateConfig {
            config_updates: Some(UpdateMap {
                update_entries: vec![entry],
                replace: false,
            }),
            table_metadata_updates: None,
            schema_metadata_updates: None,
            field_metadata_updates: HashMap::new(),
        };
        let read_version = table.dataset.version_id();
        let transaction = build(read_version, change, task_properties(ctx));
        begin_commit(table, ctx).await?;
        match CommitBuilder::new(Arc::new(table.dataset.clone()))
            .execute(transaction)
            .await
        {
            Ok(dataset) => {
                table.dataset = dataset;
                committed(table, ctx).await;
            }
            // The values are there; the next backfill finds out that nothing changes.
            Err(error) => {
                let lost = settle(table, ctx, read_version, error).await;
                warn!(?lost, "which rows are filled is not noted");
            }
        }
        Ok(())
    }
}

fn build(version: u64, change: Change, properties: HashMap<String, String>) -> Transaction {
    TransactionBuilder::new(version, change)
        .transaction_properties(Some(Arc::new(properties)))
        .build()
}

async fn newest(dataset: &Dataset) -> Result<Dataset, Error> {
    let mut newest = dataset.clone();
    newest.checkout_latest().await?;
    Ok(newest)
}

/// Whether a fragment's rows are the same in this version, where they were, some deleted perhaps.
fn has_same_rows(dataset: &Dataset, fragment: &Fragment) -> bool {
    dataset.fragments().iter().any(|found| {
        found.id == fragment.id
            && found.files == fragment.files
            && found.overlays == fragment.overlays
            && found.physical_rows == fragment.physical_rows
    })
}

/// Whether the commit is of these files.
fn has_files(transaction: &Transaction, groups: &[DataReplacementGroup]) -> bool {
    match &transaction.operation {
        Change::DataReplacement { replacements } => groups.iter().all(|group| {
            replacements
                .iter()
                .any(|of| of.0 == group.0 && of.1.path == group.1.path)
        }),
        _ => false,
    }
}

fn rows_of(transaction: &Transaction) -> u64 {
    let properties = transaction.transaction_properties.as_ref();
    properties
        .and_then(|properties| properties.get(ROWS_PROPERTY)?.parse().ok())
        .unwrap_or(0)
}
