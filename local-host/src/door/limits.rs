//! How much and how long anything at the door may be. None of it can be set: what a deployment
//! wants stricter belongs in the reverse proxy in front of it.

use std::time::Duration;

/// Header fields of a request; more are 431.
pub const HEADERS: usize = 100;

/// Bytes of a request's head; more are 431.
pub const HEAD_SIZE: usize = 64 << 10;

/// Bytes of a request's target; more are 414.
pub const TARGET_SIZE: usize = 16 << 10;

/// How long a connection may be without a complete head, be it idle or slow. hyper has one clock
/// for both.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// Bytes of a body; more are 413. The application takes less, and says so itself.
pub const BODY_SIZE: u64 = 256 << 20;

/// Bytes of a body that are here before a component gets the request. Most bodies are smaller, so
/// that a slow client holds no instance.
pub const AHEAD_SIZE: usize = 64 << 10;

/// How slowly a body may come.
pub const BODY_PACE: Pace = Pace {
    silence: Duration::from_secs(30),
    grace: Duration::from_secs(30),
    bytes_per_second: 64 << 10,
    total: Duration::from_secs(600),
};

/// Open connections; further clients wait until one is closed. Where the process may open few files,
/// half of those: the key-value store and outgoing requests need some too.
pub const CONNECTIONS: usize = 1024;

/// Requests inside components at once; further ones wait. Calls between components don't count, so
/// this is well below the number of instances.
pub const REQUESTS_INSIDE: usize = 256;

/// How many of these may have a body of which a part is still to come. It bounds what slow clients
/// with large bodies can hold.
pub const UPLOADS_INSIDE: usize = 64;

/// Bytes of all these bodies together, counted in whole MiB. Components may keep a body as a whole, each
/// of those that it passes: so this bounds their memory.
pub const UPLOAD_BYTES: u64 = 256 << 20;

/// What a body counts for whose length is not known before its end.
pub const UNKNOWN_LENGTH: u64 = 32 << 20;

/// How long a request waits for its turn; then it is 503.
pub const TURN_TIME: Duration = Duration::from_secs(10);

/// When those should come back that are turned away because there are too many, in seconds.
pub const RETRY_AFTER: &str = "1";

/// How long a client may take no byte of its answer.
pub const WRITE_TIME: Duration = Duration::from_secs(30);

/// How long, and up to how many bytes, what a refused client still sends is read and dropped. A
/// connection closed with bytes unread is reset, and the client may never see its answer.
pub const LINGER_TIME: Duration = Duration::from_secs(2);
/// See [`LINGER_TIME`]. A little more than the 32 MiB that the application takes: who sends that much and
/// is turned away sees why.
pub const LINGER_SIZE: usize = 36 << 20;

/// How slowly a body may come; a slower one is 408. Only time in which the client was waited for
/// counts.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// How long it may bring nothing.
    pub silence: Duration,
    /// How long it may take, whatever it brings.
    pub grace: Duration,
    /// What buys a second more.
    pub bytes_per_second: u64,
    /// How long it may take at most.
    pub total: Duration,
}

impl Pace {
    /// How long one may have waited for a body of which this much is here.
    pub fn allowed(&self, received: u64) -> Duration {
        let earned = Duration::from_secs(received / self.bytes_per_second.max(1));
        self.grace.saturating_add(earned).min(self.total)
    }
}

/// [`CONNECTIONS`], as far as this process can have them.
pub fn connections() -> usize {
    std::fs::read_to_string("/proc/self/limits")
        .ok()
        .and_then(|limits| open_files(&limits))
        .map_or(CONNECTIONS, |files| (files / 2).clamp(1, CONNECTIONS))
}

/// The soft limit, which is the first of its line.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{BODY_PACE, open_files};

    #[test]
    fn reads_the_limit_of_open_files() {
        for (limits, expected) in [
            (
                "Limit Soft Hard\nMax open files   256   4096   files\n",
                Some(256),
            ),
            ("Max open files   unlimited   unlimited   files\n", None),
            ("Max cpu time   1   1   seconds\n", None),
            ("", None),
        ] {
            assert_eq!(open_files(limits), expected, "{limits}");
        }
    }

    #[test]
    fn bytes_buy_time() {
        for (received, seconds) in [
            (0, 30),
            (64 << 10, 31),
            (64 << 20, 600),
            (1 << 20, 46),
            (u64::MAX, 600),
        ] {
            assert_eq!(BODY_PACE.allowed(received).as_secs(), seconds, "{received}");
        }
    }
}
