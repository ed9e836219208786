//! The layout: every key of the store is made here.
//!
//! | key | what it holds |
//! |---|---|
//! | `namespaces/{bucket}` | counter of the bucket's log of namespaces |
//! | `tables/{bucket}/{namespace}` | counter of the namespace's log of tables (name hashed) |
//! | `{log}/{slot}` | entry of a log |
//! | `name/{hash}` | what a name stands for now |
//! | `name/{hash}/{generation}` | fence of a change of the name |
//! | `table/{table}` | the name of the table with this id |
//! | `dropped/{table}` | when the table was dropped, and whether its data is to be removed |
//! | `purged/{table}` | when its data was removed |
//! | `policy/{bucket}` | the bucket's policy |
//! | `credentials`, `credentials/{slot}` | log of access keys |
//! | `tasks/{table}/{type}` | counter of slots used by the tasks of a type |
//! | `tasks/{table}/{type}/freed` | counter of slots freed |
//! | `tasks/{table}/{type}/full` | the number of slots used when the quota was last met |
//! | `task/{table}/{type}/{slot}` | the task as submitted |
//! | `task/{...}/run/{attempt}` | who makes the attempt, and since when |
//! | `task/{...}/progress` | how far the attempt is |
//! | `task/{...}/end` | how the task ended |
//! | `task/{...}/cancel` | since when the task is to be stopped |
//! | `task/{...}/claim/{attempt}`, `.../ending`, `.../ending/{n}`, `.../freeing` | fences |
//! | `{fence}/waiting` | since when somebody waits for what the fence's owner is to write |
//! | `turn/{table}`, `turn/{table}/{generation}` | which task of the table may run; fences |
//! | `outbox`, `outbox/{slot}`, `outbox/done`, `outbox/next` | tasks that wait for a worker |
//! | `purges`, `purges/{slot}`, `purges/done`, `purges/next` | dropped tables whose data waits for one |
//! | `worker/{id}` | when the worker was last heard of |
//! | `worker/{id}/left` | the start of the last attempt that it handed back when it left |
//! | `worker/{id}/again` | when it last claimed what it had been granted before |
//! | `look` | when all keys were last looked through for what nobody is at, and what was missing |
//! | `look/{time}` | fence of the settling of what that look found missing |
//!
//! Names are those of namespaces, tables, locations and access keys. They are hashed, since two of 255
//! characters do not fit the 255 bytes that Spin's stores allow a key.

use lance_maintenance_api::task::TaskType;
use sha2::{Digest, Sha256};

/// The first 16 bytes of SHA-256 in hex: as good as unique, and short.
fn hash(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("\n").as_bytes());
    let mut text = hex::encode(digest);
    text.truncate(32);
    text
}

pub(crate) fn namespace_log(bucket: &str) -> String {
    format!("namespaces/{bucket}")
}

pub(crate) fn table_log(bucket: &str, namespace: &str) -> String {
    format!("tables/{bucket}/{}", hash(&[namespace]))
}

pub(crate) fn log_entry(log: &str, slot: u64) -> String {
    format!("{log}/{slot}")
}

pub(crate) fn namespace_name(bucket: &str, namespace: &str) -> String {
    format!("name/{}", hash(&["namespace", bucket, namespace]))
}

pub(crate) fn table_name(bucket: &str, namespace: &str, table: &str) -> String {
    format!("name/{}", hash(&["table", bucket, namespace, table]))
}

pub(crate) fn name_fence(name: &str, generation: u64) -> String {
    format!("{name}/{generation}")
}

pub(crate) fn waiting(fence: &str) -> String {
    format!("{fence}/waiting")
}

pub(crate) fn turn(table_id: &str) -> String {
    format!("turn/{table_id}")
}

const DROPPED: &str = "dropped/";

pub(crate) fn dropped(table_id: &str) -> String {
    format!("{DROPPED}{table_id}")
}

/// The table of a key that `dropped` made.
pub(crate) fn dropped_table(key: &str) -> Option<&str> {
    key.strip_prefix(DROPPED)
}

pub(crate) fn purged(table_id: &str) -> String {
    format!("purged/{table_id}")
}

pub(crate) fn table_index(table_id: &str) -> String {
    format!("table/{table_id}")
}

pub(crate) fn location(location: &str) -> String {
    format!("name/{}", hash(&["location", location]))
}

pub(crate) fn credential(access_key_id: &str) -> String {
    format!("name/{}", hash(&["credential", access_key_id]))
}

pub(crate) const CREDENTIALS: &str = "credentials";

pub(crate) fn bucket_policy(bucket: &str) -> String {
    format!("policy/{bucket}")
}

pub(crate) fn task_log(table_id: &str, task_type: TaskType) -> String {
    format!("tasks/{table_id}/{task_type}")
}

/// What a log of tasks and its tasks have in common, `{table}/{type}`, if this is the key of one.
pub(crate) fn task_log_path(key: &str) -> Option<&str> {
    let path = key.strip_prefix("tasks/")?;
    (path.split('/').count() == 2).then_some(path)
}

/// The log with this path.
pub(crate) fn task_log_at(path: &str) -> String {
    format!("tasks/{path}")
}

/// The task in a slot of the log with this path.
pub(crate) fn task_at(path: &str, slot: u64) -> String {
    format!("task/{path}/{slot}")
}

/// The path of the log of a task, and the task, if this is the key of one as it was submitted.
pub(crate) fn task_path(key: &str) -> Option<(&str, &str)> {
    let (path, _) = key.strip_prefix("task/")?.rsplit_once('/')?;
    is_task(key).then_some((path, key))
}

/// The same of the fence that a task's place is freed behind.
pub(crate) fn freed_task(key: &str) -> Option<(&str, &str)> {
    task_path(key.strip_suffix("/freeing")?)
}

pub(crate) fn task_log_freed(log: &str) -> String {
    format!("{log}/freed")
}

pub(crate) fn task_log_full(log: &str) -> String {
    format!("{log}/full")
}

/// What every key of one task starts with, and the key of the task as submitted.
pub(crate) fn task(table_id: &str, task_type: TaskType, slot: u64) -> String {
    format!("task/{table_id}/{task_type}/{slot}")
}

/// Whether a key is that of a task as submitted.
pub(crate) fn is_task(key: &str) -> bool {
    key.starts_with("task/") && key.split('/').count() == 4
}

pub(crate) fn task_run(task: &str, attempt: u32) -> String {
    format!("{task}/run/{attempt}")
}

pub(crate) fn task_progress(task: &str) -> String {
    format!("{task}/progress")
}

pub(crate) fn task_end(task: &str) -> String {
    format!("{task}/end")
}

pub(crate) fn task_cancel(task: &str) -> String {
    format!("{task}/cancel")
}

pub(crate) fn task_claim_fence(task: &str, attempt: u32) -> String {
    format!("{task}/claim/{attempt}")
}

/// The fences of a task's end: each but the first for when the owner of the one before died.
pub(crate) fn task_end_fences(task: &str) -> [String; 3] {
    ["ending", "ending/2", "ending/3"].map(|fence| format!("{task}/{fence}"))
}

pub(crate) fn task_free_fence(task: &str) -> String {
    format!("{task}/freeing")
}

/// When all keys were last looked through.
pub(crate) const LOOK: &str = "look";

pub(crate) fn look_fence(looked: i64) -> String {
    format!("{LOOK}/{looked}")
}

pub(crate) const OUTBOX: &str = "outbox";
pub(crate) const PURGES: &str = "purges";

/// Up to where an outbox is drained.
pub(crate) fn outbox_done(outbox: &str) -> String {
    format!("{outbox}/done")
}

/// Where the next part of an outbox begins.
pub(crate) fn outbox_next(outbox: &str) -> String {
    format!("{outbox}/next")
}

pub(crate) fn worker(worker_id: &str) -> String {
    format!("worker/{}", hash(&[worker_id]))
}

pub(crate) fn worker_left(worker: &str) -> String {
    format!("{worker}/left")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_submitted_record_is_a_task() {
        let key = task("T", TaskType::Compact, 7);
        assert!(is_task(&key));
        for other in [
            task_run(&key, 1),
            task_progress(&key),
            task_end(&key),
            task_cancel(&key),
            task_claim_fence(&key, 1),
            waiting(&task_claim_fence(&key, 1)),
            task_end_fences(&key)[0].clone(),
            task_end_fences(&key)[2].clone(),
            task_free_fence(&key),
            task_log("T", TaskType::Compact),
        ] {
            assert!(!is_task(&other), "{other}");
        }
    }

    #[test]
    fn tasks_are_known_to_their_logs() {
        let log = task_log("T", TaskType::Compact);
        let key = task("T", TaskType::Compact, 7);
        let path = task_log_path(&log).unwrap();
        assert_eq!(task_log_at(path), log);
        assert_eq!(task_at(path, 7), key);
        assert_eq!(task_path(&key), Some((path, key.as_str())));
        let fence = task_free_fence(&key);
        assert_eq!(freed_task(&fence), Some((path, key.as_str())));
        for other in [task_log_freed(&log), task_log_full(&log), key.clone()] {
            assert_eq!(task_log_path(&other), None);
        }
        for other in [task_end(&key), fence.clone(), log] {
            assert_eq!(task_path(&other), None);
        }
        assert_eq!(freed_task(&key), None);
    }

    #[test]
    fn keys_stay_short_whatever_the_names() {
        let long = "n".repeat(255);
        let bucket = "b".repeat(32);
        for key in [
            table_log(&bucket, &long),
            waiting(&name_fence(&table_name(&bucket, &long, &long), u64::MAX)),
            worker_left(&worker(&long)),
            task_claim_fence(
                &task(
                    "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab",
                    TaskType::OptimizeIndices,
                    u64::MAX,
                ),
                u32::MAX,
            ),
        ] {
            assert!(key.len() < 200, "{key}");
        }
    }
}
