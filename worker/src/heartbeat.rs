//! Tells the application that the worker lives, and takes up what the answer lists.

use std::sync::Arc;
use std::time::Duration;

use lance_maintenance_dispatch::tables::Purge;
use lance_maintenance_dispatch::{Dispatch, HEARTBEAT_SECONDS};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::application::Application;
use crate::intake::{Intake, NotTaken};
use crate::logging::task_span;
use crate::metrics::Metrics;
use crate::purges::Purges;
use crate::queue::Refused;

/// The pause after an answer that brought tasks, since there may be more, and after none at all.
const SOON: Duration = Duration::from_secs(1);
/// For how long an answer counts as contact with the application.
const CONTACT: Duration = Duration::from_secs(3 * HEARTBEAT_SECONDS);

/// When the application last answered a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    answered: Arc<watch::Sender<Option<Instant>>>,
}

impl Contact {
    /// Whether the application answered within the last three heartbeats.
    pub fn is_fresh(&self) -> bool {
        self.answered
            .borrow()
            .is_some_and(|answered| answered.elapsed() < CONTACT)
    }

    fn answered(&self) {
        self.answered.send_replace(Some(Instant::now()));
    }
}

/// Sends heartbeats for ever. Until the first answer they say that the worker has just started.
pub async fn run(
    application: Application,
    intake: Arc<Intake>,
    purges: Arc<Purges>,
    contact: Contact,
    metrics: Metrics,
) {
    let mut starting = true;
    let mut silent = false;
    loop {
        let answer = application
            .heartbeat(starting, intake.in_hand(), intake.room())
            .await;
        let pause = match answer {
            Ok(take_up) => {
                contact.answered();
                if starting || silent {
                    tracing::info!("the application answers");
                }
                (starting, silent) = (false, false);
                begin(&purges, take_up.purges);
                for task in &take_up.canceled {
                    intake.cancel(&task.task_id);
                }
                if take_up.tasks.is_empty() {
                    Duration::from_secs(HEARTBEAT_SECONDS)
                } else {
                    take(&intake, take_up.tasks);
                    SOON
                }
            }
            Err(error) => {
                metrics.heartbeat_unanswered();
                // Once is enough in the log, until it answers again.
                if silent {
                    tracing::debug!(%error, "no heartbeat");
                } else {
                    tracing::warn!(%error, "no heartbeat; trying again every second");
                }
                silent = true;
                SOON
            }
        };
        sleep(pause).await;
    }
}

fn take(intake: &Intake, tasks: Vec<Dispatch>) {
    for task in tasks {
        let attempt = task.attempt;
        let _span = task_span(&task).entered();
        match intake.offer(task) {
            Ok(()) => tracing::info!(attempt, "taken up"),
            // It came another way since the heartbeat was sent.
            Err(NotTaken::Refused(Refused::Duplicate)) => {}
            // The rest is listed again.
            Err(NotTaken::Refused(Refused::Full) | NotTaken::Closed) => return,
        }
    }
}

fn begin(purges: &Arc<Purges>, listed: Vec<Purge>) {
    for purge in listed {
        let table_id = purge.table_id.clone();
        if let Err(error) = purges.offer(purge) {
            tracing::warn!(%table_id, %error, "a purge is not taken up");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Tables;
    use crate::testing::{FakeApplication, dispatch};
    use lance_maintenance_dispatch::HEARTBEAT_PATH;
    use lance_maintenance_dispatch::tables::PURGED_PATH;
    use tokio::runtime::Handle;

    #[tokio::test]
    async fn starts_until_answered_then_takes_up() {
        let fake = FakeApplication::start().await;
        fake.answer(HEARTBEAT_PATH, &[503, 200, 200]);
        let (first, second) = (dispatch(1, "/a"), dispatch(2, "/b"));
        fake.list(vec![first.clone(), second.clone()]);
        let (intake, contact) = (Intake::new(9), Contact::default());
        // In hand already: listed by mistake of time, taken once.
        intake.offer(first.clone()).unwrap();
        assert!(!contact.is_fresh());
        let purges = Purges::new(
            Tables::default(),
            Arc::clone(&intake),
            fake.client(),
            Handle::current(),
        );
        let folder = tempfile::tempdir().unwrap();
        fake.list_purges(vec![
            Purge {
                table_id: "T".to_owned(),
                location: format!("file://{}/t.lance", folder.path().display()),
            },
            Purge {
                table_id: "no table's".to_owned(),
                location: "file:///".to_owned(),
            },
        ]);
        let beating = tokio::spawn(run(
            fake.client(),
            Arc::clone(&intake),
            purges,
            contact.clone(),
            Metrics::new(),
        ));
        let purged = fake.wait_for(PURGED_PATH, 1).await;
        assert_eq!(
            purged,
            [serde_json::json!({"worker_id": "worker-1", "table_id": "T"})]
        );
        let calls = fake.wait_for(HEARTBEAT_PATH, 3).await;
        beating.abort();

        let flags: Vec<_> = calls.iter().map(|call| call["starting"].clone()).collect();
        assert_eq!(flags, [true, true, false]);
        assert_eq!(calls[0]["room"], 8);
        assert_eq!(calls[0]["in_hand"][0]["task_id"], first.task_id.as_str());
        assert_eq!(calls[2]["in_hand"].as_array().unwrap().len(), 2);
        assert!(contact.is_fresh());
        let taken = [intake.next().await.unwrap(), intake.next().await.unwrap()];
        assert_eq!(taken.map(|held| held.dispatch().clone()), [first, second]);
    }
}
