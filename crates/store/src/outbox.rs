//! Outboxes: notes of what waits for a worker, in a log that is drained from its old end.

use std::marker::PhantomData;

use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::TaskAddress;
use lance_maintenance_dispatch::tables::Purge;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::key_value::{KeyValue, StoreError, from_json, get_json, set_json};
use crate::{keys, log};

/// How many slots one drain looks at.
const WINDOW: u64 = 512;
/// How long an empty slot may belong to a note that is still being written, in microseconds.
const WRITE_MICROS: i64 = 60_000_000;

/// Up to where the outbox is drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    /// Every slot up to this one is done with.
    slot: u64,
    /// Since when the next slot is empty, if it is.
    empty_since: Option<i64>,
}

/// An outbox of notes.
pub(crate) struct Outbox<'a, S, T> {
    store: &'a S,
    log: &'static str,
    notes: PhantomData<T>,
}

impl<'a, S: KeyValue> Outbox<'a, S, TaskAddress> {
    /// Tasks that wait for a worker.
    pub(crate) fn tasks(store: &'a S) -> Self {
        Self::new(store, keys::OUTBOX)
    }
}

impl<'a, S: KeyValue> Outbox<'a, S, Purge> {
    /// Dropped tables whose data waits to be removed.
    pub(crate) fn purges(store: &'a S) -> Self {
        Self::new(store, keys::PURGES)
    }
}

impl<'a, S: KeyValue, T: Serialize + DeserializeOwned> Outbox<'a, S, T> {
    fn new(store: &'a S, log: &'static str) -> Self {
        Self {
            store,
            log,
            notes: PhantomData,
        }
    }

    fn done_key(&self) -> String {
        keys::outbox_done(self.log)
    }

    /// Leaves a note.
    pub(crate) fn note(&self, note: &T) -> Result<(), StoreError> {
        let slot = log::take_slot(self.store, self.log)?;
        log::write(self.store, self.log, slot, note)
    }

    /// The notes that are not done with, at most a window's worth.
    pub(crate) fn noted(&self) -> Result<Vec<T>, StoreError> {
        let done: Done = get_json(self.store, &self.done_key())?.unwrap_or_default();
        Ok(self
            .window(done)?
            .into_iter()
            .filter_map(|(_, note)| note)
            .collect())
    }

    /// Shows each note, oldest first, to `keep`; a note that is not kept is removed.
    pub(crate) fn drain(
        &self,
        now: i64,
        mut keep: impl FnMut(&T) -> Result<bool, ApiError>,
    ) -> Result<(), ApiError> {
        let before: Done = get_json(self.store, &self.done_key())?.unwrap_or_default();
        let mut done = before;
        let mut contiguous = true;
        let mut removed = Vec::new();
        for (slot, note) in self.window(before)? {
            let finished = match note {
                Some(note) => {
                    let kept = keep(&note)?;
                    if !kept {
                        removed.push(keys::log_entry(self.log, slot));
                    }
                    !kept
                }
                // The slot was taken; the note may be on its way, or was removed before.
                None if contiguous => {
                    match before.empty_since.filter(|_| slot == before.slot + 1) {
                        Some(since) => now - since > WRITE_MICROS,
                        None => {
                            done.empty_since = Some(now);
                            false
                        }
                    }
                }
                None => false,
            };
            contiguous &= finished;
            if contiguous {
                done = Done {
                    slot,
                    empty_since: None,
                };
            }
        }
        if !removed.is_empty() {
            self.store.delete_many(&removed)?;
        }
        if done != before {
            set_json(self.store, &self.done_key(), &done)?;
        }
        Ok(())
    }

    fn window(&self, done: Done) -> Result<Vec<(u64, Option<T>)>, StoreError> {
        let newest = log::slots(self.store, self.log)?;
        let slots: Vec<u64> = (done.slot + 1..=newest.min(done.slot + WINDOW)).collect();
        let keys: Vec<String> = slots
            .iter()
            .map(|slot| keys::log_entry(self.log, *slot))
            .collect();
        let values = match keys.is_empty() {
            true => Vec::new(),
            false => self.store.get_many(&keys)?,
        };
        slots
            .into_iter()
            .zip(keys.iter().zip(values))
            .map(|(slot, (key, value))| {
                Ok((slot, value.map(|bytes| from_json(key, &bytes)).transpose()?))
            })
            .collect()
    }
}
