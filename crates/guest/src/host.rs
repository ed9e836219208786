//! Time and randomness, from the host.

use std::time::{SystemTime, UNIX_EPOCH};

use spin_sdk::wasip3::random::random::get_random_bytes;

/// Now, in microseconds since the Unix epoch.
pub fn now_micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Now, in seconds since the Unix epoch.
pub fn now_seconds() -> u64 {
    now_micros().unsigned_abs() / 1_000_000
}

/// Random bytes, fit for secrets.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The host may give fewer bytes than asked for.
    let mut filled = 0;
    while filled < N {
        for byte in get_random_bytes((N - filled) as u64)
            .into_iter()
            .take(N - filled)
        {
            bytes[filled] = byte;
            filled += 1;
        }
    }
    bytes
}

/// A new request id: 24 upper-case hex digits, as OSS has them.
pub fn request_id() -> String {
    hex::encode_upper(random::<12>())
}

/// A new UUID, version 4.
pub fn uuid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex::encode(bytes);
    [
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..],
    ]
    .join("-")
}
