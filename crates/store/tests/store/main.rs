//! The logic of the store, on a store in memory.

mod catalog;
mod execution;
mod support;
mod tasks;
