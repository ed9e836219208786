//! Requests signed by us and by others, changed and unchanged.

mod clients;
mod properties;
mod request;
mod sigv4;
