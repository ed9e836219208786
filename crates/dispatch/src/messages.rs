//! The messages, as they stand in the bodies.

use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::TaskId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tables::Purge;

/// The table that a task works on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TableRef {
    /// The table's UUID.
    pub id: String,
    /// The table's ARN.
    pub arn: String,
    /// The URI of the table's folder.
    pub location: String,
}

/// Where a task's record lies: the table that it belongs to, and its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskAddress {
    /// The table's UUID.
    pub table_id: String,
    /// The task's id.
    pub task_id: TaskId,
}

/// The application hands a task to a worker, or a heartbeat's answer lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The task's id.
    pub task_id: TaskId,
    /// Which attempt at the task this is, from 1.
    pub attempt: u32,
    /// The table to work on.
    pub table: TableRef,
    /// `task_type` and `params`.
    #[serde(flatten)]
    pub params: TaskParams,
    /// The id of the request that submitted the task, for the logs.
    pub request_id: String,
}

impl Dispatch {
    /// Where the task's record lies.
    pub fn address(&self) -> TaskAddress {
        TaskAddress {
            table_id: self.table.id.clone(),
            task_id: self.task_id.clone(),
        }
    }
}

/// A worker asks to be the one that makes an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The worker's name, the same over its restarts.
    pub worker_id: String,
    /// Which of the worker's lives this is: drawn at random at each start. Empty for one that draws none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub incarnation: String,
    /// The task.
    #[serde(flatten)]
    pub task: TaskAddress,
    /// The attempt.
    pub attempt: u32,
}

/// The attempt is the worker's, or will be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// Another task of the table has its turn: the worker must not begin, and claims again after
    /// [`crate::TURN_SECONDS`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// The task is to be stopped: the worker commits nothing more, and ends the task as `Canceled`,
    /// unless an attempt has committed: then as what that did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub canceled: bool,
}

/// A worker says how far an attempt is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The worker and its attempt.
    #[serde(flatten)]
    pub claim: Claim,
    /// Share of the work that is done, 0 to 100.
    pub percent: u8,
    /// What is being done, in words.
    pub message: String,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task is done, with this result.
    Completed(Map<String, Value>),
    /// The task can't be done.
    Failed(TaskError),
}

/// A worker ends an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// The worker and its attempt.
    #[serde(flatten)]
    pub claim: Claim,
    /// How it ended.
    pub outcome: Outcome,
    /// The parameters with which it ran, with what was left out at submit filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<TaskParams>,
}

/// A worker says that it lives, and what it has in hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The worker's name, the same over its restarts.
    pub worker_id: String,
    /// Which of the worker's lives this is, as in its claims.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub incarnation: String,
    /// Whether this is the first heartbeat since the worker started: then the answer lists every
    /// task that nobody is at.
    pub starting: bool,
    /// The tasks that the worker has waiting or running, each with its attempt, granted or not.
    pub in_hand: Vec<InHand>,
    /// How many more tasks the worker would take.
    pub room: usize,
}

/// A task that a worker has in hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InHand {
    /// The task.
    #[serde(flatten)]
    pub task: TaskAddress,
    /// In a heartbeat, the attempt that it has waiting or running. In a leave, the one that it was
    /// granted; none if it was not granted any, or does not know yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

/// A worker hands back what it has in hand, and leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// The worker's name.
    pub worker_id: String,
    /// The tasks that the worker had waiting or running; it runs none of them any more.
    pub in_hand: Vec<InHand>,
}

/// What a worker should take up: the answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TakeUp {
    /// Tasks: attempts above 1, then first attempts, each oldest first.
    pub tasks: Vec<Dispatch>,
    /// Dropped tables whose data is still there.
    #[serde(default)]
    pub purges: Vec<Purge>,
    /// Those of the tasks in hand that are to be stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub canceled: Vec<TaskAddress>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use lance_maintenance_api::ErrorName;
    use lance_maintenance_api::params::CompactParams;
    use lance_maintenance_api::task::TaskType;

    #[test]
    fn messages_keep_their_shape() {
        let task_id = TaskId::new(TaskType::Compact, 5, [1; 10]);
        let dispatch = Dispatch {
            task_id: task_id.clone(),
            attempt: 1,
            table: TableRef {
                id: "T".to_owned(),
                arn: "acs:osstables:r:1:bucket/b/table/T".to_owned(),
                location: "file:///w/T.lance".to_owned(),
            },
            params: TaskParams::Compact(CompactParams::parse(b"", "reencode").unwrap()),
            request_id: "R".to_owned(),
        };
        let json = serde_json::to_value(&dispatch).unwrap();
        assert_eq!(json["task_type"], "lance_compact");
        assert_eq!(json["params"]["max_rows_per_group"], 1024);
        assert_eq!(serde_json::from_value::<Dispatch>(json).unwrap(), dispatch);

        let claim = Claim {
            worker_id: "w".to_owned(),
            incarnation: "3f".to_owned(),
            task: dispatch.address(),
            attempt: 2,
        };
        let mut json = serde_json::to_value(&claim).unwrap();
        assert_eq!(json["incarnation"], "3f");
        // A worker that draws none.
        json.as_object_mut().unwrap().remove("incarnation");
        let old: Claim = serde_json::from_value(json).unwrap();
        assert_eq!(old.incarnation, "");
        let finish = Finish {
            claim: claim.clone(),
            outcome: Outcome::Failed(TaskError::new(ErrorName::InvalidInput, "x")),
            params: None,
        };
        let json = serde_json::to_value(&finish).unwrap();
        assert_eq!(json["table_id"], "T");
        assert_eq!(json["outcome"]["failed"]["code"], 13);
        assert_eq!(serde_json::from_value::<Finish>(json).unwrap(), finish);

        let in_hand = |attempt| InHand {
            task: dispatch.address(),
            attempt,
        };
        let leave = Leave {
            worker_id: "w".to_owned(),
            in_hand: vec![in_hand(Some(2)), in_hand(None)],
        };
        let json = serde_json::to_value(&leave).unwrap();
        assert_eq!(json["in_hand"][0]["table_id"], "T");
        assert_eq!(json["in_hand"][0]["attempt"], 2);
        assert_eq!(json["in_hand"][1].get("attempt"), None);
        assert_eq!(serde_json::from_value::<Leave>(json).unwrap(), leave);

        // A worker that says neither which of its lives it is nor which attempts it has in hand.
        let task = serde_json::to_value(dispatch.address()).unwrap();
        let json = serde_json::json!({
            "worker_id": "w", "starting": false, "in_hand": [task], "room": 1,
        });
        let heartbeat: Heartbeat = serde_json::from_value(json).unwrap();
        assert_eq!(heartbeat.incarnation, "");
        assert_eq!(heartbeat.in_hand, [in_hand(None)]);
    }
}
