//! What the whole-system tests and the demo are made of.
//!
//! | module | what it gives |
//! |---|---|
//! | [`harness`] | a running service in a folder of its own |
//! | [`client`] | signed requests to it, and wrongly signed ones |
//! | [`wine`] | real data: 1599 wines |
//! | [`busy_table`] | that data as a Lance table that a busy writer left |
//! | [`footprint`] | what a process holds of the machine |
//! | [`inspect`] | what can be seen of a table: fragments, versions, rows, indices |
//!
//! The tests are in `tests/system` (this crate's own client and the `lance` crate) and in `clients`
//! (other people's clients and writers).

pub mod busy_table;
pub mod client;
pub mod footprint;
pub mod harness;
pub mod inspect;
pub mod wine;
