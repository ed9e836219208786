//! What the scripts of a schedule have in common.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use lance_maintenance_api::ApiError;
use lance_maintenance_api::task::TaskStatus;
use lance_maintenance_dispatch::{
    Claim, Claimed, Dispatch, Finish, Heartbeat, Leave, Report, TakeUp, TaskAddress,
};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::catalog::Purges;
use lance_maintenance_store::execution::Execution;
use lance_maintenance_store::tasks::{Task, Tasks};

use crate::model::{Model, table_id};
use crate::plan::Plan;
use crate::planted::Planted;
use crate::world::{Client, Plant, SECOND, World};

/// How long after the faults have stopped everything must have come to its end. Rarely a task waits
/// for somebody to look through all keys.
const QUIET: i64 = 1500 * SECOND;

/// A call to the application: a message of a worker, or a client's request to cancel a task.
#[derive(Clone, Debug)]
pub enum Call {
    Heartbeat(Heartbeat),
    Claim(Claim),
    Progress(Report),
    Finish(Box<Finish>),
    Leave(Leave),
    Purged(String),
    Cancel(TaskAddress),
}

/// What the application answers.
#[derive(Debug)]
pub enum Answer {
    TakeUp(TakeUp),
    Claimed(Claimed),
    Task(Box<Task>),
    Done,
}

/// What all scripts see.
pub struct Scene<'a> {
    pub world: &'a World,
    pub plan: &'a Plan,
    pub plant: Plant,
    /// When faults stop.
    pub calm: i64,
    model: Mutex<Model>,
    /// Calls that nobody waits for the answer of.
    left_behind: Mutex<VecDeque<Call>>,
    /// Tasks that reach a worker again when it starts again.
    late: Mutex<Vec<(usize, Dispatch)>>,
}

impl<'a> Scene<'a> {
    pub fn new(world: &'a World, plan: &'a Plan, plant: Plant, clients: usize) -> Self {
        let now = world.alone().now();
        Self {
            world,
            plan,
            plant,
            calm: now + plan.calm,
            model: Mutex::new(Model::new(plan.workers, clients, now)),
            left_behind: Mutex::default(),
            late: Mutex::default(),
        }
    }

    /// What is known. Not to be held over an operation on the store: others go first then.
    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap()
    }

    pub fn wrong(&self, text: String) {
        self.model().wrong.push(text);
    }

    /// The scripts: first those of the workers, each its heartbeat and its runners, ...
    pub fn script_of(&self, worker: usize, part: usize) -> usize {
        worker * (1 + self.plan.runners) + part
    }

    /// ... then the one that makes calls which nobody waits for.
    fn ghost(&self) -> usize {
        self.script_of(self.plan.workers, 0)
    }

    pub fn wake_runners(&self, client: &Client<'_>, worker: usize) {
        for part in 1..=self.plan.runners {
            client.wake(self.script_of(worker, part));
        }
    }

    /// Makes a call, once.
    pub fn make(&self, call: &Call, client: &Client<'_>) -> Result<Answer, ApiError> {
        let store = Planted {
            client,
            blind: matches!((self.plant, call), (Plant::BlindClaims, Call::Claim(_))),
            unfenced: matches!(
                (self.plant, call),
                (Plant::UnfencedCancels, Call::Cancel(_))
            ),
        };
        let execution = Execution::new(&store);
        let now = || client.now();
        client.note(|| format!("{call:?}"));
        let answer = match call.clone() {
            Call::Heartbeat(message) => execution.heartbeat(&message, now).map(Answer::TakeUp),
            Call::Claim(message) => execution.claim(&message, now).map(Answer::Claimed),
            Call::Progress(message) => execution.progress(&message).map(Answer::Claimed),
            Call::Finish(message) => execution.finish(*message, now).map(|()| Answer::Done),
            Call::Leave(message) => execution.leave(&message).map(|()| Answer::Done),
            Call::Cancel(address) => {
                let canceled = execution.cancel(&address, now);
                canceled.map(|task| Answer::Task(Box::new(task)))
            }
            Call::Purged(table_id) => {
                let purged = lance_maintenance_dispatch::tables::Purged {
                    worker_id: "w".to_owned(),
                    table_id,
                };
                let done = Purges::new(client).done(&purged, now());
                done.map(|()| Answer::Done).map_err(ApiError::from)
            }
        };
        client.note(|| format!("{answer:?}"));
        answer
    }

    /// Has a call made that nobody waits for.
    pub fn leave_behind(&self, client: &Client<'_>, call: Call) {
        self.left_behind.lock().unwrap().push_back(call);
        client.wake(self.ghost());
    }

    /// Has a worker offered a task once more, when it starts again.
    pub fn dispatch_again(&self, worker: usize, dispatch: &Dispatch) {
        self.late.lock().unwrap().push((worker, dispatch.clone()));
    }

    /// A worker has started again, and what is late reaches it.
    pub fn offer_late(&self, client: &Client<'_>, worker: usize) {
        let mut late = self.late.lock().unwrap();
        let (now, rest) = late.drain(..).partition(|(to, _)| *to == worker);
        *late = rest;
        drop(late);
        let now: Vec<(usize, Dispatch)> = now;
        for (_, dispatch) in now {
            self.offer(client, worker, &dispatch);
        }
    }

    /// Offers a worker a task, if it is there: whether it has it then.
    pub fn offer(&self, client: &Client<'_>, worker: usize, dispatch: &Dispatch) -> bool {
        let now = client.now();
        let mut model = self.model();
        let it = &model.workers[worker];
        if !it.up || it.stalled_until > now || it.cut_until > now {
            return false;
        }
        let in_hand = model.in_hand(worker);
        let has_it = in_hand.iter().any(|held| held.task == dispatch.address());
        let taken = has_it || model.offer(worker, dispatch, self.plan.room);
        drop(model);
        self.wake_runners(client, worker);
        taken
    }

    /// Which of a worker's lives it is, as the worker says it.
    pub fn incarnation(&self, life: u32) -> String {
        match self.plant {
            Plant::NoLives => String::new(),
            _ => life.to_string(),
        }
    }

    pub fn make_left_behind(&self, client: &Client<'_>) {
        while !self.model().over {
            let next = self.left_behind.lock().unwrap().pop_front();
            match next {
                // Who makes these repeats them; a worker may be back before.
                Some(call @ (Call::Leave(_) | Call::Cancel(_))) => {
                    let slow = !self.is_calm(client) && client.per_mille(300);
                    client.sleep(client.below(if slow { 20 } else { 1 } * SECOND as usize) as i64);
                    if client.request(|client| self.make(&call, client)).is_err()
                        && client.per_mille(800)
                    {
                        self.left_behind.lock().unwrap().push_back(call);
                    }
                }
                // The answer reaches nobody.
                Some(call) => drop(client.request(|client| self.make(&call, client))),
                None => client.sleep(i64::MAX),
            }
        }
    }

    pub fn is_calm(&self, client: &Client<'_>) -> bool {
        client.now() >= self.calm
    }

    /// Ends the schedule once there is nothing left to do, or should be.
    pub fn end_if_quiet(&self, client: &Client<'_>) {
        if !self.is_calm(client) {
            return;
        }
        let left = self.left();
        if left.is_empty() {
            self.model().over = true;
        } else if client.now() > self.calm + QUIET {
            let mut model = self.model();
            model.wrong.extend(left);
            model.over = true;
        } else {
            return;
        }
        for script in 0..=self.ghost() {
            client.wake(script);
        }
    }

    /// What has not come to its end.
    fn left(&self) -> Vec<String> {
        let client = self.world.alone();
        let model = self.model();
        let mut left = Vec::new();
        if model.clients_left > 0 {
            left.push("a client has not ended".to_owned());
        }
        for known in model.tasks.iter().filter(|known| known.deletions == 0) {
            let tasks = Tasks::new(&client, &table_id(known.table))
                .get(&known.id)
                .ok();
            let status = tasks.map(|task| task.status());
            let ended = status.as_ref().is_some_and(TaskStatus::is_terminal);
            if known.answered && !ended {
                left.push(format!("{} of T{} is {status:?}", known.id, known.table));
            }
        }
        for outbox in ["outbox", "purges"] {
            let slots = client.increment(outbox, 0).unwrap();
            let done = client.get(&format!("{outbox}/done")).unwrap();
            let done = done.map_or(0, |bytes| {
                let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                value["slot"].as_i64().unwrap()
            });
            if done < slots {
                left.push(format!("of {slots} slots of {outbox} {done} are done with"));
            }
        }
        for worker in 0..model.workers.len() {
            let hands = model.in_hand(worker);
            if model.workers[worker].up && !hands.is_empty() {
                left.push(format!("worker {worker} has {hands:?}"));
            }
        }
        left
    }
}
