//! The rows of fragments: which of them are to be computed, and computing them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use arrow_select::filter::{filter, filter_record_batch};
use arrow_select::interleave::interleave;
use futures::{StreamExt, TryStreamExt};
use lance::dataset::fragment::{FileFragment, FragReadConfig, FragmentReader};
use lance::{Dataset, Error};
use lance_core::datatypes::{Field, Schema};
use lance_core::utils::deletion::DeletionVector;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::Fragment;

use super::binding::{Bound, Compiled, Computed};
use super::record::Record;
use super::{choice, mistake};
use crate::operations::redact::Redactor;
use crate::operations::table::rows_of;
use crate::operations::unreadable;

/// Batches that are decoded ahead.
const AHEAD: usize = 2;

/// How the rows of one version are chosen and computed.
#[derive(Debug)]
pub struct Rows {
    /// The column.
    pub field: Field,
    /// What is known of rows that were filled, where the table tracks their versions.
    pub record: Option<Record>,
    read: Schema,
    expression: Bound,
    condition: Option<Bound>,
    redactor: Redactor,
}

/// Rows of a fragment with their values of the column, computed or as they were.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which rows, deleted ones among them.
    pub rows: Range<u64>,
    /// Their values.
    pub values: Vec<ArrayRef>,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether it was computed before.
    pub resumed: bool,
}

/// What came of computing rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows that were computed.
    pub computed: u64,
    /// Whether values differ from those before.
    pub changed: bool,
    /// Whether rows that were filled are out of date, and were not chosen.
    pub outdated: bool,
}

impl Outcome {
    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            computed: self.computed + other.computed,
            changed: self.changed | other.changed,
            outdated: self.outdated | other.outdated,
        }
    }
}

/// A fragment that is open for reading.
#[derive(Clone)]
pub struct Source {
    /// The fragment.
    pub fragment: FileFragment,
    /// Its rows, deleted ones among them.
    pub rows: u64,
    reader: Arc<FragmentReader>,
    deleted: Option<Arc<DeletionVector>>,
}

impl Rows {
    /// How the rows of this version are chosen: those that meet the condition, or else those that are
    /// null or, by the record, out of date.
    pub fn new(
        dataset: &Dataset,
        column: &Computed,
        condition: Option<&Compiled>,
        record: Option<Record>,
        redactor: Redactor,
    ) -> Result<Self, TaskError> {
        let conditions = condition.iter().flat_map(|condition| &condition.inputs);
        let ids: Vec<i32> = [column.field.id]
            .iter()
            .chain(&column.expression.inputs)
            .chain(conditions)
            .copied()
            .collect();
        let read = dataset.schema().project_by_ids(&ids, true);
        Ok(Self {
            expression: column.expression.bind(&read, &redactor)?,
            condition: condition
                .map(|condition| condition.bind(&read, &redactor))
                .transpose()?,
            field: column.field.clone(),
            record,
            read,
            redactor,
        })
    }

    /// Opens a fragment.
    pub async fn open(&self, fragment: &FileFragment) -> Result<Source, Error> {
        self.open_with(fragment, &self.read).await
    }

    async fn open_with(&self, fragment: &FileFragment, read: &Schema) -> Result<Source, Error> {
        // A deleted row has its place in the file of a column, like any other.
        let config = FragReadConfig::default()
            .with_ignore_deletions(true)
            .with_row_last_updated_at_version(self.record.is_some());
        Ok(Source {
            rows: fragment.physical_rows().await? as u64,
            deleted: fragment.get_deletion_vector().await?,
            reader: Arc::new(fragment.open(read, config).await?),
            fragment: fragment.clone(),
        })
    }

    /// How many rows of the fragment are to be computed.
    pub async fn count(&self, dataset: &Dataset, fragment: &FileFragment) -> Result<u64, Error> {
        let is_plain = self.record.is_none() && self.condition.is_none();
        if is_plain && !self.is_stored(fragment.metadata()) {
            return rows_of(dataset, fragment.metadata()).await;
        }
        // A condition may name any column; nulls and versions are of this one.
        let source = match self.condition {
            Some(_) => self.open(fragment).await?,
            None => {
                let read = dataset.schema().project_by_ids(&[self.field.id], true);
                self.open_with(fragment, &read).await?
            }
        };
        let mut batches = source.batches(0..source.rows, 65_536).await?;
        let (mut at, mut count) = (0, 0);
        while let Some(batch) = batches.try_next().await? {
            let (chosen, _) = self.choose(&batch, at, source.deleted.as_deref())?;
            count += chosen.true_count() as u64;
            at += batch.num_rows() as u64;
        }
        Ok(count)
    }

    /// Whether the fragment has values of the column.
    fn is_stored(&self, fragment: &Fragment) -> bool {
        let mut files = fragment.files.iter();
        files.any(|file| file.fields.contains(&self.field.id))
            || self.field.children.iter().any(|child| {
                fragment
                    .files
                    .iter()
                    .any(|file| file.fields.contains(&child.id))
            })
            || !fragment.overlays.is_empty()
    }

    /// Reads these rows and computes those that are to be.
    pub async fn compute(&self, source: &Source, rows: Range<u64>) -> Result<Part, TaskError> {
        let failed = |error: &Error| self.failed(source, &rows, error);
        let size = u32::try_from(rows.end - rows.start).unwrap_or(u32::MAX);
        let read = async {
            let batches = source.batches(rows.clone(), size).await?;
            batches.try_collect::<Vec<_>>().await
        };
        let batches = match read.await {
            Ok(batches) => batches,
            Err(error) => {
                let (dataset, fragment) = (source.fragment.dataset(), source.fragment.metadata());
                let fragments = std::slice::from_ref(fragment);
                return Err(
                    unreadable::explain(dataset, fragments, None, &error, &self.redactor).await,
                );
            }
        };
        let batch = match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => batch,
            Err(batches) => {
                let schema = batches.first().map(RecordBatch::schema);
                let schema = schema.unwrap_or_else(|| Arc::new(arrow_schema::Schema::empty()));
                concat_batches(&schema, &batches).map_err(|error| failed(&error.into()))?
            }
        };
        let (values, outcome) = self
            .values(&batch, rows.start, source.deleted.as_deref())
            .map_err(|error| failed(&error))?;
        Ok(Part {
            rows: rows.clone(),
            values: vec![values],
            outcome,
            resumed: false,
        })
    }

    fn values(
        &self,
        batch: &RecordBatch,
        start: u64,
        deleted: Option<&DeletionVector>,
    ) -> Result<(ArrayRef, Outcome), Error> {
        let (chosen, outdated) = self.choose(batch, start, deleted)?;
        let before = Arc::clone(self.column(batch)?);
        let count = chosen.true_count();
        let outcome = Outcome {
            computed: count as u64,
            changed: false,
            outdated,
        };
        if count == 0 {
            return Ok((before, outcome));
        }
        let all = count == batch.num_rows();
        let input = match all {
            true => batch.clone(),
            false => filter_record_batch(batch, &chosen)?,
        };
        let computed = self.expression.values(&input, before.data_type())?;
        if all {
            let changed = before.as_ref() != computed.as_ref();
            return Ok((computed, Outcome { changed, ..outcome }));
        }
        let changed = filter(&before, &chosen)?.as_ref() != computed.as_ref();
        if !changed {
            return Ok((before, outcome));
        }
        let mut next = 0;
        let places: Vec<(usize, usize)> = chosen
            .values()
            .iter()
            .enumerate()
            .map(|(row, is_chosen)| match is_chosen {
                true => {
                    next += 1;
                    (1, next - 1)
                }
                false => (0, row),
            })
            .collect();
        let merged = interleave(&[before.as_ref(), computed.as_ref()], &places)?;
        Ok((merged, Outcome { changed, ..outcome }))
    }

    /// Which rows are to be computed; and whether others, with a value, are out of date.
    fn choose(
        &self,
        batch: &RecordBatch,
        start: u64,
        deleted: Option<&DeletionVector>,
    ) -> Result<(BooleanArray, bool), Error> {
        let live = choice::live(start, batch.num_rows(), deleted);
        let null = choice::null(self.column(batch)?);
        let to_do = match &self.record {
            Some(record) => Some(choice::to_do(record, batch, &null)?),
            None => None,
        };
        let Some(condition) = &self.condition else {
            let chosen = to_do.unwrap_or(null);
            return Ok((choice::both(chosen, live.as_ref()), false));
        };
        // Deleted rows are not looked at: nothing of them may fail.
        let met = match &live {
            None => choice::met(&condition.values(batch, &DataType::Boolean)?)?,
            Some(live) => {
                let live = BooleanArray::from(live.clone());
                let looked_at = filter_record_batch(batch, &live)?;
                let met = choice::met(&condition.values(&looked_at, &DataType::Boolean)?)?;
                choice::spread(&met, &live)
            }
        };
        let outdated = to_do.is_some_and(|to_do| {
            let others = &(&to_do & &!&null) & &!&met;
            choice::both(others, live.as_ref()).true_count() > 0
        });
        Ok((BooleanArray::from(met), outdated))
    }

    fn column<'a>(&self, batch: &'a RecordBatch) -> Result<&'a ArrayRef, Error> {
        batch
            .column_by_name(&self.field.name)
            .ok_or_else(|| Error::internal("rows without the column".to_owned()))
    }

    /// Rows that can't be computed, with what Lance or a kernel says of it.
    fn failed(&self, source: &Source, rows: &Range<u64>, error: &Error) -> TaskError {
        let reason = mistake::reason(error, &self.redactor);
        TaskError::new(
            ErrorName::InvalidInput,
            format!(
                "The value of '{}' can't be computed for rows {} to {} of fragment {}: {}",
                self.field.name,
                rows.start,
                rows.end,
                source.fragment.id(),
                reason
            ),
        )
    }
}

impl Source {
    /// Its rows in the order in which they are stored, so many at a time.
    pub async fn batches(
        &self,
        rows: Range<u64>,
        size: u32,
    ) -> Result<futures::stream::BoxStream<'static, Result<RecordBatch, Error>>, Error> {
        let bound = |row: u64| {
            u32::try_from(row)
                .map_err(|_| Error::internal("a fragment of too many rows".to_owned()))
        };
        let range = bound(rows.start)?..bound(rows.end)?;
        let batches = self.reader.read_range(range, size.max(1)).await?;
        Ok(batches.buffered(AHEAD).boxed())
    }

    /// The column of these rows as it is stored.
    pub async fn stored(
        &self,
        field: &Field,
        rows: Range<u64>,
        size: u32,
    ) -> Result<futures::stream::BoxStream<'static, Result<ArrayRef, Error>>, Error> {
        let name = field.name.clone();
        let batches = self.batches(rows, size).await?;
        let columns = batches.map(move |batch| {
            let column = batch?.column_by_name(&name).cloned();
            column.ok_or_else(|| Error::internal("rows without the column".to_owned()))
        });
        Ok(columns.boxed())
    }
}
