//! A store that fails after so many operations, as if whoever uses it had died.

use std::cell::Cell;

use lance_maintenance_store::memory::MemoryStore;
use lance_maintenance_store::{KeyValue, StoreError};

/// A store that can be reached for so many more operations.
#[derive(Default)]
pub struct Failing {
    store: MemoryStore,
    left: Cell<Option<u64>>,
    refused: Cell<bool>,
}

impl Failing {
    /// Lets `call` make `operations` operations, then none. Whether it got through.
    pub fn cut<T>(&self, operations: u64, call: impl FnOnce(&Self) -> T) -> (T, bool) {
        self.left.set(Some(operations));
        self.refused.set(false);
        let outcome = call(self);
        self.left.set(None);
        (outcome, !self.refused.get())
    }

    fn pass(&self) -> Result<&MemoryStore, StoreError> {
        match self.left.get() {
            Some(0) => {
                self.refused.set(true);
                Err(StoreError::Unavailable("cut".to_owned()))
            }
            left => {
                self.left.set(left.map(|left| left - 1));
                Ok(&self.store)
            }
        }
    }
}

impl KeyValue for Failing {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.pass()?.get(key)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.pass()?.set(key, value)
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.pass()?.increment(key, delta)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.pass()?.get_many(keys)
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.pass()?.delete_many(keys)
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.pass()?.keys()
    }
}
