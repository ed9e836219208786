use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;

/// The options of a job.
const JOB_OPTIONS: [&str; 3] = [
    "older_than_seconds",
    "retain_versions",
    "error_if_tagged_old_versions",
];
/// Ages beyond this are before any clock's beginning.
const MOST_SECONDS: f64 = 10_000.0 * 365.0 * 86_400.0;

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
    /// Whether a version with a tag that would go is an error; else it is kept. Always false in the OSS
    /// API, and true in a job that does not say otherwise.
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

    /// Parses the options of a job. An age is rounded up to whole seconds, so that nothing goes which is
    /// younger.
    pub(crate) fn of_job(options: &Map<String, Value>) -> Result<Self, ApiError> {
        let fields = Fields::of(options.clone());
        fields.refuse_others("option of a cleanup", &JOB_OPTIONS)?;
        let older_than = match fields.number("older_than_seconds")? {
            Some(seconds) if seconds < 0.0 => {
                return Err(ApiError::invalid(
                    "'older_than_seconds' must be at least 0.",
                ));
            }
            Some(seconds) if seconds > MOST_SECONDS => {
                return Err(ApiError::invalid(format!(
                    "'older_than_seconds' must be at most {MOST_SECONDS}, which is 10000 years."
                )));
            }
            Some(seconds) => format!("{:.0}s", seconds.ceil()),
            None => String::new(),
        };
        let retain_versions = fields.integer_from("retain_versions", 1)?.unwrap_or(0);
        if older_than.is_empty() && retain_versions == 0 {
            return Err(ApiError::invalid(
                "Say which versions may go: 'older_than_seconds', 'retain_versions', or both.",
            ));
        }
        Ok(Self {
            older_than,
            retain_versions,
            delete_unverified: false,
            error_if_tagged_old_versions: fields
                .boolean("error_if_tagged_old_versions")?
                .unwrap_or(true),
        })
    }

    /// These as options of a job; null where nothing was given.
    pub(crate) fn job_options(&self) -> Value {
        json!({
            "older_than_seconds": self.older_than.strip_suffix('s').and_then(|n| n.parse::<u64>().ok()),
            "older_than": (!self.older_than.ends_with('s') && !self.older_than.is_empty())
                .then_some(&self.older_than),
            "retain_versions": (self.retain_versions > 0).then_some(self.retain_versions),
            "error_if_tagged_old_versions": (!self.error_if_tagged_old_versions).then_some(false),
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
