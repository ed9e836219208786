//! Credentials: access keys, and who holds them.
//!
//! ```json
//! {
//!   "access_key_id": "alice-1",
//!   "secret_access_key": "...",
//!   "session_token": "...",
//!   "user": "alice",
//!   "status": "active",
//!   "expires_at": "2027-01-01T00:00:00Z",
//!   "policy": {
//!     "Version": "1",
//!     "Statement": {"Effect": "Allow", "Action": "oss:Get*", "Resource": "*"}
//!   }
//! }
//! ```
//!
//! Only the two halves of the key have to be there. No error repeats a value from here, so that
//! none can repeat a secret, not even one that was put into the wrong field.

use std::collections::HashMap;

use chrono::{DateTime, Datelike, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::policy::fields::{self, Fields};
use crate::policy::{Place, Policy, PolicyError, PolicyKind, is_user_name, json};
use crate::secret::Secret;

const KEYS: &[&str] = &[
    "access_key_id",
    "secret_access_key",
    "session_token",
    "user",
    "status",
    "expires_at",
    "policy",
];

/// The last second whose year has four digits, as RFC 3339 wants it.
const LAST: &str = "9999-12-31T23:59:59Z";
/// The first one.
const FIRST: &str = "0000-01-01T00:00:00Z";

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

impl CredentialStatus {
    fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Inactive => "inactive",
        }
    }
}

/// An access key and who holds it. `Debug` shows no secret.
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

/// What may be shown of a credential: everything but its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CredentialInfo {
    /// The key's public half.
    pub access_key_id: String,
    /// The user who holds the key.
    pub user: String,
    /// Whether the key may be used.
    pub status: CredentialStatus,
    /// Until when the key may be used, as an RFC 3339 time in UTC; absent for always.
    pub expires_at: Option<String>,
    /// Whether requests must carry a session token.
    pub temporary: bool,
    /// What the user may do, as it was given.
    pub policy: Option<Value>,
}

impl Credential {
    /// Reads a credential, or says what is wrong with it and where.
    ///
    /// | field | what it may be |
    /// |---|---|
    /// | `access_key_id` | 1 to 128 visible ASCII characters, no `,` and no `/` |
    /// | `secret_access_key` | 8 to 256 printable ASCII characters |
    /// | `session_token` | 1 to 1024 visible ASCII characters; absent for a permanent key |
    /// | `user` | 1 to 64 of `A-Za-z0-9._-@`; the access key id if absent |
    /// | `status` | `active` (if absent) or `inactive` |
    /// | `expires_at` | an RFC 3339 time; fractions of a second are cut off |
    /// | `policy` | a policy of [`PolicyKind::Identity`] |
    pub fn parse(json: &[u8]) -> Result<Self, PolicyError> {
        Self::from_value(&json::read(json)?, &Place::Root)
    }

    /// Reads a list of credentials of which no two have the same access key id. It may be empty.
    pub fn parse_list(json: &[u8]) -> Result<Vec<Self>, PolicyError> {
        let Value::Array(elements) = json::read(json)? else {
            return Err(Place::Root.error("must be a list of credentials"));
        };
        let mut seen = HashMap::new();
        let mut credentials = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let at = Place::Index(&Place::Root, index);
            let credential = Self::from_value(element, &at)?;
            if let Some(other) = seen.insert(credential.access_key_id.clone(), index) {
                return Err(Place::Key(&at, "access_key_id")
                    .error(format!("is that of [{other}] too; every key needs its own")));
            }
            credentials.push(credential);
        }
        Ok(credentials)
    }

    fn from_value(value: &Value, place: &Place<'_>) -> Result<Self, PolicyError> {
        let fields = Fields::read(value, place, KEYS)?;
        let (id, at) = fields.required("access_key_id")?;
        let access_key_id = checked(id, &at, is_access_key_id, ACCESS_KEY_ID_RULE)?;
        let (secret, at) = fields.required("secret_access_key")?;
        let secret_access_key = Secret::new(checked(secret, &at, is_secret, SECRET_RULE)?);
        let session_token = match fields.optional("session_token") {
            Some((token, at)) => Some(Secret::new(checked(token, &at, is_token, TOKEN_RULE)?)),
            None => None,
        };
        let user = match fields.optional("user") {
            // A user without a name is called like the key; what was stored so is read back.
            Some((user, _)) if user.as_str() == Some(access_key_id) => access_key_id,
            Some((user, at)) => checked(user, &at, is_user_name, USER_RULE)?,
            None => access_key_id,
        };
        let status = match fields.optional("status") {
            Some((status, at)) => match status.as_str() {
                Some("active") => CredentialStatus::Active,
                Some("inactive") => CredentialStatus::Inactive,
                _ => return Err(at.error("must be active or inactive")),
            },
            None => CredentialStatus::default(),
        };
        let expires_at = match fields.optional("expires_at") {
            Some((time, at)) => Some(time_of(time, &at)?),
            None => None,
        };
        let policy = match fields.optional("policy") {
            Some((policy, at)) => Some(Policy::from_value(
                policy.clone(),
                PolicyKind::Identity,
                &at,
            )?),
            None => None,
        };
        Ok(Self {
            access_key_id: access_key_id.to_owned(),
            secret_access_key,
            session_token,
            user: user.to_owned(),
            status,
            expires_at,
            policy,
        })
    }

    /// The JSON that [`parse`](Self::parse) reads back. It has the secrets in it: for the store
    /// and for nothing else.
    pub fn stored(&self) -> Vec<u8> {
        let text = |text: &str| Value::String(text.to_owned());
        let fields = [
            ("access_key_id", Some(text(&self.access_key_id))),
            (
                "secret_access_key",
                Some(text(self.secret_access_key.expose())),
            ),
            (
                "session_token",
                self.session_token
                    .as_ref()
                    .map(|token| text(token.expose())),
            ),
            ("user", Some(text(&self.user))),
            ("status", Some(text(self.status.name()))),
            (
                "expires_at",
                self.expires_at.map(|at| Value::String(rfc3339(at))),
            ),
            (
                "policy",
                self.policy.as_ref().map(|policy| policy.as_json().clone()),
            ),
        ];
        let fields: Map<String, Value> = fields
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect();
        Value::Object(fields).to_string().into_bytes()
    }

    /// What may be shown of the credential.
    pub fn info(&self) -> CredentialInfo {
        CredentialInfo {
            access_key_id: self.access_key_id.clone(),
            user: self.user.clone(),
            status: self.status,
            expires_at: self.expires_at.map(rfc3339),
            temporary: self.session_token.is_some(),
            policy: self.policy.as_ref().map(|policy| policy.as_json().clone()),
        }
    }
}

const ACCESS_KEY_ID_RULE: &str =
    "must be 1 to 128 printable ASCII characters without blanks, commas and slashes";
const SECRET_RULE: &str = "must be 8 to 256 printable ASCII characters";
const TOKEN_RULE: &str = "must be 1 to 1024 printable ASCII characters without blanks";
const USER_RULE: &str = "must be 1 to 64 of the characters A-Z a-z 0-9 . _ - @";

fn is_access_key_id(text: &str) -> bool {
    // It is a part of the credential in an Authorization header, which these would cut in two.
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b",/".contains(&byte))
}

fn is_secret(text: &str) -> bool {
    (8..=256).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn is_token(text: &str) -> bool {
    // It is the value of a header.
    (1..=1024).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn checked<'a>(
    value: &'a Value,
    place: &Place<'_>,
    good: fn(&str) -> bool,
    rule: &str,
) -> Result<&'a str, PolicyError> {
    match value.as_str() {
        Some(text) if good(text) => Ok(text),
        Some(_) => Err(place.error(rule)),
        None => Err(place.error("must be a string")),
    }
}

fn time_of(value: &Value, place: &Place<'_>) -> Result<i64, PolicyError> {
    DateTime::parse_from_rfc3339(fields::text(value, place)?)
        .ok()
        .map(|time| time.to_utc())
        .filter(|time| (0..=9999).contains(&time.year()))
        .map(|time| time.timestamp())
        .ok_or_else(|| place.error("must be an RFC 3339 time like 2027-01-01T00:00:00Z"))
}

/// A time for people. One that RFC 3339 can't write is as good as the last or the first that it
/// can.
fn rfc3339(unix_seconds: i64) -> String {
    DateTime::from_timestamp(unix_seconds, 0)
        .filter(|time| (0..=9999).contains(&time.year()))
        .map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
        .unwrap_or_else(|| if unix_seconds > 0 { LAST } else { FIRST }.to_owned())
}

#[cfg(test)]
mod tests;
