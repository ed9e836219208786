//! The batches of an Arrow IPC stream that anybody may have sent.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, SchemaRef};
use axum::body::Bytes;

use super::framing;

/// The stream's batches. What is wrong with the stream is kept, as Lance wraps it.
pub struct Rows {
    reader: StreamReader<Cursor<Bytes>>,
    broken: Broken,
}

/// What is wrong with a stream.
#[derive(Clone, Default)]
pub struct Broken(Arc<Mutex<Option<String>>>);

impl Broken {
    /// What is wrong, if anything is.
    pub fn reason(&self) -> Option<String> {
        // Nothing that can panic runs while the lock is held.
        let reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone()
    }

    fn set(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

impl Rows {
    /// The batches of this stream; the error says what is wrong with it.
    pub fn read(stream: Bytes) -> Result<Self, String> {
        framing::check(&stream)?;
        let reader = unless_panic(|| StreamReader::try_new(Cursor::new(stream), None))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            reader,
            broken: Broken::default(),
        })
    }

    /// Where to learn what was wrong with a batch.
    pub fn broken(&self) -> Broken {
        self.broken.clone()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Nothing is read after an error: where the next message begins is not known.
        if self.broken.reason().is_some() {
            return None;
        }
        let next = unless_panic(|| self.reader.next().transpose()).transpose()?;
        if let Err(error) = &next {
            self.broken.set(error.to_string());
        }
        Some(next)
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// Arrow's decoder panics at some streams that are not what they say.
fn unless_panic<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        Err(ArrowError::ParseError(
            "a message does not hold what it says".to_owned(),
        ))
    })
}
