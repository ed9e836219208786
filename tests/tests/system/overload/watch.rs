//! What the service's processes hold of the machine, looked at all the time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lance_maintenance_tests::footprint::{Footprint, children};
use lance_maintenance_tests::harness::Server;

const PAUSE: Duration = Duration::from_millis(200);

/// One look.
pub struct Look {
    pub application: Footprint,
    pub worker: Footprint,
    /// The processes in which tasks run.
    pub operations: Vec<Footprint>,
}

impl Look {
    /// Looks at a service, both of whose processes must live.
    pub fn at(server: &Server) -> Self {
        let facts = server.facts().unwrap();
        Self::at_processes(facts.application_pid.unwrap(), facts.worker_pid.unwrap())
    }

    fn at_processes(application: u32, worker: u32) -> Self {
        Self {
            application: Footprint::of(application).expect("the application is gone"),
            worker: Footprint::of(worker).expect("the worker is gone"),
            operations: children(worker)
                .into_iter()
                .filter_map(Footprint::of)
                .collect(),
        }
    }
}

/// Looks until it is told to stop.
pub struct Watch {
    stop: Arc<AtomicBool>,
    looks: JoinHandle<Vec<Look>>,
}

impl Watch {
    pub fn start(server: &Server) -> Self {
        let facts = server.facts().unwrap();
        let (application, worker) = (facts.application_pid.unwrap(), facts.worker_pid.unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let looks = std::thread::spawn(move || {
            let mut looks = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                looks.push(Look::at_processes(application, worker));
                std::thread::sleep(PAUSE);
            }
            looks
        });
        Self { stop, looks }
    }

    /// What was seen. Fails if a process has ended.
    pub fn stop(self) -> Looks {
        self.stop.store(true, Ordering::Relaxed);
        Looks(self.looks.join().unwrap())
    }
}

/// What was seen, in order.
pub struct Looks(Vec<Look>);

impl Looks {
    /// The most there was of something.
    pub fn most(&self, of: impl Fn(&Look) -> u64) -> u64 {
        self.0.iter().map(of).max().unwrap_or_default()
    }

    /// What there typically was of something in a part of the time, `3` of `6` parts say.
    pub fn typical(&self, part: usize, parts: usize, of: impl Fn(&Look) -> u64) -> u64 {
        let count = self.0.len();
        let mut seen: Vec<u64> = self.0[count * (part - 1) / parts..count * part / parts]
            .iter()
            .map(of)
            .collect();
        seen.sort_unstable();
        seen.get(seen.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, of) in [("application", self.application), ("worker", self.worker)] {
            let memory = of.memory >> 20;
            let Footprint { threads, files, .. } = of;
            write!(f, "{name} {memory} MiB, {threads} threads, {files} files; ")?;
        }
        write!(f, "{} operations", self.operations.len())
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, of) in PROCESSES {
            let sixths: Vec<u64> = (1..=6)
                .map(|part| self.typical(part, 6, |look| of(look).memory) >> 20)
                .collect();
            writeln!(
                f,
                "{name}: at most {} MiB (by sixths of the time {sixths:?}), {} threads, {} files",
                self.most(|look| of(look).memory) >> 20,
                self.most(|look| of(look).threads),
                self.most(|look| of(look).files),
            )?;
        }
        write!(
            f,
            "operations: at most {} at once, {} MiB each, {} MiB together",
            self.most(|look| look.operations.len() as u64),
            self.most(largest) >> 20,
            self.most(|look| look.operations.iter().map(|it| it.memory).sum()) >> 20,
        )
    }
}

/// Finds a process in a look.
pub type Process = fn(&Look) -> Footprint;

/// The two processes that stay, by name.
pub const PROCESSES: [(&str, Process); 2] = [
    ("application", |look| look.application),
    ("worker", |look| look.worker),
];

/// The memory of the largest operation.
pub fn largest(look: &Look) -> u64 {
    let memory = look.operations.iter().map(|it| it.memory);
    memory.max().unwrap_or_default()
}
