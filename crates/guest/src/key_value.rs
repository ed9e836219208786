//! The store, through `wasi:keyvalue`. Its calls are synchronous for the guest.

use std::collections::HashMap;

use lance_maintenance_store::{KeyValue, StoreError};

mod bindings {
    spin_sdk::wit_bindgen::generate!({
        world: "guest",
        path: "../../wit",
        runtime_path: "::spin_sdk::wit_bindgen::rt",
        generate_all,
    });
}

use bindings::wasi::keyvalue::{atomics, batch, store};

/// The name under which `spin.toml` grants the store.
const STORE: &str = "default";

/// The application's key-value store.
pub struct SpinStore(store::Bucket);

impl SpinStore {
    /// Opens the store.
    pub fn open() -> Result<Self, StoreError> {
        store::open(STORE).map(Self).map_err(failed)
    }
}

impl KeyValue for SpinStore {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.get(key).map_err(failed)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.0.set(key, value).map_err(failed)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        atomics::increment(&self.0, key, delta).map_err(failed)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        // Some backends refuse an empty list.
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        // Backends differ in the order of the answer, and in whether it holds keys without a value.
        let found = batch::get_many(&self.0, keys).map_err(failed)?;
        let mut values: HashMap<String, Vec<u8>> = found
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        Ok(keys.iter().map(|key| values.remove(key)).collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        batch::delete_many(&self.0, keys).map_err(failed)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.0.list_keys(cursor.as_deref()).map_err(failed)?;
            keys.extend(page.keys);
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(keys),
            }
        }
    }
}

fn failed(error: store::Error) -> StoreError {
    StoreError::Unavailable(match error {
        store::Error::NoSuchStore => format!("there is no store '{STORE}'"),
        store::Error::AccessDenied => format!("access to the store '{STORE}' is denied"),
        store::Error::Other(text) => text,
    })
}
