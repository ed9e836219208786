//! What the tests share that run the store under many schedules: a store whose operations the
//! scheduler orders and lets fail, a virtual clock, and numbers from a seed.

// Each test uses a part of it.
#![allow(dead_code)]

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

pub mod rng;
pub mod world;

/// What was found wrong with the schedule of a seed.
pub struct Fault {
    pub seed: u64,
    pub wrong: Vec<String>,
    pub lines: Vec<String>,
    pub trace: Vec<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.trace, &self.lines, &self.wrong];
        writeln!(f, "seed {}:", self.seed)?;
        for line in parts.into_iter().flatten() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// The number in an environment variable.
pub fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The faults of the schedules of these seeds: the first `most` that are found.
pub fn faults(
    seeds: Range<u64>,
    most: usize,
    run: impl Fn(u64) -> Result<(), Box<Fault>> + Sync,
) -> Vec<Fault> {
    let next = AtomicU64::new(seeds.start);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || found.lock().unwrap().len() >= most {
                return;
            }
            if let Err(fault) = run(seed) {
                found.lock().unwrap().push(*fault);
            }
        }
    };
    std::thread::scope(|scope| {
        // More than cores: handing over from one script to the next leaves a core idle.
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap()
}

/// Runs the schedules that the environment asks for, `count` where it asks for none, and panics
/// with what is wrong. `name` starts the variables; `run` is told whether to show its operations.
pub fn check(name: &str, count: u64, run: impl Fn(u64, bool) -> Result<(), Box<Fault>> + Sync) {
    if let Some(seed) = number(&format!("{name}_SEED")) {
        if let Err(fault) = run(seed, true) {
            panic!("{fault}");
        }
        return;
    }
    let from = number(&format!("{name}_FROM")).unwrap_or(0);
    let count = number(name).unwrap_or(count);
    let most = number(&format!("{name}_FAULTS")).unwrap_or(5) as usize;
    let found = faults(from..from + count, most, |seed| run(seed, false));
    let told: Vec<String> = found.iter().map(|fault| fault.to_string()).collect();
    assert!(found.is_empty(), "{}", told.join("\n"));
}
