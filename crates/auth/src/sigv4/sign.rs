//! Signing.

use super::DIALECT;
use super::canonical::canonical_request;
use super::coverage::payload;
use crate::digest::sha256_hex;
use crate::error::AuthError;
use crate::request::RequestParts;
use crate::signing::{AccessKey, SignedHeaders, Signing};

/// Signs a request in its headers, for a region and as of a time (seconds since 1970): `host`,
/// which it must have, `content-type` if it has one, its `x-amz-*` headers and those that are
/// returned. Fails if the request is signed already, if there is no host, if one of these headers
/// is there twice, or if the year does not have four digits.
pub fn sign(
    request: &RequestParts<'_>,
    key: &AccessKey<'_>,
    region: &str,
    now_unix_seconds: i64,
) -> Result<SignedHeaders, AuthError> {
    let signing = Signing::new(&DIALECT, request, key, region, now_unix_seconds)?;
    let digest = sha256_hex(request.body);
    let added = signing.headers(Some(digest.clone()));
    let headers = added.beside(request.headers);
    let request = RequestParts {
        headers: &headers,
        ..*request
    };
    let names = signed_names(&request);
    let canonical = canonical_request(&request, &names, &digest)?;
    Ok(signing.authorize(added, ", ", &names, &canonical))
}

/// Signs a request in its query, for a region, as of a time (seconds since 1970) and good for so
/// many seconds, 1 to 604800: `host`, which it must have, `content-type` if it has one and its
/// `x-amz-*` headers. Returns the whole query that is to be sent. Fails as [`sign`] does, and if it
/// is to be good for longer or shorter than is allowed.
pub fn presign(
    request: &RequestParts<'_>,
    key: &AccessKey<'_>,
    region: &str,
    now_unix_seconds: i64,
    expires_seconds: u32,
) -> Result<String, AuthError> {
    let signing = Signing::new(&DIALECT, request, key, region, now_unix_seconds)?;
    let names = signed_names(request);
    let query = signing.query(request.query, &names, expires_seconds)?;
    let request = RequestParts {
        query: Some(&query),
        ..*request
    };
    let canonical = canonical_request(&request, &names, &payload(&request)?)?;
    Ok(signing.presigned(&query, &canonical))
}

/// The headers to sign, sorted. One that is there twice is named twice, and then refused.
fn signed_names(request: &RequestParts<'_>) -> Vec<String> {
    let mut names: Vec<String> = request
        .headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .filter(|name| name == "content-type" || name.starts_with(DIALECT.header_prefix))
        .chain(["host".to_owned()])
        .collect();
    names.sort_unstable();
    names
}
