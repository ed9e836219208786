//! Places in the quota, and those that were lost.
//!
//! A place is taken with a slot and freed behind the slot's fence. Whoever dies in between leaves one of
//! two things: a slot without a record, or a fence whose place was never freed. A look through all keys
//! finds both; they are settled when they are as old as no request that still goes on with them:
//!
//! - A slot without a record is freed behind its fence, like any. A submit that is slow takes its task
//!   back again instead of answering, [`SUBMIT_MICROS`] after it began.
//! - Fences tell how many places were freed, if nobody died. If it was fewer all the time since the look
//!   counted the fences, the rest is freed. Who frees places makes haste ([`OWNER_MICROS`]), and one
//!   settles at a time: the findings of a look are settled by the one that takes its fence, within the same
//!   time after it read them, and those of the next look not before [`SETTLED_MICROS`].

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::fence::Clock;
use crate::key_value::{KeyValue, StoreError};
use crate::names::OWNER_MICROS;
use crate::{fence, keys, log};

/// How long a submit may take until its task is stored, in microseconds.
pub(crate) const SUBMIT_MICROS: i64 = 30_000_000;
/// How old what a look found missing is when it is settled, in microseconds.
const SETTLED_MICROS: i64 = 60_000_000;
/// How many slots one look finds at most.
const MOST_SLOTS: usize = 1000;

/// Frees the place of a task in the quota, once: true for the one that has to see to it.
pub(crate) fn free(
    store: &impl KeyValue,
    log: &str,
    task: &str,
    now: Clock<'_>,
) -> Result<bool, StoreError> {
    let asked = now();
    if !fence::take(store, &keys::task_free_fence(task))? {
        return Ok(false);
    }
    // Later, it may have been freed by others already.
    if now() - asked <= OWNER_MICROS {
        store.increment(&keys::task_log_freed(log), 1)?;
    }
    Ok(true)
}

/// What a look through all keys found missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Missing {
    /// Slots without a record: the log and the task's key.
    slots: Vec<(String, String)>,
    /// Logs of which fewer places were freed than fences taken, and the number of fences.
    fences: Vec<(String, u64)>,
}

/// What is there of a log's tasks.
#[derive(Default)]
struct Seen<'k> {
    records: HashSet<&'k str>,
    fences: HashSet<&'k str>,
}

impl Missing {
    /// Whether nothing is.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.fences.is_empty()
    }

    /// Looks for what is missing, in all keys as they were a moment ago.
    pub(crate) fn find(store: &impl KeyValue, keys: &[String]) -> Result<Self, StoreError> {
        let mut logs: HashMap<&str, Seen<'_>> = HashMap::new();
        for key in keys {
            if let Some(log) = keys::task_log_path(key) {
                logs.entry(log).or_default();
            } else if let Some((log, task)) = keys::task_path(key) {
                logs.entry(log).or_default().records.insert(task);
            } else if let Some((log, task)) = keys::freed_task(key) {
                logs.entry(log).or_default().fences.insert(task);
            }
        }
        let mut missing = Self::default();
        for (path, seen) in logs {
            let log = keys::task_log_at(path);
            let used = log::slots(store, &log)?;
            let freed = log::slots(store, &keys::task_log_freed(&log))?;
            if seen.fences.len() as u64 > freed {
                missing.fences.push((log.clone(), seen.fences.len() as u64));
            }
            let there = seen.records.union(&seen.fences).count() as u64;
            let kept = seen.records.difference(&seen.fences).count() as u64;
            if there >= used || used.saturating_sub(freed) <= kept {
                continue;
            }
            for task in (1..=used).map(|slot| keys::task_at(path, slot)) {
                let is_there = [&seen.records, &seen.fences]
                    .iter()
                    .any(|seen| seen.contains(task.as_str()));
                if !is_there && missing.slots.len() < MOST_SLOTS {
                    missing.slots.push((log.clone(), task));
                }
            }
        }
        Ok(missing)
    }

    /// Frees what was found missing by a look at this time, once, if it is so long ago that it is known
    /// to be lost. `began` is a time before the findings were read. True if there is nothing left to do.
    pub(crate) fn settle(
        &self,
        store: &impl KeyValue,
        looked: i64,
        began: i64,
        now: Clock<'_>,
    ) -> Result<bool, StoreError> {
        if self.is_empty() || began - looked <= SETTLED_MICROS {
            return Ok(false);
        }
        if !fence::take(store, &keys::look_fence(looked))? {
            return Ok(false);
        }
        for (log, fences) in &self.fences {
            let freed_log = keys::task_log_freed(log);
            let lost = fences.saturating_sub(log::slots(store, &freed_log)?);
            if lost > 0 && now() - began <= OWNER_MICROS {
                store.increment(&freed_log, lost as i64)?;
            }
        }
        for (log, task) in &self.slots {
            if store.get(task)?.is_none() {
                free(store, log, task, now)?;
            }
        }
        Ok(true)
    }
}
