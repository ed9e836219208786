//! A campaign from its beginning to its end.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use lance_maintenance_tests::client::Table;
use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};

use crate::cluster::{Cluster, Paths};
use crate::drive::{self, Window};
use crate::judge;
use crate::judge::files::Files;
use crate::judge::findings::Findings;
use crate::judge::runs::{self, Run};
use crate::judge::tasks::{self, Listed};
use crate::load::{Load, TYPES};
use crate::observer::{self, Seen};
use crate::plan::Planned;
use crate::recorder::Recorder;
use crate::report::Report;
use crate::rng::Rng;
use crate::writer::{Done, Writer};

const TABLES: usize = 20;
const CLIENTS: u64 = 5;
/// How long tasks may take to end when everything runs again.
const CALM: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(500);
/// How long what still runs may take to end.
const STOP: Duration = Duration::from_secs(5);
/// Tasks in a page of a listing.
const PAGE: usize = 100;

/// What a campaign is made of.
struct Campaign<'a> {
    paths: &'a Paths,
    seed: u64,
    length: Duration,
    lance: Handle,
    cluster: Arc<Mutex<Cluster>>,
    tables: Vec<Table>,
    recorder: Recorder,
    load: Arc<Load>,
}

/// What happened in it: all that the judgement needs.
struct Happened {
    windows: Vec<Window>,
    listed: Listed,
    seen: Vec<Seen>,
    done: Vec<Done>,
}

/// Runs a campaign; whether everything was as it must be.
pub fn run(paths: &Paths, seed: u64, plan: Vec<Planned>, length: Duration) -> anyhow::Result<bool> {
    // Lance computes in its futures: proxies and clients must not wait for that.
    let lance = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("lance")
        .enable_all()
        .build()?;
    let own = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let handle = lance.handle().clone();
    let result = own.block_on(async {
        let campaign = async {
            let (campaign, writers) = Campaign::begin(paths, seed, length, handle).await?;
            let happened = campaign.happen(plan, writers).await?;
            campaign.judge(&happened).await
        };
        tokio::select! {
            result = campaign => result,
            told = told_to_stop() => {
                told?;
                bail!("stopped")
            }
        }
    });
    lance.shutdown_background();
    // With the last that holds it, the cluster ends.
    own.shutdown_timeout(STOP);
    result
}

/// Returns on Ctrl-C or SIGTERM.
async fn told_to_stop() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

impl<'a> Campaign<'a> {
    /// Starts the cluster, declares the tables and writes them for the first time.
    async fn begin(
        paths: &'a Paths,
        seed: u64,
        length: Duration,
        lance: Handle,
    ) -> anyhow::Result<(Self, Vec<Writer>)> {
        let begun = Instant::now();
        let cluster = Cluster::start(paths).await?;
        let recorder = Recorder::default();
        let client = cluster.client()?;
        client.ensure_namespace("chaos").await?;
        let (mut tables, mut writers) = (Vec::new(), Vec::new());
        for number in 0..TABLES {
            let table = client.declare("chaos", &format!("t{number}")).await?;
            let (location, recorder) = (table.location.clone(), recorder.clone());
            let rng = Rng::of(seed, 1_000 + number as u64);
            let created =
                lance.spawn(async move { Writer::create(&location, &recorder, rng).await });
            writers.push(created.await??);
            tables.push(table);
        }
        say(begun.elapsed(), "the cluster runs, with its tables");
        let campaign = Self {
            paths,
            seed,
            length,
            lance,
            cluster: Arc::new(Mutex::new(cluster)),
            load: Arc::new(Load::new(tables.clone())),
            tables,
            recorder,
        };
        Ok((campaign, writers))
    }

    /// Lets everything happen, until every task has ended.
    async fn happen(&self, plan: Vec<Planned>, writers: Vec<Writer>) -> anyhow::Result<Happened> {
        tokio::select! {
            happened = self.happen_alone(plan, writers) => happened,
            ended = drive::look_after(&self.cluster) => {
                ended?;
                bail!("nobody looks after the processes")
            }
        }
    }

    async fn happen_alone(
        &self,
        plan: Vec<Planned>,
        writers: Vec<Writer>,
    ) -> anyhow::Result<Happened> {
        let stop_looking = Arc::new(AtomicBool::new(false));
        let observers: Vec<JoinHandle<_>> = self
            .tables
            .iter()
            .map(|table| {
                let (uri, stop) = (table.location.clone(), Arc::clone(&stop_looking));
                self.lance
                    .spawn(async move { observer::watch(&uri, &stop).await })
            })
            .collect();
        let (windows, done) = self.break_under_load(plan, writers).await?;

        let calm = Instant::now();
        self.cluster.lock().await.settle().await?;
        say(self.length, "no more faults, writes or submits");
        self.all_ended(calm).await?;
        let load = Arc::clone(&self.load);
        load.backfill_all().await?;
        let listed = self.all_ended(calm).await?;
        say(
            calm.elapsed(),
            "later, every task has ended or had its time",
        );
        stop_looking.store(true, Ordering::Relaxed);
        let mut seen = Vec::new();
        for observer in observers {
            seen.push(observer.await??);
        }
        Ok(Happened {
            windows,
            listed,
            seen,
            done,
        })
    }

    /// Lets the faults happen while clients and writers are at it.
    async fn break_under_load(
        &self,
        plan: Vec<Planned>,
        writers: Vec<Writer>,
    ) -> anyhow::Result<(Vec<Window>, Vec<Done>)> {
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<JoinHandle<_>> = writers
            .into_iter()
            .map(|writer| {
                let stop = Arc::clone(&stop);
                self.lance.spawn(async move { writer.run(&stop).await })
            })
            .collect();
        let clients: Vec<JoinHandle<_>> = (0..CLIENTS)
            .map(|number| {
                let (load, stop) = (Arc::clone(&self.load), Arc::clone(&stop));
                let rng = Rng::of(self.seed, number);
                tokio::spawn(async move { load.run(rng, &stop).await })
            })
            .collect();
        let end = Instant::now() + self.length;
        let windows = drive::drive(Arc::clone(&self.cluster), self.paths, plan).await?;
        sleep_until(end).await;
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await??;
        }
        let mut done = Vec::new();
        for writer in writers {
            done.push(writer.await??);
        }
        Ok((windows, done))
    }

    /// Waits until every task has ended, or for as long as it may take; lists them all.
    async fn all_ended(&self, since: Instant) -> anyhow::Result<Listed> {
        let mut listed = Listed::new();
        let mut open: Vec<(usize, usize)> = (0..self.tables.len())
            .flat_map(|table| (0..TYPES.len()).map(move |task_type| (table, task_type)))
            .collect();
        loop {
            let mut still_open = Vec::new();
            let mut refused = None;
            for (table, task_type) in open {
                let tasks = match self.tables[table].tasks(TYPES[task_type].1, PAGE).await {
                    Ok(tasks) => tasks,
                    // A connection that a fault broke is found to be so when it is used again.
                    Err(error) => {
                        refused = Some(error);
                        still_open.push((table, task_type));
                        continue;
                    }
                };
                let has_ended =
                    |task: &Value| matches!(task["status"].as_str(), Some("completed" | "failed"));
                if !tasks.iter().all(has_ended) {
                    still_open.push((table, task_type));
                }
                listed.insert((table, task_type), tasks);
            }
            open = still_open;
            if open.is_empty() || since.elapsed() > CALM {
                return match refused {
                    Some(error) => Err(error.context("tasks can't be listed")),
                    None => Ok(listed),
                };
            }
            sleep(POLL).await;
        }
    }

    /// Compares the end with what it must be, and tells.
    async fn judge(&self, happened: &Happened) -> anyhow::Result<bool> {
        let mut wrong = Findings::default();
        let known = self.load.known().clone();
        let outcomes = tasks::judge(&known, &happened.listed, &happened.seen, &mut wrong);
        let explained = judge::answers(&known.odd, &happened.windows, &mut wrong);
        let all_runs = self.runs().await?;
        let overlaps = runs::overlaps(&all_runs, &happened.windows);
        judge::overlaps(&overlaps, &mut wrong);

        let mut files = Files::default();
        let mut indices = 0;
        for (number, table) in self.tables.iter().enumerate() {
            let (uri, seen) = (&table.location, &happened.seen[number]);
            judge::rows(uri, &happened.done[number].model, &mut wrong).await?;
            indices += judge::indices(uri, seen, &mut wrong).await?;
            judge::observation(uri, seen, &mut wrong);
            files.add(Files::of(uri, seen, &self.recorder).await?);
        }
        judge::files(&files, &all_runs, &mut wrong);

        let report = Report {
            windows: &happened.windows,
            known: &known,
            explained: &explained,
            outcomes: &outcomes,
            seen: &happened.seen,
            done: &happened.done,
            indices,
            files: &files,
            runs: &all_runs,
            overlaps: &overlaps,
        };
        report.print();
        wrong.print();
        keep(self.paths, happened, &wrong)?;
        Ok(wrong.is_empty())
    }

    /// What the workers ran, as their logs tell it.
    async fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let mut all = Vec::new();
        let now = SystemTime::now();
        for (number, worker) in self.cluster.lock().await.workers().iter().enumerate() {
            let path = self.paths.worker_log(number);
            let log = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            all.extend(runs::runs(number, &log, worker.lives(), now));
        }
        Ok(all)
    }
}

fn say(after: Duration, what: &str) {
    println!("{:7.1} s  {what}", after.as_secs_f64());
}

/// Writes down what was found, for whoever looks into it.
fn keep(paths: &Paths, happened: &Happened, wrong: &Findings) -> anyhow::Result<()> {
    let lines: Vec<String> = wrong
        .iter()
        .map(|(kind, what)| format!("{kind}: {what}"))
        .collect();
    fs::write(paths.data.join("findings.txt"), lines.join("\n"))?;
    let faults: Vec<String> = happened
        .windows
        .iter()
        .map(|window| format!("{:?}", window))
        .collect();
    fs::write(paths.data.join("faults.txt"), faults.join("\n"))?;
    let listed: BTreeMap<String, &Vec<Value>> = happened
        .listed
        .iter()
        .map(|((table, task_type), tasks)| (format!("t{table} {}", TYPES[*task_type].1), tasks))
        .collect();
    let text = serde_json::to_string_pretty(&listed)?;
    fs::write(paths.data.join("tasks.json"), text)?;
    Ok(())
}
