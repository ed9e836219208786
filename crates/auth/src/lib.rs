//! Signatures of requests: who sent this, and is it what they sent?
//!
//! Verifies and makes the header form of AWS Signature Version 4 with the service name `osstables`
//! (API facts, section 11.1). Pure: no I/O and no clock, builds for WebAssembly and native alike.
//! Everything is computed over the bytes of the wire, so the caller hands over path and query as
//! they came, never decoded.
//!
//! | module | what it holds |
//! |---|---|
//! | `request` | [`RequestParts`]: what of a request is signed |
//! | `verify` | [`verify`]: picks the scheme that the request was signed with |
//! | [`sigv4`] | AWS Signature Version 4; another scheme is a module beside it |
//! | `digest` | [`check_content_md5`] and SHA-256 of bodies |
//! | `secret` | [`Secret`]: a key that prints nothing of itself |
//! | `credential` | [`Credential`]: an access key and who holds it |
//! | [`policy`] | policies: who may do what |
//! | `error` | [`AuthError`] and the names it has in answers |
//!
//! ```
//! use lance_maintenance_auth::{RequestParts, Scheme, Secret, sigv4, verify};
//!
//! let secret = Secret::new("test-sk");
//! let now = 1_785_200_523; // seconds since 1970, from the caller's clock
//! fn request<'a>(headers: &'a [(&'a str, &'a [u8])]) -> RequestParts<'a> {
//!     RequestParts {
//!         method: "GET",
//!         path: "/lance/oss/v1/table/prod%24documents/tasks",
//!         query: Some("task_type=lance_compact"),
//!         headers,
//!         body: b"",
//!         scheme: Scheme::Http,
//!     }
//! }
//!
//! let mut headers = vec![("host", b"lance.oss-tables.localhost:3000".as_slice())];
//! let signed = sigv4::sign(&request(&headers), "test-ak", &secret, "local", now).unwrap();
//! headers.extend(signed.iter().map(|(name, value)| (name, value.as_bytes())));
//!
//! let lookup = |key: &str| (key == "test-ak").then(|| secret.clone());
//! let caller = verify(&request(&headers), "local", now, lookup).unwrap();
//! assert_eq!(caller.access_key_id, "test-ak");
//! ```

mod credential;
mod digest;
mod encoding;
mod error;
mod mac;
pub mod policy;
mod request;
mod secret;
pub mod sigv4;
mod time;
mod verify;

pub use credential::{Credential, CredentialInfo, CredentialStatus};
pub use digest::check_content_md5;
pub use error::AuthError;
pub use request::{RequestParts, Scheme};
pub use secret::Secret;
pub use verify::{Caller, verify};
