//! Each operation runs in a process of its own, under the eyes of the worker's.
//!
//! An operation may need more memory than it should, crash in a library, or hang in a file system:
//! then it is the operation that ends, with an error that says so, and not the worker with all that
//! it has in hand. And whatever memory it used is the machine's again afterwards.
//!
//! The worker starts its own executable with [`FLAG`] and talks to it in lines of JSON through its
//! standard input and output ([`messages`]). The operation ends when its standard input does: it
//! does not outlive its worker.

pub mod executor;
pub mod messages;
pub mod operation;

/// The argument with which the executable runs one operation instead of the worker.
pub const FLAG: &str = "--run-operation";
