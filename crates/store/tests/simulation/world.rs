//! A store that several scripts share, a clock, and the scheduler that decides, before every
//! operation on the store, who makes the next one.
//!
//! Every script has a thread of its own, and exactly one of them runs at a time: whoever is about
//! to make an operation picks the next script itself, and sleeps if that is another one. So what
//! happens follows from the seed alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use super::rng::Rng;

mod client;

pub use client::Client;

pub const SECOND: i64 = 1_000_000;
/// Nobody: before the scripts start and after they end.
const NOBODY: usize = usize::MAX;

/// A mistake that the check has to find.
#[derive(Clone, Copy, Debug)]
pub enum Plant {
    /// None.
    Nothing,
    /// Whoever takes a fence whose key starts so is told to own it.
    Owns(&'static str),
    /// Such values are read as they were before they were last written.
    Stale(fn(&[u8]) -> bool),
    /// Values under keys that start so are never found.
    Hides(&'static str),
    /// Values under such keys are never written.
    Loses(fn(&str) -> bool),
    /// Workers don't say which of their lives it is.
    NoLives,
    /// Claims don't see which tasks are canceled.
    BlindClaims,
    /// Cancels take no fences.
    UnfencedCancels,
    /// Attempts at canceled tasks don't look whether one before is about to commit.
    NoNotes,
    /// Values are read otherwise than they were written, if this says how, by key, value and time.
    Alters(fn(&str, &[u8], i64) -> Option<Vec<u8>>),
}

/// Looks at every value that is written, with the one before it, and says what is wrong.
pub type Watch = fn(&str, Option<&[u8]>, &[u8]) -> Option<String>;

/// How likely things are, in parts of a thousand, before each operation.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    /// The script that ran goes on.
    pub stay: usize,
    /// The clock makes a big step.
    pub leap: usize,
    /// The script is stopped for good.
    pub crash: usize,
    /// The operation fails, before or after it was done, and the script goes on.
    pub fail: usize,
    /// How big a big step is, in microseconds.
    pub leaps: &'static [i64],
    /// Nothing of all this happens from this time on, except that scripts stay.
    pub until: i64,
    /// The longest that a big step makes the time from a look at the clock to the write that it
    /// allows, in microseconds.
    pub write: i64,
}

#[derive(Default)]
struct Script {
    ended: bool,
    dead: bool,
    weight: usize,
    /// The clock as it was read last, since the last operation.
    read: Option<i64>,
    /// About to write, after a look at the clock at this time.
    writing: Option<i64>,
    /// Until when it sleeps.
    sleeps: i64,
}

struct Shared {
    values: BTreeMap<String, Vec<u8>>,
    /// What values were before they were last written.
    before: BTreeMap<String, Vec<u8>>,
    counters: BTreeMap<String, i64>,
    clock: i64,
    ticks: u32,
    rng: Rng,
    odds: Odds,
    plant: Plant,
    scripts: Vec<Script>,
    trace: Option<Vec<String>>,
    watch: Option<Watch>,
    wrong: Vec<String>,
}

/// What the scripts of one schedule share.
pub struct World {
    shared: Mutex<Shared>,
    current: AtomicUsize,
    threads: OnceLock<Vec<Thread>>,
}

impl World {
    pub fn new(rng: Rng, odds: Odds, plant: Plant, traced: bool) -> Self {
        Self {
            shared: Mutex::new(Shared {
                values: BTreeMap::new(),
                before: BTreeMap::new(),
                counters: BTreeMap::new(),
                clock: 1000 * SECOND,
                ticks: 0,
                rng,
                odds,
                plant,
                scripts: Vec::new(),
                trace: traced.then(Vec::new),
                watch: None,
                wrong: Vec::new(),
            }),
            current: AtomicUsize::new(NOBODY),
            threads: OnceLock::new(),
        }
    }

    /// Has every value looked at that is written from now on.
    pub fn watch(&self, watch: Watch) {
        self.shared().watch = Some(watch);
    }

    /// What those who watched found wrong.
    pub fn wrong(&self) -> Vec<String> {
        self.shared().wrong.clone()
    }

    /// Somebody who is alone with the store: before the scripts, or after.
    pub fn alone(&self) -> Client<'_> {
        Client {
            world: self,
            me: NOBODY,
        }
    }

    /// Moves the clock.
    pub fn advance(&self, micros: i64) {
        self.shared().clock += micros;
    }

    /// Runs the scripts to their ends.
    pub fn run<T: Send, F: FnOnce(Client<'_>) -> T + Send>(&self, scripts: Vec<F>) -> Vec<T> {
        {
            let mut shared = self.shared();
            shared.scripts = scripts.iter().map(|_| Script::default()).collect();
            for script in 0..scripts.len() {
                shared.weigh(script);
            }
        }
        std::thread::scope(|scope| {
            let handles: Vec<_> = scripts
                .into_iter()
                .enumerate()
                .map(|(me, script)| {
                    scope.spawn(move || {
                        self.wait(me);
                        let outcome = script(Client { world: self, me });
                        self.end(me);
                        outcome
                    })
                })
                .collect();
            let threads = handles.iter().map(|handle| handle.thread().clone());
            let _ = self.threads.set(threads.collect());
            let first = self.shared().pick(NOBODY);
            self.hand_over(first);
            let outcomes = handles.into_iter().map(|handle| handle.join().unwrap());
            outcomes.collect()
        })
    }

    /// What was done on the store, if it was traced.
    pub fn trace(&self) -> Vec<String> {
        self.shared().trace.take().unwrap_or_default()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    fn wait(&self, me: usize) {
        while self.current.load(Ordering::Acquire) != me {
            std::thread::park();
        }
    }

    fn hand_over(&self, next: usize) {
        self.current.store(next, Ordering::Release);
        if let Some(thread) = self.threads.get().and_then(|threads| threads.get(next)) {
            thread.unpark();
        }
    }

    fn end(&self, me: usize) {
        let mut shared = self.shared();
        shared.scripts[me].ended = true;
        shared.scripts[me].writing = None;
        let next = shared.pick(me);
        drop(shared);
        self.hand_over(next);
    }
}

impl Shared {
    /// Who makes the next operation, and when.
    fn pick(&mut self, last: usize) -> usize {
        self.clock += 1 + self.rng.below(2000) as i64;
        if self.clock < self.odds.until && self.rng.per_mille(self.odds.leap) {
            let leap = self.rng.of(self.odds.leaps);
            let mut open = self.scripts.iter().filter_map(|script| script.writing);
            let in_time = |since: i64| self.clock + leap - since <= self.odds.write;
            if open.all(in_time) {
                self.clock += leap;
            }
        }
        if self.rng.per_mille(30) && !self.scripts.is_empty() {
            // Who was held up may be fast from here on, and the other way round.
            let script = self.rng.below(self.scripts.len());
            self.weigh(script);
        }
        let lives = |script: &&Script| !script.ended;
        let Some(first) = self.scripts.iter().filter(lives).map(|s| s.sleeps).min() else {
            return NOBODY;
        };
        // While all sleep, time passes.
        self.clock = self.clock.max(first);
        let clock = self.clock;
        let ready = |script: &Script| !script.ended && script.sleeps <= clock;
        if self.scripts.get(last).is_some_and(ready) && self.rng.per_mille(self.odds.stay) {
            return last;
        }
        let weight = |script: &Script| if ready(script) { script.weight } else { 0 };
        let total: usize = self.scripts.iter().map(weight).sum();
        let mut at = self.rng.below(total);
        for (number, script) in self.scripts.iter().enumerate() {
            match at.checked_sub(weight(script)) {
                Some(rest) => at = rest,
                None => return number,
            }
        }
        NOBODY
    }

    fn weigh(&mut self, script: usize) {
        self.scripts[script].weight = self.rng.of(&[1, 8, 64, 512]);
    }
}

impl Shared {
    fn read(&self, key: &str) -> Option<Vec<u8>> {
        let value = self.values.get(key)?;
        match self.plant {
            Plant::Stale(is_stale) if is_stale(value) => self.before.get(key).cloned(),
            Plant::Hides(prefix) if key.starts_with(prefix) => None,
            Plant::Alters(alter) => alter(key, value, self.clock).or_else(|| Some(value.clone())),
            _ => Some(value.clone()),
        }
    }

    fn write(&mut self, key: &str, value: &[u8]) {
        if matches!(self.plant, Plant::Loses(is_lost) if is_lost(key)) {
            return;
        }
        let before = self.values.insert(key.to_owned(), value.to_owned());
        let watched = self
            .watch
            .and_then(|watch| watch(key, before.as_deref(), value));
        self.wrong.extend(watched);
        if let (Some(before), Plant::Stale(_)) = (before, self.plant) {
            self.before.insert(key.to_owned(), before);
        }
    }

    fn increment(&mut self, key: &str, delta: i64) -> i64 {
        let counter = self.counters.entry(key.to_owned()).or_default();
        *counter += delta;
        match self.plant {
            Plant::Owns(prefix) if key.starts_with(prefix) => 1,
            _ => *counter,
        }
    }
}
