//! `wasi:keyvalue` for guests, on the application's [`Stores`].

use std::collections::BTreeSet;
use std::sync::Arc;

use wasmtime::Result;
use wasmtime::component::{HasData, Resource, ResourceTable};

use crate::bindings::wasi::keyvalue::atomics::{self, CasError};
use crate::bindings::wasi::keyvalue::batch;
use crate::bindings::wasi::keyvalue::store::{self, Error, KeyResponse};

use super::{StoreError, Stores};

/// A store that a guest has opened.
pub struct Bucket {
    store: Arc<str>,
}

/// Never made: see [`atomics::HostCas::new`] below.
pub struct CompareAndSwap(());

/// What a component may do with the stores.
#[derive(Clone)]
pub struct KeyValue {
    stores: Stores,
    allowed: Arc<BTreeSet<String>>,
}

impl KeyValue {
    /// `allowed` are the component's `key_value_stores`.
    pub fn new(stores: Stores, allowed: BTreeSet<String>) -> Self {
        Self {
            stores,
            allowed: Arc::new(allowed),
        }
    }
}

/// [`KeyValue`] together with the guest's resources.
pub struct KeyValueView<'a> {
    /// The component's permission.
    pub key_value: &'a KeyValue,
    /// Where the guest's buckets are.
    pub table: &'a mut ResourceTable,
}

/// Names [`KeyValueView`] to the linker.
pub struct HasKeyValue;

impl HasData for HasKeyValue {
    type Data<'a> = KeyValueView<'a>;
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "key-value store");
        Error::Other(error.to_string())
    }
}

impl KeyValueView<'_> {
    fn store(&self, bucket: &Resource<Bucket>) -> Result<Arc<str>> {
        Ok(self.table.get(bucket)?.store.clone())
    }
}

impl store::Host for KeyValueView<'_> {
    async fn open(&mut self, identifier: String) -> Result<Result<Resource<Bucket>, Error>> {
        if !self.key_value.allowed.contains(&identifier) {
            return Ok(Err(Error::AccessDenied));
        }
        if let Err(error) = self.key_value.stores.ready().await {
            return Ok(Err(error.into()));
        }
        let bucket = Bucket {
            store: identifier.into(),
        };
        Ok(Ok(self.table.push(bucket)?))
    }
}

impl store::HostBucket for KeyValueView<'_> {
    async fn get(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .get(store, key)
            .await
            .map_err(Error::from))
    }

    async fn set(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> Result<Result<(), Error>> {
        batch::Host::set_many(self, bucket, vec![(key, value)]).await
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        batch::Host::delete_many(self, bucket, vec![key]).await
    }

    async fn exists(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
    ) -> Result<Result<bool, Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .exists(store, key)
            .await
            .map_err(Error::from))
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> Result<Result<KeyResponse, Error>> {
        // Like Spin: always everything at once, so there is no cursor to continue from.
        if cursor.is_some() {
            return Ok(Err(Error::Other(
                "list-keys: a cursor is not supported".to_owned(),
            )));
        }
        let store = self.store(&bucket)?;
        let keys = self.key_value.stores.keys(store).await;
        Ok(keys
            .map(|keys| KeyResponse { keys, cursor: None })
            .map_err(Error::from))
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl batch::Host for KeyValueView<'_> {
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Result<Result<Vec<(String, Option<Vec<u8>>)>, Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .get_many(store, keys)
            .await
            .map_err(Error::from))
    }

    async fn set_many(
        &mut self,
        bucket: Resource<Bucket>,
        pairs: Vec<(String, Vec<u8>)>,
    ) -> Result<Result<(), Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .set_many(store, pairs)
            .await
            .map_err(Error::from))
    }

    async fn delete_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Result<Result<(), Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .delete_many(store, keys)
            .await
            .map_err(Error::from))
    }
}

impl atomics::Host for KeyValueView<'_> {
    async fn increment(
        &mut self,
        bucket: Resource<Bucket>,
        key: String,
        delta: i64,
    ) -> Result<Result<i64, Error>> {
        let store = self.store(&bucket)?;
        Ok(self
            .key_value
            .stores
            .increment(store, key, delta)
            .await
            .map_err(Error::from))
    }

    async fn swap(
        &mut self,
        cas: Resource<CompareAndSwap>,
        _value: Vec<u8>,
    ) -> Result<Result<(), CasError>> {
        self.table.delete(cas)?;
        Ok(Err(CasError::StoreError(no_compare_and_swap())))
    }
}

impl atomics::HostCas for KeyValueView<'_> {
    /// Refused. Compare-and-swap does not exclude anyone on Spin: on its SQLite store two swaps of
    /// an absent key both win, on Redis both lose. An application that worked here by relying on it
    /// would fail there.
    async fn new(
        &mut self,
        _bucket: Resource<Bucket>,
        _key: String,
    ) -> Result<Result<Resource<CompareAndSwap>, Error>> {
        Ok(Err(no_compare_and_swap()))
    }

    async fn current(
        &mut self,
        _cas: Resource<CompareAndSwap>,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(Err(no_compare_and_swap()))
    }

    async fn drop(&mut self, cas: Resource<CompareAndSwap>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

fn no_compare_and_swap() -> Error {
    Error::Other("compare-and-swap is not supported: use increment".to_owned())
}
