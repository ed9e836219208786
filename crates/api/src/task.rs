//! Task types, task ids, the states of a task, and the task info that clients read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{ApiError, ErrorName, TaskError};
use crate::params::TaskParams;

/// The types of maintenance task: the five of the OSS API, and the namespace specification's backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TaskType {
    /// Merges small fragments and drops deleted rows.
    #[serde(rename = "lance_compact")]
    Compact,
    /// Creates a scalar or text index.
    #[serde(rename = "lance_scalar_index")]
    ScalarIndex,
    /// Creates a vector index.
    #[serde(rename = "lance_vector_index")]
    VectorIndex,
    /// Brings indices up to date.
    #[serde(rename = "lance_optimize_indices")]
    OptimizeIndices,
    /// Removes old versions.
    #[serde(rename = "lance_cleanup")]
    Cleanup,
    /// Fills a computed column.
    #[serde(rename = "lance_backfill_column")]
    BackfillColumn,
}

impl TaskType {
    /// All types, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Compact,
        Self::ScalarIndex,
        Self::VectorIndex,
        Self::OptimizeIndices,
        Self::Cleanup,
        Self::BackfillColumn,
    ];

    /// The type's name in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compact => "lance_compact",
            Self::ScalarIndex => "lance_scalar_index",
            Self::VectorIndex => "lance_vector_index",
            Self::OptimizeIndices => "lance_optimize_indices",
            Self::Cleanup => "lance_cleanup",
            Self::BackfillColumn => "lance_backfill_column",
        }
    }

    /// The type of this name, which is case-sensitive; path words such as `compact` are none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The type's number in a task id: 1 to 6.
    fn code(self) -> u8 {
        match self {
            Self::Compact => 1,
            Self::ScalarIndex => 2,
            Self::VectorIndex => 3,
            Self::OptimizeIndices => 4,
            Self::Cleanup => 5,
            Self::BackfillColumn => 6,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl std::fmt::Display for TaskType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A task's id, which is the address of its record: 32 lowercase hex digits that hold the type
/// (1 digit), the slot in the log of its table and type (11 digits) and random bits (20 digits).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("pattern" = "^[1-6][0-9a-f]{31}$"))
)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId {
    text: String,
    task_type: TaskType,
    slot: u64,
}

impl TaskId {
    const SLOT_BITS: u32 = 44;

    /// The id of the task in this slot. Slots are 44 bits wide: at a thousand tasks a second a log
    /// lasts more than 500 years.
    pub fn new(task_type: TaskType, slot: u64, random: [u8; 10]) -> Self {
        use std::fmt::Write;
        let slot = slot & ((1 << Self::SLOT_BITS) - 1);
        let mut text = format!("{:x}{slot:011x}", task_type.code());
        for byte in random {
            // Writing to a String can't fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self {
            text,
            task_type,
            slot,
        }
    }

    /// The id in this text; whatever is none names no task.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let code = u8::from_str_radix(text.get(..1)?, 16).ok()?;
        let slot = u64::from_str_radix(text.get(1..12)?, 16).ok()?;
        Some(Self {
            text: text.to_owned(),
            task_type: TaskType::from_code(code)?,
            slot,
        })
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The type of the task.
    pub fn task_type(&self) -> TaskType {
        self.task_type
    }

    /// The task's slot in the log of its table and type.
    pub fn slot(&self) -> u64 {
        self.slot
    }

    /// The error for an id that names no task of the table.
    pub fn not_found() -> ApiError {
        ApiError::new(
            ErrorName::TaskNotFound,
            "The table has no task with this id: it never had one, or it was deleted.",
        )
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.text
    }
}

impl TryFrom<String> for TaskId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("'{text}' is not a task id"))
    }
}

/// Where a task stands. What a later version of the service may have stored is passed through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("examples" = ["submitted", "running", "completed", "failed"]))
)]
#[serde(from = "String", into = "String")]
pub enum TaskStatus {
    /// Stored, not started.
    Submitted,
    /// A worker is at it.
    Running,
    /// Done; final.
    Completed,
    /// Ended without success; final.
    Failed,
    /// A state that this version does not know.
    Other(String),
}

impl TaskStatus {
    /// The status on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Submitted => "submitted",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Other(text) => text,
        }
    }

    /// Whether the task has ended. An unknown state is not known to be an end.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl From<String> for TaskStatus {
    fn from(text: String) -> Self {
        match text.as_str() {
            "submitted" => Self::Submitted,
            "running" => Self::Running,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            _ => Self::Other(text),
        }
    }
}

impl From<TaskStatus> for String {
    fn from(status: TaskStatus) -> Self {
        status.as_str().to_owned()
    }
}

/// A task as clients read it (API facts, section 8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskInfo {
    /// The task's id.
    pub task_id: TaskId,
    /// `task_type` and `params`.
    #[serde(flatten)]
    pub params: TaskParams,
    /// Where the task stands.
    pub status: TaskStatus,
    /// When it was submitted.
    pub created_at: String,
    /// When a worker first started it; empty until then.
    pub started_at: String,
    /// When it ended; empty until then.
    pub completed_at: String,
    /// What it did; empty unless completed.
    pub result: Map<String, Value>,
    /// Why it failed; null unless failed.
    pub error: Option<TaskError>,
    /// How far it is; absent unless the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
}

/// How far a running task is. Not part of the OSS API: shown on request only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// Share of the work that is done, 0 to 100.
    #[cfg_attr(feature = "schema", schemars(range(max = 100)))]
    pub percent: u8,
    /// What is being done, in words.
    pub message: String,
}

/// The answer of GetLanceTaskStatus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetTaskResponse {
    /// The task.
    pub task_info: TaskInfo,
}

/// The answer of the five submits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubmitResponse {
    /// The new task's id.
    pub task_id: TaskId,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::CompactParams;
    use proptest::prelude::*;

    #[test]
    fn task_types_are_their_full_names() {
        for kind in TaskType::ALL {
            assert_eq!(TaskType::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        }
        for text in [
            "compact",
            "create_scalar_index",
            "",
            "LANCE_COMPACT",
            "lance_compact ",
        ] {
            assert_eq!(TaskType::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_task_id() {
        for text in [
            "",
            "abc",
            "11111111-1111-1111-1111-111111111111",
            "f0000000000111111111111111111111",
            "00000000000111111111111111111111",
            "1000000000011111111111111111111A",
            "100000000001111111111111111111111",
            "é000000000011111111111111111111",
        ] {
            assert_eq!(TaskId::parse(text), None, "{text}");
        }
        assert!(TaskId::parse(&"1".repeat(32)).is_some());
    }

    #[test]
    fn unknown_states_pass_through_and_are_not_final() {
        let status: TaskStatus = serde_json::from_str("\"paused\"").unwrap();
        assert!(!status.is_terminal());
        assert_eq!(serde_json::to_string(&status).unwrap(), "\"paused\"");
    }

    #[test]
    fn task_info_has_the_documented_keys_in_order() {
        let info = TaskInfo {
            task_id: TaskId::new(TaskType::Compact, 1, [0x11; 10]),
            params: TaskParams::Compact(CompactParams::parse(b"", "reencode").unwrap()),
            status: TaskStatus::Submitted,
            created_at: crate::time::format_micros(1_789_704_000_000_000),
            started_at: String::new(),
            completed_at: String::new(),
            result: Map::new(),
            error: None,
            progress: None,
        };
        let text = serde_json::to_string(&GetTaskResponse {
            task_info: info.clone(),
        })
        .unwrap();
        assert_eq!(
            text,
            r#"{"task_info":{"task_id":"10000000000111111111111111111111","task_type":"lance_compact","params":{"target_rows_per_fragment":1048576,"materialize_deletions":true,"materialize_deletions_threshold":0.1,"max_rows_per_group":1024,"max_bytes_per_file":0,"compaction_mode":"reencode"},"status":"submitted","created_at":"2026-09-18T04:00:00.000000+00:00","started_at":"","completed_at":"","result":{},"error":null}}"#
        );
        assert_eq!(
            serde_json::from_str::<GetTaskResponse>(&text)
                .unwrap()
                .task_info,
            info
        );
    }

    proptest! {
        #[test]
        fn an_id_gives_back_what_it_was_made_of(
            kind in 0_usize..6, slot in 0_u64..(1 << 44), random: [u8; 10],
        ) {
            let id = TaskId::new(TaskType::ALL[kind], slot, random);
            let parsed = TaskId::parse(id.as_str()).unwrap();
            prop_assert_eq!(&parsed, &id);
            prop_assert_eq!((parsed.task_type(), parsed.slot()), (TaskType::ALL[kind], slot));
        }
    }
}
