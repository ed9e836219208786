//! Wire types of the maintenance API.
//!
//! What a client sends parses into a type of this crate or fails with an [`ApiError`]; after that
//! nobody checks again. Pure: no I/O, builds for WebAssembly and native alike.
//!
//! | module | what it holds |
//! |---|---|
//! | [`error`] | error names, numbers, statuses and the error envelope |
//! | [`identifier`] | `namespace$table` identifiers and their delimiter |
//! | [`location`] | the URIs of tables' folders |
//! | [`query`] | query strings, parsed once |
//! | [`params`] | the parameters of the five tasks: defaults and validation |
//! | [`task`] | task types, task ids, task info and its states |
//! | [`result`] | what a completed task reports |
//! | [`listing`] | the query and the answer of a task listing |
//! | [`jobs`] | the same tasks as the door `/maintenance/v1` takes and shows them |
//! | [`health`] | the health of a table, and what to do about it |
//! | [`preview`] | what a job would do |
//! | [`namespace`] | bodies of the Lance REST namespace |
//! | [`operation`] | the operations: methods, paths, components, actions |
//! | [`time`] | the API's timestamp format |

pub mod error;
mod fields;
pub mod health;
pub mod identifier;
pub mod jobs;
pub mod listing;
pub mod location;
pub mod namespace;
pub mod operation;
pub mod params;
pub mod preview;
pub mod query;
pub mod result;
pub mod task;
pub mod time;

pub use error::{ApiError, ErrorName, TaskError};
