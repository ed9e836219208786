//! Who sent a request.

use bytes::Bytes;
use http::request::Parts;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::{AuthError, Credential, Realm, RequestParts, Scheme};
use lance_maintenance_guest::{SpinStore, credentials, host};

/// The credential of the caller, if the request is signed as it should be.
pub async fn credential(
    parts: &Parts,
    body: &Bytes,
    realm: &Realm<'_>,
    store: &SpinStore,
) -> Result<Credential, ApiError> {
    let mut headers: Vec<(&str, &[u8])> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    if let (false, Some(authority)) = (parts.headers.contains_key("host"), parts.uri.authority()) {
        headers.push(("host", authority.as_str().as_bytes()));
    }
    let request = RequestParts {
        method: parts.method.as_str(),
        path: parts.uri.path(),
        query: parts.uri.query(),
        headers: &headers,
        body,
        scheme: Scheme::Http,
    };
    let signed = lance_maintenance_auth::read(&request).map_err(refused)?;
    let credential = credentials::find(store, signed.access_key_id()).await?;
    let now = i64::try_from(host::now_seconds()).unwrap_or(i64::MAX);
    signed
        .verify(credential.as_ref(), realm, now)
        .map_err(refused)?;
    credential.ok_or_else(|| refused(AuthError::UnknownAccessKey))
}

/// The answer to a request that is not believed.
pub fn refused(error: AuthError) -> ApiError {
    let name = ErrorName::parse(error.name()).unwrap_or(ErrorName::AccessDenied);
    ApiError::new(name, error.to_string())
}
