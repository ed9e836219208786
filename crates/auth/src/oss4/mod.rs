//! OSS Signature Version 4 as the vendor's SDKs make it for table buckets, in the `Authorization`
//! header and in the query (API facts, section 11.2).
//!
//! Every `x-oss-*` header, `content-type` and `content-md5` are signed where they are present, and
//! the headers that the signature lists as additional. The scheme binds less than AWS4, and what it
//! leaves open is closed here or has to be known:
//!
//! - The path that is signed begins with the ARN of the bucket, which is not on the wire: the
//!   verifier puts it there. SDKs can sign without a bucket too; such a signature would be good for
//!   every bucket of the region and is refused like any other that does not match.
//! - The path is signed decoded, so `%2F` and `/` have one signature. A path in which an escape
//!   could be told apart from other spellings (`%2F`, `%25`, `%00`), is not UTF-8 or is no escape
//!   at all is refused under this scheme; every other escape means what it decodes to.
//! - The query is signed as it is on the wire, sorted; `a=` and `a` are signed alike. It has to be
//!   visible ASCII.
//! - `host` is signed only if it is listed. The bucket is bound by its ARN.
//! - The body is signed only by what covers it: `content-md5`, or a digest in
//!   `x-oss-content-sha256`. SDKs write `UNSIGNED-PAYLOAD` there, which is also what counts if it
//!   is absent.

mod canonical;
mod sign;
mod wire;

pub(crate) use canonical::{canonical_request, payload};
pub use sign::{presign, sign};
pub(crate) use wire::check_wire;

use crate::dialect::{Algorithm, Dialect, Parameters};

/// The scheme's name in the `Authorization` header and in `x-oss-signature-version`.
pub const ALGORITHM: &str = "OSS4-HMAC-SHA256";

/// What stands for the digest of a body that is not signed.
pub const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

/// The names of the scheme.
pub(crate) static DIALECT: Dialect = Dialect {
    algorithm: Algorithm::Oss4,
    name: ALGORITHM,
    key_prefix: "aliyun_v4",
    terminator: "aliyun_v4_request",
    header_prefix: "x-oss-",
    date_header: "x-oss-date",
    digest_header: "x-oss-content-sha256",
    token_header: "x-oss-security-token",
    header_list: "AdditionalHeaders",
    header_list_required: false,
    query: Parameters {
        algorithm: "x-oss-signature-version",
        credential: "x-oss-credential",
        date: "x-oss-date",
        expires: "x-oss-expires",
        headers: "x-oss-additional-headers",
        token: "x-oss-security-token",
        signature: "x-oss-signature",
    },
};

/// Whether a header (its name in lower case) is signed without being listed.
fn is_always_signed(name: &str) -> bool {
    name.starts_with(DIALECT.header_prefix) || matches!(name, "content-type" | "content-md5")
}
