//! How messages are signed: HMAC-SHA256 over method, path, timestamp and body digest, with a secret
//! that the application and its workers share.
//!
//! ```text
//! x-lance-timestamp: <Unix seconds>
//! x-lance-signature: hex(HMAC-SHA256(SHA-256(secret), text))
//! text:              METHOD \n path \n timestamp \n hex(SHA-256(body))
//! ```

use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The header that carries the time of signing, in seconds since the Unix epoch.
pub const TIMESTAMP_HEADER: &str = "x-lance-timestamp";
/// The header that carries the signature, in hex.
pub const SIGNATURE_HEADER: &str = "x-lance-signature";
/// How far the time of signing may be from the receiver's, in seconds.
pub const WINDOW_SECONDS: u64 = 300;

/// Why a message is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// A header is missing or can't be read.
    #[error("the message is not signed")]
    Missing,
    /// The time of signing is too far from now.
    #[error("the message was signed more than {WINDOW_SECONDS} seconds from now")]
    Expired,
    /// The signature is not the one that the secret gives.
    #[error("the signature does not match")]
    Mismatch,
}

/// Signs a message; the answer goes into [`SIGNATURE_HEADER`].
pub fn sign(secret: &str, method: &str, path: &str, timestamp: u64, body: &[u8]) -> String {
    hex::encode(
        mac(secret, method, path, timestamp, body)
            .finalize()
            .into_bytes(),
    )
}

/// Checks a message by the values of its two headers. `now` is in seconds since the Unix epoch.
pub fn verify(
    secret: &str,
    method: &str,
    path: &str,
    timestamp: Option<&str>,
    signature: Option<&str>,
    body: &[u8],
    now: u64,
) -> Result<(), SignatureError> {
    let timestamp: u64 = timestamp
        .and_then(|text| text.parse().ok())
        .ok_or(SignatureError::Missing)?;
    let signature = signature
        .and_then(|text| hex::decode(text).ok())
        .ok_or(SignatureError::Missing)?;
    if timestamp.abs_diff(now) > WINDOW_SECONDS {
        return Err(SignatureError::Expired);
    }
    // Compares in constant time.
    mac(secret, method, path, timestamp, body)
        .verify_slice(&signature)
        .map_err(|_| SignatureError::Mismatch)
}

fn mac(secret: &str, method: &str, path: &str, timestamp: u64, body: &[u8]) -> Hmac<Sha256> {
    let mut key = Key::<Hmac<Sha256>>::default();
    // The key's type is as long as the hash's block: what is left stays zero, as HMAC pads it.
    key.iter_mut()
        .zip(Sha256::digest(secret))
        .for_each(|(slot, byte)| *slot = byte);
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&key);
    let digest = hex::encode(Sha256::digest(body));
    mac.update(format!("{method}\n{path}\n{timestamp}\n{digest}").as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_believed() {
        let signature = sign("s", "POST", "/v1/tasks", 1000, b"{}");
        let check = |secret, method, path, timestamp, body: &[u8], now| {
            verify(
                secret,
                method,
                path,
                Some(timestamp),
                Some(&signature),
                body,
                now,
            )
        };
        let cases = [
            (check("s", "POST", "/v1/tasks", "1000", b"{}", 1000), Ok(())),
            (check("s", "POST", "/v1/tasks", "1000", b"{}", 1300), Ok(())),
            (check("s", "POST", "/v1/tasks", "1000", b"{}", 700), Ok(())),
            (
                check("s", "POST", "/v1/tasks", "1000", b"{}", 1301),
                Err(SignatureError::Expired),
            ),
            (
                check("s", "POST", "/v1/tasks", "1000", b"{}", 699),
                Err(SignatureError::Expired),
            ),
            (
                check("t", "POST", "/v1/tasks", "1000", b"{}", 1000),
                Err(SignatureError::Mismatch),
            ),
            (
                check("s", "GET", "/v1/tasks", "1000", b"{}", 1000),
                Err(SignatureError::Mismatch),
            ),
            (
                check("s", "POST", "/v1/other", "1000", b"{}", 1000),
                Err(SignatureError::Mismatch),
            ),
            (
                check("s", "POST", "/v1/tasks", "1001", b"{}", 1000),
                Err(SignatureError::Mismatch),
            ),
            (
                check("s", "POST", "/v1/tasks", "1000", b"[]", 1000),
                Err(SignatureError::Mismatch),
            ),
            (
                check("s", "POST", "/v1/tasks", "x", b"{}", 1000),
                Err(SignatureError::Missing),
            ),
            (
                verify("s", "POST", "/", None, None, b"", 0),
                Err(SignatureError::Missing),
            ),
            (
                verify("s", "POST", "/", Some("0"), Some("zz"), b"", 0),
                Err(SignatureError::Missing),
            ),
        ];
        for (index, (seen, expected)) in cases.into_iter().enumerate() {
            assert_eq!(seen, expected, "case {index}");
        }
    }

    proptest! {
        #[test]
        fn what_is_signed_is_believed(secret: String, path: String, time: u64, body: Vec<u8>) {
            let signature = sign(&secret, "POST", &path, time, &body);
            let time_text = time.to_string();
            prop_assert_eq!(
                verify(&secret, "POST", &path, Some(&time_text), Some(&signature), &body, time),
                Ok(())
            );
        }
    }
}
