//! Fills one fragment: reads its rows, computes, keeps, and writes the column's new file.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Schema as ArrowSchema;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use lance::Error;
use lance::dataset::fragment::FileFragment;
use lance::dataset::transaction::DataReplacementGroup;
use lance_maintenance_api::{ErrorName, TaskError};
use tokio::task::JoinSet;
use tracing::warn;

use super::checkpoints::{Checkpoints, Kept};
use super::meter::RowMeter;
use super::pace::Pace;
use super::rows::{Outcome, Part, Rows};
use super::settings::Settings;
use super::source::Source;
use crate::operations::errors::to_task_error;
use crate::operations::redact::Redactor;

/// Bytes of values that are held back for a checkpoint at the most.
const CHECKPOINT_BYTES: usize = 64 << 20;

/// What fills fragments.
#[derive(Clone)]
pub struct Filler {
    /// Which rows, and with what.
    pub rows: Arc<Rows>,
    /// What is kept.
    pub checkpoints: Arc<Checkpoints>,
    /// How.
    pub settings: Settings,
    /// How many rows at a time.
    pub pace: Arc<Pace>,
    /// How far it is.
    pub meter: Arc<RowMeter>,
    /// For what is said of failures.
    pub redactor: Redactor,
}

/// A fragment that was filled.
pub struct Filled {
    /// The fragment.
    pub fragment: FileFragment,
    /// Its new file, if values are other than before or there was none.
    pub group: Option<DataReplacementGroup>,
    /// What came of it.
    pub outcome: Outcome,
    /// How many of the computed rows an earlier attempt had computed.
    pub resumed: u64,
}

/// What reading a MiB back takes, where the store is a slow one.
const READ_BACK: Duration = Duration::from_millis(20);

type Parts = BoxStream<'static, Result<Part, TaskError>>;

impl Filler {
    /// Fills the fragment. Nothing of it is visible to readers yet.
    pub async fn fill(&self, fragment: FileFragment) -> Result<Filled, TaskError> {
        let failed = |error: Error| to_task_error(&error, &self.redactor);
        let source = self.rows.open(&fragment).await.map_err(failed)?;
        let totals = Arc::new(Mutex::new((Outcome::default(), 0)));
        let mut parts = self.kept(self.parts(&source), &fragment, Arc::clone(&totals));
        // As long as nothing changes nothing needs to be written: what comes before the first part
        // that does is as it is stored.
        let mut first = None;
        let needs_file = self.rows.needs_file(&fragment);
        while let Some(part) = parts.try_next().await? {
            if part.outcome.changed || needs_file {
                first = Some(part);
                break;
            }
        }
        let group = match first {
            Some(first) => Some(self.write(&source, first, parts).await?),
            None => None,
        };
        let (outcome, resumed) = *totals.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Filled {
            fragment,
            group,
            outcome,
            resumed,
        })
    }

    /// All rows in order: what was kept, and what is computed, some parts at the same time.
    fn parts(&self, source: &Source) -> Parts {
        let kept = self.checkpoints.of(source.fragment.metadata());
        let pace = Arc::clone(&self.pace);
        let pieces = pieces(source.rows, kept, move || pace.rows());
        let (this, source) = (self.clone(), source.clone());
        stream::iter(pieces)
            .map(move |(rows, kept)| this.clone().piece(source.clone(), rows, kept))
            .buffered(self.settings.parts)
            .boxed()
    }

    async fn piece(
        self,
        source: Source,
        rows: Range<u64>,
        kept: Option<Kept>,
    ) -> Result<Part, TaskError> {
        if let Some(kept) = kept {
            match self.checkpoints.load(&kept).await {
                Ok(part) => return Ok(part),
                Err(error) => warn!(%error, "a checkpoint can't be read: it is computed again"),
            }
        }
        // A set, since it stops its task when it is dropped.
        let mut running = JoinSet::new();
        running.spawn(async move { self.rows.compute(&source, rows, &self.pace).await });
        match running.join_next().await {
            Some(Ok(computed)) => computed,
            _ => Err(TaskError::new(
                ErrorName::InternalError,
                "Computing rows broke off unexpectedly; the worker's log has more.",
            )),
        }
    }

    /// The same parts, each kept before it is passed on or with some that follow.
    fn kept(
        &self,
        parts: Parts,
        fragment: &FileFragment,
        totals: Arc<Mutex<(Outcome, u64)>>,
    ) -> Parts {
        let keeper = Keeper {
            filler: self.clone(),
            fragment: fragment.clone(),
            held: Vec::new(),
            since: Instant::now(),
        };
        stream::try_unfold(
            (parts, keeper, totals),
            |(mut parts, mut keeper, totals)| async move {
                let Some(part) = parts.try_next().await? else {
                    keeper.flush().await;
                    return Ok(None);
                };
                let computed = part.outcome.computed;
                {
                    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    totals.0 = totals.0.and(part.outcome);
                    totals.1 += if part.resumed { computed } else { 0 };
                }
                keeper.filler.meter.done(computed);
                keeper.add(&part).await;
                Ok(Some((part, (parts, keeper, totals))))
            },
        )
        .boxed()
    }

    async fn write(
        &self,
        source: &Source,
        first: Part,
        rest: Parts,
    ) -> Result<DataReplacementGroup, TaskError> {
        let schema = self.rows.columns();
        let arrow = Arc::new(ArrowSchema::from(&schema));
        let broken = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&broken);
        let before = match first.rows.start {
            0 => stream::empty().boxed(),
            end => {
                let stored = self.rows.open_stored(&source.fragment).await;
                let stored = stored.map_err(|error| to_task_error(&error, &self.redactor))?;
                stored.column(end, Arc::clone(&self.pace))
            }
        };
        let computed = stream::iter(first.values.into_iter().map(Ok))
            .chain(rest.flat_map(|part| {
                stream::iter(match part {
                    Ok(part) => part.values.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                })
            }))
            .map_err(move |error: TaskError| {
                let said = Error::internal("a part could not be computed".to_owned());
                *noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                said
            });
        let batches = before
            .chain(computed)
            .map(move |values: Result<ArrayRef, Error>| {
                Ok(RecordBatch::try_new(Arc::clone(&arrow), vec![values?])?)
            })
            .boxed();
        let written = source.fragment.write_columns(batches, &schema).await;
        written.map_err(|error| {
            let mut broken = broken.lock().unwrap_or_else(PoisonError::into_inner);
            broken
                .take()
                .unwrap_or_else(|| to_task_error(&error, &self.redactor))
        })
    }
}

/// The rows of a fragment in order, in pieces that were kept, and pieces that are to be computed, each of
/// as many rows as are said when its turn comes.
fn pieces(
    rows: u64,
    kept: Vec<Kept>,
    size: impl Fn() -> u64,
) -> impl Iterator<Item = (Range<u64>, Option<Kept>)> {
    let mut kept = kept.into_iter().peekable();
    let mut at = 0;
    std::iter::from_fn(move || {
        while kept.next_if(|kept| kept.rows.start < at).is_some() {}
        let next = kept.next_if(|kept| kept.rows.start == at && kept.rows.end <= rows);
        let end = match (&next, kept.peek()) {
            (Some(found), _) => found.rows.end,
            (None, Some(later)) if later.rows.start > at => {
                rows.min(later.rows.start).min(at + size().max(1))
            }
            _ => rows.min(at + size().max(1)),
        };
        let piece = at..end;
        at = end;
        (!piece.is_empty()).then_some((piece, next))
    })
}

/// Holds parts until there are enough for a checkpoint.
struct Keeper {
    filler: Filler,
    fragment: FileFragment,
    held: Vec<Part>,
    since: Instant,
}

impl Keeper {
    async fn add(&mut self, part: &Part) {
        let settings = self.filler.settings;
        let added = part.rows.end - part.rows.start;
        if part.resumed || self.rows() + added > settings.checkpoint_rows {
            self.flush().await;
        }
        if part.resumed {
            return;
        }
        self.held.push(part.clone());
        let is_time =
            self.since.elapsed() >= settings.flush && self.rows() >= settings.least_checkpoint_rows;
        let is_large = self.bytes() >= CHECKPOINT_BYTES;
        if self.rows() >= settings.checkpoint_rows || is_time || is_large {
            self.flush().await;
        }
    }

    fn rows(&self) -> u64 {
        let rows = self.held.iter().map(|part| part.rows.end - part.rows.start);
        rows.sum()
    }

    fn bytes(&self) -> usize {
        let values = self.held.iter().flat_map(|part| &part.values);
        values.map(|values| values.get_array_memory_size()).sum()
    }

    async fn flush(&mut self) {
        let took = std::mem::replace(&mut self.since, Instant::now()).elapsed();
        let is_cheap =
            took < READ_BACK.saturating_mul(u32::try_from(self.bytes() >> 20).unwrap_or(0));
        let held = std::mem::take(&mut self.held);
        if self.filler.settings.only_costly && is_cheap {
            return;
        }
        // What was not computed is as quickly read from the table.
        if held.iter().any(|part| part.outcome.computed > 0) {
            let fragment = self.fragment.metadata();
            self.filler.checkpoints.keep(fragment, &held).await;
        }
    }
}
