//! A store that enters every file before it is written.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::stream::BoxStream;
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
};

use super::Journal;

impl WrappingObjectStore for Journal {
    fn wrap(&self, _prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(Entering {
            journal: self.clone(),
            store: original,
        })
    }

    fn wrap_paginated(
        &self,
        _prefix: &str,
        original: Arc<dyn PaginatedListStore>,
    ) -> Option<Arc<dyn PaginatedListStore>> {
        // Listing writes nothing.
        Some(original)
    }
}

/// A store that enters every file before it is written.
#[derive(Debug)]
struct Entering {
    journal: Journal,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Display for Entering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Entering {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let (store, path) = (Arc::clone(&self.store), location.clone());
        let write = async move { store.put_opts(&path, payload, opts).await };
        self.journal.write(location, write).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (store, path) = (Arc::clone(&self.store), location.clone());
        let write = async move { store.put_multipart_opts(&path, opts).await };
        Ok(Box::new(EnteredUpload {
            upload: Some(self.journal.write(location, write).await?),
            journal: self.journal.clone(),
            location: location.clone(),
        }))
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (store, from, path) = (Arc::clone(&self.store), from.clone(), to.clone());
        let write = async move { store.copy_opts(&from, &path, options).await };
        self.journal.write(to, write).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let (store, from, path) = (Arc::clone(&self.store), from.clone(), to.clone());
        let write = async move { store.rename_opts(&from, &path, options).await };
        self.journal.write(to, write).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.store.get_opts(location, options).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        self.store.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }
}

/// A file that is written in parts, and is there when it is complete.
#[derive(Debug)]
struct EnteredUpload {
    /// There until it is complete.
    upload: Option<Box<dyn MultipartUpload>>,
    journal: Journal,
    location: Path,
}

impl EnteredUpload {
    fn is_over() -> object_store::Error {
        object_store::Error::Generic {
            store: "journal",
            source: "the upload is complete or was given up".into(),
        }
    }
}

#[async_trait]
impl MultipartUpload for EnteredUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut self.upload {
            Some(upload) => upload.put_part(data),
            None => futures::future::ready(Err(Self::is_over())).boxed(),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let mut upload = self.upload.take().ok_or_else(Self::is_over)?;
        let write = async move { upload.complete().await };
        self.journal.write(&self.location, write).await
    }

    async fn abort(&mut self) -> Result<()> {
        match self.upload.take() {
            Some(mut upload) => upload.abort().await,
            None => Ok(()),
        }
    }
}
