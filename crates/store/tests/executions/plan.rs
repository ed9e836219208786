//! What a schedule starts with and how much goes wrong in it. All of it follows from the seed.

use crate::rng::Rng;
use crate::world::{Odds, SECOND};

/// How long a request may take from its last look at the clock to the write that it allows. Whoever owns
/// what a fence is for begins no write after 10 s, and is given up after 30 s.
const BEFORE_WRITE: i64 = 19 * SECOND;

/// What can happen to a worker at each of its calls, in parts of a thousand.
#[derive(Clone, Copy, Debug)]
pub struct Troubles {
    /// It dies.
    pub crash: usize,
    /// It stands still for longer than the lease.
    pub stall: usize,
    /// It can't reach the application for a while.
    pub cut: usize,
    /// The answer is lost.
    pub lost: usize,
    /// The call is made twice, as by a repetition after a time-out, while the first goes on.
    pub twice: usize,
    /// The call or its answer is on its way for seconds.
    pub slow: usize,
    /// A submit does not reach its worker, or the worker's answer not the application.
    pub handover: usize,
    /// It stops in order, and hands back what it has.
    pub leaves: usize,
    /// The operation fails.
    pub fails: usize,
}

/// A schedule.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When faults stop and clients go, from the start, in microseconds.
    pub calm: i64,
    pub workers: usize,
    /// Whether a worker that died starts again. The first one always does.
    pub returns: Vec<bool>,
    pub runners: usize,
    /// How many tasks wait in a worker at most.
    pub room: usize,
    /// Requests of each client.
    pub requests: usize,
    pub quota: u64,
    /// How many of them cancel a task, in parts of a thousand.
    pub cancels: usize,
    /// Whether tables are dropped.
    pub drops: bool,
    /// The longest that an operation takes, in microseconds.
    pub longest: usize,
    pub troubles: Troubles,
    pub odds: Odds,
}

impl Plan {
    pub fn new(rng: &mut Rng, start: i64) -> Self {
        let peaceful = rng.per_mille(150);
        let some = |rng: &mut Rng, odds: &[usize]| if peaceful { 0 } else { rng.of(odds) };
        let workers = 1 + rng.below(3);
        let calm = rng.of(&[20, 60, 120]) * SECOND;
        Self {
            calm,
            workers,
            returns: (0..workers)
                .map(|worker| worker == 0 || rng.per_mille(500))
                .collect(),
            runners: rng.of(&[1, 2, 2]),
            room: rng.of(&[1, 2, 9, 9]),
            requests: 2 + rng.below(7),
            quota: rng.of(&[1, 2, 3, 100, 100]),
            cancels: rng.of(&[0, 100, 300, 500]),
            drops: rng.per_mille(200),
            longest: rng.of(&[1, 5, 20, 50]) * SECOND as usize,
            troubles: Troubles {
                crash: some(rng, &[0, 0, 5, 20, 60]),
                stall: some(rng, &[0, 0, 5, 20]),
                cut: some(rng, &[0, 0, 5, 20, 50]),
                lost: some(rng, &[0, 0, 20, 100]),
                twice: some(rng, &[0, 0, 20, 100]),
                slow: some(rng, &[0, 20, 100]),
                handover: some(rng, &[0, 100, 500]),
                leaves: some(rng, &[0, 0, 10, 40]),
                fails: rng.of(&[0, 0, 100]),
            },
            odds: Odds {
                stay: rng.of(&[300, 800, 950]),
                leap: some(rng, &[0, 0, 2, 10, 40]),
                crash: some(rng, &[0, 0, 2, 10]),
                fail: some(rng, &[0, 0, 5, 20]),
                leaps: &[SECOND, 4 * SECOND, 12 * SECOND],
                until: start + calm,
                write: BEFORE_WRITE,
            },
        }
    }

    /// Whether nothing goes wrong: then tasks of a table come in the order of their submits.
    pub fn is_peaceful(&self) -> bool {
        let t = &self.troubles;
        let o = &self.odds;
        let odds = [
            t.crash, t.stall, t.cut, t.lost, t.twice, t.slow, t.handover, t.leaves,
        ];
        odds.iter().sum::<usize>() + o.leap + o.crash + o.fail == 0
    }
}
