//! The jobs of a table, of all operations, newest first.

use serde::{Deserialize, Serialize};

use super::JobStatus;
use crate::error::ApiError;
use crate::listing::Marker;
use crate::query::Query;

/// Jobs on a page if the request does not say how many.
const USUAL: usize = 100;
/// Jobs on a page at the most.
const MOST: usize = 1000;

/// What a listing asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListJobsQuery<const N: usize> {
    /// Jobs on the page at the most.
    pub limit: usize,
    /// Where the page starts; absent on the first.
    pub from: Option<[u64; N]>,
}

impl<const N: usize> ListJobsQuery<N> {
    /// Parses `limit` (1 to 1000, by default 100) and `page_token` of a listing whose tokens are those of
    /// `marker`.
    pub fn parse(query: &Query, marker: Marker<'_>) -> Result<Self, ApiError> {
        let limit = match query.get("limit") {
            None | Some("") => USUAL,
            Some(text) => text
                .parse()
                .ok()
                .filter(|count| (1..=MOST).contains(count))
                .ok_or_else(|| ApiError::invalid("'limit' must be from 1 to 1000."))?,
        };
        let from = match query.get("page_token") {
            None | Some("") => None,
            Some(token) => Some(marker.decode_places(token).ok_or_else(|| {
                ApiError::invalid("'page_token' must be one that the same listing returned.")
            })?),
        };
        Ok(Self { limit, from })
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let marker = Marker::new("T", "jobs");
        let token = marker.encode_places(&[7, u64::MAX]);
        let other = Marker::new("U", "jobs").encode_places(&[7, 8]);
        let cases = [
            ("", Some((100, None))),
            ("limit=1000&page_token=", Some((1000, None))),
            (
                &format!("page_token={token}"),
                Some((100, Some([7, u64::MAX]))),
            ),
            ("limit=0", None),
            ("limit=1001", None),
            ("limit=x", None),
            (&format!("page_token={other}"), None),
            (&format!("page_token={}", marker.encode_places(&[7])), None),
            (&format!("page_token={}", marker.encode(7)), None),
        ];
        for (raw, expected) in cases {
            let parsed = ListJobsQuery::<2>::parse(&Query::parse(raw).unwrap(), marker);
            assert_eq!(
                parsed.ok().map(|query| (query.limit, query.from)),
                expected,
                "{raw}"
            );
        }
    }
}
