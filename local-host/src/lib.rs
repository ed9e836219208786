//! Runs an unmodified Spin manifest where the Spin CLI is not installed.
//!
//! This is the embedded default and what the tests run against, and no more than that: it knows the
//! part of `spin.toml` that this application uses, refuses the rest, and adds nothing that Spin
//! lacks. Where Spin's behaviour can be seen by a component, it is the same here: raw paths, the
//! `host` and `spin-*` headers, calls between components, the key-value store's answers, a 500
//! without a body for a guest that fails.
//!
//! - [`manifest`], [`template`], [`routes`], [`allowed_hosts`]: `spin.toml` and what it means; pure.
//! - [`runtime_config`]: where the key-value store is, from the file that Spin takes too.
//! - [`variables`], [`key_value`], [`outbound`]: what guests call.
//! - [`engine`], [`guest`], [`pool`]: wasmtime: compiled code, instances, their limits.
//! - [`application`] puts these together, [`server`] is the HTTP server in front of it, [`door`] what
//!   that server refuses.

#![warn(missing_docs)]

pub mod allowed_hosts;
pub mod application;
#[allow(missing_docs)]
mod bindings;
pub mod door;
pub mod engine;
pub mod guest;
mod guest_log;
pub mod key_value;
pub mod manifest;
pub mod outbound;
pub mod pool;
mod reply;
pub mod routes;
pub mod runtime_config;
pub mod server;
mod spin_headers;
pub mod template;
pub mod variables;
