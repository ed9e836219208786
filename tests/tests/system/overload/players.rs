//! Clients that ask for whatever there is, and never pause.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::bail;
use lance_maintenance_tests::client::{Answer, Call, Client, Table};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::tally::{Ask, Tally};
use crate::support::SUBMITS;

/// How long an answer may take before it is none.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the clients share.
pub struct Board {
    pub tables: Vec<Table>,
    /// Arrow streams of a small and a larger table.
    pub streams: [Vec<u8>; 2],
    /// Tasks that were accepted, as indices of the table and of the type, and the id.
    pub accepted: Mutex<Vec<(usize, usize, String)>>,
    /// Tasks whose deletion was granted.
    pub deleted: Mutex<BTreeSet<String>>,
    pub created: AtomicUsize,
}

impl Board {
    pub fn of(tables: Vec<Table>, streams: [Vec<u8>; 2]) -> Arc<Self> {
        Arc::new(Self {
            tables,
            streams,
            accepted: Mutex::default(),
            deleted: Mutex::default(),
            created: AtomicUsize::default(),
        })
    }
}

/// One client.
pub struct Player {
    pub board: Arc<Board>,
    pub client: Client,
    pub dice: Dice,
    pub tally: Tally,
}

impl Player {
    /// Asks for one thing after the other until the time is over.
    pub async fn play(mut self, end: Instant) -> Tally {
        while Instant::now() < end {
            match self.dice.roll(20) {
                0..=6 => self.submit().await,
                7..=10 => self.get().await,
                11..=13 => self.list_and_delete().await,
                14..=16 => self.look_at_the_catalog().await,
                _ => self.create().await,
            }
        }
        self.tally
    }

    async fn ask(&mut self, ask: Ask, call: Call) -> Option<Answer> {
        let started = Instant::now();
        let answer = match timeout(PATIENCE, self.client.call(call)).await {
            Ok(answer) => answer,
            Err(_) => Err(anyhow::anyhow!("it takes more than {PATIENCE:?}")),
        };
        self.tally.add(ask, &answer, started.elapsed());
        answer.ok()
    }

    async fn submit(&mut self) {
        let board = Arc::clone(&self.board);
        let table = self.dice.roll(board.tables.len());
        let submit = self.dice.roll(SUBMITS.len());
        let (operation, _, body) = SUBMITS[submit];
        let call = Call::post(board.tables[table].path(operation), body);
        let answer = self.ask(Ask::Submit, call).await;
        if let Some(answer) = answer.filter(|answer| answer.status == 200) {
            let id = answer.json().unwrap()["task_id"]
                .as_str()
                .unwrap()
                .to_owned();
            board.accepted.lock().unwrap().push((table, submit, id));
        }
    }

    async fn get(&mut self) {
        let board = Arc::clone(&self.board);
        let picked = {
            let accepted = board.accepted.lock().unwrap();
            let picked = self.dice.roll(accepted.len().max(1));
            accepted.get(picked).cloned()
        };
        if let Some((table, _, id)) = picked {
            let path = board.tables[table].path(&format!("tasks/{id}"));
            self.ask(Ask::Get, Call::get(path)).await;
        }
    }

    /// Deletes a task that has ended, or one that has not, or that others delete as well.
    async fn list_and_delete(&mut self) {
        let board = Arc::clone(&self.board);
        let table = &board.tables[self.dice.roll(board.tables.len())];
        let (_, task_type, _) = SUBMITS[self.dice.roll(SUBMITS.len())];
        let path = table.path(&format!("tasks?task_type={task_type}&max_results=100"));
        let Some(answer) = self.ask(Ask::List, Call::get(path)).await else {
            return;
        };
        let Ok(page) = answer.json() else { return };
        let tasks = page["tasks"].as_array().cloned().unwrap_or_default();
        // The oldest ones come last, and may have ended.
        let ended =
            |task: &&Value| ["completed", "failed"].contains(&task["status"].as_str().unwrap());
        let Some(task) = tasks.iter().rev().find(ended).or(tasks.last()) else {
            return;
        };
        let id = task["task_id"].as_str().unwrap();
        let call = Call::delete(table.path(&format!("tasks/{id}")));
        let answer = self.ask(Ask::Delete, call).await;
        if answer.is_some_and(|answer| [200, 204].contains(&answer.status)) {
            board.deleted.lock().unwrap().insert(id.to_owned());
        }
    }

    async fn look_at_the_catalog(&mut self) {
        let table = self.dice.roll(self.board.tables.len());
        let call = match self.dice.roll(5) {
            0 => Call::get("/lance/v1/namespace/overload/table/list?limit=50"),
            1 => Call::post("/lance/v1/namespace/overload/describe", "{}"),
            2 => Call::get("/lance/v1/namespace/$/list"),
            3 => Call::post(table_path(&format!("t{table}"), "exists"), "{}"),
            _ => Call::post(table_path(&format!("t{table}"), "describe"), "{}"),
        };
        self.ask(Ask::Catalog, call).await;
    }

    /// New tables, tables that are there already, and further versions of some.
    async fn create(&mut self) {
        let board = Arc::clone(&self.board);
        let (name, mode) = match self.dice.roll(4) {
            0 => {
                let number = board.created.fetch_add(1, Ordering::Relaxed);
                (format!("made{number}"), "create")
            }
            1 => (format!("t{}", self.dice.roll(board.tables.len())), "create"),
            _ => (format!("over{}", self.dice.roll(5)), "overwrite"),
        };
        let stream = &board.streams[usize::from(self.dice.roll(5) == 0)];
        self.ask(Ask::Create, creation(&name, mode, stream)).await;
    }

    /// Creates tables from the larger stream and drops them until the time is over.
    pub async fn create_large(mut self, end: Instant) -> Tally {
        let board = Arc::clone(&self.board);
        while Instant::now() < end {
            let number = board.created.fetch_add(1, Ordering::Relaxed);
            let name = format!("large{number}");
            let call = creation(&name, "create", &board.streams[1]);
            let answer = self.ask(Ask::Create, call).await;
            if answer.is_some_and(|answer| answer.status == 200) {
                let call = Call::post(table_path(&name, "drop"), "{}");
                self.ask(Ask::Drop, call).await;
            }
        }
        self.tally
    }
}

fn creation(name: &str, mode: &str, stream: &[u8]) -> Call {
    let target = format!("{}?mode={mode}", table_path(name, "create"));
    Call {
        body: stream.to_vec(),
        ..Call::new(Method::POST, target)
    }
    .header("content-type", "application/vnd.apache.arrow.stream")
}

fn table_path(name: &str, what: &str) -> String {
    format!("/lance/v1/table/overload%24{name}/{what}")
}

/// The tasks of these tables that are not deleted, once all of them have ended.
pub async fn drain(tables: &[Table], time: Duration) -> anyhow::Result<BTreeSet<String>> {
    let started = Instant::now();
    let mut ids = BTreeSet::new();
    for table in tables {
        for (_, task_type, _) in SUBMITS {
            loop {
                let tasks = table.tasks(task_type, 100).await?;
                let waits = |task: &Value| {
                    task["status"] != json!("completed") && task["status"] != json!("failed")
                };
                let Some(task) = tasks.iter().find(|task| waits(task)) else {
                    ids.extend(
                        tasks
                            .iter()
                            .map(|task| task["task_id"].as_str().unwrap().to_owned()),
                    );
                    break;
                };
                if started.elapsed() > time {
                    bail!("not every task ends in {time:?}: {task}");
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    Ok(ids)
}

/// A few numbers after one another, the same for the same seed.
pub struct Dice(pub u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}
