//! Pages of listings: `limit` and `page_token`.

use crate::error::ApiError;
use crate::listing::Marker;
use crate::query::Query;

/// Names on a page if the request does not say how many, and at the most.
const MOST: usize = 1000;

/// A page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Names on the page at the most.
    pub limit: usize,
    /// Where the page starts; absent on the first.
    pub from: Option<u64>,
}

impl PageQuery {
    /// Parses `limit` (1 to 1000, by default 1000) and `page_token` of a listing whose tokens are
    /// those of `marker`.
    pub fn parse(query: &Query, marker: Marker<'_>) -> Result<Self, ApiError> {
        let from = match query.get("page_token") {
            None | Some("") => None,
            Some(token) => Some(marker.decode(token).ok_or_else(not_a_token)?),
        };
        Ok(Self {
            limit: limit(query)?,
            from,
        })
    }

    /// The same for a listing of lists, whose tokens hold two places.
    pub fn parse_nested(
        query: &Query,
        marker: Marker<'_>,
    ) -> Result<(usize, Option<(u64, u64)>), ApiError> {
        let from = match query.get("page_token") {
            None | Some("") => None,
            Some(token) => Some(marker.decode_pair(token).ok_or_else(not_a_token)?),
        };
        Ok((limit(query)?, from))
    }
}

fn limit(query: &Query) -> Result<usize, ApiError> {
    match query.get("limit") {
        None | Some("") => Ok(MOST),
        Some(text) => text
            .parse()
            .ok()
            .filter(|count: &u64| *count >= 1)
            .map(|count| usize::try_from(count).map_or(MOST, |count| count.min(MOST)))
            .ok_or_else(|| ApiError::invalid("'limit' must be a number of at least 1.")),
    }
}

fn not_a_token() -> ApiError {
    ApiError::invalid("'page_token' must be one that the same listing returned.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        let marker = Marker::new("bucket", "namespaces");
        let cases = [
            ("", Some((1000, None))),
            ("limit=5", Some((5, None))),
            ("limit=5000", Some((1000, None))),
            ("limit=5000000000", Some((1000, None))),
            (
                &format!("page_token={}", marker.encode(9)),
                Some((1000, Some(9))),
            ),
            ("limit=0", None),
            ("limit=x", None),
            ("page_token=x", None),
            (&format!("page_token={}", marker.encode_pair((9, 1))), None),
        ];
        for (raw, expected) in cases {
            let page = PageQuery::parse(&Query::parse(raw).unwrap(), marker);
            assert_eq!(
                page.ok().map(|page| (page.limit, page.from)),
                expected,
                "{raw}"
            );
        }
        let raw = format!("limit=2&page_token={}", marker.encode_pair((9, 1)));
        let page = PageQuery::parse_nested(&Query::parse(&raw).unwrap(), marker);
        assert_eq!(page, Ok((2, Some((9, 1)))));
    }
}
