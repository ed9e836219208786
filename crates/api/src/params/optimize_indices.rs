use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
        Self::of(&Fields::parse(body)?)
    }

    /// Parses the options of a job.
    pub(crate) fn of_job(options: &Map<String, Value>) -> Result<Self, ApiError> {
        let fields = Fields::of(options.clone());
        let names = ["index_names", "num_indices_to_merge", "retrain"];
        fields.refuse_others("option of an index update", &names)?;
        Self::of(&fields)
    }

    /// These as options of a job; null where nothing was given.
    pub(crate) fn job_options(&self) -> Value {
        json!({
            "index_names": (!self.index_names.is_empty()).then_some(&self.index_names),
            "num_indices_to_merge": self.num_indices_to_merge,
            "retrain": self.retrain.then_some(true),
        })
    }

    fn of(fields: &Fields) -> Result<Self, ApiError> {
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
