//! The application's variables, as `spin.toml` declares them.

use lance_maintenance_api::{ApiError, ErrorName};
use spin_sdk::variables;

use crate::log;

/// The value of a variable. One that is not there is a fault of the deployment: it is logged by
/// name, and the client learns that the service is not set up.
pub async fn setting(name: &str) -> Result<String, ApiError> {
    variables::get(name).await.map_err(|error| {
        log::warn(format_args!("the variable '{name}' can't be read: {error}"));
        misconfigured()
    })
}

/// The value of a variable that must not be empty: a secret, say.
pub async fn required(name: &str) -> Result<String, ApiError> {
    let value = setting(name).await?;
    if value.is_empty() {
        log::warn(format_args!(
            "the variable '{name}' is empty: the application can't work without it"
        ));
        return Err(misconfigured());
    }
    Ok(value)
}

/// The value of a variable that is a number.
pub async fn number(name: &str) -> Result<u64, ApiError> {
    setting(name).await?.trim().parse().map_err(|_| {
        log::warn(format_args!("the variable '{name}' is not a number"));
        misconfigured()
    })
}

/// The parts of a variable that is a list with commas; empty parts are left out.
pub async fn list(name: &str) -> Result<Vec<String>, ApiError> {
    let value = setting(name).await?;
    Ok(value
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect())
}

/// The error for a service whose variables are not set up; the log says which.
pub fn misconfigured() -> ApiError {
    ApiError::new(
        ErrorName::InternalError,
        "The service is not configured completely; its log says what is missing.",
    )
}
