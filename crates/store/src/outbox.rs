//! Outboxes: notes of what waits for a worker, in a log that is drained from its old end.
//!
//! However many notes there are, one drain looks at two parts of them: the oldest, and a part of the
//! others, the next one each time. So whatever the oldest are kept for, all others have their turn. A note
//! that is done with while an older one is kept leaves an empty note in its slot: a slot with nothing at
//! all may belong to a note that is still being written, and holds up what is behind it for a while.

use std::marker::PhantomData;

use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::TaskAddress;
use lance_maintenance_dispatch::tables::Purge;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::key_value::{KeyValue, StoreError, from_json, get_json, set_json};
use crate::{keys, log};

/// How many of the oldest slots one drain looks at.
const OLDEST: u64 = 128;
/// How many of the others.
const OTHERS: u64 = 64;
/// How many slots are read at a time where all of them are.
const BATCH: u64 = 512;
/// How long a slot with nothing may belong to a note that is still being written, in microseconds.
const WRITE_MICROS: i64 = 60_000_000;

/// Up to where the outbox is drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    /// Every slot up to this one is done with.
    slot: u64,
    /// Slots that were taken before a time: one of them that is still without a note has none.
    #[serde(default)]
    taken: Option<Taken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    up_to: u64,
    at: i64,
}

/// What is in a slot.
enum Slot<T> {
    /// A note.
    Note(T),
    /// One that is done with.
    Finished,
    /// Nothing.
    Nothing,
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

    /// All notes that are not done with: as many reads as there are batches of them.
    pub(crate) fn noted(&self) -> Result<Vec<T>, StoreError> {
        let newest = log::slots(self.store, self.log)?;
        let mut from = self.done()?.slot + 1;
        let mut notes = Vec::new();
        while from <= newest {
            let to = newest.min(from + BATCH - 1);
            for (_, slot) in self.read(from, to)? {
                if let Slot::Note(note) = slot {
                    notes.push(note);
                }
            }
            from = to + 1;
        }
        Ok(notes)
    }

    /// Shows the notes of two parts, each oldest first, to `keep`; a note that is not kept is removed.
    pub(crate) fn drain(
        &self,
        now: i64,
        mut keep: impl FnMut(&T) -> Result<bool, ApiError>,
    ) -> Result<(), ApiError> {
        let before = self.done()?;
        let newest = log::slots(self.store, self.log)?;
        let end = newest.min(before.slot + OLDEST);
        let mut done = before;
        let mut removed = Vec::new();
        let mut is_kept = false;
        for (slot, entry) in self.read(before.slot + 1, end)? {
            let is_there = !matches!(entry, Slot::Nothing);
            let finished = match entry {
                Slot::Note(note) => !keep(&note)?,
                Slot::Finished => true,
                Slot::Nothing => self.is_lost(&mut done, slot, newest, now, is_kept),
            };
            is_kept |= !finished;
            if !is_kept {
                done.slot = slot;
            }
            match (finished && is_there, is_kept) {
                (true, true) => self.finish(slot)?,
                (true, false) => removed.push(keys::log_entry(self.log, slot)),
                (false, _) => {}
            }
        }
        if !removed.is_empty() {
            self.store.delete_many(&removed)?;
        }
        if done != before {
            set_json(self.store, &self.done_key(), &done)?;
        }
        if newest > end {
            self.drain_others(end + 1, newest, keep)?;
        }
        Ok(())
    }

    /// Shows the next part of these slots.
    fn drain_others(
        &self,
        first: u64,
        newest: u64,
        mut keep: impl FnMut(&T) -> Result<bool, ApiError>,
    ) -> Result<(), ApiError> {
        let next_key = keys::outbox_next(self.log);
        let next = get_json::<u64>(self.store, &next_key)?.unwrap_or(first);
        let from = if next > newest {
            first
        } else {
            next.max(first)
        };
        let to = newest.min(from + OTHERS - 1);
        for (slot, entry) in self.read(from, to)? {
            if let Slot::Note(note) = entry
                && !keep(&note)?
            {
                self.finish(slot)?;
            }
        }
        set_json(self.store, &next_key, &(to + 1))?;
        Ok(())
    }

    /// Whether a slot with nothing has no note and will have none. The time counts from when this is
    /// first asked, unless an older note is kept anyway.
    fn is_lost(&self, done: &mut Done, slot: u64, newest: u64, now: i64, is_kept: bool) -> bool {
        match done.taken.filter(|taken| slot <= taken.up_to) {
            Some(taken) => now - taken.at > WRITE_MICROS,
            None => {
                if !is_kept {
                    done.taken = Some(Taken {
                        up_to: newest,
                        at: now,
                    });
                }
                false
            }
        }
    }

    /// Empties the note in a slot.
    fn finish(&self, slot: u64) -> Result<(), StoreError> {
        log::write(self.store, self.log, slot, &None::<T>)
    }

    fn done(&self) -> Result<Done, StoreError> {
        Ok(get_json(self.store, &self.done_key())?.unwrap_or_default())
    }

    fn read(&self, from: u64, to: u64) -> Result<Vec<(u64, Slot<T>)>, StoreError> {
        let slots: Vec<u64> = (from..=to).collect();
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
                let entry = match value {
                    None => Slot::Nothing,
                    Some(bytes) => match from_json::<Option<T>>(key, &bytes)? {
                        Some(note) => Slot::Note(note),
                        None => Slot::Finished,
                    },
                };
                Ok((slot, entry))
            })
            .collect()
    }
}
