//! Workers: when each was last heard of, and what it handed back.
//!
//! **Leaving.** A worker that left runs no attempt any more that it was granted until then. Its own clock
//! and the way of its messages tell nothing of when that was, since it may have started again before its
//! leave arrives. But the leave names the attempts, the store knows when each was granted, and whatever
//! a worker was granted after it started again was granted later. So the start of the last attempt that
//! was handed back divides what is over from what is not. A claim made again for an attempt that was
//! granted before is granted to the same life only, which left after its claims were answered.

use lance_maintenance_dispatch::LEASE_SECONDS;

use crate::key_value::{KeyValue, StoreError, from_json, get_json, set_json};
use crate::keys;
use crate::tasks::Run;

/// What is known of a worker. All times are in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    /// When it was last heard of.
    heard: Option<i64>,
    /// The start of the last attempt that it handed back.
    left: Option<i64>,
}

impl Standing {
    /// Whether the worker has handed an attempt of its own back.
    pub(crate) fn has_left(&self, run: &Run) -> bool {
        self.left.is_some_and(|left| run.started_at <= left)
    }

    /// Whether the worker of an attempt is at it no longer: it has left, or was not heard of for longer
    /// than the lease. Its claim counts: one that started again may claim before its first heartbeat is
    /// answered, and the last one from before is old.
    pub(crate) fn is_silent(&self, run: &Run, now: i64) -> bool {
        let heard = self.heard.unwrap_or(run.started_at).max(run.started_at);
        self.has_left(run) || now - heard > LEASE_SECONDS as i64 * 1_000_000
    }
}

/// The worker lives.
pub(crate) fn heard(store: &impl KeyValue, worker_id: &str, now: i64) -> Result<(), StoreError> {
    set_json(store, &keys::worker(worker_id), &now)
}

/// What is known of a worker.
pub(crate) fn standing(store: &impl KeyValue, worker_id: &str) -> Result<Standing, StoreError> {
    let key = keys::worker(worker_id);
    let keys = [keys::worker_left(&key), key];
    let values = store.get_many(&keys)?;
    let time = |at: usize| -> Result<Option<i64>, StoreError> {
        let found = keys.get(at).zip(values.get(at).and_then(Option::as_deref));
        found.map(|(key, bytes)| from_json(key, bytes)).transpose()
    };
    Ok(Standing {
        left: time(0)?,
        heard: time(1)?,
    })
}

/// The worker has left, and with it all attempts that it was granted up to this start of one.
pub(crate) fn leave(store: &impl KeyValue, worker_id: &str, start: i64) -> Result<(), StoreError> {
    let key = keys::worker_left(&keys::worker(worker_id));
    let before: Option<i64> = get_json(store, &key)?;
    if before.is_none_or(|before| before < start) {
        set_json(store, &key, &start)?;
    }
    Ok(())
}
