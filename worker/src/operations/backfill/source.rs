//! The rows of a fragment in the order in which they are stored.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema as ArrowSchema;
use arrow_select::concat::concat_batches;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use lance::Error;
use lance::dataset::fragment::{FileFragment, FragReadConfig, FragmentReader};
use lance_core::datatypes::Schema;
use lance_core::utils::deletion::DeletionVector;

use super::pace::{Pace, bytes_of};

/// A fragment that is open for reading some of its columns.
#[derive(Clone)]
pub struct Source {
    /// The fragment.
    pub fragment: FileFragment,
    /// Its rows, deleted ones among them.
    pub rows: u64,
    /// Those that are deleted.
    pub deleted: Option<Arc<DeletionVector>>,
    reader: Arc<FragmentReader>,
}

impl Source {
    /// Opens it for these columns, and for the versions of its rows if they are asked for.
    pub async fn open(
        fragment: &FileFragment,
        columns: &Schema,
        with_versions: bool,
    ) -> Result<Self, Error> {
        // A deleted row has its place in the file of a column, like any other.
        let config = FragReadConfig::default()
            .with_ignore_deletions(true)
            .with_row_last_updated_at_version(with_versions);
        Ok(Self {
            rows: fragment.physical_rows().await? as u64,
            deleted: fragment.get_deletion_vector().await?,
            reader: Arc::new(fragment.open(columns, config).await?),
            fragment: fragment.clone(),
        })
    }

    /// These rows.
    pub async fn read(&self, rows: Range<u64>) -> Result<RecordBatch, Error> {
        let bound = |row: u64| {
            u32::try_from(row)
                .map_err(|_| Error::internal("a fragment of too many rows".to_owned()))
        };
        let (start, end) = (bound(rows.start)?, bound(rows.end)?);
        let batches = self.reader.read_range(start..end, end - start).await?;
        let batches: Vec<RecordBatch> = batches.buffered(1).try_collect().await?;
        if let [batch] = batches.as_slice() {
            return Ok(batch.clone());
        }
        let schema = batches.first().map(RecordBatch::schema);
        let schema = schema.unwrap_or_else(|| Arc::new(ArrowSchema::empty()));
        Ok(concat_batches(&schema, &batches)?)
    }

    /// The rows up to this one with the number of the first, as many at a time as fit.
    pub fn batches(
        self,
        end: u64,
        pace: Arc<Pace>,
    ) -> BoxStream<'static, Result<(u64, RecordBatch), Error>> {
        stream::try_unfold((self, pace, 0), move |(source, pace, at)| async move {
            if at >= end {
                return Ok(None);
            }
            let next = end.min(at + pace.rows());
            let batch = source.read(at..next).await?;
            pace.took(next - at, bytes_of(batch.columns()));
            Ok(Some(((at, batch), (source, pace, next))))
        })
        .boxed()
    }

    /// The same of its only column.
    pub fn column(self, end: u64, pace: Arc<Pace>) -> BoxStream<'static, Result<ArrayRef, Error>> {
        let columns = self.batches(end, pace).map(|batch| {
            let column = batch?.1.columns().first().cloned();
            column.ok_or_else(|| Error::internal("rows without the column".to_owned()))
        });
        columns.boxed()
    }
}
