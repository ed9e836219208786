//! Where tasks come in: the queue, shared by those who put tasks into it (the server, the
//! heartbeat) and the one who takes them out (the runner).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lance_maintenance_api::task::TaskId;
use lance_maintenance_dispatch::{Dispatch, InHand};
use tokio::sync::{Notify, watch};

use crate::queue::{HeldLane, Queue, Refused};

/// Why a task is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The queue does not want it.
    Refused(Refused),
    /// The worker is about to stop.
    Closed,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Tasks that wait.
    pub waiting: usize,
    /// Tasks that run.
    pub running: usize,
    /// For how long the one has been waiting that has been for longest.
    pub oldest: Duration,
}

/// The queue, and whether tasks may still come in and go out.
#[derive(Debug)]
pub struct Intake {
    queue: Mutex<Queue>,
    /// Tells the runner that there may be a next task.
    changed: Notify,
    /// Tells those who wait for a table that one is no longer busy.
    freed: Notify,
    open: watch::Sender<bool>,
    /// Those of the tasks in hand that are to be stopped.
    canceled: watch::Sender<HashSet<TaskId>>,
}

impl Intake {
    /// An open intake in which at most `max_waiting` tasks wait.
    pub fn new(max_waiting: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue::new(max_waiting)),
            changed: Notify::new(),
            freed: Notify::new(),
            open: watch::Sender::new(true),
            canceled: watch::Sender::default(),
        })
    }

    /// Takes in a task.
    pub fn offer(&self, dispatch: Dispatch) -> Result<(), NotTaken> {
        let mut queue = self.queue();
        if !self.is_open() {
            return Err(NotTaken::Closed);
        }
        queue
            .push(dispatch, Instant::now())
            .map_err(NotTaken::Refused)?;
        drop(queue);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next task; none comes once the intake is closed. For one caller at a time.
    pub async fn next(self: &Arc<Self>) -> Option<Held> {
        while self.is_open() {
            if let Some(dispatch) = self.queue().take() {
                let intake = Arc::clone(self);
                return Some(Held {
                    dispatch,
                    intake,
                    is_over: true,
                });
            }
            // A change since the look above is remembered by the `Notify`.
            tokio::select! {
                () = self.changed.notified() => {}
                () = self.closed() => {}
            }
        }
        None
    }

    /// Waits until no task runs on the table at this location, and keeps others from it until the
    /// value is dropped; none once the intake is closed.
    pub async fn hold(self: &Arc<Self>, location: &str) -> Option<HeldTable> {
        while self.is_open() {
            // Made before the look, so that a table that is let go of right after it is noticed.
            let freed = self.freed.notified();
            if let Some(lane) = self.queue().hold(location) {
                return Some(HeldTable {
                    lane: Some(lane),
                    intake: Arc::clone(self),
                });
            }
            tokio::select! {
                () = freed => {}
                () = self.closed() => {}
            }
        }
        None
    }

    /// From now on no task comes in or goes out. What is in hand then.
    pub fn close(&self) -> Vec<InHand> {
        let queue = self.queue();
        self.open.send_replace(false);
        queue.in_hand()
    }

    /// Whether tasks come in and go out.
    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Waits until the intake is closed.
    pub async fn closed(&self) {
        // An error says that the sender is gone, which lives as long as this.
        let _ = self.open.subscribe().wait_for(|open| !open).await;
    }

    /// A task is to be stopped. Nothing happens if it is not in hand.
    pub fn cancel(&self, task_id: &TaskId) {
        // Held, so that the task is not let go of in between.
        let queue = self.queue();
        if queue.has(task_id) {
            self.canceled
                .send_if_modified(|canceled| canceled.insert(task_id.clone()));
        }
    }

    /// Returns when a task is to be stopped.
    pub async fn canceled(&self, task_id: &TaskId) {
        let mut canceled = self.canceled.subscribe();
        // An error says that the sender is gone, which lives as long as this.
        let _ = canceled.wait_for(|all| all.contains(task_id)).await;
    }

    /// Every task that waits or runs.
    pub fn in_hand(&self) -> Vec<InHand> {
        self.queue().in_hand()
    }

    /// How much there is to do.
    pub fn load(&self) -> Load {
        let queue = self.queue();
        Load {
            waiting: queue.waiting(),
            running: queue.running(),
            oldest: queue
                .oldest()
                .map(|since| since.elapsed())
                .unwrap_or_default(),
        }
    }

    /// How many more tasks are welcome.
    pub fn room(&self) -> usize {
        if self.is_open() {
            self.queue().room()
        } else {
            0
        }
    }

    /// A table is no longer busy.
    fn let_go(&self) {
        self.changed.notify_one();
        self.freed.notify_waiters();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing that can panic runs while the lock is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that was taken out; its table is busy until this is dropped.
#[derive(Debug)]
pub struct Held {
    dispatch: Dispatch,
    intake: Arc<Intake>,
    /// Whether the task is done with when this is dropped; else it waits again.
    is_over: bool,
}

impl Held {
    /// The task.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// Puts the task back, to be taken out again before the others of its table.
    pub fn put_back(mut self) {
        self.is_over = false;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut queue = self.intake.queue();
        match self.is_over {
            true => {
                queue.done(&self.dispatch.task_id);
                self.intake
                    .canceled
                    .send_if_modified(|canceled| canceled.remove(&self.dispatch.task_id));
            }
            false => queue.put_back(self.dispatch.clone()),
        }
        drop(queue);
        self.intake.let_go();
    }
}

/// A table on which no task runs until this is dropped.
#[derive(Debug)]
pub struct HeldTable {
    /// There until it is dropped.
    lane: Option<HeldLane>,
    intake: Arc<Intake>,
}

impl Drop for HeldTable {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            self.intake.queue().release(lane);
            self.intake.let_go();
        }
    }
}
