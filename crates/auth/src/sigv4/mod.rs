//! AWS Signature Version 4, in the `Authorization` header and in the query (API facts, section
//! 11.1).
//!
//! What is required beyond the signature itself: `host`, in the header form `x-amz-date`, and every
//! `x-amz-*` header of the request are signed, no signed header is there twice, and the body is
//! covered. Without `x-amz-content-sha256` (curl and botocore leave it out for services other than
//! S3, and presigned URLs have none) the digest of the body itself stands in the canonical request,
//! which binds the body just as well.

mod canonical;
mod coverage;
mod sign;

pub(crate) use canonical::canonical_requests;
pub(crate) use coverage::{check_coverage, payload};
pub use sign::{presign, sign};

use crate::dialect::{Algorithm, Dialect, Parameters};

/// The scheme's name in the `Authorization` header and in `X-Amz-Algorithm`.
pub const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The names of the scheme.
pub(crate) static DIALECT: Dialect = Dialect {
    algorithm: Algorithm::Aws4,
    name: ALGORITHM,
    key_prefix: "AWS4",
    terminator: "aws4_request",
    header_prefix: "x-amz-",
    date_header: "x-amz-date",
    digest_header: "x-amz-content-sha256",
    token_header: "x-amz-security-token",
    header_list: "SignedHeaders",
    header_list_required: true,
    query: Parameters {
        algorithm: "X-Amz-Algorithm",
        credential: "X-Amz-Credential",
        date: "X-Amz-Date",
        expires: "X-Amz-Expires",
        headers: "X-Amz-SignedHeaders",
        token: "X-Amz-Security-Token",
        signature: "X-Amz-Signature",
    },
};
