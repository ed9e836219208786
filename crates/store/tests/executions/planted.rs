//! The store as one call sees it: mistakes that only some of the calls make are planted here.

use lance_maintenance_store::{KeyValue, StoreError};

use crate::world::Client;

/// A call's way to the store.
pub struct Planted<'a> {
    pub client: &'a Client<'a>,
    /// It does not see which tasks are canceled.
    pub blind: bool,
    /// It takes no fences of attempts, and goes on as if it had.
    pub unfenced: bool,
}

impl Planted<'_> {
    fn is_hidden(&self, key: &str) -> bool {
        self.blind && key.ends_with("/cancel")
    }
}

impl KeyValue for Planted<'_> {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let value = self.client.get(key)?;
        Ok(value.filter(|_| !self.is_hidden(key)))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.client.set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        match self.unfenced && key.contains("/claim/") {
            true => Ok(1),
            false => self.client.increment(key, delta),
        }
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        let values = self.client.get_many(keys)?.into_iter().zip(keys);
        let seen = values.map(|(value, key)| value.filter(|_| !self.is_hidden(key)));
        Ok(seen.collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.client.delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.client.keys()
    }
}
