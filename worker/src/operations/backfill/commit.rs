//! Makes versions of filled fragments: several per task, each marked with the task and with how many rows
//! it filled, so that a later attempt's result adds up.

use std::collections::HashMap;
use std::sync::Arc;

use lance::dataset::CommitBuilder;
use lance::dataset::transaction::{
    DataReplacementGroup, Operation as Change, Transaction, TransactionBuilder,
};
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_maintenance_api::result::BackfillColumnResult;
use lance_table::format::Fragment;
use tracing::warn;

use super::checkpoints::Checkpoints;
use super::column::Column;
use super::done::{Done, has_same_rows};
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
/// The one that is there if rows that are out of date were left as they were.
pub const OUTDATED_PROPERTY: &str = "lance-maintenance.rows-outdated";
/// The one with the version on which it was decided: of a transaction that Lance has rebased, its own may
/// be a later one.
pub const READ_PROPERTY: &str = "lance-maintenance.read-version";
/// The one that says what a commit's values are: the column's description.
pub const COLUMN_PROPERTY: &str = "lance-maintenance.filled-column";

/// The commits of a task, and what they amount to.
pub struct Commits {
    /// What is known of rows that are filled, where the table tracks their versions.
    pub record: Option<Record>,
    /// Fragments that are filled, as far as this task goes.
    pub done: Done,
    /// The result so far.
    pub result: BackfillColumnResult,
    column: Column,
    /// What the table says of filled rows.
    stored: Option<Record>,
    checkpoints: Arc<Checkpoints>,
}

impl Commits {
    /// Begins with what earlier attempts committed.
    pub async fn begin(
        table: &Table,
        ctx: &OperationContext,
        column: Column,
        checkpoints: Arc<Checkpoints>,
    ) -> Result<Self, TaskError> {
        let dataset = &table.dataset;
        let stored = column.record(dataset);
        let mut commits = Self {
            record: stored.clone(),
            done: Done::default(),
            result: BackfillColumnResult::default(),
            column,
            stored,
            checkpoints,
        };
        if ctx.attempt > 1 {
            let failed = |error: Error| to_task_error(&error, &Redactor::new(ctx));
            let own = own_commits(dataset, ctx, 0).await.map_err(failed)?;
            for own in own.iter().rev() {
                commits.add_earlier(dataset, own).await;
            }
        }
        Ok(commits)
    }

    async fn add_earlier(&mut self, dataset: &Dataset, own: &OwnCommit) {
        let Change::DataReplacement { replacements } = &own.transaction.operation else {
            return;
        };
        // The column may be another one by now.
        if property(&own.transaction, COLUMN_PROPERTY) != Some(&self.column.description) {
            return;
        }
        self.result.fragments_filled += replacements.len() as u64;
        self.result.rows_filled += number(&own.transaction, ROWS_PROPERTY).unwrap_or(0);
        // It may be too old to be looked at: its fragments are then looked at again.
        if let Some(read_version) = number(&own.transaction, READ_PROPERTY)
            && let Ok(made) = dataset.checkout_version(own.version).await
        {
            let outdated = property(&own.transaction, OUTDATED_PROPERTY).is_some();
            self.note(&made, read_version, replacements, outdated).await;
        }
    }

    /// Notes that the version `made` has these fragments filled. False if it does not, as others have
    /// changed some right before.
    async fn note(
        &mut self,
        made: &Dataset,
        read_version: u64,
        groups: &[DataReplacementGroup],
        outdated: bool,
    ) -> bool {
        if !is_clean(made, read_version, groups).await {
            return false;
        }
        let filled = |fragment: &&Fragment| groups.iter().any(|of| of.0 == fragment.id);
        for fragment in made.fragments().iter().filter(filled) {
            self.done.add(fragment.clone());
        }
        if let Some(record) = &mut self.record
            && !outdated
        {
            record.add(made.version_id(), !self.column.is_filtered());
        }
        true
    }

    /// The column in this version, which has to be the one that the task began with. What others have the
    /// table say of filled rows, as by restoring a version, counts from now on.
    pub fn follow(&mut self, dataset: &Dataset, redactor: &Redactor) -> Result<Column, TaskError> {
        let column = self.column.again(dataset, redactor)?;
        let stored = column.record(dataset);
        if stored != self.stored {
            self.record.clone_from(&stored);
            self.stored = stored;
        }
        Ok(column)
    }

    /// How many more fragments may be filled, if there may be so many.
    pub fn room(&self, most: Option<i64>) -> usize {
        let most = most.and_then(|most| u64::try_from(most).ok());
        let room = most.map(|most| most.saturating_sub(self.result.fragments_filled));
        room.and_then(|room| usize::try_from(room).ok())
            .unwrap_or(usize::MAX)
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
        self.column.again(&newest, &redactor)?;
        let mut groups = Vec::new();
        let mut written = Vec::new();
        for filled in filled {
            if !has_still(&newest, filled.fragment.metadata()) {
                is_whole = false;
                continue;
            }
            match &filled.group {
                None => {
                    self.done.add(filled.fragment.metadata().clone());
                    self.count(&filled).await;
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
        properties.insert(READ_PROPERTY.to_owned(), read_version.to_string());
        let description = self.column.description.clone();
        properties.insert(COLUMN_PROPERTY.to_owned(), description);
        let outdated = written.iter().any(|filled| filled.outcome.outdated);
        if outdated {
            properties.insert(OUTDATED_PROPERTY.to_owned(), true.to_string());
        }
        let change = Change::DataReplacement {
            replacements: groups.clone(),
        };
        let transaction = build(read_version, change, properties);
        begin_commit(table, ctx).await?;
        let made = CommitBuilder::new(Arc::new(newest))
            .execute(transaction)
            .await;
        // The plan's own version is what the rest of it is read from.
        let made = match made {
            Ok(made) => {
                committed(table, ctx).await;
                Ok(made)
            }
            Err(error) => match settle(table, ctx, read_version, error).await {
                Lost::Committed(own) => {
                    if !has_files(&own.transaction, &groups) {
                        table.journal.go_on();
                        return Ok(false);
                    }
                    table.dataset.checkout_version(own.version).await
                }
                Lost::Conflict(_) => return Ok(false),
                Lost::Failed(Error::IncompatibleTransaction { .. }) => return Ok(false),
                Lost::Failed(error) => return Err(failed(error)),
            },
        };
        table.journal.go_on();
        for filled in &written {
            self.count(filled).await;
        }
        if let Ok(made) = made {
            is_whole &= self.note(&made, read_version, &groups, outdated).await;
        }
        self.result.fragments_filled += written.len() as u64;
        ctx.changed(Changed {
            rows,
            fragments: written.len() as u64,
            ..Changed::default()
        });
        Ok(is_whole)
    }

    async fn count(&mut self, filled: &Filled) {
        self.result.rows_filled += filled.outcome.computed;
        self.result.rows_resumed += filled.resumed;
        self.checkpoints.forget(filled.fragment.metadata()).await;
    }

    /// Whether others have changed a fragment, or removed it.
    pub async fn is_outrun(&self, table: &Table) -> bool {
        let Ok(newest) = newest(&table.dataset).await else {
            return false;
        };
        let is_there = |planned: &Fragment| {
            let mut found = newest.fragments().iter();
            found.any(|now| {
                has_same_rows(planned, now) || (now.id == planned.id && self.done.has(now))
            })
        };
        !table.dataset.fragments().iter().all(is_there)
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
        // Of rows without a version nothing can be said, and what they get later may be an old one.
        let mut fragments = table.dataset.fragments().iter();
        let have_versions = fragments
            .all(|of| of.physical_rows == Some(0) || of.last_updated_at_version_meta.is_some());
        if self.result.rows_left == 0 && !self.column.is_filtered() && have_versions {
            record.complete(table.dataset.version_id());
        }
        if self.stored.as_ref() == Some(&record) {
            return Ok(());
        }
        let change = record.change(&self.column.computed.field);
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

/// Whether this version has the fragment with the rows that it had.
fn has_still(dataset: &Dataset, fragment: &Fragment) -> bool {
    let mut found = dataset.fragments().iter();
    found.any(|found| has_same_rows(fragment, found))
}

/// Whether what others committed between the version that was looked at and the one that was made left the
/// fragments alone. All of their rows count as changed by our commit: what others changed right before
/// can't be told from it any more.
async fn is_clean(made: &Dataset, read_version: u64, groups: &[DataReplacementGroup]) -> bool {
    for between in read_version + 1..made.version_id() {
        let Ok(read) = made.read_version_transaction(between).await else {
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

fn number(transaction: &Transaction, key: &str) -> Option<u64> {
    property(transaction, key)?.parse().ok()
}

fn property<'a>(transaction: &'a Transaction, key: &str) -> Option<&'a String> {
    let properties = transaction.transaction_properties.as_ref();
    properties.and_then(|properties| properties.get(key))
}
