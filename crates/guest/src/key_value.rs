//! The store, through `wasi:keyvalue`. Its calls are synchronous for the guest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

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
        read_many(
            keys,
            &NO_BATCHES,
            |keys| batch::get_many(&self.0, keys).map_err(failed),
            |key| self.get(key),
        )
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

/// Whether the store was seen to fail at batch reads: Spin's for Redis does, of more than one key.
static NO_BATCHES: AtomicBool = AtomicBool::new(false);

type Found = Vec<(String, Option<Vec<u8>>)>;

/// Reads many keys, in their order: all at once, or one by one where the store can't do that, which is
/// remembered in `no_batches`.
fn read_many<E>(
    keys: &[String],
    no_batches: &AtomicBool,
    batch: impl FnOnce(&[String]) -> Result<Found, E>,
    single: impl Fn(&str) -> Result<Option<Vec<u8>>, E>,
) -> Result<Vec<Option<Vec<u8>>>, E> {
    let one_by_one = || keys.iter().map(|key| single(key)).collect();
    // Some backends refuse an empty list.
    if keys.len() < 2 || no_batches.load(Ordering::Relaxed) {
        return one_by_one();
    }
    let Ok(found) = batch(keys) else {
        // One that fails at these as well can't be reached, and says so.
        let values = one_by_one()?;
        no_batches.store(true, Ordering::Relaxed);
        return Ok(values);
    };
    // Backends differ in the order of the answer, and in whether it holds keys without a value.
    let mut values: HashMap<String, Vec<u8>> = found
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    Ok(keys.iter().map(|key| values.remove(key)).collect())
}

fn failed(error: store::Error) -> StoreError {
    StoreError::Unavailable(match error {
        store::Error::NoSuchStore => format!("there is no store '{STORE}'"),
        store::Error::AccessDenied => format!("access to the store '{STORE}' is denied"),
        store::Error::Other(text) => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    type Values = Result<Vec<Option<Vec<u8>>>, &'static str>;

    /// What a store that holds `b` = 2 and `d` = 4 answers, and how often it was asked.
    fn read(
        keys: &[&str],
        no_batches: &AtomicBool,
        batches: Result<Found, &'static str>,
        singles: bool,
    ) -> (Values, [u32; 2]) {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let asked = Cell::new([0, 0]);
        let count = |at: usize| {
            let mut counted = asked.get();
            counted[at] += 1;
            asked.set(counted);
        };
        let values = read_many(
            &keys,
            no_batches,
            |_| {
                count(0);
                batches
            },
            |key| {
                count(1);
                match (singles, key) {
                    (false, _) => Err("down"),
                    (true, "b") => Ok(Some(vec![2])),
                    (true, "d") => Ok(Some(vec![4])),
                    (true, _) => Ok(None),
                }
            },
        );
        (values, asked.get())
    }

    #[test]
    fn many_keys_are_read_in_their_order_whatever_the_store_can() {
        let pair = |key: &str, value: Option<u8>| (key.to_owned(), value.map(|value| vec![value]));
        let wanted = Ok(vec![Some(vec![4]), None, Some(vec![2])]);
        let all = vec![pair("a", None), pair("b", Some(2)), pair("d", Some(4))];
        let present = vec![pair("b", Some(2)), pair("d", Some(4))];
        for (batch, asked, remembered) in [
            (Ok(all), [1, 0], false),
            (Ok(present), [1, 0], false),
            (Err("no such command"), [1, 3], true),
        ] {
            let no_batches = AtomicBool::new(false);
            let seen = read(&["d", "a", "b"], &no_batches, batch, true);
            assert_eq!(seen, (wanted.clone(), asked));
            assert_eq!(no_batches.load(Ordering::Relaxed), remembered);
        }
    }

    #[test]
    fn a_store_that_can_not_is_asked_once() {
        let no_batches = AtomicBool::new(true);
        let (values, asked) = read(&["b", "c"], &no_batches, Ok(Vec::new()), true);
        assert_eq!(values, Ok(vec![Some(vec![2]), None]));
        assert_eq!(asked, [0, 2]);
    }

    #[test]
    fn a_store_that_can_not_be_reached_is_not_taken_for_one_that_can_not() {
        let no_batches = AtomicBool::new(false);
        let (values, _) = read(&["b", "c"], &no_batches, Err("down"), false);
        assert_eq!(values, Err("down"));
        assert!(!no_batches.load(Ordering::Relaxed));
    }

    #[test]
    fn one_key_and_none_make_no_batch() {
        for (keys, expected) in [(&["d"][..], 1), (&[], 0)] {
            let (values, asked) = read(keys, &AtomicBool::new(false), Err("batch"), true);
            assert_eq!(
                (values.unwrap().len(), asked),
                (expected, [0, expected as u32])
            );
        }
    }
}
