//! Credentials: access keys, and who holds them.

use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::secret::Secret;

/// Whether a credential may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialStatus {
    /// It may.
    #[default]
    Active,
    /// It may not, until it is activated again.
    Inactive,
}

/// An access key and who holds it.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The key's public half.
    pub access_key_id: String,
    /// The key's secret half.
    pub secret_access_key: Secret,
    /// The token that requests must carry; a permanent key has none.
    pub session_token: Option<Secret>,
    /// The user who holds the key, as principals of policies name users.
    pub user: String,
    /// Whether the key may be used.
    pub status: CredentialStatus,
    /// Until when the key may be used, in seconds since the Unix epoch; absent for always.
    pub expires_at: Option<i64>,
    /// What the user may do; absent for nothing but what bucket and table policies allow.
    pub policy: Option<Policy>,
}
