//! Signing.

use super::canonical::{canonical_request, payload};
use super::wire::check_wire;
use super::{DIALECT, UNSIGNED_PAYLOAD, is_always_signed};
use crate::error::AuthError;
use crate::request::RequestParts;
use crate::signed::Realm;
use crate::signing::{AccessKey, SignedHeaders, Signing};

/// Signs a request in its headers, for a table bucket and as of a time (seconds since 1970): its
/// `x-oss-*` headers and those that are returned, `content-type` and `content-md5` if it has them,
/// and these additional ones, which it must have. The body is left out, as SDKs do, unless the
/// request brings its SHA-256 in `x-oss-content-sha256`. Fails if the request is signed already, if
/// a header is absent or there twice, if that digest is not the body's, if path or query can't be
/// signed, or if the year does not have four digits.
pub fn sign(
    request: &RequestParts<'_>,
    key: &AccessKey<'_>,
    realm: &Realm<'_>,
    additional_headers: &[&str],
    now_unix_seconds: i64,
) -> Result<SignedHeaders, AuthError> {
    check_wire(request)?;
    let signing = Signing::new(&DIALECT, request, key, realm.region, now_unix_seconds)?;
    let digest = request.single(DIALECT.digest_header)?;
    let digest = digest.is_none().then(|| UNSIGNED_PAYLOAD.to_owned());
    let added = signing.headers(digest);
    let headers = added.beside(request.headers);
    let request = RequestParts {
        headers: &headers,
        ..*request
    };
    let names = listed(additional_headers);
    let canonical = canonical_request(&request, &names, &payload(&request)?, realm)?;
    Ok(signing.authorize(added, ",", &names, &canonical))
}

/// Signs a request in its query, for a table bucket, as of a time (seconds since 1970) and good for
/// so many seconds, 1 to 604800; the headers as [`sign`] does. Returns the whole query that is to
/// be sent. Fails as [`sign`] does, and if it is to be good for longer or shorter than is allowed.
pub fn presign(
    request: &RequestParts<'_>,
    key: &AccessKey<'_>,
    realm: &Realm<'_>,
    additional_headers: &[&str],
    now_unix_seconds: i64,
    expires_seconds: u32,
) -> Result<String, AuthError> {
    check_wire(request)?;
    let signing = Signing::new(&DIALECT, request, key, realm.region, now_unix_seconds)?;
    let names = listed(additional_headers);
    let query = signing.query(request.query, &names, expires_seconds)?;
    let request = RequestParts {
        query: Some(&query),
        ..*request
    };
    let canonical = canonical_request(&request, &names, &payload(&request)?, realm)?;
    Ok(signing.presigned(&query, &canonical))
}

/// The additional headers as they are listed: in lower case, sorted, each once, and without those
/// that are signed anyway.
fn listed(additional_headers: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = additional_headers
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .filter(|name| !is_always_signed(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
