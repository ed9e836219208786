//! Credentials: those of the variable `credentials`, which are there from the start and can't be
//! changed by requests, and those that administrators have put into the store.

use lance_maintenance_api::ApiError;
use lance_maintenance_auth::Credential;
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::access::{Access, CredentialRecord};

use crate::{log, settings};

/// The credentials of the variable.
pub async fn fixed() -> Result<Vec<Credential>, ApiError> {
    let text = settings::required("credentials").await?;
    Credential::parse_list(text.as_bytes()).map_err(|error| {
        // Says where the mistake is, and holds no secret.
        log::warn(format_args!(
            "the variable 'credentials' can't be read: {error}"
        ));
        settings::misconfigured()
    })
}

/// The credential of an access key, if there is one.
pub async fn find(
    store: &impl KeyValue,
    access_key_id: &str,
) -> Result<Option<Credential>, ApiError> {
    let fixed = fixed().await?;
    if let Some(found) = fixed
        .into_iter()
        .find(|credential| credential.access_key_id == access_key_id)
    {
        return Ok(Some(found));
    }
    match Access::new(store).credential(access_key_id)? {
        Some(record) => read(&record).map(Some),
        None => Ok(None),
    }
}

/// The credential of a record.
pub fn read(record: &CredentialRecord) -> Result<Credential, ApiError> {
    Credential::parse(record.credential.to_string().as_bytes()).map_err(|error| {
        log::warn(format_args!("a stored credential can't be read: {error}"));
        settings::misconfigured()
    })
}
