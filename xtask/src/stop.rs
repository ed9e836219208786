//! Being told to stop: by Ctrl-C, by SIGTERM, or by the end of standard input.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;

/// What is told again within this time is the same wish, told by two: a terminal and a parent, say.
const SAME: Duration = Duration::from_secs(1);

/// Counts how often this process was told to stop.
#[derive(Clone, Default)]
pub struct Stop {
    shared: Arc<(Mutex<Told>, Condvar)>,
}

#[derive(Default)]
struct Told {
    times: u32,
    last: Option<Instant>,
}

impl Stop {
    /// Listens to SIGINT, SIGTERM and SIGHUP from now on. Once in a process.
    pub fn on_signals() -> anyhow::Result<Self> {
        let stop = Self::default();
        let told = stop.clone();
        ctrlc::set_handler(move || told.tell()).context("can't listen to signals")?;
        Ok(stop)
    }

    /// Also stops when standard input ends. A parent that holds the other end of a pipe so takes
    /// this process with it, however the parent ends.
    pub fn on_end_of_stdin(&self) {
        let told = self.clone();
        std::thread::spawn(move || {
            let mut ignored = [0; 256];
            while matches!(std::io::stdin().read(&mut ignored), Ok(1..)) {}
            told.tell();
        });
    }

    /// Counts one more.
    pub fn tell(&self) {
        let mut told = self.told();
        if told.last.is_none_or(|last| last.elapsed() > SAME) {
            told.times += 1;
        }
        told.last = Some(Instant::now());
        self.shared.1.notify_all();
    }

    /// How often it was told.
    pub fn times(&self) -> u32 {
        self.told().times
    }

    /// Waits until it was told more than `times` times; `false` if the time is over before.
    pub fn wait_beyond(&self, times: u32, time: Duration) -> bool {
        let waited = self
            .shared
            .1
            .wait_timeout_while(self.told(), time, |told| told.times <= times);
        waited.unwrap_or_else(PoisonError::into_inner).0.times > times
    }

    /// Waits until it was told to stop; `false` if the time is over before.
    pub fn wait(&self, time: Duration) -> bool {
        self.wait_beyond(0, time)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // It is whole whatever happened to its last holder.
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wishes_and_not_their_echo() {
        let stop = Stop::default();
        assert!(!stop.wait(Duration::from_millis(1)));
        stop.tell();
        stop.tell();
        assert!(stop.wait(Duration::ZERO));
        assert_eq!(stop.times(), 1);
        assert!(!stop.wait_beyond(1, Duration::from_millis(1)));
    }

    #[test]
    fn wakes_who_waits() {
        let stop = Stop::default();
        let told = stop.clone();
        let waiting = std::thread::spawn(move || told.wait(Duration::from_secs(60)));
        stop.tell();
        assert!(waiting.join().unwrap());
    }
}
