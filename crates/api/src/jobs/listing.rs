//! The jobs of a table, of all operations, newest first.

use serde::{Deserialize, Serialize};

use super::JobStatus;

/// One page of a table's jobs, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListJobsResponse {
    /// The jobs of this page.
    pub jobs: Vec<JobStatus>,
    /// The token of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}
