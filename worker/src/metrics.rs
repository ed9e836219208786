//! What the worker counts and measures, in the text format of Prometheus.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lance_maintenance_api::task::TaskType;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::intake::Intake;
use crate::memory::MemoryBudget;
use crate::operations::supervisor::{Changed, Measure};

/// The media type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How an attempt ended, for the worker that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The task is completed.
    Completed,
    /// The task has failed.
    Failed,
    /// The attempt was lost, or handed back.
    Lost,
}

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfType {
    task_type: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    task_type: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    task_type: &'static str,
    phase: &'static str,
}

type Counts = Family<OfType, Counter>;
type Durations<Labels> = Family<Labels, Histogram, fn() -> Histogram>;

/// All that is counted and measured. Clones share it.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    counted: Arc<Counted>,
}

struct Counted {
    tasks: Family<OfOutcome, Counter>,
    task_seconds: Durations<OfType>,
    phase_seconds: Durations<OfPhase>,
    conflicts: Counts,
    retries: Counts,
    orphans: Counts,
    rows: Counts,
    fragments: Counts,
    bytes_written: Counts,
    bytes_removed: Counts,
    heartbeats_unanswered: Counter,
    waiting: Gauge,
    running: Gauge,
    oldest_waiting: Gauge,
    memory_budget: Gauge,
    memory_reserved: Gauge,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Self {
        let counted = Counted {
            tasks: Family::default(),
            task_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            phase_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            conflicts: Counts::default(),
            retries: Counts::default(),
            orphans: Counts::default(),
            rows: Counts::default(),
            fragments: Counts::default(),
            bytes_written: Counts::default(),
            bytes_removed: Counts::default(),
            heartbeats_unanswered: Counter::default(),
            waiting: Gauge::default(),
            running: Gauge::default(),
            oldest_waiting: Gauge::default(),
            memory_budget: Gauge::default(),
            memory_reserved: Gauge::default(),
        };
        let registry = counted.registry();
        Self {
            registry: Arc::new(registry),
            counted: Arc::new(counted),
        }
    }
}

impl Counted {
    fn registry(&self) -> Registry {
        let mut all = Registry::with_prefix("lance_worker");
        let help = "Attempts at tasks that ended here, by how";
        all.register("tasks", help, self.tasks.clone());
        let help = "Commits that were lost to another writer";
        all.register("commit_conflicts", help, self.conflicts.clone());
        let help = "Operations that started over after a lost commit";
        all.register("commit_retries", help, self.retries.clone());
        let help = "Files and index folders removed that no commit ever referred to";
        all.register("orphans_removed", help, self.orphans.clone());
        let help = "Rows that were rewritten or indexed";
        all.register("changed_rows", help, self.rows.clone());
        let help = "Fragments that were replaced";
        all.register("changed_fragments", help, self.fragments.clone());
        let help = "Heartbeats that the application did not answer";
        let unanswered = self.heartbeats_unanswered.clone();
        all.register("heartbeats_unanswered", help, unanswered);
        all.register(
            "tasks_waiting",
            "Tasks that wait here",
            self.waiting.clone(),
        );
        all.register("tasks_running", "Tasks that run here", self.running.clone());
        let help = "How long attempts took";
        let durations = self.task_seconds.clone();
        all.register_with_unit("task_duration", help, Unit::Seconds, durations);
        let help = "How long the phases of operations took";
        let durations = self.phase_seconds.clone();
        all.register_with_unit("phase_duration", help, Unit::Seconds, durations);
        let help = "What operations wrote";
        all.register_with_unit("written", help, Unit::Bytes, self.bytes_written.clone());
        let help = "What cleanups removed";
        all.register_with_unit("removed", help, Unit::Bytes, self.bytes_removed.clone());
        let help = "For how long the task has been waiting here that has been for longest";
        let oldest = self.oldest_waiting.clone();
        all.register_with_unit("oldest_waiting", help, Unit::Seconds, oldest);
        let help = "What operations may use that run side by side";
        let budget = self.memory_budget.clone();
        all.register_with_unit("memory_budget", help, Unit::Bytes, budget);
        let help = "What operations that run are expected to need";
        let reserved = self.memory_reserved.clone();
        all.register_with_unit("memory_reserved", help, Unit::Bytes, reserved);
        all
    }
}

/// From a hundredth of a second to six hours.
fn seconds() -> Histogram {
    Histogram::new([
        0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 21_600.0,
    ])
}

impl Metrics {
    /// What is counted of tasks of a type.
    pub fn of(&self, task_type: TaskType) -> TaskMetrics {
        TaskMetrics {
            counted: Arc::clone(&self.counted),
            task_type: task_type.as_str(),
        }
    }

    /// A heartbeat was not answered.
    pub fn heartbeat_unanswered(&self) {
        self.counted.heartbeats_unanswered.inc();
    }

    /// All of it, with how things are now.
    pub fn text(&self, intake: &Intake, memory: &MemoryBudget) -> Result<String, fmt::Error> {
        let load = intake.load();
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let counted = &self.counted;
        counted.waiting.set(signed(load.waiting as u64));
        counted.running.set(signed(load.running as u64));
        counted.oldest_waiting.set(signed(load.oldest.as_secs()));
        counted.memory_budget.set(signed(memory.total()));
        counted
            .memory_reserved
            .set(signed(memory.total() - memory.free()));
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// What is counted of tasks of one type.
#[derive(Clone)]
pub struct TaskMetrics {
    counted: Arc<Counted>,
    task_type: &'static str,
}

impl TaskMetrics {
    /// An attempt ended after so long.
    pub fn ended(&self, how: Ended, after: Duration) {
        let labels = OfOutcome {
            task_type: self.task_type,
            outcome: how.as_str(),
        };
        self.counted.tasks.get_or_create(&labels).inc();
        let durations = self.counted.task_seconds.get_or_create(&self.labels());
        durations.observe(after.as_secs_f64());
    }

    /// An operation says so.
    pub fn measure(&self, measure: Measure) {
        let counted = &self.counted;
        match measure {
            Measure::Phase(phase, took) => {
                let labels = OfPhase {
                    task_type: self.task_type,
                    phase: phase.as_str(),
                };
                let durations = counted.phase_seconds.get_or_create(&labels);
                durations.observe(took.as_secs_f64());
            }
            Measure::Conflict => self.add(&counted.conflicts, 1),
            Measure::Retry => self.add(&counted.retries, 1),
            Measure::OrphansRemoved(number) => self.add(&counted.orphans, number),
            Measure::Changed(Changed {
                rows,
                fragments,
                bytes_written,
                bytes_removed,
            }) => {
                self.add(&counted.rows, rows);
                self.add(&counted.fragments, fragments);
                self.add(&counted.bytes_written, bytes_written);
                self.add(&counted.bytes_removed, bytes_removed);
            }
        }
    }

    fn add(&self, counts: &Counts, number: u64) {
        counts.get_or_create(&self.labels()).inc_by(number);
    }

    fn labels(&self) -> OfType {
        OfType {
            task_type: self.task_type,
        }
    }
}

impl fmt::Debug for TaskMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskMetrics")
            .field("task_type", &self.task_type)
            .finish_non_exhaustive()
    }
}
