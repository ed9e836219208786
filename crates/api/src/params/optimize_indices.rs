use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::Fields;

/// Parameters of `lance_optimize_indices` (API facts, section 7.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OptimizeIndicesParams {
    /// The indices to bring up to date; empty for all.
    pub index_names: Vec<String>,
    /// How many of an index's newest segments are merged with the new rows: 0 for none (a new
    /// segment), null for what keeps segments few.
    pub num_indices_to_merge: Option<i64>,
    /// Whether the index is trained anew, into one segment.
    pub retrain: bool,
}

impl OptimizeIndicesParams {
    /// Parses a request body, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let index_names = fields.strings("index_names")?.unwrap_or_default();
        if index_names.iter().any(String::is_empty) {
            return Err(ApiError::invalid("'index_names' can't hold an empty name."));
        }
        Ok(Self {
            index_names,
            num_indices_to_merge: fields.integer_from("num_indices_to_merge", 0)?,
            retrain: fields.boolean("retrain")?.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_and_refused() {
        let cases = [
            (
                "",
                Some(r#"{"index_names":[],"num_indices_to_merge":null,"retrain":false}"#),
            ),
            (
                r#"{"index_names":["a"],"num_indices_to_merge":0,"retrain":true}"#,
                Some(r#"{"index_names":["a"],"num_indices_to_merge":0,"retrain":true}"#),
            ),
            (r#"{"index_names":[""]}"#, None),
            (r#"{"index_names":"a"}"#, None),
            (r#"{"index_names":[1]}"#, None),
            (r#"{"num_indices_to_merge":-1}"#, None),
            (r#"{"retrain":"yes"}"#, None),
        ];
        for (body, stored) in cases {
            let parsed = OptimizeIndicesParams::parse(body.as_bytes());
            let text = parsed
                .ok()
                .map(|params| serde_json::to_string(&params).unwrap());
            assert_eq!(text.as_deref(), stored, "{body}");
        }
    }
}
