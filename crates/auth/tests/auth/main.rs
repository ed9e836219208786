//! Requests signed by us and by others, changed and unchanged; policies, and what they decide.

mod clients;
mod policy;
mod properties;
mod request;
mod sigv4;
