//! The application as the worker calls it.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_dispatch::tables::{PURGED_PATH, Purged};
use lance_maintenance_dispatch::{
    CLAIM_PATH, Claim, Claimed, Dispatch, FINISH_PATH, Finish, HEARTBEAT_PATH, Heartbeat, InHand,
    LEAVE_PATH, Leave, Outcome, PROGRESS_PATH, Report, TURN_SECONDS, TakeUp, signature,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use crate::progress;
use crate::time::unix_seconds;

/// How long one call may take.
const CALL: Duration = Duration::from_secs(15);
/// How long the first heartbeat may take, for which the application looks at everything it stores.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(120);
/// How long leaving may take, in pauses and in each call.
const LEAVING: Duration = Duration::from_secs(3);
/// How much of an error's body goes into the log, in characters.
const MAX_DETAIL: usize = 300;

/// Why a call did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The attempt is not this worker's, or its task is gone (409, 404).
    #[error("the attempt is lost: {0}")]
    Lost(String),
    /// The application does not understand the call and never will (400, 413).
    #[error("the application refuses the call: {0}")]
    Refused(String),
    /// Anything else: the same call may succeed later.
    #[error("the application can't be reached: {0}")]
    Unreachable(String),
}

impl CallError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}

/// How calls that fail are repeated: with pauses that grow from the first to the longest.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// How long an end of an attempt is repeated, in pauses. A result must outlive a restart of
    /// the application.
    pub finish: Duration,
    /// The pause before a claim is repeated whose table is another task's.
    pub turn: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(5),
            finish: Duration::from_secs(600),
            turn: Duration::from_secs(TURN_SECONDS),
        }
    }
}

impl Patience {
    fn pauses(&self) -> ExponentialBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_jitter()
            .without_max_times()
    }
}

/// The application, called under this worker's name.
#[derive(Clone, Debug)]
pub struct Application {
    client: Client,
    url: Url,
    secret: SecretString,
    worker_id: String,
    /// Which of the worker's lives this is.
    incarnation: String,
    patience: Patience,
}

impl Application {
    /// The application at `url`, which ends after host and port.
    pub fn new(
        url: Url,
        secret: SecretString,
        worker_id: String,
        patience: Patience,
    ) -> Result<Self, reqwest::Error> {
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            // The application is a neighbour, not something on the internet.
            .no_proxy()
            .build()?;
        Ok(Self {
            client,
            url,
            secret,
            worker_id,
            incarnation: Uuid::new_v4().simple().to_string(),
            patience,
        })
    }

    /// How long to wait before a claim is repeated whose table is another task's.
    pub fn turn_pause(&self) -> Duration {
        self.patience.turn
    }

    /// This worker's name for a task's attempt.
    pub fn claim_of(&self, dispatch: &Dispatch) -> Claim {
        Claim {
            worker_id: self.worker_id.clone(),
            incarnation: self.incarnation.clone(),
            task: dispatch.address(),
            attempt: dispatch.attempt,
        }
    }

    /// Claims an attempt. Repeated until the application answers: there is nothing else to do with
    /// a task that was taken in.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, CallError> {
        let call = || self.call(CLAIM_PATH, claim, CALL);
        call.retry(self.patience.pauses())
            .when(CallError::may_pass)
            .notify(|error, pause| tracing::warn!(%error, ?pause, "claiming again soon"))
            .await
    }

    /// Says how far an attempt is, once. The answer says whether its task is to be stopped.
    pub async fn progress(
        &self,
        claim: &Claim,
        report: progress::Report,
    ) -> Result<Claimed, CallError> {
        let report = Report {
            claim: claim.clone(),
            percent: report.percent,
            message: report.message,
        };
        self.call(PROGRESS_PATH, &report, CALL).await
    }

    /// Whether an attempt is still this worker's. Repeated until the application answers: until then
    /// it is not known.
    pub async fn confirm(
        &self,
        claim: &Claim,
        report: progress::Report,
    ) -> Result<Claimed, CallError> {
        let call = || self.progress(claim, report.clone());
        call.retry(self.patience.pauses())
            .when(CallError::may_pass)
            .notify(|error, pause| tracing::warn!(%error, ?pause, "asking again soon"))
            .await
    }

    /// Ends an attempt, which ran with these parameters if they were not all given. Repeated for as long
    /// as [`Patience::finish`] says.
    pub async fn finish(
        &self,
        claim: &Claim,
        outcome: Outcome,
        params: Option<TaskParams>,
    ) -> Result<(), CallError> {
        let finish = Finish {
            claim: claim.clone(),
            outcome,
            params,
        };
        let call = || self.call::<_, Claimed>(FINISH_PATH, &finish, CALL);
        call.retry(
            self.patience
                .pauses()
                .with_total_delay(Some(self.patience.finish)),
        )
        .when(CallError::may_pass)
        .notify(|error, pause| tracing::warn!(%error, ?pause, "reporting the end again soon"))
        .await?;
        Ok(())
    }

    /// Says that the data of a dropped table has been removed. Repeated like the end of an attempt;
    /// the application asks again if it never hears of it.
    pub async fn purged(&self, table_id: &str) -> Result<(), CallError> {
        let purged = Purged {
            worker_id: self.worker_id.clone(),
            table_id: table_id.to_owned(),
        };
        let call = || self.call::<_, Claimed>(PURGED_PATH, &purged, CALL);
        call.retry(
            self.patience
                .pauses()
                .with_total_delay(Some(self.patience.finish)),
        )
        .when(CallError::may_pass)
        .notify(|error, pause| tracing::warn!(%error, ?pause, "reporting a purge again soon"))
        .await?;
        Ok(())
    }

    /// Hands back what the worker had in hand when it began to stop, and leaves. Repeated for a short
    /// while: nobody waits long for a worker that stops.
    pub async fn leave(&self, in_hand: Vec<InHand>) -> Result<(), CallError> {
        let leave = Leave {
            worker_id: self.worker_id.clone(),
            in_hand,
        };
        let call = || self.call::<_, Claimed>(LEAVE_PATH, &leave, LEAVING);
        call.retry(self.patience.pauses().with_total_delay(Some(LEAVING)))
            .when(CallError::may_pass)
            .await?;
        Ok(())
    }

    /// Says that the worker lives, once.
    pub async fn heartbeat(
        &self,
        starting: bool,
        in_hand: Vec<InHand>,
        room: usize,
    ) -> Result<TakeUp, CallError> {
        let heartbeat = Heartbeat {
            worker_id: self.worker_id.clone(),
            incarnation: self.incarnation.clone(),
            starting,
            in_hand,
            room,
        };
        let limit = if starting { FIRST_HEARTBEAT } else { CALL };
        self.call(HEARTBEAT_PATH, &heartbeat, limit).await
    }

    async fn call<Message: Serialize, Answer: DeserializeOwned>(
        &self,
        path: &str,
        message: &Message,
        limit: Duration,
    ) -> Result<Answer, CallError> {
        let body =
            serde_json::to_vec(message).map_err(|error| CallError::Refused(error.to_string()))?;
        let mut url = self.url.clone();
        url.set_path(path);
        let now = unix_seconds();
        let signature = signature::sign(self.secret.expose_secret(), "POST", path, now, &body);
        let response = self
            .client
            .post(url)
            .timeout(limit)
            .header(CONTENT_TYPE, "application/json")
            .header(signature::TIMESTAMP_HEADER, now)
            .header(signature::SIGNATURE_HEADER, signature)
            .body(body)
            .send()
            .await
            .map_err(unreachable)?;
        let status = response.status();
        let body = response.bytes().await.map_err(unreachable)?;
        let detail = || {
            let text = String::from_utf8_lossy(&body);
            let text: String = text.chars().take(MAX_DETAIL).collect();
            format!("{status} {text}")
        };
        match status {
            StatusCode::OK => serde_json::from_slice(&body)
                .map_err(|error| CallError::Unreachable(format!("{error} in {}", detail()))),
            StatusCode::CONFLICT | StatusCode::NOT_FOUND => Err(CallError::Lost(detail())),
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE => {
                Err(CallError::Refused(detail()))
            }
            _ => Err(CallError::Unreachable(detail())),
        }
    }
}

/// What went wrong on the way, with its causes: the outer error alone says hardly anything.
fn unreachable(error: reqwest::Error) -> CallError {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    CallError::Unreachable(text)
}
