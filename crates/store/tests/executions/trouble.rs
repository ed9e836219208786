//! A worker's calls, and what happens to it on their way.

use crate::scene::{Answer, Call};
use crate::worker::{Failed, Worker};
use crate::world::SECOND;

impl Worker<'_> {
    /// Waits while the worker stands still. None if it is dead.
    pub(crate) fn stand_still(&self) -> Option<()> {
        while !self.is_over() {
            let until = self.scene.model().workers[self.me].stalled_until;
            let left = until - self.client.now();
            if left <= 0 {
                return Some(());
            }
            self.client.sleep(left);
        }
        None
    }

    /// Something may happen to the worker.
    pub(crate) fn trouble(&self) {
        let troubles = &self.scene.plan.troubles;
        if self.scene.is_calm(self.client) || self.is_over() {
            return;
        }
        let some = self.client.below(60 * SECOND as usize) as i64;
        let now = self.client.now();
        if self.client.per_mille(troubles.crash) {
            self.client.note(|| format!("worker {} dies", self.me));
            self.scene.model().die(self.me);
        } else if self.client.per_mille(troubles.leaves) {
            self.client.note(|| format!("worker {} leaves", self.me));
            let leave = self.scene.model().leave(self.me);
            for _ in 0..1 + self.client.below(2) {
                let call = Call::Leave(leave.clone());
                self.scene.leave_behind(self.client, call);
            }
        } else if self.client.per_mille(troubles.stall) {
            self.hold_up(now + some);
        } else if self.client.per_mille(troubles.cut) {
            self.cut_off();
        }
    }

    fn hold_up(&self, until: i64) {
        self.client
            .note(|| format!("worker {} stands still", self.me));
        self.scene.model().workers[self.me].stalled_until = until;
    }

    /// It may be held up right when it was allowed to commit. None if it dies.
    pub(crate) fn linger(&self) -> Option<()> {
        let stall = self.scene.plan.troubles.stall;
        if !self.scene.is_calm(self.client) && self.client.per_mille(10 * stall) {
            let some = self.client.below(60 * SECOND as usize) as i64;
            self.hold_up(self.client.now() + some);
        }
        self.stand_still()
    }

    /// It can't reach the application for a while.
    fn cut_off(&self) {
        self.client
            .note(|| format!("worker {} is cut off", self.me));
        let until = self.client.now() + self.client.below(60 * SECOND as usize) as i64;
        self.scene.model().workers[self.me].cut_until = until;
    }

    fn be_slow(&self) {
        let slow = self.scene.plan.troubles.slow;
        if !self.scene.is_calm(self.client) && self.client.per_mille(slow) {
            let some = self.client.below(7 * SECOND as usize) as i64;
            self.client.sleep(some);
        }
    }

    /// Whether the answer to a call must say that the task is canceled.
    fn is_to_be_told(&self, call: &Call) -> bool {
        let claim = match call {
            Call::Claim(claim) => claim,
            Call::Progress(report) => &report.claim,
            _ => return false,
        };
        self.scene.model().is_canceled(&claim.task.task_id)
    }

    pub(crate) fn call(&self, call: &Call) -> Result<Answer, Failed> {
        self.trouble();
        self.stand_still().ok_or(Failed::Dead)?;
        let now = self.client.now();
        if self.scene.model().workers[self.me].cut_until > now {
            return Err(Failed::Unreachable);
        }
        let calm = self.scene.is_calm(self.client);
        let troubles = &self.scene.plan.troubles;
        if !calm && self.client.per_mille(troubles.twice) {
            self.scene.leave_behind(self.client, call.clone());
        }
        self.be_slow();
        self.called.set(self.client.now());
        let to_tell = self.is_to_be_told(call);
        let answer = self.client.request(|client| self.scene.make(call, client));
        if let Ok(Answer::Claimed(claimed)) = &answer
            && to_tell
            && !claimed.canceled
        {
            self.scene
                .wrong(format!("{call:?} was not told that it is canceled"));
        }
        self.be_slow();
        self.trouble();
        self.stand_still().ok_or(Failed::Dead)?;
        if !calm && self.client.per_mille(troubles.lost) {
            return Err(Failed::Unreachable);
        }
        answer.map_err(|error| match error.name.status() {
            503 => {
                // What made a request fail often goes on.
                if !calm && self.client.per_mille(10 * troubles.cut) {
                    self.cut_off();
                }
                Failed::Unreachable
            }
            404 | 409 => Failed::Lost,
            _ => {
                self.scene.wrong(format!("{call:?}: {error:?}"));
                Failed::Lost
            }
        })
    }
}
