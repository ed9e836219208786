//! One connection to a Redis server, shared by all requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind};
use tokio::time::timeout;

use super::RedisUrl;

/// Why a command has no result.
pub(super) enum Failure {
    /// No answer within this time.
    NoAnswer(Duration),
    /// The server refused, or can't be reached.
    Redis(RedisError),
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

/// Made when it is first needed, and again after it was lost. Clones share it.
///
/// No command is sent twice: whether one that got no answer was carried out can't be known, so that
/// is for the caller to decide. One that is late counts as lost with its connection: a machine that
/// is gone without a word would keep it for minutes.
#[derive(Clone)]
pub(super) struct Connection {
    url: RedisUrl,
    patience: Duration,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    current: Mutex<Current>,
    /// Held by whoever connects.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Current {
    /// Tells the connection from those before it.
    number: u64,
    connection: Option<MultiplexedConnection>,
}

impl Connection {
    /// `patience` is the time for one call, connecting included.
    pub(super) fn new(url: RedisUrl, patience: Duration) -> Self {
        if url.uses_tls() {
            // There may be several to choose from. If this fails, it is chosen already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Self {
            url,
            patience,
            state: Arc::default(),
        }
    }

    /// Sends a command and waits for the answer.
    pub(super) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Failure> {
        self.in_time(async |used| self.send(command, used).await)
            .await
    }

    /// Asks for a sign of life, and connects again where there is none.
    pub(super) async fn check(&self) -> Result<(), Failure> {
        self.in_time(async |used| {
            let ping: Result<(), _> = self.send(&redis::cmd("PING"), used).await;
            match ping {
                Err(error) if is_lost(&error) => {
                    self.forget(used.take());
                    self.connect().await.map(drop)
                }
                // A refusal is a sign of life too.
                _ => Ok(()),
            }
        })
        .await
    }

    /// Runs `work`, which tells the number of the connection that it uses.
    async fn in_time<T>(
        &self,
        work: impl AsyncFnOnce(&mut Option<u64>) -> Result<T, RedisError>,
    ) -> Result<T, Failure> {
        let mut used = None;
        let result = match timeout(self.patience, work(&mut used)).await {
            Ok(result) => result.map_err(Failure::Redis),
            Err(_) => Err(Failure::NoAnswer(self.patience)),
        };
        match &result {
            Ok(_) => {}
            Err(Failure::Redis(error)) if !is_lost(error) => {}
            Err(_) => self.forget(used),
        }
        result
    }

    async fn send<T: FromRedisValue>(
        &self,
        command: &Cmd,
        used: &mut Option<u64>,
    ) -> Result<T, RedisError> {
        let (number, mut connection) = self.connect().await?;
        *used = Some(number);
        command.query_async(&mut connection).await
    }

    /// The connection there is, or a new one. Whoever comes while one is made waits for it.
    async fn connect(&self) -> Result<(u64, MultiplexedConnection), RedisError> {
        if let Some(current) = self.current() {
            return Ok(current);
        }
        let _turn = self.state.turn.lock().await;
        if let Some(current) = self.current() {
            return Ok(current);
        }
        // The time is limited by the caller.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = self
            .url
            .client()
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        let mut current = self.lock();
        current.number += 1;
        current.connection = Some(connection.clone());
        Ok((current.number, connection))
    }

    fn current(&self) -> Option<(u64, MultiplexedConnection)> {
        let current = self.lock();
        Some((current.number, current.connection.clone()?))
    }

    /// Makes the next call connect again, unless that has happened since.
    fn forget(&self, number: Option<u64>) {
        let mut current = self.lock();
        if number == Some(current.number) {
            current.connection = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.state
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the connection is of no more use.
fn is_lost(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        // It leads to what is a replica by now; the address may lead to the new master.
        || error.kind() == ErrorKind::Server(ServerErrorKind::ReadOnly)
}
