//! The worker contract: how the application and its workers talk.
//!
//! ```text
//! application -> worker   POST /v1/tasks            Dispatch   -> 202 | 409 | 429 | 401
//!                         POST /v1/tasks/cancel     TaskAddress -> 202
//! worker -> application   POST /worker/v1/claim     Claim      -> 200 Claimed | 409
//!                         POST /worker/v1/progress  Report     -> 200 | 409
//!                         POST /worker/v1/finish    Finish     -> 200 | 409
//!                         POST /worker/v1/heartbeat Heartbeat  -> 200 TakeUp
//!                         POST /worker/v1/leave     Leave      -> 200
//!                         POST /worker/v1/purged    Purged     -> 200
//! ```
//!
//! and what the catalog asks of a worker ([`tables`]).
//!
//! Bodies are JSON. Every request is signed ([`signature`]); a replay within the window is harmless,
//! since a claim and an end are each granted once. 409 means that the sender has lost the attempt
//! and must stop working on it. Of a table one task at a time is granted, whoever asks: a claim that
//! is answered with `wait` is made again, and the tasks that wait so come in the order in which they
//! were submitted.
//!
//! What a worker must do: answer 202 only for work it will do or hand back; claim an attempt before
//! touching the table; report at most a few times a second; finish what it claimed; send a
//! heartbeat at least every [`HEARTBEAT_SECONDS`] and take up what the answer lists.
//!
//! **Attempts above 1 come first.** An attempt that was lost may have committed, so nothing else of its
//! table is granted until the task has ended, and its next attempt must not stand behind what waits for
//! it. A worker that is offered an attempt above 1
//!
//! - takes it even if it is full: a heartbeat offers up to [`BEYOND_ROOM`] of them beyond the room;
//! - claims it before the attempts 1 of the same table that it has waiting, those included that were
//!   told to wait. Told to wait, they go round: each attempt above 1 once, then the first of the others
//!   once, and from the start. (It may be that which has the turn, by a claim whose answer was lost.)
//! - puts it in the place of a lower attempt at the same task that it has waiting.
//!
//! A claim that was told to wait must not keep the worker from claiming tasks of other tables.
//!
//! **Lives.** A worker keeps its name over its restarts and draws an incarnation at each start, which its
//! claims, reports, ends and heartbeats carry. What one life was granted is lost to the next: asked for
//! again, by an old dispatch that comes late, it is refused, since it may have committed. The next attempt
//! looks for that.
//!
//! **Canceling.** A task that is to be stopped is one of those that the answer to a heartbeat calls
//! canceled, and the answers to its claims and reports say so; beside that the application tells the
//! worker that it calls, which need not be the one that has the task. The worker stops at the next safe
//! point, removes what it has written, and ends the task as failed with `Canceled`. A commit that was
//! allowed by an answer from before goes on, and the task ends as what it did: before a commit a worker
//! notes at the table that it is about to make it, then reports. A task that nobody was granted ends at
//! once, and its claims are refused.
//!
//! What ended as `Canceled` has had no effect. So an attempt above 1 that learns that it is canceled looks
//! then, and not before, for the commits of the attempts before it. If there is one, the task ends as what
//! that did. If there is none, but a note that one was about to be made, it may have been allowed and be
//! made yet, by a worker that was held up: the attempt goes on as if it were not canceled, and its own
//! commit meets the other.
//!
//! **Leaving.** A worker that stops in order claims nothing more, waits for the answers to its claims,
//! stops what it runs, and then leaves: what it has in hand is anybody's at once, without the lease
//! being waited for, and an attempt that was handed back is not one of the [`MAX_ATTEMPTS`]. It touches
//! no table and sends no heartbeat after that. A leave may be repeated, and does no harm if it comes
//! late, when the worker has started again: it names the attempts that were granted before, and takes
//! away none that was granted since. A worker that goes without leaving is waited for.

pub mod messages;
pub mod signature;
pub mod tables;

pub use messages::{
    Claim, Claimed, Dispatch, Finish, Heartbeat, InHand, Leave, Outcome, Report, TableRef, TakeUp,
    TaskAddress,
};

/// Path of the one call that the application makes on a worker.
pub const TASKS_PATH: &str = "/v1/tasks";
/// Path on a worker where it is told that a task is to be stopped.
pub const CANCEL_PATH: &str = "/v1/tasks/cancel";
/// Path on the application where a worker claims an attempt.
pub const CLAIM_PATH: &str = "/worker/v1/claim";
/// Path on the application where a worker reports progress.
pub const PROGRESS_PATH: &str = "/worker/v1/progress";
/// Path on the application where a worker ends an attempt.
pub const FINISH_PATH: &str = "/worker/v1/finish";
/// Path on the application where a worker says that it lives.
pub const HEARTBEAT_PATH: &str = "/worker/v1/heartbeat";
/// Path on the application where a worker hands back what it has in hand, and leaves.
pub const LEAVE_PATH: &str = "/worker/v1/leave";

/// The longest time between two heartbeats of a worker, in seconds.
pub const HEARTBEAT_SECONDS: u64 = 5;
/// How long after its last heartbeat a worker keeps what it was running, in seconds.
pub const LEASE_SECONDS: u64 = 30;
/// How long a worker waits before it claims an attempt again whose table is another task's, in
/// seconds.
pub const TURN_SECONDS: u64 = 2;
/// How many attempts above 1 a heartbeat offers at most beyond the room that the worker has.
pub const BEYOND_ROOM: usize = 8;
/// How many attempts at a task may be lost with their workers before it fails.
pub const MAX_ATTEMPTS: u32 = 3;
/// How often a task is tried at all, with the attempts that workers handed back.
pub const MOST_ATTEMPTS: u32 = 10;
