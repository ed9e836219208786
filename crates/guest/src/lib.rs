//! What every component shares. Runs in a WebAssembly guest on Spin only.
//!
//! | module | what it gives |
//! |---|---|
//! | [`key_value`] | the store, through `wasi:keyvalue` |
//! | [`context`] | what the router tells a component about a request |
//! | [`reply`] | answers: JSON, empty, or an error in the Lance format |
//! | [`request`] | request bodies, with a limit |
//! | [`authority`] | what the caller may do |
//! | [`credentials`] | access keys and who holds them |
//! | [`service`] | calls to other components |
//! | [`submit`] | what all submits share |
//! | [`worker`] | calls to the worker |
//! | [`settings`] | the application's variables |
//! | [`log`] | log lines |
//! | [`host`] | time and randomness |

pub mod authority;
pub mod context;
pub mod credentials;
pub mod host;
pub mod key_value;
pub mod log;
pub mod reply;
pub mod request;
pub mod service;
pub mod settings;
pub mod submit;
pub mod worker;

pub use authority::Authority;
pub use context::{Caller, RequestContext};
pub use key_value::SpinStore;
pub use reply::Reply;
