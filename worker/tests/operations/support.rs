//! Tables to try operations on, and what to look at afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Int64Array, ListArray, RecordBatch, RecordBatchIterator,
    StringArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Schema};
use futures::TryStreamExt;
use lance::Dataset;
use lance::dataset::{WriteMode, WriteParams};
use lance::index::DatasetIndexExt;
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::{
    BackfillColumnParams, CleanupParams, CompactParams, OptimizeIndicesParams, ScalarIndexParams,
    TaskParams, VectorIndexParams,
};
use lance_worker::operations::{OperationContext, run};
use serde_json::Value;
use tempfile::TempDir;

pub const DIMENSION: i32 = 16;
/// What the catalog would call every table.
pub const TABLE_ID: &str = "T";

/// A table in a folder of its own.
pub struct Table {
    folder: TempDir,
}

impl Table {
    /// A table with the rows of these ids in files of `rows_per_file`.
    pub async fn with_rows(ids: std::ops::Range<i64>, rows_per_file: usize) -> Self {
        Self::write(rows(ids), rows_per_file, false).await
    }

    pub async fn write(batch: RecordBatch, rows_per_file: usize, stable_row_ids: bool) -> Self {
        let table = Self::nothing();
        let params = WriteParams {
            max_rows_per_file: rows_per_file,
            enable_stable_row_ids: stable_row_ids,
            ..Default::default()
        };
        write(batch, &table.uri(), params).await;
        table
    }

    /// A folder in which no table is.
    pub fn nothing() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("t.lance")
    }

    pub fn uri(&self) -> String {
        format!("file://{}", self.path().display())
    }

    pub async fn open(&self) -> Dataset {
        Dataset::open(&self.uri()).await.unwrap()
    }

    pub async fn append(&self, ids: std::ops::Range<i64>) {
        self.append_batch(rows(ids)).await;
    }

    pub async fn append_batch(&self, batch: RecordBatch) {
        let params = WriteParams {
            mode: WriteMode::Append,
            ..Default::default()
        };
        write(batch, &self.uri(), params).await;
    }

    pub async fn overwrite(&self, ids: std::ops::Range<i64>) {
        let params = WriteParams {
            mode: WriteMode::Overwrite,
            ..Default::default()
        };
        write(rows(ids), &self.uri(), params).await;
    }

    pub async fn delete(&self, predicate: &str) {
        self.open().await.delete(predicate).await.unwrap();
    }

    /// The first attempt at a task of its own.
    pub fn context(&self) -> OperationContext {
        let task_id = uuid::Uuid::new_v4().simple().to_string();
        OperationContext {
            table_id: TABLE_ID.to_owned(),
            ..OperationContext::unsupervised(task_id, self.uri(), HashMap::new())
        }
    }

    pub async fn run(&self, params: TaskParams) -> Result<Value, TaskError> {
        run(&params, &self.context()).await
    }

    /// Every row as text, sorted.
    pub async fn contents(&self) -> Vec<String> {
        contents(&self.open().await).await
    }

    /// Data and transaction files, and folders of indices, that some version refers to.
    async fn referenced(&self) -> BTreeSet<String> {
        let dataset = self.open().await;
        let mut referenced = BTreeSet::new();
        for version in dataset.version_refs().await.unwrap() {
            let dataset = dataset.checkout_version(version.version).await.unwrap();
            for fragment in dataset.fragments().iter() {
                referenced.extend(
                    fragment
                        .files
                        .iter()
                        .map(|file| format!("data/{}", file.path)),
                );
            }
            let transaction = dataset.manifest().transaction_file.clone();
            referenced.extend(transaction.map(|file| format!("_transactions/{file}")));
            let found = dataset.load_indices().await.unwrap();
            referenced.extend(found.iter().map(|index| format!("_indices/{}", index.uuid)));
        }
        referenced
    }

    /// What versions refer to and is not there.
    pub async fn missing(&self) -> BTreeSet<String> {
        let mut missing = self.referenced().await;
        missing.retain(|name| !self.path().join(name).exists());
        missing
    }

    /// Files under the table that no version refers to, and empty folders of indices.
    pub async fn litter(&self) -> BTreeSet<String> {
        let referenced = self.referenced().await;
        let folders = std::fs::read_dir(self.path().join("_indices"));
        let folders = folders.into_iter().flatten().map(|folder| {
            let name = folder.unwrap().file_name();
            format!("_indices/{}", name.to_str().unwrap())
        });
        files(&self.path())
            .into_keys()
            .chain(folders)
            .filter(|file| match file.split('/').collect::<Vec<_>>()[..] {
                ["data" | "_transactions", ..] => !referenced.contains(file),
                ["_indices", uuid, ..] => !referenced.contains(&format!("_indices/{uuid}")),
                ["_maintenance", ..] => true,
                _ => false,
            })
            .collect()
    }
}

pub async fn contents(dataset: &Dataset) -> Vec<String> {
    let batches: Vec<RecordBatch> = dataset
        .scan()
        .try_into_stream()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let mut lines = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            lines.push(format!("{:?}", batch.slice(row, 1).columns()));
        }
    }
    lines.sort();
    lines
}

/// Every file under the folder with its content's length, by path relative to the folder.
pub fn files(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path();
                let relative = path.strip_prefix(folder).unwrap();
                found.insert(
                    relative.to_str().unwrap().to_owned(),
                    entry.metadata().unwrap().len(),
                );
            }
        }
    }
    found
}

async fn write(batch: RecordBatch, uri: &str, params: WriteParams) {
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    Dataset::write(reader, uri, Some(params)).await.unwrap();
}

/// `id`, a number; `kind`, one of ten words; `text`, a sentence; `tags`, a list; `vector`, floats;
/// `bits`, bytes.
pub fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let ids: Vec<i64> = ids.collect();
    let kind = StringArray::from_iter_values(ids.iter().map(|id| format!("kind{}", id % 10)));
    let text = StringArray::from_iter_values(
        ids.iter()
            .map(|id| format!("the quick fox number{id} jumps over dog{}", id % 7)),
    );
    let tags = ListArray::from_iter_primitive::<Int64Type, _, _>(
        ids.iter().map(|id| Some(vec![Some(id % 3), Some(7)])),
    );
    let vector = vectors(ids.iter().map(|id| Some(vector_of(*id))));
    let bytes = UInt8Array::from_iter_values(
        ids.iter()
            .flat_map(|id| (0..8).map(move |n| ((id * 31 + n * 17) % 251) as u8)),
    );
    let bits = FixedSizeListArray::new(
        Arc::new(Field::new("item", DataType::UInt8, true)),
        8,
        Arc::new(bytes),
        None,
    );
    batch(vec![
        ("id", Arc::new(Int64Array::from(ids))),
        ("kind", Arc::new(kind)),
        ("text", Arc::new(text)),
        ("tags", Arc::new(tags)),
        ("vector", Arc::new(vector)),
        ("bits", Arc::new(bits)),
    ])
}

pub fn vectors(values: impl IntoIterator<Item = Option<Vec<f32>>>) -> FixedSizeListArray {
    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        values
            .into_iter()
            .map(|vector| vector.map(|vector| vector.into_iter().map(Some).collect::<Vec<_>>())),
        DIMENSION,
    )
}

/// Spread out, the same for the same id.
pub fn vector_of(id: i64) -> Vec<f32> {
    (0..DIMENSION)
        .map(|n| ((id as f32 * 0.37 + n as f32 * 1.7).sin() * 43758.547).fract())
        .collect()
}

pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

pub fn compact(body: &str) -> TaskParams {
    TaskParams::Compact(CompactParams::parse(body.as_bytes(), "reencode").unwrap())
}

pub fn scalar(body: &str) -> TaskParams {
    TaskParams::ScalarIndex(ScalarIndexParams::parse(body.as_bytes()).unwrap())
}

pub fn vector(body: &str) -> TaskParams {
    TaskParams::VectorIndex(VectorIndexParams::parse(body.as_bytes()).unwrap())
}

pub fn optimize(body: &str) -> TaskParams {
    TaskParams::OptimizeIndices(OptimizeIndicesParams::parse(body.as_bytes()).unwrap())
}

pub fn cleanup(body: &str) -> TaskParams {
    TaskParams::Cleanup(CleanupParams::parse(body.as_bytes()).unwrap())
}

pub fn backfill(body: &str) -> TaskParams {
    TaskParams::BackfillColumn(BackfillColumnParams::parse(body.as_bytes()).unwrap())
}

/// The query plan of a filter.
pub async fn filter_plan(dataset: &Dataset, filter: &str) -> String {
    let mut scanner = dataset.scan();
    scanner.project(&["id"]).unwrap().filter(filter).unwrap();
    scanner.explain_plan(true).await.unwrap()
}

/// The query plan of a search for the vectors nearest to that of an id, and the ids found.
pub async fn nearest(dataset: &Dataset, id: i64) -> (String, Vec<i64>) {
    let key = arrow_array::Float32Array::from(vector_of(id));
    let mut scanner = dataset.scan();
    scanner.project(&["id"]).unwrap();
    scanner
        .nearest("vector", &key, 5)
        .unwrap()
        .nprobes(20)
        .refine(4);
    let plan = scanner.explain_plan(true).await.unwrap();
    let found = scanner.try_into_batch().await.unwrap();
    let ids = found
        .column_by_name("id")
        .unwrap()
        .as_primitive::<Int64Type>()
        .values()
        .to_vec();
    (plan, ids)
}
