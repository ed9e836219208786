//! Requests signed by us and by others, changed and unchanged; policies, and what they decide.

mod clients;
mod credentials;
mod forms;
mod oss4;
mod policy;
mod properties;
mod request;
mod sdks;
mod sigv4;
