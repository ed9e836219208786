//! Fences: whoever comes first owns what the fence names.
//!
//! Increment alone can't tell a slow owner from one that died between taking the fence and writing
//! what it is for, so time does: whoever finds nothing written starts a clock, and what has been
//! waited for longer than `ABANDONED_MICROS` is abandoned.

use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::keys;

/// How long what a fence is for may be waited for until the owner is taken for dead, in
/// microseconds. Longer than any request lives.
pub(crate) const ABANDONED_MICROS: i64 = 30_000_000;

/// The time, in microseconds. It is looked at where something depends on it: the store may be slow, and
/// what was looked at before is of then.
pub(crate) type Clock<'c> = &'c dyn Fn() -> i64;

/// Takes a fence: true for the one caller that owns what it names.
pub(crate) fn take(store: &impl KeyValue, fence: &str) -> Result<bool, StoreError> {
    Ok(store.increment(fence, 1)? == 1)
}

/// Whether the owner of a fence is to be taken for dead. To be asked only where nothing of what the
/// fence is for is there. `now`, in microseconds, is a time after the fence was found taken, and before
/// that was looked at: the owner may come just afterwards.
pub(crate) fn is_abandoned(
    store: &impl KeyValue,
    fence: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let waiting = keys::waiting(fence);
    match get_json::<i64>(store, &waiting)? {
        None => {
            set_json(store, &waiting, &now)?;
            Ok(false)
        }
        Some(since) => Ok(now - since > ABANDONED_MICROS),
    }
}
