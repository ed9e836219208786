use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::Fields;

/// Parameters of `lance_cleanup` (API facts, section 6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CleanupParams {
    /// The age from which a version may go, as a number and one of `d h m s`; empty for any age.
    /// What it says is only looked at when the task runs.
    pub older_than: String,
    /// How many of the newest versions stay; 0 for no such rule.
    pub retain_versions: i64,
    /// Always false: files that no manifest names may belong to a write that is under way.
    pub delete_unverified: bool,
    /// Always false: versions with a tag are kept without an error.
    pub error_if_tagged_old_versions: bool,
}

impl CleanupParams {
    /// Parses a request body, which must hold at least one of the two conditions.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        for name in ["delete_unverified", "error_if_tagged_old_versions"] {
            if fields.boolean(name)? == Some(true) {
                return Err(ApiError::invalid(format!("'{name}' can't be true here.")));
            }
        }
        let older_than = fields.string("older_than")?.unwrap_or_default();
        let retain_versions = fields.integer_from("retain_versions", 0)?.unwrap_or(0);
        if older_than.is_empty() && retain_versions == 0 {
            return Err(ApiError::invalid(
                "Say which versions may go: 'older_than' (such as \"7d\"), 'retain_versions' \
                 (at least 1), or both.",
            ));
        }
        Ok(Self {
            older_than: older_than.to_owned(),
            retain_versions,
            delete_unverified: false,
            error_if_tagged_old_versions: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorName;

    #[test]
    fn the_documented_rows() {
        let cases = [
            (r#"{"retain_versions":2}"#, true),
            (r#"{"older_than":"7d"}"#, true),
            (r#"{"older_than":"7D"}"#, true),
            (r#"{"older_than":"7d","retain_versions":3}"#, true),
            (r#"{"older_than":"7d","delete_unverified":false}"#, true),
            (r#"{"retain_versions":0}"#, false),
            ("{}", false),
            ("", false),
            (r#"{"retain_versions":-1}"#, false),
            (r#"{"retain_versions":2,"delete_unverified":true}"#, false),
            (
                r#"{"retain_versions":2,"error_if_tagged_old_versions":true}"#,
                false,
            ),
            (r#"{"older_than":"7d","retain_versions":-1}"#, false),
            (r#"{"older_than":"","retain_versions":0}"#, false),
            (r#"{"older_than":7}"#, false),
        ];
        for (body, accepted) in cases {
            match CleanupParams::parse(body.as_bytes()) {
                Ok(_) => assert!(accepted, "{body}"),
                Err(error) => {
                    assert!(!accepted, "{body}: {error}");
                    assert_eq!(error.name, ErrorName::InvalidInput, "{body}");
                }
            }
        }
    }

    #[test]
    fn what_is_stored() {
        let params = CleanupParams::parse(br#"{"retain_versions":2}"#).unwrap();
        assert_eq!(
            serde_json::to_string(&params).unwrap(),
            r#"{"older_than":"","retain_versions":2,"delete_unverified":false,"error_if_tagged_old_versions":false}"#
        );
    }
}
