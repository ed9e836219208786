//! The query and the answer of ListLanceTasks (API facts, section 9), and the opaque markers that
//! lead from one page to the next.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::query::Query;
use crate::task::{TaskInfo, TaskType};

/// What a task listing asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTasksQuery {
    /// The one type of task to list.
    pub task_type: TaskType,
    /// Tasks on a page at the most: 1 to 1000.
    pub max_results: usize,
    /// Only slots below this one; absent on the first page.
    pub below: Option<u64>,
}

impl ListTasksQuery {
    /// Parses the query of a listing of the table with this id.
    pub fn parse(query: &Query, table_id: &str) -> Result<Self, ApiError> {
        for name in ["mode", "status"] {
            if query.contains(name) {
                return Err(ApiError::invalid(format!(
                    "'{name}' is not a parameter of this call; filter the answer instead."
                )));
            }
        }
        let task_type = query
            .get("task_type")
            .and_then(TaskType::parse)
            .ok_or_else(|| {
                let words = TaskType::ALL.map(TaskType::as_str).join(", ");
                ApiError::invalid(format!("'task_type' must be one of {words}."))
            })?;
        let max_results = match query.get("max_results") {
            None => 100,
            Some(text) => text
                .parse()
                .ok()
                .filter(|count| (1..=1000).contains(count))
                .ok_or_else(|| ApiError::invalid("'max_results' must be from 1 to 1000."))?,
        };
        let below = match query.get("marker") {
            None | Some("") => None,
            Some(text) => Some(
                Marker::new(table_id, task_type.as_str())
                    .decode(text)
                    .ok_or_else(|| {
                        ApiError::invalid(
                            "'marker' must be a 'next_marker' of the same table and 'task_type'.",
                        )
                    })?,
            ),
        };
        Ok(Self {
            task_type,
            max_results,
            below,
        })
    }
}

/// One page of a task listing, newest task first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListTasksResponse {
    /// The tasks of this page.
    pub tasks: Vec<TaskInfo>,
    /// The marker of the next page; empty on the last.
    pub next_marker: String,
}

/// Markers of one list: a slot, bound to the list it belongs to by a checksum, so that a marker of
/// another list, or a mistyped one, is refused instead of skipping entries.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    owner: &'a str,
    kind: &'a str,
}

impl<'a> Marker<'a> {
    /// Markers of the list of `kind` that belongs to `owner`.
    pub fn new(owner: &'a str, kind: &'a str) -> Self {
        Self { owner, kind }
    }

    /// The marker after which slots below `slot` follow.
    pub fn encode(&self, slot: u64) -> String {
        self.seal(&slot.to_be_bytes())
    }

    /// The slot of a marker that `encode` made for the same list.
    pub fn decode(&self, marker: &str) -> Option<u64> {
        Some(u64::from_be_bytes(self.open(marker)?.try_into().ok()?))
    }

    /// The marker of a place in a list of lists.
    pub fn encode_pair(&self, (outer, inner): (u64, u64)) -> String {
        self.seal(&[outer.to_be_bytes(), inner.to_be_bytes()].concat())
    }

    /// The place of a marker that `encode_pair` made for the same list.
    pub fn decode_pair(&self, marker: &str) -> Option<(u64, u64)> {
        let bytes = self.open(marker)?;
        let (outer, inner) = bytes.split_first_chunk::<8>()?;
        Some((
            u64::from_be_bytes(*outer),
            u64::from_be_bytes(inner.try_into().ok()?),
        ))
    }

    /// The marker of a place in several lists at once.
    pub fn encode_places(&self, places: &[u64]) -> String {
        let bytes: Vec<u8> = places
            .iter()
            .flat_map(|place| place.to_be_bytes())
            .collect();
        self.seal(&bytes)
    }

    /// The place of a marker that `encode_places` made for the same lists.
    pub fn decode_places<const N: usize>(&self, marker: &str) -> Option<[u64; N]> {
        let bytes = self.open(marker)?;
        let (places, rest) = bytes.as_chunks::<8>();
        let places: Vec<u64> = places
            .iter()
            .map(|place| u64::from_be_bytes(*place))
            .collect();
        places.try_into().ok().filter(|_| rest.is_empty())
    }

    fn seal(&self, place: &[u8]) -> String {
        let checksum = self.checksum(place).to_be_bytes();
        URL_SAFE_NO_PAD.encode([place, &checksum].concat())
    }

    fn open(&self, marker: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(marker).ok()?;
        let (place, checksum) = bytes.split_last_chunk::<4>()?;
        (self.checksum(place).to_be_bytes() == *checksum).then(|| place.to_vec())
    }

    fn checksum(&self, place: &[u8]) -> u32 {
        let list = format!("{}\n{}\n", self.owner, self.kind);
        crc32fast::hash(&[list.as_bytes(), place].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab";

    #[test]
    fn what_is_accepted_and_refused() {
        let marker = Marker::new(TABLE, "lance_compact").encode(7);
        let other_type = Marker::new(TABLE, "lance_cleanup").encode(7);
        let other_table = Marker::new("other", "lance_compact").encode(7);
        let cases = [
            ("task_type=lance_compact", Some((100, None))),
            ("task_type=lance_compact&max_results=1", Some((1, None))),
            (
                "task_type=lance_compact&max_results=1000&x=y",
                Some((1000, None)),
            ),
            ("task_type=lance_compact&marker=", Some((100, None))),
            (
                &format!("task_type=lance_compact&marker={marker}"),
                Some((100, Some(7))),
            ),
            ("", None),
            ("task_type=", None),
            ("task_type=compact", None),
            ("task_type=lance_compact&max_results=0", None),
            ("task_type=lance_compact&max_results=1001", None),
            ("task_type=lance_compact&max_results=-1", None),
            ("task_type=lance_compact&max_results=abc", None),
            ("task_type=lance_compact&max_results=", None),
            ("task_type=lance_compact&status=", None),
            ("task_type=lance_compact&status", None),
            ("task_type=lance_compact&mode=x", None),
            ("task_type=lance_compact&marker=%21", None),
            (
                &format!("task_type=lance_compact&marker={other_type}"),
                None,
            ),
            (
                &format!("task_type=lance_compact&marker={other_table}"),
                None,
            ),
        ];
        for (raw, expected) in cases {
            let parsed = ListTasksQuery::parse(&Query::parse(raw).unwrap(), TABLE);
            let seen = parsed
                .as_ref()
                .ok()
                .map(|query| (query.max_results, query.below));
            assert_eq!(seen, expected, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn a_marker_gives_back_its_slot(slot: u64) {
            let list = Marker::new(TABLE, "lance_compact");
            prop_assert_eq!(list.decode(&list.encode(slot)), Some(slot));
        }

        #[test]
        fn any_text_decodes_or_not(text in ".*") {
            let _ = Marker::new(TABLE, "lance_compact").decode(&text);
        }
    }
}
