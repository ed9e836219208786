//! The catalog under many interleavings: what every answer said is explained by one order of the
//! requests, however their operations on the store were mixed.
//!
//! | module | what it holds |
//! |---|---|
//! | `simulation` | the store, the clock, and the scheduler that says who goes on |
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
mod schedule;
#[path = "../simulation/mod.rs"]
mod simulation;

use simulation::world::Plant;
use simulation::{check, faults, rng, world};

/// How many schedules run where nothing else is said.
const SCHEDULES: u64 = 20_000;

#[test]
fn every_answer_is_explained() {
    check("INTERLEAVINGS", SCHEDULES, |seed, traced| {
        schedule::run(seed, Plant::Nothing, traced)
    });
}

fn is_found(plant: Plant) -> bool {
    !faults(0..2000, 1, |seed| schedule::run(seed, plant, false)).is_empty()
}

#[test]
fn a_fence_left_out_is_found() {
    assert!(is_found(Plant::Owns("name/")));
}

#[test]
fn stale_namespaces_are_found() {
    assert!(is_found(Plant::Stale(is_namespace)));
}

/// Whether a value is a namespace that a name stands for.
fn is_namespace(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    text.starts_with(r#"{"generation""#)
        && text.contains(r#""properties""#)
        && !text.contains(r#""location""#)
}
