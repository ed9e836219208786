//! What a script sees of the store and the clock.

use std::sync::MutexGuard;

use lance_maintenance_store::{KeyValue, StoreError};

use super::{NOBODY, Shared, World};

/// A script's way to the store.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    pub(super) world: &'a World,
    pub(super) me: usize,
}

impl Client<'_> {
    /// The time, in microseconds.
    pub fn now(&self) -> i64 {
        let mut shared = self.world.shared();
        let clock = shared.clock;
        if let Some(script) = shared.scripts.get_mut(self.me) {
            script.read = Some(clock);
        }
        clock
    }

    /// Lets others go first, and takes the next point of time on which no other event is.
    pub fn begin(&self) -> u32 {
        drop(self.turn(false));
        self.tick()
    }

    /// The next point of time.
    pub fn tick(&self) -> u32 {
        let mut shared = self.world.shared();
        shared.ticks += 1;
        shared.ticks
    }

    /// Whether the script has been stopped for good.
    pub fn is_dead(&self) -> bool {
        let shared = self.world.shared();
        shared.scripts.get(self.me).is_some_and(|me| me.dead)
    }

    /// A number below `n` that follows from the schedule.
    pub fn below(&self, n: usize) -> usize {
        self.world.shared().rng.below(n)
    }

    /// True `parts` times in 1000.
    pub fn per_mille(&self, parts: usize) -> bool {
        self.world.shared().rng.per_mille(parts)
    }

    /// Makes a request on a machine of its own: if that dies, the script goes on after it.
    pub fn request<T>(&self, make: impl FnOnce(&Self) -> T) -> T {
        if let Some(script) = self.world.shared().scripts.get_mut(self.me) {
            script.dead = false;
        }
        let answer = make(self);
        if let Some(script) = self.world.shared().scripts.get_mut(self.me) {
            script.dead = false;
        }
        answer
    }

    /// Lets time pass; less if [`Client::wake`] comes.
    pub fn sleep(&self, micros: i64) {
        let mut shared = self.world.shared();
        let until = shared.clock.saturating_add(micros);
        shared.scripts[self.me].sleeps = until;
        let next = shared.pick(self.me);
        drop(shared);
        if next != self.me {
            self.world.hand_over(next);
            self.world.wait(self.me);
        }
    }

    /// Ends another script's sleep.
    pub fn wake(&self, script: usize) {
        let mut shared = self.world.shared();
        let clock = shared.clock;
        let other = &mut shared.scripts[script];
        other.sleeps = other.sleeps.min(clock);
    }

    pub fn note(&self, text: impl FnOnce() -> String) {
        let mut shared = self.world.shared();
        let (me, clock) = (self.me as isize, shared.clock);
        if let Some(trace) = &mut shared.trace {
            trace.push(format!("{clock:>12} [{me}] {}", text()));
        }
    }

    /// Waits until it is this script's turn.
    fn turn(&self, writes: bool) -> MutexGuard<'_, Shared> {
        let mut shared = self.world.shared();
        let me = self.me;
        if shared.scripts.get(me).is_none_or(|me| me.dead || me.ended) {
            shared.clock += 1;
            return shared;
        }
        let read = shared.scripts[me].read.take();
        shared.scripts[me].writing = read.filter(|_| writes);
        let next = shared.pick(me);
        if next != me {
            drop(shared);
            self.world.hand_over(next);
            self.world.wait(me);
            shared = self.world.shared();
        }
        shared.scripts[me].writing = None;
        shared
    }

    fn operation<T>(
        &self,
        writes: bool,
        what: impl FnOnce() -> String,
        done: impl FnOnce(&mut Shared) -> T,
    ) -> Result<T, StoreError> {
        let mut shared = self.turn(writes);
        let gone = || Err(StoreError::Unavailable("gone".to_owned()));
        let faulty = self.me != NOBODY && shared.clock < shared.odds.until;
        let crash = shared.odds.crash;
        let crashes = faulty && shared.rng.per_mille(crash);
        let dead = match shared.scripts.get_mut(self.me) {
            Some(script) if !script.ended => {
                script.dead |= crashes;
                script.dead
            }
            _ => false,
        };
        let fail = shared.odds.fail;
        let fails = faulty && !dead && shared.rng.per_mille(fail);
        let before = fails && shared.rng.per_mille(500);
        if shared.trace.is_some() {
            let (me, clock) = (self.me as isize, shared.clock);
            let fate = match (dead, fails, before) {
                (true, ..) => " DEAD",
                (_, true, true) => " FAILS",
                (_, true, false) => " REPLY LOST",
                _ => "",
            };
            let line = format!("{clock:>12} [{me}]   {}{fate}", what());
            shared.trace.iter_mut().for_each(|t| t.push(line.clone()));
        }
        if dead || before {
            return gone();
        }
        let outcome = done(&mut shared);
        if fails {
            return gone();
        }
        Ok(outcome)
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

impl KeyValue for Client<'_> {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.operation(false, || format!("get {key}"), |shared| shared.read(key))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.operation(
            true,
            || format!("set {key} = {}", text(value)),
            |shared| shared.write(key, value),
        )
    }

    fn increment(&self, key: &str, delta: i64) -> Result<i64, StoreError> {
        self.operation(
            false,
            || format!("increment {key} by {delta}"),
            |shared| shared.increment(key, delta),
        )
    }

    fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.operation(
            false,
            || format!("get {}", keys.join(" ")),
            |shared| keys.iter().map(|key| shared.read(key)).collect(),
        )
    }

    fn delete_many(&self, keys: &[String]) -> Result<(), StoreError> {
        self.operation(
            false,
            || format!("delete {}", keys.join(" ")),
            |shared| {
                for key in keys {
                    shared.values.remove(key);
                    shared.counters.remove(key);
                }
            },
        )
    }

    fn keys(&self) -> Result<Vec<String>, StoreError> {
        self.operation(
            false,
            || "keys".to_owned(),
            |shared| {
                let counters = shared.counters.keys();
                shared.values.keys().chain(counters).cloned().collect()
            },
        )
    }
}
