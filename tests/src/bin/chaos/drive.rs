//! Lets the planned faults happen, and notes when each of them held.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until};

use crate::cluster::{Cluster, Paths};
use crate::plan::{AIM, Fault, Planned, Target};
use crate::work;

const POLL: Duration = Duration::from_millis(20);
/// How long a worker may take to end when it was told to: longer than its grace.
const ENDING: Duration = Duration::from_secs(20);

/// When a fault held.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The fault.
    pub fault: Fault,
    /// Since when.
    pub start: SystemTime,
    /// Until when.
    pub end: SystemTime,
}

/// Lets all faults happen at their times, from now on. Each is undone after its own time.
pub async fn drive(
    cluster: Arc<Mutex<Cluster>>,
    paths: &Paths,
    plan: Vec<Planned>,
) -> anyhow::Result<Vec<Window>> {
    let start = Instant::now();
    let mut running = Vec::new();
    for (number, planned) in plan.into_iter().enumerate() {
        sleep_until(start + planned.at).await;
        if let Target::Worker(worker) = planned.fault.target() {
            work::begins(&paths.worker_log(worker), AIM).await;
            sleep(planned.into).await;
        }
        let begun = SystemTime::now();
        println!(
            "{:7.1} s  fault {:3}  {}",
            start.elapsed().as_secs_f64(),
            number + 1,
            planned.fault
        );
        cluster.lock().await.begin(planned.fault)?;
        let cluster = Arc::clone(&cluster);
        let end = Instant::now() + planned.fault.lasts();
        running.push(tokio::spawn(async move {
            sleep_until(end).await;
            undo(&cluster, planned.fault).await?;
            anyhow::Ok(Window {
                fault: planned.fault,
                start: begun,
                end: SystemTime::now(),
            })
        }));
    }
    let mut windows = Vec::new();
    for fault in running {
        windows.push(fault.await??);
    }
    Ok(windows)
}

async fn undo(cluster: &Mutex<Cluster>, fault: Fault) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        {
            let mut cluster = cluster.lock().await;
            if cluster.is_over(fault) {
                return cluster.undo(fault);
            }
        }
        anyhow::ensure!(
            started.elapsed() < ENDING,
            "it takes too long to undo: {fault}"
        );
        sleep(POLL).await;
    }
}

/// Looks after the processes, for ever: ends with an error when one ended that nobody told to.
pub async fn look_after(cluster: &Mutex<Cluster>) -> anyhow::Result<()> {
    loop {
        cluster.lock().await.look()?;
        sleep(POLL).await;
    }
}
