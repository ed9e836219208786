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
