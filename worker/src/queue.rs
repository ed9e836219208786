//! Which task comes next: one lane per table, first come first served within a lane, and lanes
//! taking turns. A data structure without threads or clocks.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{Dispatch, InHand, TaskAddress};
use percent_encoding::percent_decode_str;
use url::Url;

/// Why a task is not taken into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is waiting or running already.
    Duplicate,
    /// As many tasks wait as may.
    Full,
}

/// The tasks that a worker has in hand.
///
/// A lane's name is the table's location, which a table never changes, rather than its id: the same
/// folder may be registered as two tables, and they too must not be written to at the same time.
#[derive(Debug)]
pub struct Queue {
    lanes: HashMap<String, Lane>,
    /// The lanes that have a task waiting and none running, each once, in the order of their turns.
    ready: VecDeque<String>,
    /// Every task that waits or runs.
    in_hand: HashMap<TaskId, Place>,
    waiting: usize,
    max_waiting: usize,
}

/// A table that is busy without a task. Not to be dropped, but to be released.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct HeldLane(String);

#[derive(Debug, Default)]
struct Lane {
    /// Those that were attempted before come first.
    waiting: VecDeque<Dispatch>,
    running: bool,
    /// How many of those that were attempted before have been put back since one of the others was
    /// taken.
    put_back: usize,
}

#[derive(Debug)]
struct Place {
    address: TaskAddress,
    lane: String,
    attempt: u32,
    running: bool,
    since: Instant,
}

impl Queue {
    /// An empty queue in which at most `max_waiting` tasks wait.
    pub fn new(max_waiting: usize) -> Self {
        Self {
            lanes: HashMap::new(),
            ready: VecDeque::new(),
            in_hand: HashMap::new(),
            waiting: 0,
            max_waiting,
        }
    }

    /// Appends a task to the lane of its table. One that was attempted before is taken though there is
    /// no room, in the place of an earlier attempt that waits, and comes before those that were not:
    /// until it has ended, no other task of the table may begin.
    pub fn push(&mut self, dispatch: Dispatch, now: Instant) -> Result<(), Refused> {
        if let Some(place) = self.in_hand.get(&dispatch.task_id) {
            if place.running || place.attempt >= dispatch.attempt {
                return Err(Refused::Duplicate);
            }
            self.forget(&dispatch.task_id);
        }
        if self.waiting >= self.max_waiting && !is_begun(&dispatch) {
            return Err(Refused::Full);
        }
        let name = lane_name(&dispatch.table.location);
        let place = Place {
            address: dispatch.address(),
            lane: name.clone(),
            attempt: dispatch.attempt,
            running: false,
            since: now,
        };
        self.in_hand.insert(dispatch.task_id.clone(), place);
        self.waiting += 1;
        let lane = self.lanes.entry(name.clone()).or_default();
        match is_begun(&dispatch) {
            true => lane.insert(dispatch),
            false => lane.waiting.push_back(dispatch),
        }
        if !lane.running && lane.waiting.len() == 1 {
            self.ready.push_back(name);
        }
        Ok(())
    }

    /// Lets go of a task that waits.
    fn forget(&mut self, task_id: &TaskId) {
        let Some(place) = self.in_hand.remove(task_id) else {
            return;
        };
        self.waiting -= 1;
        if let Some(lane) = self.lanes.get_mut(&place.lane) {
            lane.waiting.retain(|waiting| waiting.task_id != *task_id);
            if lane.waiting.is_empty() && !lane.running {
                self.lanes.remove(&place.lane);
                self.ready.retain(|ready| *ready != place.lane);
            }
        }
    }

    /// Takes the next task, whose table is busy from now until [`Queue::done`].
    pub fn take(&mut self) -> Option<Dispatch> {
        let name = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&name)?;
        let dispatch = lane.take()?;
        lane.running = true;
        self.waiting -= 1;
        if let Some(place) = self.in_hand.get_mut(&dispatch.task_id) {
            place.running = true;
        }
        Some(dispatch)
    }

    /// Lets go of a task that was taken. What waits for the same table goes behind the tables that
    /// are waiting for their turn.
    pub fn done(&mut self, task_id: &TaskId) {
        if !self.in_hand.get(task_id).is_some_and(|place| place.running) {
            return;
        }
        if let Some(place) = self.in_hand.remove(task_id) {
            self.let_go(place.lane);
        }
    }

    /// Puts a task that was taken back, before what waits for the same table; but not before all that
    /// was attempted before has been taken once, and then the first of the rest: they may be waiting
    /// for each other. The table goes behind those that are waiting for their turn.
    pub fn put_back(&mut self, dispatch: Dispatch) {
        let Some(place) = self.in_hand.get_mut(&dispatch.task_id) else {
            return;
        };
        if !std::mem::replace(&mut place.running, false) {
            return;
        }
        let name = place.lane.clone();
        self.waiting += 1;
        if let Some(lane) = self.lanes.get_mut(&name) {
            lane.put_back(dispatch);
        }
        self.let_go(name);
    }

    /// Makes the table at this location busy as if a task ran on it, until [`Queue::release`] with
    /// the value that is returned; none if it is busy.
    pub fn hold(&mut self, location: &str) -> Option<HeldLane> {
        let name = lane_name(location);
        let lane = self.lanes.entry(name.clone()).or_default();
        if lane.running {
            return None;
        }
        lane.running = true;
        self.ready.retain(|ready| *ready != name);
        Some(HeldLane(name))
    }

    /// Lets go of a table that was held.
    pub fn release(&mut self, lane: HeldLane) {
        self.let_go(lane.0);
    }

    fn let_go(&mut self, name: String) {
        let Some(lane) = self.lanes.get_mut(&name) else {
            return;
        };
        lane.running = false;
        if lane.waiting.is_empty() {
            self.lanes.remove(&name);
        } else {
            self.ready.push_back(name);
        }
    }

    /// Every task that waits or runs, with its attempt, in no particular order.
    pub fn in_hand(&self) -> Vec<InHand> {
        let in_hand = self.in_hand.values().map(|place| InHand {
            task: place.address.clone(),
            attempt: Some(place.attempt),
        });
        in_hand.collect()
    }

    /// Whether a task waits or runs.
    pub fn has(&self, task_id: &TaskId) -> bool {
        self.in_hand.contains_key(task_id)
    }

    /// How many tasks run.
    pub fn running(&self) -> usize {
        self.in_hand.len() - self.waiting
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Since when the task has been in hand that waits and has been for longest.
    pub fn oldest(&self) -> Option<Instant> {
        let waiting = self.in_hand.values().filter(|place| !place.running);
        waiting.map(|place| place.since).min()
    }

    /// How many more tasks may wait.
    pub fn room(&self) -> usize {
        self.max_waiting.saturating_sub(self.waiting)
    }
}

impl Lane {
    fn begun(&self) -> usize {
        let begun = self.waiting.iter().take_while(|task| is_begun(task));
        begun.count()
    }

    /// Puts a task before the others, behind those that were attempted before.
    fn insert(&mut self, dispatch: Dispatch) {
        self.waiting.insert(self.begun(), dispatch);
    }

    fn put_back(&mut self, dispatch: Dispatch) {
        self.put_back += usize::from(is_begun(&dispatch));
        self.insert(dispatch);
    }

    fn take(&mut self) -> Option<Dispatch> {
        let begun = self.begun();
        if begun < self.waiting.len() && self.put_back >= begun {
            self.put_back = 0;
            return self.waiting.remove(begun);
        }
        self.waiting.pop_front()
    }
}

/// Whether the task was attempted before.
fn is_begun(dispatch: &Dispatch) -> bool {
    dispatch.attempt > 1
}

/// A location in the one form that all its spellings share.
fn lane_name(location: &str) -> String {
    let url = if location.starts_with('/') {
        Url::parse(&format!("file://{location}"))
    } else {
        Url::parse(location)
    };
    let Ok(url) = url else {
        return location.trim_end_matches('/').to_owned();
    };
    let host = url.host_str().unwrap_or_default();
    let path = percent_decode_str(url.path()).decode_utf8_lossy();
    let segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    format!("{}://{host}/{}", url.scheme(), segments.join("/"))
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
