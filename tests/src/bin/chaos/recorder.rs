//! Which files our own writers wrote: an object store that notes every path it is given to write.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::stream::BoxStream;
use lance::io::{ObjectStoreParams, WrappingObjectStore};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// The paths that were written, without the leading slash.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<HashSet<String>>>);

impl Recorder {
    /// Options with which Lance writes through the recorder.
    pub fn params(&self) -> ObjectStoreParams {
        ObjectStoreParams {
            object_store_wrapper: Some(Arc::new(self.clone())),
            ..Default::default()
        }
    }

    /// Whether a path, without the leading slash, was written by us.
    pub fn wrote(&self, path: &str) -> bool {
        self.paths().contains(path)
    }

    fn note(&self, path: &Path) {
        self.paths().insert(path.to_string());
    }

    fn paths(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        // Whole between any two operations on it, panic or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WrappingObjectStore for Recorder {
    fn wrap(&self, _prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Recorded {
            inner: original,
            recorder: self.clone(),
        })
    }

    fn wrap_paginated(
        &self,
        _prefix: &str,
        original: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        Some(original)
    }
}

#[derive(Debug)]
struct Recorded {
    inner: Arc<dyn ObjectStore>,
    recorder: Recorder,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorded({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Recorded {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.recorder.note(location);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.recorder.note(location);
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.recorder.note(to);
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.recorder.note(to);
        self.inner.rename_opts(from, to, options).await
    }
}
