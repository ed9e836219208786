//! AWS Signature Version 4 in the `Authorization` header (API facts, section 11.1).
//!
//! What is required beyond the signature itself: `host`, `x-amz-date` and every `x-amz-*` header of
//! the request are signed, no signed header is there twice, and the body is covered. Without
//! `x-amz-content-sha256` (curl and botocore leave it out for services other than S3) the digest of
//! the body itself stands in the canonical request, which binds the body just as well.

mod authorization;
mod canonical;
mod sign;
mod verify;

pub use sign::{SignedHeaders, sign};
pub(crate) use verify::verify;

/// The scheme's name in the `Authorization` header.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The service that requests are signed for.
pub const SERVICE: &str = "osstables";

/// How far a request's time may be from the verifier's, before and after.
pub const CLOCK_WINDOW_SECONDS: u64 = 15 * 60;

const KEY_PREFIX: &str = "AWS4";
const TERMINATOR: &str = "aws4_request";
const DATE_HEADER: &str = "x-amz-date";
const DIGEST_HEADER: &str = "x-amz-content-sha256";
const TOKEN_HEADER: &str = "x-amz-security-token";
const HEADER_PREFIX: &str = "x-amz-";

/// What stands between the access key and the signature: where and when a key is valid.
fn scope<'a>(date: &'a str, region: &'a str) -> [&'a str; 4] {
    [date, region, SERVICE, TERMINATOR]
}
