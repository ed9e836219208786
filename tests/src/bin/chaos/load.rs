//! Clients: they submit tasks, look at them, list them, cancel some, and delete the records of some that
//! ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use lance::Dataset;
use lance_maintenance_tests::client::{Answer, Call, Table};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::rng::Rng;
use crate::rows::SUM;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// From one call of a client to the next, in milliseconds.
const PAUSE: (u64, u64) = (100, 600);
/// The share of ended tasks whose records are deleted when they are looked at, in percent.
const DELETED: u64 = 15;

/// Some tables get more tasks than others, so that tasks wait for each other.
const BUSY_TABLES: usize = 4;
/// The share of submits to those, in percent.
const BUSY: u64 = 35;

/// The types: the word in the path of a submit, and the type's name.
pub const TYPES: [(&str, &str); 6] = [
    ("compact", "lance_compact"),
    ("create_scalar_index", "lance_scalar_index"),
    ("create_vector_index", "lance_vector_index"),
    ("optimize_indices", "lance_optimize_indices"),
    ("cleanup", "lance_cleanup"),
    ("backfill_column", BACKFILL),
];
/// The type of those that are submitted to the namespace.
pub const BACKFILL: &str = "lance_backfill_column";

/// A task whose submit was answered with 200.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The number of its table.
    pub table: usize,
    /// The number of its type.
    pub task_type: usize,
    /// Its parameters.
    pub body: Value,
    /// Whether a client deleted its record.
    pub record: Record,
}

/// What became of a task's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// It must be there.
    Kept,
    /// A client deleted it.
    Deleted,
    /// A client asked to delete it and had no answer.
    Unknown,
}

/// An answer that should not come.
#[derive(Clone, Debug)]
pub struct Odd {
    /// When.
    pub at: SystemTime,
    /// What was answered to what.
    pub what: String,
    /// Whether it is wrong at any time, rather than only while nothing is broken.
    pub always_wrong: bool,
}

/// What all clients know together.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Accepted tasks, by id.
    pub accepted: BTreeMap<String, Accepted>,
    /// Submits of which nobody knows whether they were accepted, by table and type.
    pub unknown: BTreeMap<(usize, usize), usize>,
    /// How often an operation had an answer; without one the status is 0.
    pub statuses: BTreeMap<(&'static str, u16), usize>,
    /// Answers that should not come.
    pub odd: Vec<Odd>,
    /// Tasks that clients asked to be canceled, whatever was answered.
    pub canceled: BTreeSet<String>,
    /// Tasks that a client saw ended.
    ended: BTreeSet<String>,
}

/// The clients.
#[derive(Debug)]
pub struct Load {
    tables: Vec<Table>,
    known: Mutex<Known>,
}

impl Load {
    /// Clients of these tables.
    pub fn new(tables: Vec<Table>) -> Self {
        Self {
            tables,
            known: Mutex::default(),
        }
    }

    /// What they know.
    pub fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        // Whole between any two operations on it, panic or not.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One client, until it is told to stop.
    pub async fn run(&self, mut rng: Rng, stop: &AtomicBool) -> anyhow::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            match rng.below(100) {
                0..60 => self.submit(&mut rng).await?,
                60..84 => self.look(&mut rng).await?,
                84..90 => self.cancel(&mut rng).await?,
                _ => self.list(&mut rng).await?,
            }
            sleep(Duration::from_millis(rng.between(PAUSE.0, PAUSE.1))).await;
        }
        Ok(())
    }

    async fn submit(&self, rng: &mut Rng) -> anyhow::Result<()> {
        let tables = match rng.percent(BUSY) {
            true => BUSY_TABLES.min(self.tables.len()),
            false => self.tables.len(),
        };
        let table = rng.below(tables as u64) as usize;
        let task_type = rng.below(TYPES.len() as u64) as usize;
        let body = parameters(task_type, rng);
        self.submit_one(table, task_type, body).await
    }

    /// Computes all rows of each table that are not, once nothing is written any more.
    pub async fn backfill_all(&self) -> anyhow::Result<()> {
        let task_type = TYPES.iter().position(|(_, name)| *name == BACKFILL);
        let task_type = task_type.context("no type of backfills")?;
        for (number, table) in self.tables.iter().enumerate() {
            let dataset = Dataset::open(&table.location).await?;
            let body = match dataset.manifest().uses_stable_row_ids() {
                true => json!({"column": SUM}),
                // Nothing tells which rows were updated.
                false => json!({"column": SUM, "where": "id >= 0"}),
            };
            self.submit_one(number, task_type, body).await?;
        }
        Ok(())
    }

    async fn submit_one(&self, table: usize, task_type: usize, body: Value) -> anyhow::Result<()> {
        let (word, name) = TYPES[task_type];
        let target = match name {
            BACKFILL => self.tables[table].namespace(word),
            _ => self.tables[table].path(word),
        };
        let call = Call::post(target, body.to_string());
        let answer = self.call(table, "submit", call).await?;
        let mut known = self.known();
        match answer {
            Some(answer) if answer.status == 200 => {
                let answer = answer.json()?;
                // A job's id ends with the task's.
                let id = match name {
                    BACKFILL => answer["job_id"]
                        .as_str()
                        .and_then(|id| id.split('.').nth(1)),
                    _ => answer["task_id"].as_str(),
                };
                let id = id.unwrap_or_default().to_owned();
                let accepted = Accepted {
                    table,
                    task_type,
                    body,
                    record: Record::Kept,
                };
                if known.accepted.insert(id.clone(), accepted).is_some() {
                    known.is_wrong(format!("the id {id} was given to two tasks"));
                }
            }
            Some(answer) if answer.status == 429 => {}
            Some(answer) if answer.status < 500 => known.is_wrong(said("submit", &answer)),
            _ => *known.unknown.entry((table, task_type)).or_default() += 1,
        }
        Ok(())
    }

    /// Looks at a task, and deletes it if it has ended and its time has come.
    async fn look(&self, rng: &mut Rng) -> anyhow::Result<()> {
        let Some((id, table)) = self.some_task(rng) else {
            return Ok(());
        };
        let target = self.tables[table].path(&format!("tasks/{id}"));
        let Some(answer) = self.call(table, "get", Call::get(target.clone())).await? else {
            return Ok(());
        };
        match answer.status {
            200 => {}
            404 if self.known().record(&id) != Some(Record::Kept) => return Ok(()),
            500.. => return Ok(()),
            _ => {
                let said = format!("{} of the accepted task {id}", said("get", &answer));
                self.known().is_wrong(said);
                return Ok(());
            }
        }
        let info = &answer.json()?["task_info"];
        let has_ended = matches!(info["status"].as_str(), Some("completed" | "failed"));
        {
            let mut known = self.known();
            if has_ended {
                known.ended.insert(id.clone());
            } else if known.ended.contains(&id) {
                known.is_wrong(format!("the task {id} had ended and is {}", info["status"]));
            }
        }
        if has_ended && rng.percent(DELETED) {
            // Before it is asked for: whoever looks meanwhile may find it or not.
            self.known().set_record(&id, Record::Unknown);
            let answer = self.call(table, "delete", Call::delete(target)).await?;
            let mut known = self.known();
            match answer {
                Some(answer) if answer.status == 204 => known.set_record(&id, Record::Deleted),
                // Another client's delete, or one of ours whose answer was lost.
                Some(answer) if answer.status == 404 => {}
                Some(answer) if answer.status < 500 => known.is_wrong(said("delete", &answer)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Cancels a task that has not ended, of those that the second door lists.
    async fn cancel(&self, rng: &mut Rng) -> anyhow::Result<()> {
        let table = rng.below(self.tables.len() as u64) as usize;
        let target = self.tables[table].second_door("jobs?limit=30");
        let Some(answer) = self.call(table, "list jobs", Call::get(target)).await? else {
            return Ok(());
        };
        if answer.status != 200 {
            if answer.status < 500 {
                self.known().is_wrong(said("list jobs", &answer));
            }
            return Ok(());
        }
        let listed = answer.json()?;
        let open: Vec<&Value> = listed["jobs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|job| matches!(job["state"].as_str(), Some("queued" | "running")))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let job = rng.pick(&open);
        let word = |name: &str| job[name].as_str().unwrap_or_default().to_owned();
        // Before it is asked for: it may be done without an answer.
        self.known().canceled.insert(word("task_id"));
        let target = format!("/maintenance/v1/jobs/{}/cancel", word("job_id"));
        let answer = self.call(table, "cancel", Call::post(target, "")).await?;
        match answer {
            // Deleted meanwhile.
            Some(answer) if matches!(answer.status, 200 | 404 | 500..) => {}
            Some(answer) => self.known().is_wrong(said("cancel", &answer)),
            None => {}
        }
        Ok(())
    }

    async fn list(&self, rng: &mut Rng) -> anyhow::Result<()> {
        let table = rng.below(self.tables.len() as u64) as usize;
        let (_, name) = rng.pick(&TYPES);
        let target = self.tables[table].path(&format!("tasks?task_type={name}&max_results=20"));
        if let Some(answer) = self.call(table, "list", Call::get(target)).await?
            && !matches!(answer.status, 200 | 500..)
        {
            self.known().is_wrong(said("list", &answer));
        }
        Ok(())
    }

    fn some_task(&self, rng: &mut Rng) -> Option<(String, usize)> {
        let known = self.known();
        let there: Vec<_> = known
            .accepted
            .iter()
            .filter(|(_, task)| task.record == Record::Kept)
            .collect();
        if there.is_empty() {
            return None;
        }
        let (id, task) = rng.pick(&there);
        Some(((*id).clone(), task.table))
    }

    /// Makes a call, and counts what comes of it; none if there is no answer.
    async fn call(
        &self,
        table: usize,
        operation: &'static str,
        call: Call,
    ) -> anyhow::Result<Option<Answer>> {
        let client = self.tables[table].client();
        let answer = timeout(PATIENCE, client.call(call)).await;
        let answer = answer.ok().and_then(Result::ok);
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        let mut known = self.known();
        *known.statuses.entry((operation, status)).or_default() += 1;
        if let Some(answer) = &answer
            && status >= 500
            && status != 503
        {
            known.odd.push(Odd {
                at: SystemTime::now(),
                what: said(operation, answer),
                always_wrong: false,
            });
        }
        Ok(answer)
    }
}

impl Known {
    fn record(&self, id: &str) -> Option<Record> {
        self.accepted.get(id).map(|task| task.record)
    }

    fn set_record(&mut self, id: &str, record: Record) {
        if let Some(task) = self.accepted.get_mut(id)
            && task.record != Record::Deleted
        {
            task.record = record;
        }
    }

    fn is_wrong(&mut self, what: String) {
        self.odd.push(Odd {
            at: SystemTime::now(),
            what,
            always_wrong: true,
        });
    }
}

fn said(operation: &str, answer: &Answer) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    let body: String = body.chars().take(300).collect();
    format!("{operation}: {} {body}", answer.status)
}

/// Parameters of a task that can succeed.
fn parameters(task_type: usize, rng: &mut Rng) -> Value {
    match TYPES[task_type].0 {
        "compact" => match rng.below(3) {
            0 => json!({}),
            1 => json!({"materialize_deletions_threshold": 0.0}),
            _ => json!({"target_rows_per_fragment": 1000}),
        },
        "create_scalar_index" => {
            let (column, index_type) = *rng.pick(&[
                ("id", "BTREE"),
                ("value", "BTREE"),
                ("value", "BITMAP"),
                (SUM, "BTREE"),
                ("text", "INVERTED"),
            ]);
            let replace = rng.percent(70);
            let name = format!("{column}_{}", index_type.to_lowercase());
            json!({"column": column, "index_type": index_type, "name": name, "replace": replace})
        }
        "create_vector_index" => {
            let replace = rng.percent(70);
            let kind = *rng.pick(&["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_HNSW_FLAT"]);
            let mut body = json!({
                "column": "vector", "index_type": kind, "num_partitions": 2, "replace": replace,
            });
            match kind {
                "IVF_PQ" => body["num_sub_vectors"] = 2.into(),
                // Slow enough to be interrupted.
                "IVF_HNSW_FLAT" => {
                    body["m"] = 60.into();
                    body["ef_construction"] = 800.into();
                }
                _ => {}
            }
            body
        }
        "optimize_indices" => match rng.below(3) {
            0 => json!({"num_indices_to_merge": 1}),
            _ => json!({}),
        },
        "backfill_column" => {
            let mut body = json!({"column": SUM, "commit_granularity": rng.between(1, 6)});
            if rng.percent(30) {
                body["where"] = "id % 3 = 1".into();
            }
            if rng.percent(50) {
                body["checkpoint_size"] = rng.between(10, 200).into();
            }
            body
        }
        _ => match rng.below(3) {
            0 => json!({"retain_versions": 3}),
            1 => json!({"older_than": "8s"}),
            _ => json!({"older_than": "12s", "retain_versions": 2}),
        },
    }
}
