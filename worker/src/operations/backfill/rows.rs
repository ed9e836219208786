//! The rows of fragments: which of them are to be computed, and computing them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::DataType;
use arrow_select::filter::{filter, filter_record_batch};
use arrow_select::interleave::interleave;
use futures::TryStreamExt;
use lance::dataset::fragment::FileFragment;
use lance::{Dataset, Error};
use lance_core::datatypes::{Field, Schema};
use lance_core::utils::deletion::DeletionVector;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_table::format::Fragment;

use super::binding::{Bound, Compiled, Computed};
use super::pace::{Pace, bytes_of};
use super::record::Record;
use super::source::Source;
use super::{choice, mistake};
use crate::operations::redact::Redactor;
use crate::operations::table::rows_of;
use crate::operations::unreadable;

/// Rows that are looked at at a time at the most.
const LOOK_ROWS: u64 = 1 << 20;

/// How the rows of one version are chosen and computed.
#[derive(Debug)]
pub struct Rows {
    /// The column.
    pub field: Field,
    /// What is known of rows that were filled, where the table tracks their versions.
    pub record: Option<Record>,
    expression: Bound,
    condition: Option<Bound>,
    /// What is read to compute rows.
    read: Schema,
    /// What is read to choose them, and the condition on it.
    look: Schema,
    look_condition: Option<Bound>,
    look_pace: Arc<Pace>,
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
        let chosen_by = condition.map_or(&[][..], |condition| &condition.inputs);
        let ids = |more: &[i32]| [&[column.field.id], chosen_by, more].concat();
        let schema = dataset.schema();
        let read = schema.project_by_ids(&ids(&column.expression.inputs), true);
        let look = schema.project_by_ids(&ids(&[]), true);
        let bind = |on: &Schema| {
            let bound = condition.map(|condition| condition.bind(on, &redactor));
            bound.transpose()
        };
        Ok(Self {
            expression: column.expression.bind(&read, &redactor)?,
            condition: bind(&read)?,
            look_condition: bind(&look)?,
            look_pace: Arc::new(Pace::new(LOOK_ROWS)),
            field: column.field.clone(),
            record,
            read,
            look,
            redactor,
        })
    }

    /// Opens a fragment for computing its rows.
    pub async fn open(&self, fragment: &FileFragment) -> Result<Source, Error> {
        Source::open(fragment, &self.read, self.is_versioned(fragment)).await
    }

    /// Opens a fragment for reading the column as it is.
    pub async fn open_stored(&self, fragment: &FileFragment) -> Result<Source, Error> {
        Source::open(fragment, &self.columns(), false).await
    }

    /// The column alone.
    pub fn columns(&self) -> Schema {
        Schema {
            fields: vec![self.field.clone()],
            ..Schema::default()
        }
    }

    /// How many rows of the fragment are to be computed.
    pub async fn count(&self, dataset: &Dataset, fragment: &FileFragment) -> Result<u64, Error> {
        let are_all = match &self.record {
            Some(_) => !self.is_versioned(fragment),
            None => !self.is_stored(fragment.metadata()),
        };
        if are_all && self.condition.is_none() {
            return rows_of(dataset, fragment.metadata()).await;
        }
        let source = Source::open(fragment, &self.look, self.is_versioned(fragment)).await?;
        let deleted = source.deleted.clone();
        let rows = source.rows;
        let mut batches = source.batches(rows, Arc::clone(&self.look_pace));
        let mut count = 0;
        while let Some((start, batch)) = batches.try_next().await? {
            let condition = self.look_condition.as_ref();
            let (chosen, _) = self.choose(condition, &batch, start, deleted.as_deref())?;
            count += chosen.true_count() as u64;
        }
        Ok(count)
    }

    /// Whether the versions of its rows say which are to be computed.
    fn is_versioned(&self, fragment: &FileFragment) -> bool {
        let record = self.record.as_ref();
        // Rows that are older than the versions of rows have none. Without a file the fragment is not
        // filled, whatever they say: the column may be a new one that looks like one before. A compaction
        // makes it one that is.
        fragment.metadata().last_updated_at_version_meta.is_some()
            && record.is_some_and(|record| !record.is_blank())
            && self.is_stored(fragment.metadata())
    }

    /// Whether the fragment gets a file even if its values are all null, as they were: it is then known
    /// to be filled.
    pub fn needs_file(&self, fragment: &FileFragment) -> bool {
        self.record.is_some() && !self.is_stored(fragment.metadata())
    }

    /// Whether the fragment has values of the column.
    fn is_stored(&self, fragment: &Fragment) -> bool {
        let ids = self.columns().field_ids();
        let overlays = fragment.overlays.iter().map(|overlay| &overlay.data_file);
        let mut stored = fragment.files.iter().chain(overlays);
        stored.any(|file| file.fields.iter().any(|id| ids.contains(id)))
    }

    /// Reads these rows and computes those that are to be.
    pub async fn compute(
        &self,
        source: &Source,
        rows: Range<u64>,
        pace: &Pace,
    ) -> Result<Part, TaskError> {
        let batch = match source.read(rows.clone()).await {
            Ok(batch) => batch,
            Err(error) => {
                let (dataset, fragment) = (source.fragment.dataset(), source.fragment.metadata());
                let fragments = std::slice::from_ref(fragment);
                return Err(
                    unreadable::explain(dataset, fragments, None, &error, &self.redactor).await,
                );
            }
        };
        let (values, outcome) = self
            .values(&batch, rows.start, source.deleted.as_deref())
            .map_err(|error| self.failed(source, &rows, &error))?;
        let bytes = bytes_of(batch.columns()) + bytes_of(std::slice::from_ref(&values));
        pace.took(rows.end - rows.start, bytes);
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
        let (chosen, outdated) = self.choose(self.condition.as_ref(), batch, start, deleted)?;
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
        condition: Option<&Bound>,
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
        let Some(condition) = condition else {
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
