//! The native worker: runs maintenance tasks on Lance tables.
//!
//! ```text
//!  server ---\                                      /--> execute -> process -> operations (Lance)
//!             >--> intake (queue) --> runner ------<
//!  heartbeat -/                                     \--> application: claim, progress, finish
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`], [`config`], [`storage`] | what the worker is told |
//! | [`service`] | the whole worker, started and stopped |
//! | [`server`] | what the worker serves: tasks, tables, health, readiness |
//! | [`heartbeat`] | says that the worker lives, takes up what waits |
//! | [`queue`], [`intake`] | which task comes next |
//! | [`runner`] | sees a task through: claim, run, report, finish |
//! | [`tables`] | what is done to a table at once: written, described, listed, committed |
//! | [`purges`] | removes the data of dropped tables in the background |
//! | [`application`] | the application as the worker calls it |
//! | [`execute`] | the seam between the two halves |
//! | [`process`], [`supervision`] | the process of each operation, and what it asks |
//! | [`operations`], [`progress`] | what a task does to its table, and how far it is |
//! | [`memory`] | the memory that operations share |
//! | [`logging`], [`metrics`] | what the worker says about itself |
//!
//! The worker contract, which both sides keep to, is described in `lance_maintenance_dispatch`.

pub mod application;
pub mod cli;
pub mod config;
pub mod execute;
pub mod heartbeat;
pub mod intake;
mod local_folders;
pub mod logging;
pub mod memory;
pub mod metrics;
pub mod operations;
pub mod process;
pub mod progress;
pub mod purges;
pub mod queue;
pub mod runner;
pub mod server;
pub mod service;
pub mod storage;
pub mod supervision;
pub mod tables;
#[cfg(test)]
mod testing;
mod time;
mod toml_file;
