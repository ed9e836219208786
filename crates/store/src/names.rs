//! Names that stand for at most one thing at a time, whoever creates and removes it.
//!
//! A name has a **head**: its generation, and what it stands for. Every change claims the fence of
//! the next generation first, and only who owns it writes the head. An owner that is slower than
//! `OWNER_MICROS` gives up, and a generation that is abandoned is passed over.
//!
//! **Old fences are removed**, by the owner of a change, up to the generation that it found in the head,
//! if that was written [`SWEPT_MICROS`] ago or longer. Whoever takes such a fence anew is told to own it,
//! but it read a head from before that generation was written. Its own time counts from before that, so
//! it is late, and writes nothing.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::fence::ABANDONED_MICROS;
use crate::key_value::{KeyValue, StoreError, from_json, get_json, set_json};
use crate::{fence, keys};

/// How long an owner may take from its fence to its write, in microseconds.
pub(crate) const OWNER_MICROS: i64 = 10_000_000;
/// How often the head is read again while somebody else's change is on its way.
const REREADS: usize = 16;

/// How old a head is at the least when fences up to its generation are removed, in microseconds: twice the
/// time after which an owner is given up, for the writing of the head and for whoever read the one before.
const SWEPT_MICROS: i64 = 2 * ABANDONED_MICROS;
/// How many fences one change removes at most.
const MOST_SWEPT: u64 = 128;

#[derive(Serialize, Deserialize)]
struct Head<T> {
    generation: u64,
    value: Option<T>,
    /// When it was written, or just before, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    /// The fences up to this generation's have been removed.
    #[serde(default)]
    swept: u64,
}

impl<T> Head<T> {
    /// The last generation whose fence is removed by a change of this head.
    fn sweeps(&self, now: i64) -> u64 {
        match self.at {
            Some(at) if now - at > SWEPT_MICROS => self.generation.min(self.swept + MOST_SWEPT),
            _ => self.swept,
        }
    }
}

/// How a change of a name went.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// It was made; what the name stood for before.
    Done(Option<T>),
    /// The name does not stand for what the change needs; what it stands for.
    Refused(Option<T>),
    /// Somebody else is changing the name.
    Busy,
}

/// What a name stands for.
pub(crate) fn read<T: DeserializeOwned>(
    store: &impl KeyValue,
    name: &str,
) -> Result<Option<T>, StoreError> {
    Ok(get_json::<Head<T>>(store, name)?.and_then(|head| head.value))
}

/// What many names stand for, in their order, in one read.
pub(crate) fn read_many<T: DeserializeOwned>(
    store: &impl KeyValue,
    names: &[String],
) -> Result<Vec<Option<T>>, StoreError> {
    let heads = store.get_many(names)?;
    names
        .iter()
        .zip(heads)
        .map(|(name, head)| value_of(name, head))
        .collect()
}

/// What two names stand for, in one read.
pub(crate) fn read_pair<A: DeserializeOwned, B: DeserializeOwned>(
    store: &impl KeyValue,
    first: &str,
    second: &str,
) -> Result<(Option<A>, Option<B>), StoreError> {
    let heads = store.get_many(&[first.to_owned(), second.to_owned()])?;
    let mut heads = heads.into_iter();
    Ok((
        value_of(first, heads.next().flatten())?,
        value_of(second, heads.next().flatten())?,
    ))
}

fn value_of<T: DeserializeOwned>(
    name: &str,
    head: Option<Vec<u8>>,
) -> Result<Option<T>, StoreError> {
    match head {
        Some(bytes) => Ok(from_json::<Head<T>>(name, &bytes)?.value),
        None => Ok(None),
    }
}

/// Whether what a name stands for lets a change go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does.
    Allowed,
    /// It does not.
    Refused,
    /// Not yet: something else has to come to its end first.
    Busy,
}

impl From<bool> for Verdict {
    fn from(allowed: bool) -> Self {
        if allowed {
            Self::Allowed
        } else {
            Self::Refused
        }
    }
}

/// Changes what a name stands for. `allowed` decides by what it stands for now; `make` gives what
/// it stands for next, and runs only for the owner of the change, before the head is written.
/// `since` is when the change began, in microseconds, if that was before this call: the time of an
/// owner counts from there.
pub(crate) fn change<S: KeyValue, T: Serialize + DeserializeOwned, V: Into<Verdict>>(
    store: &S,
    name: &str,
    now: impl Fn() -> i64,
    since: Option<i64>,
    allowed: impl Fn(Option<&T>) -> Result<V, StoreError>,
    make: impl FnOnce(&S, Option<&T>) -> Result<Option<T>, StoreError>,
) -> Result<Change<T>, StoreError> {
    let mut abandoned = 0;
    for _ in 0..REREADS {
        // Before the head is read: an old one is not written over long after.
        let started = now();
        let head = get_json::<Head<T>>(store, name)?.unwrap_or(Head {
            generation: 0,
            value: None,
            at: None,
            swept: 0,
        });
        match allowed(head.value.as_ref())?.into() {
            Verdict::Allowed => {}
            Verdict::Refused => return Ok(Change::Refused(head.value)),
            Verdict::Busy => return Ok(Change::Busy),
        }
        let generation = head.generation.max(abandoned) + 1;
        let fence = keys::name_fence(name, generation);
        if fence::take(store, &fence)? {
            let is_late = || now() - since.unwrap_or(started) > OWNER_MICROS;
            if is_late() {
                return Ok(Change::Busy);
            }
            let value = make(store, head.value.as_ref())?;
            let swept = head.sweeps(started);
            if swept > head.swept {
                let fences = (head.swept + 1..=swept).map(|old| keys::name_fence(name, old));
                let keys = fences.flat_map(|fence| [keys::waiting(&fence), fence]);
                store.delete_many(&keys.collect::<Vec<_>>())?;
            }
            if is_late() {
                return Ok(Change::Busy);
            }
            let next = Head {
                generation,
                value,
                at: Some(now()),
                swept,
            };
            set_json(store, name, &next)?;
            return Ok(Change::Done(head.value));
        }
        // The time after the fence was found taken: what was before may be long before its owner came.
        if fence::is_abandoned(store, &fence, now())? {
            abandoned = generation;
        }
    }
    Ok(Change::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    fn create(store: &MemoryStore, value: u32, now: i64) -> Change<u32> {
        change(
            store,
            "n",
            || now,
            None,
            |held: Option<&u32>| Ok(held.is_none()),
            |_, _| Ok(Some(value)),
        )
        .unwrap()
    }

    fn remove(store: &MemoryStore, value: u32) -> Change<u32> {
        change(
            store,
            "n",
            || 0,
            None,
            |held| Ok(held == Some(&value)),
            |_, _| Ok(None),
        )
        .unwrap()
    }

    #[test]
    fn a_name_is_created_once_and_again_after_its_removal() {
        let store = MemoryStore::default();
        assert_eq!(create(&store, 1, 0), Change::Done(None));
        assert_eq!(create(&store, 2, 0), Change::Refused(Some(1)));
        assert_eq!(remove(&store, 2), Change::Refused(Some(1)));
        assert_eq!(remove(&store, 1), Change::Done(Some(1)));
        assert_eq!(remove(&store, 1), Change::Refused(None));
        assert_eq!(create(&store, 2, 0), Change::Done(None));
        assert_eq!(read::<u32>(&store, "n").unwrap(), Some(2));
    }

    #[test]
    fn a_dead_owner_blocks_a_name_for_a_while_only() {
        let store = MemoryStore::default();
        // An owner that took the fence and died.
        store.increment(&keys::name_fence("n", 1), 1).unwrap();
        assert_eq!(create(&store, 1, 0), Change::Busy);
        assert_eq!(create(&store, 1, ABANDONED_MICROS), Change::Busy);
        assert_eq!(create(&store, 1, ABANDONED_MICROS + 1), Change::Done(None));
        assert_eq!(
            create(&store, 2, ABANDONED_MICROS + 1),
            Change::Refused(Some(1))
        );
    }

    /// Whoever waits may itself be slow: the owner's time is not counted from before it came.
    #[test]
    fn an_owner_is_not_given_up_for_the_slowness_of_another() {
        let store = MemoryStore::default();
        let times = std::cell::RefCell::new(vec![0]);
        let seen = change(
            &store,
            "n",
            || match times.borrow_mut().pop() {
                Some(time) => {
                    // Between this look at the clock and the fence another takes it.
                    store.increment(&keys::name_fence("n", 1), 1).unwrap();
                    time
                }
                None => ABANDONED_MICROS + 1,
            },
            None,
            |held: Option<&u32>| Ok(held.is_none()),
            |_, _| Ok(Some(1)),
        );
        assert_eq!(seen.unwrap(), Change::Busy);
    }

    #[test]
    fn old_fences_are_removed() {
        let store = MemoryStore::default();
        let mut now = 0;
        let mut fences = |pause: i64| {
            now += pause;
            let held = read::<u32>(&store, "n").unwrap();
            let changed = change(
                &store,
                "n",
                || now,
                None,
                |_: Option<&u32>| Ok(true),
                |_, _| Ok(Some(held.unwrap_or(0) + 1)),
            );
            assert_eq!(changed.unwrap(), Change::Done(held));
            store.keys().unwrap().len() - 1
        };
        // While changes come fast, none; then all but the one of the change itself.
        assert_eq!([0, 1, 1, SWEPT_MICROS].map(&mut fences), [1, 2, 3, 4]);
        assert_eq!(fences(SWEPT_MICROS + 1), 1);
        assert_eq!([1, SWEPT_MICROS + 1].map(&mut fences), [2, 1]);
        // Many that gathered go little by little.
        for _ in 0..2 * MOST_SWEPT {
            fences(1);
        }
        let rest = [SWEPT_MICROS + 1; 3].map(&mut fences);
        assert!(rest[0] > rest[1] && rest[1] > rest[2], "{rest:?}");
        assert_eq!(rest[2], 1);
    }

    /// Whoever read the head before its fence was removed is told to own it, and is late.
    #[test]
    fn a_removed_fence_gives_nothing_away() {
        let store = MemoryStore::default();
        let clock = std::cell::Cell::new(0);
        let bump = |store: &MemoryStore| {
            let changed = change(
                store,
                "n",
                || clock.get(),
                None,
                |_: Option<&u32>| Ok(true),
                |_, held| Ok(Some(held.copied().unwrap_or(0) + 1)),
            );
            assert!(matches!(changed, Ok(Change::Done(_))));
        };
        let slow = change(
            &store,
            "n",
            || clock.get(),
            None,
            |held: Option<&u32>| {
                if held.is_none() && clock.get() == 0 {
                    // It has read the head, and stops while others make changes.
                    bump(&store);
                    clock.set(SWEPT_MICROS + 1);
                    bump(&store);
                }
                Ok(true)
            },
            |_, _| Ok(Some(100)),
        );
        assert_eq!(slow.unwrap(), Change::Busy);
        assert_eq!(read::<u32>(&store, "n").unwrap(), Some(2));
    }

    #[test]
    fn a_slow_owner_gives_up() {
        // Slow before it makes the value, or after.
        for (times, made) in [
            ([OWNER_MICROS + 1, 0].as_slice(), 0),
            (&[OWNER_MICROS + 1, 0, 0], 1),
        ] {
            let store = MemoryStore::default();
            let times = std::cell::RefCell::new(times.to_vec());
            let count = std::cell::Cell::new(0);
            let seen = change(
                &store,
                "n",
                || times.borrow_mut().pop().unwrap(),
                None,
                |held: Option<&u32>| Ok(held.is_none()),
                |_, _| {
                    count.set(count.get() + 1);
                    Ok(Some(1))
                },
            );
            assert_eq!(seen.unwrap(), Change::Busy);
            assert_eq!(read::<u32>(&store, "n").unwrap(), None);
            assert_eq!(count.get(), made);
        }
    }
}
