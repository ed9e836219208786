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

use crate::rng::Rng;

mod client;

pub use client::Client;

pub const SECOND: i64 = 1_000_000;
/// Nobody: before the scripts start and after they end.
const NOBODY: usize = usize::MAX;
/// How long an owner may take, by the clock, from its last look at the clock to its write. The
/// catalog gives an owner up after 30 s and lets none begin to write after 10 s; nothing on a store
/// without compare-and-swap protects against one that stops for the 20 s in between just there.
const MOST_BEFORE_WRITE: i64 = 19 * SECOND;

/// A mistake that the check has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None.
    Nothing,
    /// Whoever takes the fence of a name is told to own it.
    NoFences,
    /// A namespace is read as it was before its last change.
    StaleNamespaces,
}

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
            }),
            current: AtomicUsize::new(NOBODY),
            threads: OnceLock::new(),
        }
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
        if self.rng.per_mille(self.odds.leap) {
            let leap = self.rng.of(&[12 * SECOND, 31 * SECOND]);
            let mut writing = self.scripts.iter().filter_map(|script| script.writing);
            let in_time = |since: i64| self.clock + leap - since <= MOST_BEFORE_WRITE;
            if writing.all(in_time) {
                self.clock += leap;
            }
        }
        if self.rng.per_mille(30) && !self.scripts.is_empty() {
            // Who was held up may be fast from here on, and the other way round.
            let script = self.rng.below(self.scripts.len());
            self.weigh(script);
        }
        let lives = |script: Option<&Script>| script.is_some_and(|script| !script.ended);
        if lives(self.scripts.get(last)) && self.rng.per_mille(self.odds.stay) {
            return last;
        }
        let weight = |script: &Script| if script.ended { 0 } else { script.weight };
        let total: usize = self.scripts.iter().map(weight).sum();
        if total == 0 {
            return NOBODY;
        }
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
        if self.plant == Plant::StaleNamespaces && is_namespace(value) {
            return self.before.get(key).cloned();
        }
        Some(value.clone())
    }

    fn write(&mut self, key: &str, value: &[u8]) {
        let before = self.values.insert(key.to_owned(), value.to_owned());
        if let Some(before) = before.filter(|_| self.plant == Plant::StaleNamespaces) {
            self.before.insert(key.to_owned(), before);
        }
    }
}

/// Whether a value is a namespace that a name stands for.
fn is_namespace(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    text.starts_with(r#"{"generation""#)
        && text.contains(r#""properties""#)
        && !text.contains(r#""location""#)
}
