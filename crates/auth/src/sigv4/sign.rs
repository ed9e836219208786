//! Signing, for tests, tools and clients.

use super::canonical::{Tail, query, string_to_sign, uri};
use super::{ALGORITHM, DATE_HEADER, DIGEST_HEADER, HEADER_PREFIX, KEY_PREFIX, scope};
use crate::digest::sha256_hex;
use crate::error::AuthError;
use crate::mac::SigningKey;
use crate::request::RequestParts;
use crate::secret::Secret;
use crate::time;

/// The headers that make a request a signed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeaders {
    /// `authorization`
    pub authorization: String,
    /// `x-amz-date`
    pub date: String,
    /// `x-amz-content-sha256`
    pub content_sha256: String,
}

impl SignedHeaders {
    /// Names and values, to be added to the request.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("authorization", self.authorization.as_str()),
            (DATE_HEADER, &self.date),
            (DIGEST_HEADER, &self.content_sha256),
        ]
        .into_iter()
    }
}

/// Signs a request as of a time (seconds since 1970): `host`, which it must have, `content-type` if
/// it has one, its `x-amz-*` headers and those that are returned. Fails if there is no host, if
/// one of these headers is there twice, or if the year does not have four digits.
pub fn sign(
    request: &RequestParts<'_>,
    access_key_id: &str,
    secret: &Secret,
    region: &str,
    now_unix_seconds: i64,
) -> Result<SignedHeaders, AuthError> {
    let date = time::format(now_unix_seconds).ok_or(AuthError::UnreadableDate)?;
    let content_sha256 = sha256_hex(request.body);
    let headers = [
        request.headers,
        &[
            (DATE_HEADER, date.as_bytes()),
            (DIGEST_HEADER, content_sha256.as_bytes()),
        ],
    ]
    .concat();
    let request = RequestParts {
        headers: &headers,
        ..*request
    };

    let mut names: Vec<String> = headers
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase())
        .filter(|name| name == "content-type" || name.starts_with(HEADER_PREFIX))
        .chain(["host".to_owned()])
        .collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tail = Tail::new(&request, &names, &content_sha256)?;

    let scope = scope(date.split('T').next().unwrap_or_default(), region);
    let text = string_to_sign(
        &date,
        scope,
        request.method,
        &uri(request.path),
        &query(request.query.unwrap_or_default()),
        &tail,
    );
    let signature = SigningKey::derive(KEY_PREFIX, secret.expose(), scope).sign(&text);
    let authorization = format!(
        "{ALGORITHM} Credential={access_key_id}/{}, SignedHeaders={}, Signature={}",
        scope.join("/"),
        names.join(";"),
        hex::encode(signature),
    );
    Ok(SignedHeaders {
        authorization,
        date,
        content_sha256,
    })
}
