//! Why a request is not believed.

use crate::sigv4::{CLOCK_WINDOW_SECONDS, SERVICE};

/// Why a request is not believed. `Display` is the sentence for the client: it says which part did
/// not match and never what would have matched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// There is no `Authorization` header.
    #[error("The request is not signed: it has no Authorization header.")]
    NotSigned,
    /// The `Authorization` header is of a scheme that is not verified here.
    #[error("The scheme of the Authorization header is not supported; sign with AWS4-HMAC-SHA256.")]
    UnsupportedScheme,
    /// The `Authorization` header can't be read; the text says what is wrong with it.
    #[error("The Authorization header is malformed: {0}.")]
    Malformed(&'static str),
    /// A header that may be there once is there several times.
    #[error("The header {0} is there more than once.")]
    RepeatedHeader(String),
    /// A header that has to be text is not.
    #[error("The header {0} is not text.")]
    UnreadableHeader(String),
    /// The signature has to cover this header and does not.
    #[error("The header {0} must be among the signed headers.")]
    UnsignedHeader(String),
    /// `x-amz-date` is absent or not a time.
    #[error("The request's time is missing or unreadable: x-amz-date must be yyyymmddThhmmssZ.")]
    UnreadableDate,
    /// The request carries a session token, and there are no sessions.
    #[error("The session token is not valid: sign with a permanent access key.")]
    SessionToken,
    /// Nobody has this access key.
    #[error("The access key is unknown.")]
    UnknownAccessKey,
    /// The request was signed for another region than this one.
    #[error("The request is signed for another region; the region here is '{0}'.")]
    OtherRegion(String),
    /// The request was signed for another service.
    #[error("The request is signed for another service; the service here is '{SERVICE}'.")]
    OtherService,
    /// The credential scope is of another day than `x-amz-date`.
    #[error("The date of the credential scope is not that of x-amz-date.")]
    OtherDate,
    /// The request's time is this many seconds off.
    #[error(
        "The request's time is {0} seconds off the time here; \
         at most {CLOCK_WINDOW_SECONDS} are allowed."
    )]
    TimeTooSkewed(u64),
    /// The signature leaves the body out.
    #[error(
        "An unsigned payload is not accepted: x-amz-content-sha256 must be the body's SHA-256."
    )]
    UnsignedPayload,
    /// `x-amz-content-sha256` is not the digest of the body.
    #[error("x-amz-content-sha256 is not the hexadecimal SHA-256 of the body.")]
    PayloadDigest,
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
            | Self::Malformed(_)
            | Self::RepeatedHeader(_)
            | Self::UnreadableHeader(_)
            | Self::UnsignedHeader(_)
            | Self::UnreadableDate => "AccessDenied",
            Self::SessionToken => "InvalidSecurityToken",
            Self::UnknownAccessKey => "InvalidAccessKeyId",
            Self::TimeTooSkewed(_) => "RequestTimeTooSkewed",
            Self::OtherRegion(_)
            | Self::OtherService
            | Self::OtherDate
            | Self::MissingHeader(_)
            | Self::Signature => "SignatureDoesNotMatch",
            Self::UnsignedPayload
            | Self::PayloadDigest
            | Self::UnreadableContentMd5
            | Self::ContentMd5 => "InvalidDigest",
        }
    }
}
