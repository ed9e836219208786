//! Watches the store: whether it answers.
//!
//! The clients of object stores give up on requests by themselves, mostly; a mounted file system
//! never does. A task whose store does not answer would hold its table and its place for ever.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use lance_io::object_store::WrappingObjectStore;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
};
use tokio::time::{Instant, sleep};

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The requests that a store has not answered yet. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct StoreWatch {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    requests: BTreeMap<u64, (Instant, &'static str)>,
}

impl StoreWatch {
    /// Returns when a request has been waiting for longer than this; says what it is: `a read`.
    pub async fn stalled(&self, limit: Duration) -> &'static str {
        loop {
            sleep(LOOK.min(limit)).await;
            let now = Instant::now();
            // They are numbered as they come, so the first waits longest.
            if let Some((since, what)) = self.waiting().requests.values().next()
                && now.duration_since(*since) > limit
            {
                return what;
            }
        }
    }

    fn begin(&self, what: &'static str) -> Request {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.requests.insert(number, (Instant::now(), what));
        drop(waiting);
        Request {
            watch: self.clone(),
            number,
        }
    }

    fn stream<T: 'static>(
        &self,
        what: &'static str,
        stream: BoxStream<'static, T>,
    ) -> BoxStream<'static, T> {
        Watched {
            watch: self.clone(),
            what,
            stream,
            request: None,
        }
        .boxed()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Whole between any two operations on it, panic or not.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not answered until this is dropped.
#[derive(Debug)]
struct Request {
    watch: StoreWatch,
    number: u64,
}

impl Drop for Request {
    fn drop(&mut self) {
        self.watch.waiting().requests.remove(&self.number);
    }
}

/// A stream that waits for the store while somebody waits for it.
struct Watched<T> {
    watch: StoreWatch,
    what: &'static str,
    stream: BoxStream<'static, T>,
    request: Option<Request>,
}

impl<T> Stream for Watched<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let polled = self.stream.poll_next_unpin(cx);
        if polled.is_ready() {
            self.request = None;
        } else if self.request.is_none() {
            let request = self.watch.begin(self.what);
            self.request = Some(request);
        }
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.stream.size_hint()
    }
}

impl WrappingObjectStore for StoreWatch {
    fn wrap(&self, _prefix: &str, original: Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
        Arc::new(WatchedStore {
            watch: self.clone(),
            store: original,
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
struct WatchedStore {
    watch: StoreWatch,
    store: Arc<dyn ObjectStore>,
}

impl fmt::Display for WatchedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for WatchedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let _request = self.watch.begin("a write");
        self.store.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let _request = self.watch.begin("a write");
        Ok(Box::new(WatchedUpload {
            watch: self.watch.clone(),
            upload: self.store.put_multipart_opts(location, opts).await?,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let _request = self.watch.begin("a read");
        let mut result = self.store.get_opts(location, options).await?;
        result.payload = match result.payload {
            GetResultPayload::Stream(stream) => {
                GetResultPayload::Stream(self.watch.stream("a read", stream))
            }
            payload => payload,
        };
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let _request = self.watch.begin("a read");
        self.store.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.watch
            .stream("a deletion", self.store.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.watch.stream("a listing", self.store.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.store.list_with_offset(prefix, offset);
        self.watch.stream("a listing", listed)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let _request = self.watch.begin("a listing");
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let _request = self.watch.begin("a copy");
        self.store.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let _request = self.watch.begin("a rename");
        self.store.rename_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct WatchedUpload {
    watch: StoreWatch,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for WatchedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (watch, part) = (self.watch.clone(), self.upload.put_part(data));
        Box::pin(async move {
            let _request = watch.begin("a write");
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let _request = self.watch.begin("a write");
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    const LIMIT: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn the_oldest_request_counts() {
        let watch = StoreWatch::default();
        for _ in 0..4 {
            // Many requests, each answered in time.
            let request = watch.begin("a read");
            sleep(LIMIT / 2).await;
            drop(request);
        }
        let begun = Instant::now();
        let _slow = watch.begin("a write");
        let others = async {
            loop {
                let _request = watch.begin("a read");
                sleep(LIMIT / 10).await;
            }
        };
        let what = tokio::select! {
            what = watch.stalled(LIMIT) => what,
            () = others => unreachable!(),
        };
        assert_eq!(what, "a write");
        assert!(begun.elapsed() > LIMIT);
    }

    #[tokio::test]
    async fn a_stream_waits_only_while_it_is_waited_for() {
        let watch = StoreWatch::default();
        let items = stream::iter([1, 2]).chain(stream::pending());
        let mut listed = watch.stream("a listing", items.boxed());
        assert_eq!(listed.next().await, Some(1));
        // Whoever reads it takes long over an item.
        sleep(LIMIT * 2).await;
        assert_eq!(listed.next().await, Some(2));
        assert!(watch.waiting().requests.is_empty());
        let what = tokio::select! {
            what = watch.stalled(LIMIT) => what,
            item = listed.next() => panic!("{item:?}"),
        };
        assert_eq!(what, "a listing");
    }
}
