//! Values that an attempt has computed, kept for one that goes on after it.
//!
//! ```text
//! _maintenance/<table id>/<task id>/checkpoints/<fragment id>-<digest>/<first row>-<end>-<outcome>
//! ```
//!
//! Each is a small Arrow IPC file with the values of a column for these rows. The digest is of the
//! fragment with all of its files, and of what is computed: what was kept of a fragment that was changed
//! since is not found. They are no table's files and not entered in the journal, whose books lie beside
//! them; they go when their fragment is committed, when the task ends, or with another task of the table.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Cursor;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field, Schema};
use futures::{StreamExt, stream};
use lance::Error;
use lance_table::format::Fragment;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use tracing::warn;

use super::rows::{Outcome, Part};
use crate::operations::OperationContext;
use crate::operations::journal::Place;
use crate::operations::table::place;

/// The folder, among the books of a task.
pub const FOLDER: &str = "checkpoints";
const CONCURRENT_DELETES: usize = 16;
/// How long removing all of a task may take.
const LONGEST: Duration = Duration::from_secs(30);

/// The checkpoints of a task.
pub struct Checkpoints {
    place: Place,
    table_id: String,
    folder: Path,
    /// What is computed.
    what: String,
    /// By fragment and digest.
    kept: Mutex<BTreeMap<String, Vec<Kept>>>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The rows.
    pub rows: Range<u64>,
    outcome: Outcome,
    path: Path,
    /// Whether it is another attempt's.
    resumed: bool,
}

impl Checkpoints {
    /// Finds those of the task of which `what` is the column with its expression and condition.
    pub async fn open(place: &Place, ctx: &OperationContext, what: String) -> Result<Self, Error> {
        let folder = folder(place, &ctx.table_id, &ctx.task_id);
        let mut kept: BTreeMap<String, Vec<Kept>> = BTreeMap::new();
        for file in place.files_below(&folder).await? {
            if let Some((fragment, found)) = read_path(&folder, &file.location) {
                kept.entry(fragment).or_default().push(found);
            }
        }
        for of_fragment in kept.values_mut() {
            of_fragment.sort_by_key(|kept| kept.rows.start);
            let mut end = 0;
            // Those of an attempt with other sizes may overlap.
            of_fragment.retain(|kept| {
                let is_next = kept.rows.start >= end;
                if is_next {
                    end = kept.rows.end;
                }
                is_next
            });
        }
        Ok(Self {
            place: place.clone(),
            table_id: ctx.table_id.clone(),
            folder,
            what,
            kept: Mutex::new(kept),
        })
    }

    /// Those of a fragment, one after the other.
    pub fn of(&self, fragment: &Fragment) -> Vec<Kept> {
        let kept = self.kept();
        kept.get(&self.name(fragment)).cloned().unwrap_or_default()
    }

    /// Keeps parts that follow each other. That one can't be kept is logged: it will be computed again.
    pub async fn keep(&self, fragment: &Fragment, parts: &[Part]) {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return;
        };
        let rows = first.rows.start..last.rows.end;
        let outcome = parts
            .iter()
            .fold(Outcome::default(), |all, part| all.and(part.outcome));
        let name = self.name(fragment);
        let path = self.folder.clone().join(name.as_str()).join(format!(
            "{}-{}-{}-{}-{}",
            rows.start,
            rows.end,
            outcome.computed,
            u8::from(outcome.changed),
            u8::from(outcome.outdated)
        ));
        let values: Vec<&ArrayRef> = parts.iter().flat_map(|part| &part.values).collect();
        let written = match encode(&values) {
            Ok(bytes) => self.place.store.put(&path, PutPayload::from(bytes)).await,
            Err(error) => {
                warn!(%path, %error, "a checkpoint can't be written");
                return;
            }
        };
        match written {
            Ok(_) => self.kept().entry(name).or_default().push(Kept {
                rows,
                outcome,
                path,
                resumed: false,
            }),
            Err(error) => warn!(%path, %error, "a checkpoint can't be kept"),
        }
    }

    /// Reads what was kept.
    pub async fn load(&self, kept: &Kept) -> Result<Part, Error> {
        let bytes = self.place.store.get(&kept.path).await?.bytes().await?;
        let values = decode(&bytes)?;
        let rows: usize = values.iter().map(|values| values.len()).sum();
        if rows as u64 != kept.rows.end - kept.rows.start {
            return Err(Error::internal("a checkpoint of other rows".to_owned()));
        }
        Ok(Part {
            rows: kept.rows.clone(),
            values,
            outcome: kept.outcome,
            resumed: kept.resumed,
        })
    }

    /// Removes those of a fragment that has its new file.
    pub async fn forget(&self, fragment: &Fragment) {
        let kept = self.kept().remove(&self.name(fragment));
        let paths = kept.into_iter().flatten().map(|kept| kept.path);
        remove_all(&self.place, paths.collect()).await;
        self.place.remove_empty_books(&self.table_id).await;
    }

    fn name(&self, fragment: &Fragment) -> String {
        let mut digest = DefaultHasher::new();
        self.what.hash(&mut digest);
        serde_json::to_string(fragment)
            .unwrap_or_default()
            .hash(&mut digest);
        format!("{}-{:016x}", fragment.id, digest.finish())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Kept>>> {
        // Whole between any two operations on it, panic or not.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes all checkpoints of the context's task, whose table need not be readable.
pub async fn forget(ctx: &OperationContext) {
    let work = async {
        if let Ok(place) = place(ctx).await {
            remove(&place, ctx).await;
        }
    };
    // The next task of the table sees to what is left.
    let _ = tokio::time::timeout(LONGEST, work).await;
}

async fn remove(place: &Place, ctx: &OperationContext) {
    let folder = folder(place, &ctx.table_id, &ctx.task_id);
    match place.files_below(&folder).await {
        Ok(files) if files.is_empty() => {}
        Ok(files) => {
            remove_all(place, files.into_iter().map(|file| file.location).collect()).await;
            place.remove_empty_books(&ctx.table_id).await;
        }
        Err(error) => warn!(%error, "checkpoints are left to the next task"),
    }
}

/// Removes objects; what can't be removed is logged.
pub async fn remove_all(place: &Place, paths: Vec<Path>) {
    stream::iter(paths)
        .for_each_concurrent(CONCURRENT_DELETES, |path| async move {
            let _ = place.remove_object(&path).await;
        })
        .await;
}

fn folder(place: &Place, table_id: &str, task_id: &str) -> Path {
    place.books(table_id).join(task_id).join(FOLDER)
}

fn read_path(folder: &Path, path: &Path) -> Option<(String, Kept)> {
    let parts: Vec<String> = path
        .prefix_match(folder)?
        .map(|part| part.as_ref().to_owned())
        .collect();
    let [fragment, name] = parts.as_slice() else {
        return None;
    };
    let numbers: Vec<u64> = name
        .split('-')
        .map(|number| number.parse().ok())
        .collect::<Option<_>>()?;
    let [start, end, computed, changed, outdated] = numbers[..] else {
        return None;
    };
    let kept = Kept {
        rows: start..end,
        outcome: Outcome {
            computed,
            changed: changed == 1,
            outdated: outdated == 1,
        },
        path: path.clone(),
        resumed: true,
    };
    (start < end).then(|| (fragment.clone(), kept))
}

fn encode(values: &[&ArrayRef]) -> Result<Vec<u8>, ArrowError> {
    let Some(first) = values.first() else {
        return Ok(Vec::new());
    };
    let field = Field::new("values", first.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let mut writer = FileWriter::try_new(Vec::new(), &schema)?;
    for values in values {
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)])?;
        writer.write(&batch)?;
    }
    writer.into_inner()
}

fn decode(bytes: &[u8]) -> Result<Vec<ArrayRef>, ArrowError> {
    FileReader::try_new(Cursor::new(bytes), None)?
        .map(|batch| {
            let column = batch?.columns().first().cloned();
            column.ok_or_else(|| ArrowError::IpcError("no column".to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn values_come_back() {
        let one: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let two: ArrayRef = Arc::new(Int64Array::from(vec![Some(3)]));
        let bytes = encode(&[&one, &two]).unwrap();
        assert_eq!(decode(&bytes).unwrap(), vec![one, two]);
        assert!(decode(&bytes[..bytes.len() / 2]).is_err());
    }

    #[test]
    fn only_what_is_named_so_is_one() {
        let folder = Path::from("t/_maintenance/T/task/checkpoints");
        let read = |name: &str| read_path(&folder, &Path::from(format!("{folder}/{name}")));
        let (fragment, kept) = read("3-00ff/0-8192-8000-1-0").unwrap();
        assert_eq!(fragment, "3-00ff");
        assert_eq!(kept.rows, 0..8192);
        assert_eq!(kept.outcome.computed, 8000);
        assert!(kept.outcome.changed && !kept.outcome.outdated && kept.resumed);
        for other in [
            "3-00ff/0-8192",
            "3-00ff/5-5-0-0-0",
            "3-00ff",
            "3-00ff/a-1-1-1-1",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
