//! The logic of the store, on a store in memory.

mod catalog;
mod crashes;
mod execution;
mod support;
mod tasks;
