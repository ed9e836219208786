//! A job as it is submitted or previewed. Unlike the bodies of the OSS API, one with a field or an
//! option that is not known is refused: a misspelt option must not run without it.

use serde_json::{Map, Value};

use super::JobOperation;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::params::{CleanupParams, CompactParams, OptimizeIndicesParams, TaskParams};

/// A job that is to be submitted or previewed.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRequest {
    /// The table as the body names it, if it does: an identifier or a URI, to be compared with the
    /// path.
    pub table: Option<String>,
    /// What to do.
    pub params: TaskParams,
}

impl JobRequest {
    /// Parses a request body: `operation`, `options`, and `table` if it is to be there.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        fields.refuse_others("field", &["table", "operation", "options"])?;
        let options = fields.object("options")?.unwrap_or_default();
        let params = match fields.required_string("operation")? {
            "compact" => TaskParams::Compact(CompactParams::of_job(&options)?),
            "optimize_indices" => {
                TaskParams::OptimizeIndices(OptimizeIndicesParams::of_job(&options)?)
            }
            "cleanup" => TaskParams::Cleanup(CleanupParams::of_job(&options)?),
            other => {
                return Err(ApiError::invalid(format!(
                    "'operation' must be compact, optimize_indices or cleanup, not '{other}'."
                )));
            }
        };
        Ok(Self {
            table: fields.string("table")?.map(str::to_owned),
            params,
        })
    }
}

/// The options of a job that has these parameters: those that were given.
pub fn options(params: &TaskParams) -> Map<String, Value> {
    let options = match params {
        TaskParams::Compact(params) => params.job_options(),
        TaskParams::OptimizeIndices(params) => params.job_options(),
        TaskParams::Cleanup(params) => params.job_options(),
        TaskParams::ScalarIndex(params) => serde_json::to_value(params).unwrap_or_default(),
        TaskParams::VectorIndex(params) => serde_json::to_value(params).unwrap_or_default(),
        TaskParams::BackfillColumn(params) => serde_json::to_value(params).unwrap_or_default(),
    };
    match options {
        Value::Object(options) => {
            let given = options.into_iter().filter(|(_, value)| !value.is_null());
            given.collect()
        }
        _ => Map::new(),
    }
}

impl From<&TaskParams> for JobOperation {
    fn from(params: &TaskParams) -> Self {
        params.task_type().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorName;

    #[test]
    fn what_is_left_out_stays_left_out() {
        let cases = [
            (r#"{"operation":"compact"}"#, "{}"),
            (
                r#"{"operation":"compact","options":{"materialize_deletions":null}}"#,
                "{}",
            ),
            (
                r#"{"table":"t","operation":"compact","options":{"target_rows_per_fragment":5,"max_bytes_per_file":6,"materialize_deletions":false,"materialize_deletions_threshold":0}}"#,
                r#"{"materialize_deletions":false,"materialize_deletions_threshold":0.0,"max_bytes_per_file":6,"target_rows_per_fragment":5}"#,
            ),
            (r#"{"operation":"optimize_indices","options":{}}"#, "{}"),
            (
                r#"{"operation":"optimize_indices","options":{"index_names":["i"],"num_indices_to_merge":0,"retrain":true}}"#,
                r#"{"index_names":["i"],"num_indices_to_merge":0,"retrain":true}"#,
            ),
            (
                r#"{"operation":"cleanup","options":{"retain_versions":1}}"#,
                r#"{"retain_versions":1}"#,
            ),
            (
                r#"{"operation":"cleanup","options":{"older_than_seconds":0.5,"error_if_tagged_old_versions":false}}"#,
                r#"{"error_if_tagged_old_versions":false,"older_than_seconds":1}"#,
            ),
            (
                r#"{"operation":"cleanup","options":{"older_than_seconds":0,"retain_versions":3}}"#,
                r#"{"older_than_seconds":0,"retain_versions":3}"#,
            ),
        ];
        for (body, given) in cases {
            let request = JobRequest::parse(body.as_bytes()).unwrap();
            let shown = Value::Object(options(&request.params)).to_string();
            assert_eq!(shown, given, "{body}");
        }
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"operation":"compact","option":{}}"#,
            r#"{"operation":"compact","options":[]}"#,
            r#"{"operation":"compact","options":{"target_rows":5}}"#,
            r#"{"operation":"compact","options":{"target_rows_per_fragment":0}}"#,
            r#"{"operation":"compact","options":{"target_rows_per_fragment":"5"}}"#,
            r#"{"operation":"compact","options":{"max_bytes_per_file":0}}"#,
            r#"{"operation":"compact","options":{"retain_versions":1}}"#,
            r#"{"operation":"optimize_indices","options":{"index_names":"i"}}"#,
            r#"{"operation":"optimize_indices","options":{"num_indices_to_merge":-1}}"#,
            r#"{"operation":"cleanup"}"#,
            r#"{"operation":"cleanup","options":{"retain_versions":0}}"#,
            r#"{"operation":"cleanup","options":{"retain_version":1}}"#,
            r#"{"operation":"cleanup","options":{"older_than_seconds":-1}}"#,
            r#"{"operation":"cleanup","options":{"older_than_seconds":1e300}}"#,
            r#"{"operation":"cleanup","options":{"error_if_tagged_old_versions":true}}"#,
            r#"{"operation":"create_scalar_index","options":{"column":"c"}}"#,
            r#"{"operation":"COMPACT"}"#,
        ] {
            let error = JobRequest::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.name, ErrorName::InvalidInput, "{body}");
        }
    }
}
