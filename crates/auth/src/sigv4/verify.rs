//! Verification of a signed request.

use sha2::{Digest, Sha256};

use super::authorization::Authorization;
use super::canonical::{Tail, accepted_queries, accepted_uris, string_to_sign};
use super::{
    CLOCK_WINDOW_SECONDS, DATE_HEADER, DIGEST_HEADER, HEADER_PREFIX, KEY_PREFIX, SERVICE,
    TERMINATOR, TOKEN_HEADER, scope,
};
use crate::error::AuthError;
use crate::mac::SigningKey;
use crate::request::RequestParts;
use crate::secret::Secret;
use crate::time;
use crate::verify::Caller;

/// Verifies a request whose `Authorization` header has these parameters. The checks run in the
/// order of the API facts: key, scope, body, time, signed headers, signature.
pub(crate) fn verify(
    request: &RequestParts<'_>,
    parameters: &str,
    region: &str,
    now_unix_seconds: i64,
    secret_of: impl FnOnce(&str) -> Option<Secret>,
) -> Result<Caller, AuthError> {
    let authorization = Authorization::parse(parameters)?;
    if request.single(TOKEN_HEADER)?.is_some() {
        return Err(AuthError::SessionToken);
    }
    let secret = secret_of(authorization.access_key_id).ok_or(AuthError::UnknownAccessKey)?;
    check_scope(&authorization, region)?;
    let payload = payload(request)?;
    let time = check_time(request, authorization.date, now_unix_seconds)?;
    check_coverage(request, &authorization.signed_headers)?;
    let tail = Tail::new(request, &authorization.signed_headers, &payload)?;

    let scope = scope(authorization.date, region);
    let key = SigningKey::derive(KEY_PREFIX, secret.expose(), scope);
    let queries = accepted_queries(request.query.unwrap_or_default());
    let verifies = accepted_uris(request.path).iter().any(|uri| {
        queries.iter().any(|query| {
            let text = string_to_sign(time, scope, request.method, uri, query, &tail);
            key.verifies(&text, &authorization.signature)
        })
    });
    if verifies {
        Ok(Caller {
            access_key_id: authorization.access_key_id.to_owned(),
        })
    } else {
        Err(AuthError::Signature)
    }
}

fn check_scope(authorization: &Authorization<'_>, region: &str) -> Result<(), AuthError> {
    if authorization.region != region {
        return Err(AuthError::OtherRegion(region.to_owned()));
    }
    if authorization.service != SERVICE {
        return Err(AuthError::OtherService);
    }
    if authorization.terminator != TERMINATOR {
        return Err(AuthError::Malformed(
            "the credential does not end in aws4_request",
        ));
    }
    Ok(())
}

/// The last line of the canonical request: the digest as the client wrote it, once it is known to
/// be the body's, or the body's digest if the client wrote none.
fn payload(request: &RequestParts<'_>) -> Result<String, AuthError> {
    let digest: [u8; 32] = Sha256::digest(request.body).into();
    let Some(claimed) = request.single_text(DIGEST_HEADER)? else {
        return Ok(hex::encode(digest));
    };
    if claimed == "UNSIGNED-PAYLOAD" {
        return Err(AuthError::UnsignedPayload);
    }
    let mut bytes = [0; 32];
    match hex::decode_to_slice(claimed, &mut bytes) {
        Ok(()) if bytes == digest => Ok(claimed.to_owned()),
        _ => Err(AuthError::PayloadDigest),
    }
}

/// The request's time, which is on the day of the scope and close to now.
fn check_time<'a>(
    request: &RequestParts<'a>,
    scope_date: &str,
    now_unix_seconds: i64,
) -> Result<&'a str, AuthError> {
    let text = request
        .single_text(DATE_HEADER)?
        .ok_or(AuthError::UnreadableDate)?;
    let seconds = time::parse(text).ok_or(AuthError::UnreadableDate)?;
    if text.split('T').next() != Some(scope_date) {
        return Err(AuthError::OtherDate);
    }
    match seconds.abs_diff(now_unix_seconds) {
        0..=CLOCK_WINDOW_SECONDS => Ok(text),
        off => Err(AuthError::TimeTooSkewed(off)),
    }
}

/// Every header that changes what a request means to this service, or how it is verified, is
/// signed. `content-type` is not among them: nothing here is decided by it, and curl adds one of
/// its own to a body without signing it.
fn check_coverage(request: &RequestParts<'_>, signed: &[&str]) -> Result<(), AuthError> {
    let own = request
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase());
    let missing = ["host", DATE_HEADER]
        .map(str::to_owned)
        .into_iter()
        .chain(own.filter(|name| name.starts_with(HEADER_PREFIX)))
        .find(|name| !signed.contains(&name.as_str()));
    missing.map_or(Ok(()), |name| Err(AuthError::UnsignedHeader(name)))
}
