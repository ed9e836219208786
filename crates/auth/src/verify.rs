//! Verification, whatever scheme a request is signed with.

use crate::error::AuthError;
use crate::request::RequestParts;
use crate::secret::Secret;
use crate::sigv4;

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The access key that the request is signed with.
    pub access_key_id: String,
}

/// Checks that a request was signed, for this region and about now (seconds since 1970), by the
/// holder of an access key whose secret `secret_of` knows, and that nothing signed has changed
/// since.
pub fn verify(
    request: &RequestParts<'_>,
    region: &str,
    now_unix_seconds: i64,
    secret_of: impl FnOnce(&str) -> Option<Secret>,
) -> Result<Caller, AuthError> {
    let authorization = request
        .single_text("authorization")?
        .ok_or(AuthError::NotSigned)?;
    let (scheme, parameters) = authorization.split_once(' ').unwrap_or((authorization, ""));
    match scheme {
        sigv4::ALGORITHM => sigv4::verify(request, parameters, region, now_unix_seconds, secret_of),
        _ => Err(AuthError::UnsupportedScheme),
    }
}
