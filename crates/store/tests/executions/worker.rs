//! A worker, by the rules of the real one: a heartbeat, and runners that take tasks out of a queue
//! with one lane for each table.

use std::cell::Cell;

use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{
    Claim, Claimed, Dispatch, Finish, HEARTBEAT_SECONDS, Heartbeat, MAX_ATTEMPTS, MOST_ATTEMPTS,
    Outcome, TURN_SECONDS, TakeUp, TaskAddress,
};
use lance_maintenance_store::tasks::Tasks;

use crate::model::{self, table_id, worker_name};
use crate::scene::{Answer, Call, Scene};
use crate::world::{Client, SECOND};

/// How long the end of an attempt is repeated.
const FINISH: i64 = 600 * SECOND;

/// Why a call did not do what it should.
pub enum Failed {
    /// The worker died.
    Dead,
    /// 409, 404, 400.
    Lost,
    /// Anything else: the call is made again.
    Unreachable,
}

/// What became of an attempt.
enum Attempted {
    /// It was told to wait.
    Waits,
    /// It is over, or another's.
    Done,
}

/// The tasks of the table that were granted before and have not ended, though this one was granted: what
/// they committed may be removed before their next attempts look for it.
fn between(store: &Client<'_>, model: &model::Model, dispatch: &Dispatch) -> Vec<TaskId> {
    let tasks = Tasks::new(store, &dispatch.table.id);
    let table = model::table_number(&dispatch.table.id);
    if !tasks
        .get(&dispatch.task_id)
        .is_ok_and(|task| task.end.is_none())
    {
        return Vec::new();
    }
    let others = model.tasks.iter().filter(|known| known.table == table);
    let others = others.filter(|known| known.id != dispatch.task_id);
    let is_between = |known: &&crate::known::Known| {
        let found = tasks.get(&known.id);
        found.is_ok_and(|task| {
            let mut runs = task.runs.iter().flatten();
            task.end.is_none() && runs.any(|run| !run.worker_id.is_empty())
        })
    };
    others
        .filter(is_between)
        .map(|known| known.id.clone())
        .collect()
}

/// A script of a worker in one of its lives.
pub struct Worker<'a> {
    pub(crate) scene: &'a Scene<'a>,
    pub(crate) client: &'a Client<'a>,
    pub(crate) me: usize,
    /// Which of its lives it is.
    life: u32,
    /// When the last call reached the application.
    pub(crate) called: Cell<i64>,
}

impl<'a> Worker<'a> {
    pub fn new(scene: &'a Scene<'a>, client: &'a Client<'a>, me: usize) -> Self {
        Self {
            scene,
            client,
            me,
            life: 0,
            called: Cell::new(0),
        }
    }

    /// Beats until all is over; starts the worker again after its death.
    pub fn beat(mut self) {
        loop {
            self.live();
            if self.scene.model().over {
                return;
            }
            if !self.scene.plan.returns[self.me] {
                return;
            }
            let pause = self.client.below(60 * SECOND as usize) as i64;
            self.client.sleep(pause);
            let mut model = self.scene.model();
            self.life = model.workers[self.me].deaths;
            model.workers[self.me].up = true;
            drop(model);
            self.client
                .note(|| format!("worker {} starts again", self.me));
            self.scene.offer_late(self.client, self.me);
            self.scene.wake_runners(self.client, self.me);
        }
    }

    fn live(&self) {
        let mut starting = true;
        while !self.is_over() {
            let model = self.scene.model();
            let room = self.scene.plan.room.saturating_sub(model.waiting(self.me));
            let heartbeat = Heartbeat {
                worker_id: worker_name(self.me),
                incarnation: self.scene.incarnation(self.life),
                starting,
                in_hand: model.in_hand(self.me),
                room,
            };
            let canceled = model.canceled();
            drop(model);
            let pause = match self.call(&Call::Heartbeat(heartbeat.clone())) {
                Ok(Answer::TakeUp(listed)) => {
                    starting = false;
                    self.scene.model().contact(self.me, self.called.get());
                    self.learn(&canceled, &heartbeat, &listed);
                    for purge in listed.purges {
                        // A purge that is not told of is listed again.
                        if self.call(&Call::Purged(purge.table_id)).is_err() {
                            break;
                        }
                    }
                    if self.is_over() {
                        return;
                    }
                    let any = !listed.tasks.is_empty();
                    for task in listed.tasks {
                        let room = self.scene.plan.room;
                        self.scene.model().offer(self.me, &task, room);
                    }
                    self.scene.wake_runners(self.client, self.me);
                    if any { 1 } else { HEARTBEAT_SECONDS as i64 }
                }
                Err(Failed::Dead) => return,
                _ => 1,
            };
            self.scene.end_if_quiet(self.client);
            self.client.sleep(pause * SECOND);
        }
    }

    /// Runs tasks until all is over.
    pub fn run(mut self) {
        loop {
            let model = self.scene.model();
            if model.over {
                return;
            }
            self.life = model.workers[self.me].deaths;
            let up = model.workers[self.me].up;
            drop(model);
            let now = self.client.now();
            let mut model = self.scene.model();
            let next = if up { model.take(self.me, now) } else { None };
            let rests = model.rests_until(self.me, now);
            drop(model);
            let Some(dispatch) = next else {
                let pause = rests.map_or(i64::MAX, |until| until - now);
                self.client.sleep(pause);
                continue;
            };
            let attempted = self.attempt(&dispatch);
            let now = self.client.now();
            let mut model = self.scene.model();
            match attempted {
                // The worker died.
                None => continue,
                Some(Attempted::Waits) => {
                    let until = now + TURN_SECONDS as i64 * SECOND;
                    model.put_back(self.me, &dispatch.task_id, until);
                }
                Some(Attempted::Done) => model.done(self.me, &dispatch.task_id, now),
            }
            drop(model);
            self.scene.wake_runners(self.client, self.me);
        }
    }

    fn attempt(&self, dispatch: &Dispatch) -> Option<Attempted> {
        let id = &dispatch.task_id;
        let claim = Claim {
            worker_id: worker_name(self.me),
            incarnation: self.scene.incarnation(self.life),
            task: dispatch.address(),
            attempt: dispatch.attempt,
        };
        let sent = self.client.now();
        let dropped = self.scene.model().dropped;
        let ended = self.scene.model().has_ended(id);
        let canceled = match self.insist(&Call::Claim(claim.clone()), i64::MAX) {
            Ok(_) if ended => {
                self.scene.wrong(format!("{id} is claimed after its end"));
                return Some(Attempted::Done);
            }
            Ok(Answer::Claimed(Claimed { wait: true, .. })) => {
                self.scene.model().told_to_wait(id, sent);
                return Some(Attempted::Waits);
            }
            Ok(Answer::Claimed(claimed)) => {
                self.granted(dispatch, sent, dropped)?;
                claimed.canceled
            }
            Ok(_) => return None,
            Err(Failed::Dead) => return None,
            Err(_) => {
                self.scene.model().waits_no_more(id);
                return Some(Attempted::Done);
            }
        };
        let outcome = self.operate(dispatch, &claim, canceled);
        let alive = !self.is_over();
        if alive {
            self.scene.model().rest(self.me, id);
        }
        let finish = Finish {
            claim,
            outcome: match outcome {
                Ok(outcome) => outcome,
                Err(Failed::Dead) => return None,
                Err(_) => return Some(Attempted::Done),
            },
            params: None,
        };
        match self.insist(&Call::Finish(Box::new(finish.clone())), FINISH) {
            Ok(_) => self.ended(&finish),
            Err(Failed::Dead) => return None,
            Err(_) => {}
        }
        Some(Attempted::Done)
    }

    /// What the answer to a heartbeat says of canceled tasks. `known`: those that were known to be
    /// canceled when it was sent.
    fn learn(&self, known: &[TaskId], heartbeat: &Heartbeat, listed: &TakeUp) {
        let alone = self.scene.world.alone();
        let is_known = |task: &TaskAddress| known.contains(&task.task_id);
        let mut model = self.scene.model();
        for task in &listed.canceled {
            model.tell(self.me, self.life, &task.task_id);
        }
        let held = heartbeat.in_hand.iter().map(|held| &held.task);
        for task in held.filter(|it| is_known(it) && !listed.canceled.contains(it)) {
            let found = Tasks::new(&alone, &task.table_id).get(&task.task_id);
            if found.is_ok_and(|task| task.end.is_none()) {
                let text = format!("{task:?} is canceled, and worker {} not told", self.me);
                model.wrong.push(text);
            }
        }
        let offered = listed.tasks.iter().filter(|offer| offer.attempt == 1);
        for offer in offered.filter(|offer| is_known(&offer.address())) {
            let text = format!("{} is canceled, and offered", offer.task_id);
            model.wrong.push(text);
        }
    }

    /// Whether the worker's heartbeat was told that a task is canceled.
    pub(crate) fn is_told(&self, id: &TaskId) -> bool {
        self.scene.model().is_told(self.me, self.life, id)
    }

    /// Notes that an attempt was granted, and that the one before was lost.
    fn granted(&self, dispatch: &Dispatch, sent: i64, dropped: [bool; 2]) -> Option<()> {
        let id = &dispatch.task_id;
        let alone = self.scene.world.alone();
        let tasks = Tasks::new(&alone, &dispatch.table.id);
        let runs = tasks.get(id).map(|task| task.runs).unwrap_or_default();
        let now = self.client.now();
        let mut model = self.scene.model();
        let peaceful = self.scene.plan.is_peaceful();
        let most = if self.scene.plan.troubles.leaves > 0 {
            MOST_ATTEMPTS
        } else {
            MAX_ATTEMPTS
        };
        model.granted(dispatch, sent, peaceful, most);
        model.granted_to(dispatch, self.me, self.life);
        for other in between(&alone, &model, dispatch) {
            let text = format!("{id} runs between two attempts at {other}");
            model.wrong.push(text);
        }
        model.waits_no_more(id);
        let table = model::table_number(&dispatch.table.id);
        // It may have been granted to the same claim made before, whose answer was lost.
        let run = runs.get(dispatch.attempt as usize - 1);
        let started_at = run.and_then(|run| Some(run.as_ref()?.started_at));
        let is_new = started_at.is_some_and(|started_at| started_at >= sent);
        if is_new && dropped[table] {
            let text = format!("{id} is granted, of a table that was dropped");
            model.wrong.push(text);
        }
        for (attempt, run) in (1..dispatch.attempt).zip(&runs) {
            let by = run.as_ref().map(|run| run.worker_id.as_str());
            if !by.is_none_or(|by| model.was_lost(id, attempt, by, now)) {
                let text = format!("attempt {attempt} at {id} of {by:?} was not lost");
                model.wrong.push(text);
            }
        }
        for (other, other_id) in model.begin(self.me, dispatch, started_at.unwrap_or(sent), now) {
            // Who was silent for long, and comes back just then, may end a task while it is granted to
            // the next: that one is told when it reports.
            let ended = |id| tasks.get(id).is_ok_and(|task| task.end.is_some());
            if !ended(id) && !ended(&other_id) {
                let text = format!("worker {other} runs {other_id}, {} {id}", self.me);
                model.wrong.push(text);
            }
        }
        Some(())
    }

    /// The application took an end: it is the task's.
    fn ended(&self, finish: &Finish) {
        let alone = self.scene.world.alone();
        let task = &finish.claim.task;
        let tasks = Tasks::new(&alone, &task.table_id);
        let Ok(found) = tasks.get(&task.task_id) else {
            // Somebody was fast to delete it.
            return;
        };
        let info = found.info();
        let fits = match &finish.outcome {
            Outcome::Completed(result) => info.error.is_none() && info.result == *result,
            Outcome::Failed(error) => info.error.as_ref() == Some(error),
        };
        if !info.status.is_terminal() || !fits {
            let text = format!("{finish:?} was taken, and the task is {info:?}");
            self.scene.wrong(text);
        }
        let table = model::table_number(&task.table_id);
        assert_eq!(task.table_id, table_id(table));
        self.scene.model().ended(info, table);
    }

    /// Repeats a call until it is answered, or for this long.
    pub(crate) fn insist(&self, call: &Call, micros: i64) -> Result<Answer, Failed> {
        let until = self.client.now().saturating_add(micros);
        let mut pause = SECOND / 5;
        loop {
            match self.call(call) {
                Err(Failed::Unreachable) if self.client.now() < until => {
                    self.client.sleep(pause);
                    pause = (2 * pause).min(5 * SECOND);
                }
                answer => return answer,
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        let model = self.scene.model();
        model.over || model.workers[self.me].deaths != self.life
    }
}
