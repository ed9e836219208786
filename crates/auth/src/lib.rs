//! Signatures of requests: who sent this, and is it what they sent?
//!
//! Verifies and makes AWS Signature Version 4 and OSS Signature Version 4, with the service name
//! `osstables`, each in the `Authorization` header and in the query of a presigned URL (API facts,
//! section 11). Pure: no I/O and no clock, builds for WebAssembly and native alike. Everything is
//! computed over the bytes of the wire, so the caller hands over path and query as they came, never
//! decoded.
//!
//! | module | what it holds |
//! |---|---|
//! | `request` | [`RequestParts`]: what of a request is signed |
//! | `signed` | [`read`], [`SignedRequest`], [`Realm`]: from a request to one that is believed |
//! | [`sigv4`] | AWS4: its names, its canonical request, signing |
//! | [`oss4`] | OSS4: the same, and what that scheme leaves open |
//! | `dialect` | what both schemes have, and how each spells it |
//! | `authorization`, `query`, `claim` | reading a signature where it may be |
//! | `scope`, `validity` | where and when a signature is good |
//! | `signing` | [`AccessKey`], [`SignedHeaders`]: making a signature |
//! | `credential` | [`Credential`]: an access key and who holds it |
//! | [`policy`] | who may do what |
//! | `digest` | [`check_content_md5`] and SHA-256 of bodies |
//! | `secret` | [`Secret`]: a key that prints nothing of itself |
//! | `credential` | [`Credential`]: an access key and who holds it |
//! | [`policy`] | policies: who may do what |
//! | `error` | [`AuthError`] and the names it has in answers |
//!
//! ```
//! use lance_maintenance_auth::{
//!     AccessKey, Credential, CredentialStatus, Realm, RequestParts, Scheme, Secret, read, sigv4,
//! };
//!
//! let now = 1_785_200_523; // seconds since 1970, from the caller's clock
//! let realm = Realm { region: "local", account_id: "1234567890", bucket: "lance" };
//! let credential = Credential {
//!     access_key_id: "test-ak".to_owned(),
//!     secret_access_key: Secret::new("test-sk"),
//!     session_token: None,
//!     user: "alice".to_owned(),
//!     status: CredentialStatus::Active,
//!     expires_at: None,
//!     policy: None,
//! };
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
//! let mut headers = vec![("host", b"lance-1234567890.oss-tables.localhost:3000".as_slice())];
//! let secret = Secret::new("test-sk");
//! let key = AccessKey { id: "test-ak", secret: &secret, session_token: None };
//! let signed = sigv4::sign(&request(&headers), &key, realm.region, now).unwrap();
//! headers.extend(signed.iter().map(|(name, value)| (name, value.as_bytes())));
//!
//! let request = request(&headers);
//! let signed = read(&request).unwrap();
//! assert_eq!(signed.access_key_id(), "test-ak"); // look its credential up
//! assert_eq!(signed.verify(Some(&credential), &realm, now), Ok(()));
//! ```

mod authorization;
mod claim;
mod credential;
mod dialect;
mod digest;
mod encoding;
mod error;
mod mac;
pub mod oss4;
pub mod policy;
mod query;
mod request;
mod scope;
mod secret;
mod signed;
mod signing;
pub mod sigv4;
mod time;
mod validity;

pub use credential::{Credential, CredentialInfo, CredentialStatus};
pub use dialect::SERVICE;
pub use digest::check_content_md5;
pub use error::AuthError;
pub use request::{RequestParts, Scheme};
pub use secret::Secret;
pub use signed::{Realm, SignedRequest, read};
pub use signing::{AccessKey, SignedHeaders};
pub use validity::{CLOCK_WINDOW_SECONDS, MAX_EXPIRES_SECONDS};
