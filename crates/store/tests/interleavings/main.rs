//! The catalog under many interleavings: what every answer said is explained by one order of the
//! requests, however their operations on the store were mixed.
//!
//! | module | what it holds |
//! |---|---|
//! | `rng` | numbers from a seed |
//! | `world` | the store, the clock, and the scheduler that says who goes on |
//! | `schedule` | one schedule: what is asked for, and what must hold at the end |
//! | `calls` | the requests |
//! | `answers` | what each answer says |
//! | `model` | the catalog said simply, and the search for an order |
//!
//! **What varies.** 2 to 5 scripts of 1 to 4 requests over two namespaces with two names each: create
//! (some tables at one location), drop, deregister, rename within a namespace and to the other, set
//! a policy, get, list, find by id, create and drop a namespace with or without its tables, remove the
//! data of what was dropped. Before each operation on the store the scheduler picks who makes it;
//! some scripts are held up for long. The clock makes small steps and, in some schedules, steps of
//! 12 s and 31 s, so that owners give up and are given up. Scripts are stopped for good before an
//! operation, and operations fail before or after they were done.
//!
//! **What is checked.**
//! - There is an order of the requests that respects which ended before which began, and leads to
//!   every answer and to the end. A request that was told to try again may have been done or not.
//!   One that found its namespace dropped may have been seen until it was taken back. A list says of
//!   each name what it stood for at some moment, and shows no table twice. Dropping a namespace with
//!   its tables takes them one by one.
//! - At the end `table`, `tables`, `all_tables` and `find_table` agree.
//! - Data is removed of no table that is there, nor at its location; and, if no owner was slow, of
//!   every table that was dropped.
//! - Whatever was cut short, all can be dropped in the end.
//!
//! **What is not.** Clocks that differ; a stop of 20 s between a look at the clock and the write that
//! it allows; `all_tables` while tables change; more than one bucket.
//!
//! `INTERLEAVINGS=1000000 INTERLEAVINGS_FROM=20000` runs more schedules, from this seed on;
//! `INTERLEAVINGS_SEED=7` runs one and shows its operations; `INTERLEAVINGS_FAULTS` says how many
//! faults are enough.

mod answers;
mod calls;
mod model;
mod rng;
mod schedule;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use schedule::Fault;
use world::Plant;

/// How many schedules run where nothing else is said.
const SCHEDULES: u64 = 20_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The faults of the schedules of these seeds: the first few.
fn faults(seeds: std::ops::Range<u64>, plant: Plant) -> Vec<Fault> {
    let most = number("INTERLEAVINGS_FAULTS").unwrap_or(5) as usize;
    let next = AtomicU64::new(seeds.start);
    let found = std::sync::Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end || found.lock().unwrap().len() >= most {
                return;
            }
            if let Err(fault) = schedule::run(seed, plant, false) {
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

#[test]
fn every_answer_is_explained() {
    if let Some(seed) = number("INTERLEAVINGS_SEED") {
        if let Err(fault) = schedule::run(seed, Plant::Nothing, true) {
            panic!("{fault}");
        }
        return;
    }
    let from = number("INTERLEAVINGS_FROM").unwrap_or(0);
    let count = number("INTERLEAVINGS").unwrap_or(SCHEDULES);
    let found = faults(from..from + count, Plant::Nothing);
    let told: Vec<String> = found.iter().map(|fault| fault.to_string()).collect();
    assert!(found.is_empty(), "{}", told.join("\n"));
}

#[test]
fn a_fence_left_out_is_found() {
    assert!(!faults(0..2000, Plant::NoFences).is_empty());
}

#[test]
fn stale_namespaces_are_found() {
    assert!(!faults(0..2000, Plant::StaleNamespaces).is_empty());
}
