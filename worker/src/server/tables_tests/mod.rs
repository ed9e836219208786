//! The routes on real tables in temporary folders.

mod columns;
mod commit;
mod read;
mod write;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use lance::Dataset;
use lance_maintenance_dispatch::tables::WRITE_PATH;
use serde_json::Value;
use tempfile::TempDir;

use crate::testing::{SECRET, Served};

/// A server, and a folder for the tables.
pub struct Bench {
    pub served: Served,
    folder: TempDir,
}

impl Bench {
    pub async fn new() -> Self {
        Self {
            served: Served::with_room(9).await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, table: &str) -> PathBuf {
        self.folder.path().join(table)
    }

    pub fn uri(&self, table: &str) -> String {
        format!("file://{}", self.path(table).display())
    }

    /// What a route answers to a message.
    pub async fn ask(&self, path: &str, message: &Value) -> (u16, Value) {
        let body = serde_json::to_vec(message).unwrap();
        let (status, _, answer) = self.served.post(path, &body, SECRET, 0).await;
        (status, answer)
    }

    pub async fn write(&self, table: &str, mode: &str, stream: &[u8]) -> (u16, Value) {
        let path = write_path(&self.uri(table), mode);
        let (status, _, answer) = self.served.post(&path, stream, SECRET, 0).await;
        (status, answer)
    }

    /// A table with the rows of these ids.
    pub async fn table(&self, table: &str, ids: std::ops::Range<i64>) {
        let (status, answer) = self.write(table, "create", &stream(&[rows(ids)])).await;
        assert_eq!(status, 200, "{answer}");
    }

    pub async fn open(&self, table: &str) -> Dataset {
        Dataset::open(&self.uri(table)).await.unwrap()
    }
}

pub fn write_path(location: &str, mode: &str) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("location", location);
    query.append_pair("mode", mode);
    format!("{WRITE_PATH}?{}", query.finish())
}

/// `id`, a number, and `text`, in a schema with metadata.
pub fn rows(ids: std::ops::Range<i64>) -> RecordBatch {
    let texts = StringArray::from_iter_values(ids.clone().map(|id| format!("text {id}")));
    let ids = Int64Array::from_iter_values(ids);
    RecordBatch::try_new(schema(), vec![Arc::new(ids), Arc::new(texts)]).unwrap()
}

pub fn schema() -> SchemaRef {
    let fields = vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8, true),
    ];
    let metadata = [("made".to_owned(), "here".to_owned())];
    Arc::new(Schema::new_with_metadata(fields, metadata.into()))
}

/// A stream of these batches, of which there is one at least.
pub fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    stream_of(&batches[0].schema(), batches, None)
}

pub fn stream_of(
    schema: &Schema,
    batches: &[RecordBatch],
    compression: Option<CompressionType>,
) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), schema, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

/// Every file under the folder, by path relative to it.
pub fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(next) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let relative = path.strip_prefix(folder).unwrap();
                found.insert(relative.to_str().unwrap().to_owned());
            }
        }
    }
    found
}
