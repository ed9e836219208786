//! What a worker does at the table: its steps, its commit, and how it stops.

use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{Claim, Dispatch, Outcome, Report};
use lance_maintenance_store::tasks::Tasks;

use crate::model;
use crate::scene::{Answer, Call};
use crate::worker::{Failed, Worker};
use crate::world::Plant;

impl Worker<'_> {
    /// Does the work, and commits it, unless it learns that the task is canceled.
    pub(crate) fn operate(
        &self,
        dispatch: &Dispatch,
        claim: &Claim,
        canceled: bool,
    ) -> Result<Outcome, Failed> {
        let mut canceled = canceled || self.work(dispatch, claim)?;
        if canceled {
            if let Some(outcome) = self.stop(dispatch) {
                return Ok(outcome);
            }
        } else if let Some(outcome) = self.fail(dispatch) {
            return Ok(outcome);
        }
        // One that goes on though it is canceled does so to its end.
        let goes_on = canceled;
        self.note_commit(dispatch, true);
        match self.insist(&report(claim, 99), i64::MAX) {
            Ok(Answer::Claimed(claimed)) => canceled |= claimed.canceled,
            Err(Failed::Dead) => return Err(Failed::Dead),
            _ => {
                self.note_commit(dispatch, false);
                return Err(Failed::Lost);
            }
        }
        if canceled && !goes_on {
            self.note_commit(dispatch, false);
            if let Some(outcome) = self.stop(dispatch) {
                return Ok(outcome);
            }
            self.note_commit(dispatch, true);
        }
        self.linger().ok_or(Failed::Dead)?;
        Ok(self.commit(dispatch))
    }

    /// The steps before the commit: whether it learns that the task is canceled.
    fn work(&self, dispatch: &Dispatch, claim: &Claim) -> Result<bool, Failed> {
        let steps = self.client.below(4);
        for step in 0..=steps {
            let pause = self.client.below(self.scene.plan.longest / (steps + 1)) as i64;
            self.client.sleep(pause);
            self.trouble();
            self.stand_still().ok_or(Failed::Dead)?;
            if self.is_told(&dispatch.task_id) {
                return Ok(true);
            }
            if step == steps || self.client.below(2) == 0 {
                continue;
            }
            match self.call(&report(claim, step as u8)) {
                Ok(Answer::Claimed(claimed)) if claimed.canceled => return Ok(true),
                Err(failed @ (Failed::Lost | Failed::Dead)) => return Err(failed),
                _ => {}
            }
        }
        match self.is_over() {
            true => Err(Failed::Dead),
            false => Ok(false),
        }
    }

    /// The operation may fail, if it has committed nothing.
    fn fail(&self, dispatch: &Dispatch) -> Option<Outcome> {
        let fails = self.client.per_mille(self.scene.plan.troubles.fails);
        let mut model = self.scene.model();
        let known = model.know(&dispatch.task_id, model::table_number(&dispatch.table.id));
        let error = TaskError::new(ErrorName::InvalidInput, "no such column");
        (fails && known.effect.is_none()).then_some(Outcome::Failed(error))
    }

    /// The task is canceled: how it ends. None if it must go on: another attempt was allowed to commit,
    /// and may do so yet.
    fn stop(&self, dispatch: &Dispatch) -> Option<Outcome> {
        let looks = !matches!(self.scene.plant, Plant::NoNotes);
        let mut model = self.scene.model();
        let known = model.know(&dispatch.task_id, model::table_number(&dispatch.table.id));
        if let Some(by) = known.effect {
            return Some(completed(by));
        }
        if looks && !known.notes.is_empty() {
            return None;
        }
        let error = TaskError::new(ErrorName::Canceled, "The task was canceled.");
        Some(Outcome::Failed(error))
    }

    /// Notes at the table that the attempt is about to commit, or that it is not.
    fn note_commit(&self, dispatch: &Dispatch, is_about_to: bool) {
        let mut model = self.scene.model();
        let known = model.know(&dispatch.task_id, model::table_number(&dispatch.table.id));
        known.notes.retain(|attempt| *attempt != dispatch.attempt);
        if is_about_to {
            known.notes.push(dispatch.attempt);
        }
    }

    /// Looking for a commit of the task and making one is one step: a commit that meets another since the
    /// look fails, and the look is made again.
    fn commit(&self, dispatch: &Dispatch) -> Outcome {
        let id = &dispatch.task_id;
        let alone = self.scene.world.alone();
        let found = Tasks::new(&alone, &dispatch.table.id).get(id);
        let mut model = self.scene.model();
        let known = model.know(id, model::table_number(&dispatch.table.id));
        let is_first = known.effect.is_none();
        let by = *known.effect.get_or_insert(dispatch.attempt);
        let ends = found.map(|task| task.info()).into_iter();
        let ends = ends.filter(|info| info.status.is_terminal());
        let mut doubts: Vec<String> = ends.filter_map(|end| known.doubts(&end)).collect();
        if is_first && (known.halted || known.stopped) {
            doubts.push(format!("{id} has an effect though it was canceled"));
        }
        model.wrong.append(&mut doubts);
        completed(by)
    }
}

fn report(claim: &Claim, percent: u8) -> Call {
    Call::Progress(Report {
        claim: claim.clone(),
        percent,
        message: String::new(),
    })
}

fn completed(by: u32) -> Outcome {
    Outcome::Completed([("by".to_owned(), by.into())].into_iter().collect())
}
