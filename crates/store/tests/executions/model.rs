//! What everybody was told, what workers have in hand, and what is wrong with it.

use lance_maintenance_api::task::{TaskId, TaskInfo};
use lance_maintenance_dispatch::{Dispatch, InHand, LEASE_SECONDS, Leave};

use crate::known::Known;
use crate::world::SECOND;

const LEASE: i64 = LEASE_SECONDS as i64 * SECOND;
/// A worker that waits for a turn asks so often that the store knows of it: it notes who asks every
/// 5 s at least, and forgets who has not asked for 15 s.
const ASKED: i64 = 8 * SECOND;
const ASKS: usize = 3;

/// A task that a worker has in hand.
#[derive(Clone, Debug)]
struct Hand {
    dispatch: Dispatch,
    table: usize,
    taken: bool,
    /// Told to wait, it and its table rest until then.
    rests: i64,
    /// Told to wait since its table's tasks were last gone through.
    asked: bool,
    /// It believes to be the one that runs the table's task.
    running: bool,
    /// When the claim was sent that was granted: it shows that the worker lives, like a heartbeat.
    claimed: i64,
    /// The lease ran out since it was taken up.
    lapsed: bool,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub up: bool,
    /// How often it died.
    pub deaths: u32,
    pub stalled_until: i64,
    pub cut_until: i64,
    /// When it sent the last heartbeat that was answered.
    contact: i64,
    hands: Vec<Hand>,
}

/// Everything that is known.
#[derive(Default)]
pub struct Model {
    pub tasks: Vec<Known>,
    pub workers: Vec<Worker>,
    /// Attempts whose worker died or was silent while it had them: (task, attempt, worker).
    losses: Vec<(TaskId, u32, usize)>,
    /// The lives of workers that learned of a grant: (task, attempt, worker, life).
    grants: Vec<(TaskId, u32, usize, u32)>,
    /// Workers that were told by a heartbeat in a life that a task in hand is canceled.
    told: Vec<(usize, u32, TaskId)>,
    /// When the drop of a table was answered, and whether one was begun.
    pub dropped: [bool; 2],
    pub dropping: [bool; 2],
    pub clients_left: usize,
    pub over: bool,
    pub wrong: Vec<String>,
}

impl Model {
    pub fn new(workers: usize, clients: usize, now: i64) -> Self {
        let worker = Worker {
            up: true,
            deaths: 0,
            stalled_until: 0,
            cut_until: 0,
            contact: now,
            hands: Vec::new(),
        };
        Self {
            workers: vec![worker; workers],
            clients_left: clients,
            ..Self::default()
        }
    }

    pub fn know(&mut self, id: &TaskId, table: usize) -> &mut Known {
        let at = self.tasks.iter().position(|known| known.id == *id);
        let at = at.unwrap_or_else(|| {
            self.tasks.push(Known::new(id, table));
            self.tasks.len() - 1
        });
        &mut self.tasks[at]
    }

    /// A worker is offered a task: whether it takes it. An attempt above 1 it takes though it is full,
    /// and in the place of a lower one that waits.
    pub fn offer(&mut self, worker: usize, dispatch: &Dispatch, room: usize) -> bool {
        let table = table_number(&dispatch.table.id);
        self.know(&dispatch.task_id, table);
        let hands = &mut self.workers[worker].hands;
        let known = |hand: &&mut Hand| hand.dispatch.task_id == dispatch.task_id;
        if let Some(hand) = hands.iter_mut().find(known) {
            let replaces = !hand.taken && hand.dispatch.attempt < dispatch.attempt;
            if replaces {
                let before = std::mem::replace(&mut hand.dispatch, dispatch.clone());
                // A claim that was made twice may have been granted it, unknown to the worker.
                self.losses.push((before.task_id, before.attempt, worker));
            }
            return replaces;
        }
        let waiting = hands.iter().filter(|hand| !hand.taken).count();
        if waiting >= room && dispatch.attempt == 1 {
            return false;
        }
        hands.push(Hand {
            dispatch: dispatch.clone(),
            table,
            taken: false,
            rests: 0,
            asked: false,
            running: false,
            claimed: i64::MIN,
            lapsed: false,
        });
        true
    }

    /// The next task whose table is not busy in the worker, attempts above 1 first.
    pub fn take(&mut self, worker: usize, now: i64) -> Option<Dispatch> {
        let hands = &mut self.workers[worker].hands;
        let is_busy = |hand: &&Hand| hand.taken || hand.rests > now;
        let busy: Vec<usize> = hands.iter().filter(is_busy).map(|h| h.table).collect();
        // Attempts above 1 that were not told to wait yet, then the first of the others, and again.
        let order = |hand: &Hand| match (hand.dispatch.attempt > 1, hand.asked) {
            (true, false) => 0,
            (false, _) => 1,
            (true, true) => 2,
        };
        let ready = hands.iter().enumerate();
        let ready = ready.filter(|(_, hand)| !hand.taken && !busy.contains(&hand.table));
        let (at, _) = ready.min_by_key(|(_, hand)| order(hand))?;
        let (rank, table) = (order(&hands[at]), hands[at].table);
        for hand in hands.iter_mut().filter(|hand| hand.table == table) {
            hand.asked &= rank == 0;
        }
        hands[at].taken = true;
        Some(hands[at].dispatch.clone())
    }

    /// A task that was taken was told to wait.
    pub fn put_back(&mut self, worker: usize, id: &TaskId, until: i64) {
        let hands = &mut self.workers[worker].hands;
        for hand in hands.iter_mut().filter(|h| h.dispatch.task_id == *id) {
            hand.taken = false;
            hand.rests = until;
            hand.asked = true;
        }
    }

    /// When something that rests in a worker is to be claimed again.
    pub fn rests_until(&self, worker: usize, now: i64) -> Option<i64> {
        let hands = self.workers[worker].hands.iter();
        let rests = hands.filter(|hand| !hand.taken && hand.rests > now);
        rests.map(|hand| hand.rests).min()
    }

    pub fn done(&mut self, worker: usize, id: &TaskId, now: i64) {
        self.look_at_leases(now);
        let hands = &mut self.workers[worker].hands;
        hands.retain(|hand| hand.dispatch.task_id != *id);
    }

    pub fn in_hand(&self, worker: usize) -> Vec<InHand> {
        let held = |hand: &Hand| InHand {
            task: hand.dispatch.address(),
            attempt: Some(hand.dispatch.attempt),
        };
        self.workers[worker].hands.iter().map(held).collect()
    }

    pub fn waiting(&self, worker: usize) -> usize {
        let hands = &self.workers[worker].hands;
        hands.iter().filter(|hand| !hand.taken).count()
    }

    /// A worker dies.
    pub fn die(&mut self, worker: usize) {
        let it = &mut self.workers[worker];
        it.up = false;
        it.deaths += 1;
        for hand in it.hands.drain(..) {
            let dispatch = hand.dispatch;
            self.losses
                .push((dispatch.task_id, dispatch.attempt, worker));
        }
    }

    /// A worker stops in order: what it says. What becomes of its hands is as if it died.
    pub fn leave(&mut self, worker: usize) -> Leave {
        let hands = self.workers[worker].hands.iter();
        let in_hand = hands.map(|hand| InHand {
            task: hand.dispatch.address(),
            attempt: (hand.claimed > i64::MIN).then_some(hand.dispatch.attempt),
        });
        let leave = Leave {
            worker_id: worker_name(worker),
            in_hand: in_hand.collect(),
        };
        self.die(worker);
        leave
    }

    /// The application answered a heartbeat that a worker sent at this time.
    pub fn contact(&mut self, worker: usize, sent: i64) {
        self.look_at_leases(sent);
        let it = &mut self.workers[worker];
        it.contact = it.contact.max(sent);
    }

    fn look_at_leases(&mut self, now: i64) {
        for (worker, it) in self.workers.iter_mut().enumerate() {
            for hand in &mut it.hands {
                if now - it.contact.max(hand.claimed) > LEASE {
                    hand.lapsed = true;
                    let dispatch = &hand.dispatch;
                    let lost = (dispatch.task_id.clone(), dispatch.attempt, worker);
                    self.losses.push(lost);
                }
            }
        }
    }

    /// Whether an attempt of a worker was really lost.
    pub fn was_lost(&mut self, id: &TaskId, attempt: u32, worker: &str, now: i64) -> bool {
        // Nobody ever learned that it was granted.
        if worker.is_empty() {
            return true;
        }
        self.look_at_leases(now);
        self.losses
            .iter()
            .any(|(lost, of, by)| lost == id && *of == attempt && worker_name(*by) == worker)
    }

    /// A claim that was sent at `sent` was told to wait.
    pub fn told_to_wait(&mut self, id: &TaskId, sent: i64) {
        if let Some(known) = self.tasks.iter_mut().find(|known| known.id == *id) {
            known.asked.push(sent);
        }
    }

    /// Whether it is known that a task has ended.
    pub fn has_ended(&self, id: &TaskId) -> bool {
        let known = self.tasks.iter().find(|known| known.id == *id);
        known.is_some_and(|known| known.deleted || known.end.is_some())
    }

    /// A worker was granted an attempt, which it claimed at `sent`.
    pub fn granted(&mut self, dispatch: &Dispatch, sent: i64, peaceful: bool, most: u32) {
        let id = &dispatch.task_id;
        let table = table_number(&dispatch.table.id);
        if !(1..=most).contains(&dispatch.attempt) {
            self.wrong
                .push(format!("{id} is tried again, {}", dispatch.attempt));
        }
        let known = self.know(id, table).clone();
        if known.stopped {
            let text = format!("{id} is granted though it was canceled");
            self.wrong.push(text);
        }
        for other in self.tasks.iter().filter(|_| peaceful) {
            let asks = other
                .asked
                .iter()
                .filter(|at| (sent - ASKED..sent).contains(*at));
            let is_older = (other.created_at, other.id.as_str()) < (known.created_at, id.as_str());
            let both = other.created_at.is_some() && known.created_at.is_some();
            let is_open = other.end.is_none() && !other.canceling;
            let waits = other.table == table && is_open && asks.count() >= ASKS;
            if both && is_older && waits {
                let text = format!("{id} is granted before {}", other.id);
                self.wrong.push(text);
            }
        }
    }

    /// A worker was granted an attempt in one of its lives. An attempt is not made twice: it does not look
    /// for a commit of its own.
    pub fn granted_to(&mut self, dispatch: &Dispatch, worker: usize, life: u32) {
        let id = dispatch.task_id.clone();
        let grant = (id, dispatch.attempt, worker, life);
        let is_same = |other: &&(TaskId, u32, usize, u32)| other.0 == grant.0 && other.1 == grant.1;
        if let Some(other) = self.grants.iter().find(is_same)
            && *other != grant
        {
            let text = format!("an attempt in two lives: {other:?}, {grant:?}");
            self.wrong.push(text);
        }
        self.grants.push(grant);
    }

    /// A task waits no more for its turn.
    pub fn waits_no_more(&mut self, id: &TaskId) {
        if let Some(known) = self.tasks.iter_mut().find(|known| known.id == *id) {
            known.asked.clear();
        }
    }

    /// A worker begins an attempt that it was granted, by a claim of this time. Who else is
    /// at the table.
    pub fn begin(
        &mut self,
        worker: usize,
        dispatch: &Dispatch,
        claimed: i64,
        now: i64,
    ) -> Vec<(usize, TaskId)> {
        let id = &dispatch.task_id;
        for hand in &mut self.workers[worker].hands {
            if hand.dispatch.task_id == *id {
                hand.running = true;
                hand.claimed = claimed;
            }
        }
        self.look_at_leases(now);
        let table = table_number(&dispatch.table.id);
        let runs = |hand: &&Hand| hand.running && !hand.lapsed && hand.table == table;
        let own = self.workers[worker].hands.iter();
        if own.filter(runs).all(|hand| hand.dispatch.task_id != *id) {
            return Vec::new();
        }
        // Its own runners are kept apart by its queue.
        let others = self.workers.iter().enumerate();
        others
            .filter(|(other, it)| *other != worker && it.up)
            .flat_map(|(other, it)| {
                let met = it.hands.iter().filter(runs);
                met.map(move |hand| (other, hand.dispatch.task_id.clone()))
            })
            .collect()
    }

    /// A worker's operation is about to end: it touches the table no more.
    pub fn rest(&mut self, worker: usize, id: &TaskId) {
        let hands = &mut self.workers[worker].hands;
        for hand in hands.iter_mut().filter(|h| h.dispatch.task_id == *id) {
            hand.running = false;
        }
    }

    /// A worker was told that a task in hand is canceled.
    pub fn tell(&mut self, worker: usize, life: u32, id: &TaskId) {
        self.told.push((worker, life, id.clone()));
    }

    /// Whether it was.
    pub fn is_told(&self, worker: usize, life: u32, id: &TaskId) -> bool {
        self.told.contains(&(worker, life, id.clone()))
    }

    /// Whether whoever asks about a task is to be told from now on that it is canceled.
    pub fn is_canceled(&self, id: &TaskId) -> bool {
        let known = self.tasks.iter().find(|known| known.id == *id);
        known.is_some_and(|known| known.canceled)
    }

    /// The tasks of which that is so.
    pub fn canceled(&self) -> Vec<TaskId> {
        let canceled = self.tasks.iter().filter(|known| known.canceled);
        canceled.map(|known| known.id.clone()).collect()
    }

    /// Somebody read a task that has ended.
    pub fn ended(&mut self, info: TaskInfo, table: usize) {
        let known = self.know(&info.task_id, table);
        let doubts = known.doubts(&info);
        match &known.end {
            Some(before) if *before != info => {
                let text = format!("the end changes: {before:?}, {info:?}");
                self.wrong.push(text);
            }
            _ => known.end = Some(info),
        }
        self.wrong.extend(doubts);
    }
}

pub fn worker_name(worker: usize) -> String {
    format!("w{worker}")
}

pub fn table_id(table: usize) -> String {
    format!("T{table}")
}

pub fn table_number(id: &str) -> usize {
    id[1..].parse().unwrap()
}
