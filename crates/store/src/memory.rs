//! A store in memory that counts what it is asked for: what the logic is tested with.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::key_value::{KeyValue, StoreError};

/// A key-value store in memory. Counters and values live apart, so that reading a counter as a
/// value is seen.
#[derive(Debug, Default)]
pub struct MemoryStore {
    values: RefCell<BTreeMap<String, Vec<u8>>>,
    counters: RefCell<BTreeMap<String, i64>>,
    operations: Cell<u64>,
}

impl MemoryStore {
    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.operations.get()
    }

    fn count(&self) {
        self.operations.set(self.operations.get() + 1);
    }
}

impl KeyValue for MemoryStore {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.count();
        if self.counters.borrow().contains_key(key) {
            return Err(StoreError::Unavailable(format!("'{key}' is a counter")));
        }
        Ok(self.values.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.count();
        self.values
            .borrow_mut()
            .insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.count();
        let mut counters = self.counters.borrow_mut();
        let counter = counters.entry(key.to_owned()).or_default();
        *counter += delta;
        Ok(*counter)
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.count();
        Ok(keys
            .iter()
            .map(|key| self.values.borrow().get(key).cloned())
            .collect())
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.count();
        for key in keys {
            self.values.borrow_mut().remove(key);
            self.counters.borrow_mut().remove(key);
        }
        Ok(())
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.count();
        let values = self.values.borrow();
        let counters = self.counters.borrow();
        Ok(values.keys().chain(counters.keys()).cloned().collect())
    }
}
