//! HMAC-SHA256 and the chain of it that turns a secret key into a signing key.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const BLOCK_BYTES: usize = 64;
const DIGEST_BYTES: usize = 32;

/// A key of one day, region and service.
pub(crate) struct SigningKey([u8; DIGEST_BYTES]);

impl SigningKey {
    /// The chain of the version 4 schemes: `prefix + secret`, then one HMAC per part of the scope
    /// (date, region, service, terminator).
    pub(crate) fn derive(prefix: &str, secret: &str, scope: [&str; 4]) -> Self {
        let start = mac([prefix, secret].concat().as_bytes(), scope[0].as_bytes());
        let chain = scope[1..]
            .iter()
            .fold(start, |key, part| mac(&finish(key), part.as_bytes()));
        Self(finish(chain))
    }

    /// The signature of a text.
    pub(crate) fn sign(&self, text: &str) -> [u8; DIGEST_BYTES] {
        finish(mac(&self.0, text.as_bytes()))
    }

    /// Whether this is the signature of the text, in time that does not depend on the answer.
    pub(crate) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        mac(&self.0, text.as_bytes())
            .verify_slice(signature)
            .is_ok()
    }
}

/// Whether two texts are the same, in time that does not depend on where they differ.
pub(crate) fn same(left: &str, right: &str) -> bool {
    // What is compared are digests; a key would add nothing.
    let [left, right] = [left, right].map(|text| mac(&[], text.as_bytes()));
    left.verify_slice(&finish(right)).is_ok()
}

/// HMAC of a message under a key of any length. The key is brought to the size of a block here (RFC
/// 2104, section 2), because the constructor that takes it as it is can fail by its signature.
fn mac(key: &[u8], message: &[u8]) -> Hmac<Sha256> {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..DIGEST_BYTES].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    Hmac::<Sha256>::new(&block.into()).chain_update(message)
}

fn finish(mac: Hmac<Sha256>) -> [u8; DIGEST_BYTES] {
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the AWS documentation.
    #[test]
    fn signing_key() {
        let key = SigningKey::derive(
            "AWS4",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            ["20150830", "us-east-1", "iam", "aws4_request"],
        );
        assert_eq!(
            hex::encode(key.0),
            "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"
        );
    }

    #[test]
    fn texts() {
        let cases = [
            ("", "", true),
            ("token", "token", true),
            ("token", "tokem", false),
            ("token", "token ", false),
            ("", "token", false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(same(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn keys_of_every_length_agree_with_the_fallible_constructor() {
        let bytes = [0xa5; 200];
        for length in [0, 1, 63, 64, 65, 200] {
            let key = &bytes[..length];
            let reference = Hmac::<Sha256>::new_from_slice(key)
                .unwrap()
                .chain_update(b"text");
            assert_eq!(finish(mac(key, b"text")), finish(reference), "{length}");
        }
    }
}
