//! A writer: appends, deletes, updates and overwrites one table, and knows what must come out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use arrow_array::RecordBatchIterator;
use lance::Dataset;
use lance::dataset::builder::DatasetBuilder;
use lance::dataset::write::delete::DeleteBuilder;
use lance::dataset::{UpdateBuilder, WriteMode, WriteParams};
use tokio::time::sleep;

use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::rows::{self, Model};

/// Rows that a table begins with.
const FIRST_ROWS: (u64, u64) = (300, 2_500);
/// From one write to the next, in milliseconds.
const PAUSE: (u64, u64) = (600, 3_000);
/// What only writers do, in Lance's words.
const CHANGES: [&str; 4] = ["Append", "Delete", "Update", "Overwrite"];
/// A table is not made larger than this.
const MOST_ROWS: usize = 4_000;
/// Nor are rows deleted of one as small as this: some indices need 256 vectors.
const LEAST_ROWS: usize = 300;

/// A writer of one table.
#[derive(Debug)]
pub struct Writer {
    uri: String,
    recorder: Recorder,
    rng: Rng,
    has_stable_row_ids: bool,
    next_id: i64,
    done: Done,
}

/// What a writer did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// The rows as they must be.
    pub model: Model,
    /// Commits that were made.
    pub commits: u64,
    /// Commits of which Lance said that they failed, and that were not made.
    pub lost: u64,
    /// Commits of which Lance said that they failed, and that were made.
    pub made_all_the_same: u64,
}

enum Write {
    Append(Model),
    Delete { divisor: i64, rest: i64 },
    Update { divisor: i64, rest: i64 },
    Overwrite(Model),
}

impl Writer {
    /// Writes a table for the first time.
    pub async fn create(location: &str, recorder: &Recorder, mut rng: Rng) -> anyhow::Result<Self> {
        // The scheme by which Lance writes files through its object store, as it does elsewhere.
        let path = location.strip_prefix("file://").context("not a folder")?;
        let mut writer = Self {
            uri: format!("file-object-store://{path}"),
            recorder: recorder.clone(),
            has_stable_row_ids: rng.percent(50),
            rng,
            next_id: 0,
            done: Done::default(),
        };
        let count = writer.rng.between(FIRST_ROWS.0, FIRST_ROWS.1);
        let rows = writer.new_rows(count);
        let reader = reader(&rows)?;
        Dataset::write(reader, &writer.uri, Some(writer.params(WriteMode::Create))).await?;
        writer.done.model = rows;
        writer.done.commits = 1;
        Ok(writer)
    }

    /// Writes until it is told to stop.
    pub async fn run(mut self, stop: &AtomicBool) -> anyhow::Result<Done> {
        loop {
            let pause = self.rng.between(PAUSE.0, PAUSE.1);
            sleep(Duration::from_millis(pause)).await;
            if stop.load(Ordering::Relaxed) {
                return Ok(self.done);
            }
            let write = self.choose();
            self.write(write).await?;
        }
    }

    fn choose(&mut self) -> Write {
        let rest = |rng: &mut Rng, divisor: i64| rng.below(divisor as u64) as i64;
        let rows = self.done.model.len();
        let grows = match self.rng.below(75) {
            _ if rows <= LEAST_ROWS => true,
            _ if rows >= MOST_ROWS => false,
            chance => chance < 50,
        };
        match self.rng.below(100) {
            0..75 if grows => {
                let count = self.rng.between(10, 60);
                Write::Append(self.new_rows(count))
            }
            0..75 => Write::Delete {
                divisor: 13,
                rest: rest(&mut self.rng, 13),
            },
            75..93 => Write::Update {
                divisor: 17,
                rest: rest(&mut self.rng, 17),
            },
            _ => {
                let count = self.rng.between(FIRST_ROWS.0, FIRST_ROWS.1);
                Write::Overwrite(self.new_rows(count))
            }
        }
    }

    fn new_rows(&mut self, count: u64) -> Model {
        let first = self.next_id;
        self.next_id += count as i64;
        (first..self.next_id)
            .map(|id| (id, rows::first_value(id)))
            .collect()
    }

    async fn write(&mut self, write: Write) -> anyhow::Result<()> {
        let dataset = DatasetBuilder::from_uri(&self.uri)
            .with_store_params(self.recorder.params())
            .load()
            .await
            .with_context(|| format!("can't open {}", self.uri))?;
        let before = dataset.version_id();
        let made = match self.try_write(Arc::new(dataset), &write).await {
            Ok(()) => true,
            Err(error) => {
                let made = self.was_made(before).await?;
                match made {
                    true => self.done.made_all_the_same += 1,
                    false => self.done.lost += 1,
                }
                if !is_conflict(&error) {
                    bail!("a writer failed: {error:#}");
                }
                made
            }
        };
        if made {
            self.done.commits += 1;
            apply(&mut self.done.model, write);
        }
        Ok(())
    }

    async fn try_write(&self, dataset: Arc<Dataset>, write: &Write) -> Result<(), lance::Error> {
        let insert = async |rows: &Model, mode| {
            let reader =
                reader(rows).map_err(|error| lance::Error::invalid_input(error.to_string()))?;
            Dataset::write(reader, dataset.clone(), Some(self.params(mode))).await?;
            Ok(())
        };
        match write {
            Write::Append(rows) => insert(rows, WriteMode::Append).await,
            Write::Overwrite(rows) => insert(rows, WriteMode::Overwrite).await,
            Write::Delete { divisor, rest } => {
                let condition = format!("id % {divisor} = {rest}");
                DeleteBuilder::new(dataset, condition).execute().await?;
                Ok(())
            }
            Write::Update { divisor, rest } => {
                UpdateBuilder::new(dataset)
                    .update_where(&format!("id % {divisor} = {rest}"))?
                    .set("value", "value + 1")?
                    .build()?
                    .execute()
                    .await?;
                Ok(())
            }
        }
    }

    /// Whether a change was made after a version: nobody else makes any.
    async fn was_made(&self, before: u64) -> anyhow::Result<bool> {
        let dataset = Dataset::open(&self.uri).await?;
        for version in before + 1..=dataset.version_id() {
            let read = dataset.read_version_transaction(version).await?;
            let name = read
                .transaction
                .map(|made| made.operation.name().to_owned());
            if name.is_some_and(|name| CHANGES.contains(&name.as_str())) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn params(&self, mode: WriteMode) -> WriteParams {
        WriteParams {
            mode,
            store_params: Some(self.recorder.params()),
            enable_stable_row_ids: self.has_stable_row_ids,
            ..Default::default()
        }
    }
}

fn apply(model: &mut Model, write: Write) {
    match write {
        Write::Append(rows) => model.extend(rows),
        Write::Overwrite(rows) => *model = rows,
        Write::Delete { divisor, rest } => model.retain(|id, _| id % divisor != rest),
        Write::Update { divisor, rest } => model
            .iter_mut()
            .filter(|(id, _)| *id % divisor == rest)
            .for_each(|(_, value)| *value += 1),
    }
}

fn is_conflict(error: &lance::Error) -> bool {
    matches!(
        error,
        lance::Error::RetryableCommitConflict { .. }
            | lance::Error::CommitConflict { .. }
            | lance::Error::TooMuchWriteContention { .. }
            | lance::Error::IncompatibleTransaction { .. }
    )
}

fn reader(
    rows: &Model,
) -> anyhow::Result<impl arrow_array::RecordBatchReader + Send + 'static + use<>> {
    let batch = rows::batch(rows)?;
    let schema = batch.schema();
    Ok(RecordBatchIterator::new([Ok(batch)], schema))
}
