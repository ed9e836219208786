//! When a signature is good.

use crate::error::AuthError;

/// How far a request's time may be from the verifier's, before and after.
pub const CLOCK_WINDOW_SECONDS: u64 = 15 * 60;

/// For how long a presigned URL may be good: seven days.
pub const MAX_EXPIRES_SECONDS: u32 = 7 * 24 * 60 * 60;

/// The time of a request, and for how long after it the signature is good if that is in the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    /// Seconds since 1970.
    pub time: i64,
    pub expiry: Option<Expiry>,
}

impl Validity {
    /// Checks that the signature is good now (seconds since 1970). In a header it is for the clock
    /// window before and after; in the query from the window before until it expires.
    pub fn check(self, now: i64) -> Result<(), AuthError> {
        let off = self.time.abs_diff(now);
        let Some(Expiry(seconds)) = self.expiry.filter(|_| now >= self.time) else {
            return match off {
                0..=CLOCK_WINDOW_SECONDS => Ok(()),
                _ => Err(AuthError::TimeTooSkewed(off)),
            };
        };
        match off.checked_sub(seconds.into()) {
            None | Some(0) => Ok(()),
            Some(since) => Err(AuthError::Expired(since)),
        }
    }
}

/// For how many seconds a presigned URL is good, 1 to [`MAX_EXPIRES_SECONDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expiry(u32);

impl Expiry {
    /// Takes the value of the parameter with this name.
    pub fn new(name: &'static str, seconds: u32) -> Result<Self, AuthError> {
        match seconds {
            1..=MAX_EXPIRES_SECONDS => Ok(Self(seconds)),
            _ => Err(AuthError::UnreadableExpiry(name)),
        }
    }

    /// Reads it. Digits only: the parser would take a sign.
    pub fn parse(name: &'static str, text: &str) -> Result<Self, AuthError> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = text.parse().ok().filter(|_| digits).unwrap_or(0);
        Self::new(name, seconds)
    }

    /// The number of seconds.
    pub fn seconds(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: i64 = 1_785_200_523;

    #[test]
    #[rustfmt::skip] // a line is a case
    fn windows() {
        let query = |seconds| Some(Expiry(seconds));
        let cases = [
            (None, 0, Ok(())),
            (None, 900, Ok(())),
            (None, -900, Ok(())),
            (None, 901, Err(AuthError::TimeTooSkewed(901))),
            (None, -901, Err(AuthError::TimeTooSkewed(901))),
            (None, i64::MAX - TIME, Err(AuthError::TimeTooSkewed((i64::MAX - TIME) as u64))),
            (query(60), -900, Ok(())),
            (query(60), -901, Err(AuthError::TimeTooSkewed(901))),
            (query(60), 60, Ok(())),
            (query(60), 61, Err(AuthError::Expired(1))),
            (query(604_800), 604_800, Ok(())),
            (query(604_800), 604_802, Err(AuthError::Expired(2))),
        ];
        for (expiry, offset, expected) in cases {
            let validity = Validity { time: TIME, expiry };
            assert_eq!(validity.check(TIME + offset), expected, "{expiry:?} {offset}");
        }
    }

    #[test]
    fn expiries() {
        let cases = [
            ("1", Some(1)),
            ("604800", Some(604_800)),
            ("060", Some(60)),
            ("0", None),
            ("604801", None),
            ("4294967297", None),
            ("+60", None),
            ("-1", None),
            ("1.5", None),
            (" 60", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let got = Expiry::parse("x-oss-expires", text).map(Expiry::seconds);
            let expected = expected.ok_or(AuthError::UnreadableExpiry("x-oss-expires"));
            assert_eq!(got, expected, "{text}");
        }
    }
}
