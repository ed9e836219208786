//! Where a Redis server is.

use std::fmt;
use std::sync::Arc;

use redis::{Client, ConnectionAddr};

/// A checked URL of a Redis server. Its text is the address alone: the rest may be secret.
#[derive(Clone)]
pub struct RedisUrl(Arc<Client>);

impl RedisUrl {
    /// Takes what Spin takes, such as `redis://user:password@host:6379/0`, `rediss://` for TLS and
    /// `unix:` for a socket. `None` says no more than that it is none: what is wrong may be in the
    /// password.
    pub fn parse(url: &str) -> Option<Self> {
        Client::open(url).ok().map(|client| Self(Arc::new(client)))
    }

    /// What connects to it.
    pub(super) fn client(&self) -> &Client {
        &self.0
    }

    /// Whether the connection is encrypted.
    pub(super) fn uses_tls(&self) -> bool {
        matches!(
            self.0.get_connection_info().addr(),
            ConnectionAddr::TcpTls { .. }
        )
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.get_connection_info().addr().fmt(formatter)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RedisUrl({self})")
    }
}
