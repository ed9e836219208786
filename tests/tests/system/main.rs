//! The whole system over HTTP: what it accepts and refuses, and what it does to real tables.

// What is true of the API, on any table.
mod bodies;
mod catalog;
mod hosts;
mod identifiers;
mod isolation;
mod listing;
mod quota;
mod requests;
mod signatures;
mod states;
mod storm;

// What the tasks do to a table.
mod cleanup;
mod compaction;
mod failures;
mod indices;
mod observability;
mod optimizing;

// What happens when there is more to do than can be done.
mod overload;

// What survives when a part does not.
mod recovery;

mod support;
