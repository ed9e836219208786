//! What is known of a task.

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::task::{TaskId, TaskInfo};
use lance_maintenance_store::tasks::Task;

/// A task that a client or a worker knows of.
#[derive(Clone, Debug)]
pub struct Known {
    pub id: TaskId,
    pub table: usize,
    pub created_at: Option<i64>,
    /// Its submit was answered.
    pub answered: bool,
    /// Deletions that were begun, and not refused.
    pub deletions: u32,
    /// One of them was answered.
    pub deleted: bool,
    /// The attempt that committed.
    pub effect: Option<u32>,
    /// Attempts that have noted at the table that they are about to commit, and not taken it back.
    pub notes: Vec<u32>,
    /// The end that somebody read.
    pub end: Option<TaskInfo>,
    /// When a claim was told to wait.
    pub asked: Vec<i64>,
    /// A cancel was begun.
    pub canceling: bool,
    /// One was answered, and the task had not ended: whoever asks from then on is told.
    pub canceled: bool,
    /// One was answered when nobody had been granted an attempt: it has no effect any more.
    pub halted: bool,
    /// One was answered with the end of a task that nobody had been granted: nobody is any more.
    pub stopped: bool,
}

impl Known {
    pub fn new(id: &TaskId, table: usize) -> Self {
        Self {
            id: id.clone(),
            table,
            created_at: None,
            answered: false,
            deletions: 0,
            deleted: false,
            effect: None,
            notes: Vec::new(),
            end: None,
            asked: Vec::new(),
            canceling: false,
            canceled: false,
            halted: false,
            stopped: false,
        }
    }

    /// What is wrong with an end that somebody read.
    pub fn doubts(&self, end: &TaskInfo) -> Option<String> {
        let id = &self.id;
        let error = end.error.as_ref().map(|error| error.error);
        let is_canceled = error == Some(ErrorName::Canceled);
        if is_canceled && !self.canceling {
            return Some(format!("{id} was canceled by nobody"));
        }
        if is_canceled && let Some(attempt) = self.effect {
            return Some(format!(
                "{id} was canceled, but attempt {attempt} committed"
            ));
        }
        if self.stopped && !(is_canceled && end.started_at.is_empty()) {
            return Some(format!("{id} was canceled before it began, and is {end:?}"));
        }
        // Its table's drop, and workers that are lost, may be faster than the end.
        let others = [ErrorName::TableNotFound, ErrorName::InternalError];
        if self.halted && !is_canceled && !error.is_some_and(|error| others.contains(&error)) {
            return Some(format!("{id} went on though it was canceled: {end:?}"));
        }
        None
    }

    /// A cancel was answered with the task like this.
    pub fn answer_canceled(&mut self, task: &Task) {
        let was_granted = task
            .runs
            .iter()
            .flatten()
            .any(|run| !run.worker_id.is_empty());
        match &task.end {
            None => {
                self.canceled = true;
                self.halted |= !was_granted;
            }
            Some(end) => {
                let error = end.error.as_ref().map(|error| error.error);
                self.stopped |= error == Some(ErrorName::Canceled) && !was_granted;
            }
        }
    }
}
