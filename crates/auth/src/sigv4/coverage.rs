//! What of a request a signature has to cover.

use super::DIALECT;
use crate::claim::Claim;
use crate::digest::{check_sha256, sha256_hex};
use crate::error::AuthError;
use crate::request::RequestParts;

/// Every header that changes what a request means to this service, or how it is verified, is
/// signed. `content-type` is not among them: nothing here is decided by it, and curl adds one of
/// its own to a body without signing it.
pub(crate) fn check_coverage(request: &RequestParts<'_>, claim: &Claim) -> Result<(), AuthError> {
    let date = (!claim.is_in_query()).then(|| DIALECT.date_header.to_owned());
    let own = request
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .filter(|name| name.starts_with(DIALECT.header_prefix));
    let missing = ["host".to_owned()]
        .into_iter()
        .chain(date)
        .chain(own)
        .find(|name| !claim.headers.contains(name));
    missing.map_or(Ok(()), |name| Err(AuthError::UnsignedHeader(name)))
}

/// The last line of the canonical request: the digest as the client wrote it, once it is known to
/// be the body's, or the body's digest if the client wrote none.
pub(crate) fn payload(request: &RequestParts<'_>) -> Result<String, AuthError> {
    match request.single_text(DIALECT.digest_header)? {
        None => Ok(sha256_hex(request.body)),
        Some("UNSIGNED-PAYLOAD") => Err(AuthError::UnsignedPayload),
        Some(claimed) => {
            check_sha256(DIALECT.digest_header, claimed, request.body)?;
            Ok(claimed.to_owned())
        }
    }
}
