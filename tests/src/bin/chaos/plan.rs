//! What goes wrong, and when: a function of the seed and the length, and of nothing else.

use std::fmt;
use std::time::Duration;

use crate::rng::Rng;

/// Workers of the cluster.
pub const WORKERS: usize = 3;
/// Application nodes of the cluster.
pub const NODES: usize = 2;

/// The shortest campaign in which a worker is silent for longer than its lease.
const LONG: Duration = Duration::from_secs(120);
/// The lease is 30 s; a worker that is silent for so long has lost its tasks.
const SILENCE: (u64, u64) = (34_000, 42_000);
/// Nothing goes wrong before.
const FIRST: u64 = 1_000;
/// A fault of a worker waits until the worker begins a task, though not for longer.
pub const AIM: Duration = Duration::from_millis(1_000);
/// How long after that it happens at the most, in milliseconds.
const INTO: u64 = 150;
/// From one fault to the next, in milliseconds.
const PAUSE: (u64, u64) = (800, 3_000);

/// A connection that goes through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Link {
    /// From clients to the application nodes.
    Clients,
    /// From the application nodes to the workers.
    Workers,
    /// From one worker to the application nodes.
    Application(usize),
}

/// What a proxy does to those who come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Everything takes so many milliseconds longer, each way.
    Delay(u64),
    /// The request is lost: the connection breaks before any of it gets through.
    LoseRequests,
    /// The answer is lost: the connection breaks after the request has got through.
    LoseAnswers,
    /// Nobody gets through, and everybody learns of it at once.
    Refuse,
    /// Nobody gets through, and nobody learns of it.
    Stall,
}

/// What goes wrong. Each fault undoes itself after the time it holds, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A worker is killed, and started again.
    KillWorker(usize, u64),
    /// A worker is told to end, and started again.
    EndWorker(usize, u64),
    /// A worker is stopped, and goes on.
    StopWorker(usize, u64),
    /// An application node is killed, and started again.
    KillNode(usize, u64),
    /// Redis is stopped, and goes on.
    StopRedis(u64),
    /// Redis is killed, and started again.
    KillRedis(u64),
    /// There is trouble on a connection.
    Http(Link, Trouble, u64),
}

/// What a fault happens to: one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A worker's process.
    Worker(usize),
    /// An application node's process.
    Node(usize),
    /// Redis.
    Redis,
    /// A proxy.
    Link(Link),
}

impl Fault {
    /// What it happens to.
    pub fn target(self) -> Target {
        match self {
            Self::KillWorker(worker, _) | Self::EndWorker(worker, _) => Target::Worker(worker),
            Self::StopWorker(worker, _) => Target::Worker(worker),
            Self::KillNode(node, _) => Target::Node(node),
            Self::StopRedis(_) | Self::KillRedis(_) => Target::Redis,
            Self::Http(link, ..) => Target::Link(link),
        }
    }

    /// How long it holds.
    pub fn lasts(self) -> Duration {
        Duration::from_millis(match self {
            Self::KillWorker(_, millis) | Self::EndWorker(_, millis) => millis,
            Self::StopWorker(_, millis) | Self::KillNode(_, millis) => millis,
            Self::StopRedis(millis) | Self::KillRedis(millis) => millis,
            Self::Http(_, _, millis) => millis,
        })
    }

    /// Whether a worker loses its lease.
    fn is_long(self) -> bool {
        self.lasts() >= Duration::from_millis(SILENCE.0)
    }

    /// Its kind, for counting.
    pub fn kind(self) -> &'static str {
        match self {
            Self::KillWorker(..) => "worker killed",
            Self::EndWorker(..) => "worker ended",
            Self::StopWorker(..) if self.is_long() => "worker stopped past its lease",
            Self::StopWorker(..) => "worker stopped",
            Self::KillNode(..) => "node killed",
            Self::StopRedis(_) => "Redis stopped",
            Self::KillRedis(_) => "Redis killed",
            Self::Http(_, Trouble::Delay(_), _) => "HTTP delayed",
            Self::Http(_, Trouble::LoseRequests, _) => "HTTP requests lost",
            Self::Http(_, Trouble::LoseAnswers, _) => "HTTP answers lost",
            Self::Http(_, Trouble::Refuse, _) => "HTTP refused",
            Self::Http(_, Trouble::Stall, _) if self.is_long() => "HTTP stalled past the lease",
            Self::Http(_, Trouble::Stall, _) => "HTTP stalled",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.lasts().as_secs_f64();
        write!(f, "{}", self.kind())?;
        match self.target() {
            Target::Worker(number) => write!(f, ", worker {number}")?,
            Target::Node(number) => write!(f, ", node {number}")?,
            Target::Redis => {}
            Target::Link(Link::Clients) => write!(f, ", clients to nodes")?,
            Target::Link(Link::Workers) => write!(f, ", nodes to workers")?,
            Target::Link(Link::Application(worker)) => write!(f, ", worker {worker} to nodes")?,
        }
        if let Self::Http(_, Trouble::Delay(millis), _) = self {
            write!(f, ", by {millis} ms")?;
        }
        write!(f, ", for {seconds:.1} s")
    }
}

/// A fault and its time, from the beginning of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it happens, or is about to: see [`AIM`].
    pub at: Duration,
    /// How long after the beginning of a task, if it happens to a worker.
    pub into: Duration,
    /// What happens.
    pub fault: Fault,
}

impl Planned {
    /// When it is over at the latest.
    fn end(&self) -> Duration {
        let aim = match self.fault.target() {
            Target::Worker(_) => AIM + self.into,
            _ => Duration::ZERO,
        };
        self.at + aim + self.fault.lasts()
    }
}

/// The kinds, each of which comes once before any comes again.
#[derive(Clone, Copy, Debug)]
enum Kind {
    KillWorker,
    EndWorker,
    StopWorker,
    SilenceWorker,
    KillNode,
    StopRedis,
    KillRedis,
    Delay,
    LoseRequests,
    LoseAnswers,
    Refuse,
    Stall,
    Isolate,
}

const KINDS: [Kind; 11] = [
    Kind::KillWorker,
    Kind::EndWorker,
    Kind::StopWorker,
    Kind::KillNode,
    Kind::StopRedis,
    Kind::KillRedis,
    Kind::Delay,
    Kind::LoseRequests,
    Kind::LoseAnswers,
    Kind::Refuse,
    Kind::Stall,
];

/// Only in long campaigns.
const LONG_KINDS: [Kind; 3] = [Kind::SilenceWorker, Kind::Isolate, Kind::KillWorker];

/// All faults of a campaign, in the order of their times. Every one has undone itself at the end.
pub fn plan(seed: u64, length: Duration) -> Vec<Planned> {
    let mut rng = Rng::new(seed);
    let mut bag: Vec<Kind> = Vec::new();
    let mut planned: Vec<Planned> = Vec::new();
    let mut at = FIRST;
    while at < length.as_millis() as u64 {
        if bag.is_empty() {
            bag.extend(KINDS);
            // Kills are what finds most.
            bag.extend([Kind::KillWorker, Kind::LoseAnswers]);
            if length >= LONG {
                bag.extend(LONG_KINDS);
            }
            rng.shuffle(&mut bag);
        }
        let Some(kind) = bag.pop() else { break };
        let next = Planned {
            at: Duration::from_millis(at),
            into: Duration::from_millis(rng.below(INTO)),
            fault: fault(kind, &mut rng),
        };
        // One silent worker at a time: the others are to take over from it.
        let is_same = |other: Fault| {
            other.target() == next.fault.target() || (other.is_long() && next.fault.is_long())
        };
        let is_busy = planned
            .iter()
            .any(|other| is_same(other.fault) && other.end() >= next.at);
        if !is_busy && next.end() <= length {
            planned.push(next);
        }
        at += rng.between(PAUSE.0, PAUSE.1);
    }
    planned
}

fn fault(kind: Kind, rng: &mut Rng) -> Fault {
    let worker = rng.below(WORKERS as u64) as usize;
    let node = rng.below(NODES as u64) as usize;
    let link = *rng.pick(&[
        Link::Clients,
        Link::Workers,
        Link::Application(worker),
        Link::Application(worker),
    ]);
    let short = rng.between(300, 2_500);
    let some = rng.between(1_000, 6_000);
    let silence = rng.between(SILENCE.0, SILENCE.1);
    let delay = rng.between(50, 900);
    match kind {
        Kind::KillWorker => Fault::KillWorker(worker, short),
        Kind::EndWorker => Fault::EndWorker(worker, short),
        Kind::StopWorker => Fault::StopWorker(worker, some),
        Kind::SilenceWorker => Fault::StopWorker(worker, silence),
        Kind::KillNode => Fault::KillNode(node, short),
        Kind::StopRedis => Fault::StopRedis(short),
        Kind::KillRedis => Fault::KillRedis(short),
        Kind::Delay => Fault::Http(link, Trouble::Delay(delay), some),
        Kind::LoseRequests => Fault::Http(link, Trouble::LoseRequests, some),
        Kind::LoseAnswers => Fault::Http(link, Trouble::LoseAnswers, some),
        Kind::Refuse => Fault::Http(link, Trouble::Refuse, some),
        Kind::Stall => Fault::Http(link, Trouble::Stall, some),
        Kind::Isolate => Fault::Http(Link::Application(worker), Trouble::Stall, silence),
    }
}

/// A number by which two plans can be told apart (FNV-1a of every time and fault).
pub fn digest(plan: &[Planned]) -> u64 {
    plan.iter()
        .flat_map(|planned| format!("{planned:?}\n").into_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn follows_from_the_seed() {
        for seed in 0..50 {
            let first = plan(seed, MINUTE);
            assert_eq!(first, plan(seed, MINUTE));
            assert_ne!(digest(&first), digest(&plan(seed + 1, MINUTE)));
        }
        // Whoever changes how faults are drawn says so here: old seeds mean something else then.
        assert_eq!(
            format!("{:016x}", digest(&plan(1, MINUTE))),
            "95a5aac748e87216"
        );
    }

    #[test]
    fn every_fault_is_over_at_the_end_and_none_meets_another_at_its_target() {
        for seed in 0..50 {
            for length in [MINUTE / 3, MINUTE, 5 * MINUTE] {
                let plan = plan(seed, length);
                assert!(plan.is_sorted_by_key(|planned| planned.at));
                for (number, planned) in plan.iter().enumerate() {
                    assert!(planned.end() <= length, "{planned:?}");
                    let meets = |other: &Planned| {
                        other.fault.target() == planned.fault.target() && other.at <= planned.end()
                    };
                    assert!(!plan[number + 1..].iter().any(meets), "{planned:?}");
                }
            }
        }
    }

    #[test]
    fn a_long_one_has_every_kind_and_a_short_one_no_long_silence() {
        let kinds = |seed, length| -> BTreeSet<&str> {
            plan(seed, length)
                .iter()
                .map(|planned| planned.fault.kind())
                .collect()
        };
        assert_eq!(kinds(1, 10 * MINUTE).len(), 13);
        for seed in 0..50 {
            let short = kinds(seed, MINUTE / 3);
            assert!(short.len() >= 5, "{seed}: {short:?}");
            assert!(!short.iter().any(|kind| kind.contains("past")), "{short:?}");
        }
    }
}
