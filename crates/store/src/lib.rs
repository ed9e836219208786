//! Tables and tasks over a key-value store.
//!
//! The store is trusted for one thing only: **atomic increment**. It has no transactions, no prefix
//! scan and no compare-and-swap that holds on every backend, so:
//!
//! - lists are **numbered logs** ([`log`]): a counter gives the slot, the entry lies under the slot;
//! - whoever gets 1 from a **fence**'s counter owns what the fence names: a change of a name
//!   ([`names`]), an attempt at a task, the end of a task ([`execution`]); an owner that died before
//!   it wrote anything is waited for a while only;
//! - a task's state is **derived** from records that are each written once, by the owner of their
//!   fence ([`tasks`]), so a slow writer can't overwrite a newer state;
//! - nothing on a request's path lists keys.
//!
//! Pure logic over the trait [`KeyValue`]; [`memory`] implements it for tests.

pub mod access;
pub mod catalog;
pub mod execution;
mod fence;
pub mod key_value;
pub mod keys;
pub mod log;
pub mod memory;
pub mod names;
mod outbox;
mod places;
pub mod tasks;
mod turn;
mod workers;

pub use key_value::{KeyValue, StoreError};
