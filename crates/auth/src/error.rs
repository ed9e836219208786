//! Why a request is not believed.

use crate::dialect::SERVICE;
use crate::validity::{CLOCK_WINDOW_SECONDS, MAX_EXPIRES_SECONDS};

/// Why a request is not believed. `Display` is the sentence for the client: it says which part did
/// not match and never what would have matched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There is neither an `Authorization` header nor a signature in the query.
    #[error(
        "The request is not signed: it has no Authorization header and no signature in its query."
    )]
    NotSigned,
    /// The signature is of a scheme that is not verified here.
    #[error(
        "The scheme of the signature is not supported; \
         sign with AWS4-HMAC-SHA256 or OSS4-HMAC-SHA256."
    )]
    UnsupportedScheme,
    /// There is a signature in a header and one in the query, or parameters of both schemes.
    #[error(
        "The request is signed twice: sign with one scheme, \
         either in the Authorization header or in the query."
    )]
    SignedTwice,
    /// The signature can't be read; the text says what is wrong with it.
    #[error("The signature is malformed: {0}.")]
    Malformed(String),
    /// A header that may be there once is there several times.
    #[error("The header {0} is there more than once.")]
    RepeatedHeader(String),
    /// A parameter of the signature is several times in the query.
    #[error("The query parameter {0} is there more than once.")]
    RepeatedParameter(&'static str),
    /// A header that has to be text is not.
    #[error("The header {0} is not text.")]
    UnreadableHeader(String),
    /// The signature has to cover this header and does not.
    #[error("The header {0} must be among the signed headers.")]
    UnsignedHeader(String),
    /// This header or parameter, the request's time, is absent or not a time.
    #[error("The request's time is missing or unreadable: {0} must be yyyymmddThhmmssZ.")]
    UnreadableDate(&'static str),
    /// This parameter does not say for how long a presigned URL is good.
    #[error("{0} must be a number of seconds from 1 to {MAX_EXPIRES_SECONDS}.")]
    UnreadableExpiry(&'static str),
    /// An OSS4 signature would be as good for a path that means something else.
    #[error(
        "OSS4-HMAC-SHA256 does not bind a path that has %2F, %25, %00 or escapes that are not \
         UTF-8: sign with AWS4-HMAC-SHA256."
    )]
    AmbiguousPath,
    /// An OSS4 signature would cover text that can't be told from its line breaks.
    #[error("The query has characters that must be percent-encoded.")]
    UnencodedQuery,
    /// Nobody has this access key.
    #[error("The access key is unknown.")]
    UnknownAccessKey,
    /// The access key may not be used at present. Told only to who has the secret.
    #[error("The access key is not active.")]
    InactiveAccessKey,
    /// The access key is past its time. Told only to who has the secret.
    #[error("The access key has expired: get a new one.")]
    ExpiredAccessKey,
    /// The access key is good with a session token only, in this header or parameter.
    #[error(
        "The session token is missing: the access key needs the one that it came with, in {0}."
    )]
    MissingToken(&'static str),
    /// The access key has no session token, or another one.
    #[error("The session token is not that of the access key.")]
    OtherToken,
    /// The request was signed for another region than this one.
    #[error("The request is signed for another region; the region here is '{0}'.")]
    OtherRegion(String),
    /// The request was signed for another service.
    #[error("The request is signed for another service; the service here is '{SERVICE}'.")]
    OtherService,
    /// The credential scope is of another day than this header or parameter.
    #[error("The date of the credential scope is not that of {0}.")]
    OtherDate(&'static str),
    /// The request's time is this many seconds off.
    #[error(
        "The request's time is {0} seconds off the time here; \
         at most {CLOCK_WINDOW_SECONDS} are allowed."
    )]
    TimeTooSkewed(u64),
    /// The presigned URL has not been good for this many seconds.
    #[error("The presigned URL expired {0} seconds ago.")]
    Expired(u64),
    /// An AWS4 signature leaves the body out.
    #[error(
        "An unsigned payload is not accepted: x-amz-content-sha256 must be the body's SHA-256."
    )]
    UnsignedPayload,
    /// This header is not the digest of the body.
    #[error("{0} is not the hexadecimal SHA-256 of the body.")]
    PayloadDigest(&'static str),
    /// The signature covers a header that the request does not have.
    #[error("The header {0} is signed and absent.")]
    MissingHeader(String),
    /// The signature is not the one of this request and key.
    #[error("The signature does not match: check the secret key and what was signed.")]
    Signature,
    /// `Content-MD5` is not base64 of 16 bytes.
    #[error("Content-MD5 is not the base64 form of an MD5 digest.")]
    UnreadableContentMd5,
    /// `Content-MD5` is not the digest of the body.
    #[error("Content-MD5 is not the MD5 digest of the body.")]
    ContentMd5,
}

impl AuthError {
    /// The error's name in an answer (API facts, section 3).
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotSigned
            | Self::UnsupportedScheme
            | Self::SignedTwice
            | Self::Malformed(_)
            | Self::RepeatedHeader(_)
            | Self::RepeatedParameter(_)
            | Self::UnreadableHeader(_)
            | Self::UnsignedHeader(_)
            | Self::UnreadableDate(_)
            | Self::UnreadableExpiry(_)
            | Self::AmbiguousPath
            | Self::UnencodedQuery
            | Self::Expired(_) => "AccessDenied",
            Self::MissingToken(_) | Self::OtherToken | Self::ExpiredAccessKey => {
                "InvalidSecurityToken"
            }
            Self::UnknownAccessKey | Self::InactiveAccessKey => "InvalidAccessKeyId",
            Self::TimeTooSkewed(_) => "RequestTimeTooSkewed",
            Self::OtherRegion(_)
            | Self::OtherService
            | Self::OtherDate(_)
            | Self::MissingHeader(_)
            | Self::Signature => "SignatureDoesNotMatch",
            Self::UnsignedPayload
            | Self::PayloadDigest(_)
            | Self::UnreadableContentMd5
            | Self::ContentMd5 => "InvalidDigest",
        }
    }
}
