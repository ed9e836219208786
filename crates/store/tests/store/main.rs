//! The logic of the store, on a store in memory.

mod access;
mod backlog;
mod canceling;
mod catalog;
mod catalog_crashes;
mod crashes;
mod execution;
mod failing;
mod leaving;
mod slow;
mod support;
mod tasks;
mod turns;
