//! Numbered logs: a list that grows by one increment and one write, however long it is.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::key_value::{KeyValue, StoreError, from_json, set_json};
use crate::keys;

/// How many slots one batch read looks at.
const BATCH: u64 = 128;
/// How many slots one page looks at before it is cut short: a page that meets many removed
/// entries comes back with fewer entries and a way on, instead of late.
const MOST_SLOTS: u64 = 8192;

/// Takes the log's next slot, from 1.
pub(crate) fn take_slot(store: &impl KeyValue, log: &str) -> Result<u64, StoreError> {
    Ok(store.increment(log, 1)?.unsigned_abs())
}

/// How many slots have been taken.
pub(crate) fn slots(store: &impl KeyValue, log: &str) -> Result<u64, StoreError> {
    Ok(store.increment(log, 0)?.unsigned_abs())
}

/// Writes the entry of a slot.
pub(crate) fn write(
    store: &impl KeyValue,
    log: &str,
    slot: u64,
    entry: &impl Serialize,
) -> Result<(), StoreError> {
    set_json(store, &keys::log_entry(log, slot), entry)
}

/// Some entries of a log, newest first, with their slots.
pub struct Page<T> {
    /// The entries and the slots they lie in.
    pub entries: Vec<(u64, T)>,
    /// The next page holds what lies below this slot; none if there is nothing.
    pub next: Option<u64>,
}

/// Reads a page: at most `limit` entries from slots below `below` (none: from the newest). Slots
/// that hold nothing are passed over. `keys_of` names the keys that make up an entry and `read`
/// puts them together; what it leaves out does not count.
pub(crate) fn page<T>(
    store: &impl KeyValue,
    log: &str,
    below: Option<u64>,
    limit: usize,
    keys_of: impl Fn(u64) -> Vec<String>,
    read: impl Fn(u64, &[Option<Vec<u8>>]) -> Result<Option<T>, StoreError>,
) -> Result<Page<T>, StoreError> {
    let newest = slots(store, log)?;
    let first = below.map_or(newest, |below| newest.min(below.saturating_sub(1)));
    let mut slot = first;
    let mut entries = Vec::new();
    while slot > 0 && first - slot < MOST_SLOTS {
        // One entry more than asked for tells whether there is a next page.
        let wanted = (limit + 1 - entries.len()) as u64;
        let count = slot.min(BATCH).min(wanted.max(16));
        let batch: Vec<u64> = (slot - count + 1..=slot).rev().collect();
        let keys: Vec<Vec<String>> = batch.iter().map(|slot| keys_of(*slot)).collect();
        let values = store.get_many(&keys.concat())?;
        let mut rest = values.as_slice();
        for (slot, keys) in batch.iter().zip(&keys) {
            let (of_slot, others) = rest.split_at(keys.len().min(rest.len()));
            rest = others;
            let Some(entry) = read(*slot, of_slot)? else {
                continue;
            };
            if entries.len() == limit {
                let next = entries.last().map(|(slot, _)| *slot);
                return Ok(Page { entries, next });
            }
            entries.push((*slot, entry));
        }
        slot -= count;
    }
    let next = (slot > 0).then_some(slot + 1);
    Ok(Page { entries, next })
}

/// Reads a page of a log whose entries are one record each.
pub(crate) fn records<T: DeserializeOwned>(
    store: &impl KeyValue,
    log: &str,
    below: Option<u64>,
    limit: usize,
) -> Result<Page<T>, StoreError> {
    let key = |slot| keys::log_entry(log, slot);
    page(
        store,
        log,
        below,
        limit,
        |slot| vec![key(slot)],
        |slot, values| match values {
            [Some(bytes)] => from_json(&key(slot), bytes).map(Some),
            _ => Ok(None),
        },
    )
}
