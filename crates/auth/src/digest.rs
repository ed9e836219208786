//! Digests of bodies.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::Md5;
use sha2::{Digest, Sha256};

use crate::error::AuthError;

/// The SHA-256 of some bytes in lower-case hexadecimal digits, as signatures use it.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Checks a digest of the body, the value of the header with this name, in hexadecimal digits of
/// either case.
pub(crate) fn check_sha256(name: &'static str, value: &str, body: &[u8]) -> Result<(), AuthError> {
    let digest: [u8; 32] = Sha256::digest(body).into();
    let mut claimed = [0; 32];
    match hex::decode_to_slice(value, &mut claimed) {
        Ok(()) if claimed == digest => Ok(()),
        _ => Err(AuthError::PayloadDigest(name)),
    }
}

/// Checks the value of a `Content-MD5` header against the body: base64 of the body's MD5 (API
/// facts, section 2.5). Fails with an error named `InvalidDigest`.
pub fn check_content_md5(value: &[u8], body: &[u8]) -> Result<(), AuthError> {
    let digest: [u8; 16] = STANDARD
        .decode(value.trim_ascii())
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(AuthError::UnreadableContentMd5)?;
    if digest == <[u8; 16]>::from(Md5::digest(body)) {
        Ok(())
    } else {
        Err(AuthError::ContentMd5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_md5() {
        let mismatch = Some(AuthError::ContentMd5);
        let unreadable = Some(AuthError::UnreadableContentMd5);
        let cases = [
            ("mZFLkyvTelC5g8XnyQrpOw==", "{}", &None),
            (" mZFLkyvTelC5g8XnyQrpOw== ", "{}", &None),
            ("1B2M2Y8AsgTpgAmY7PhCfg==", "", &None),
            ("1B2M2Y8AsgTpgAmY7PhCfg==", "{}", &mismatch),
            ("mZFLkyvTelC5g8XnyQrpOw", "{}", &unreadable),
            ("99914b932bd37a50b983c5e7c90ae93b", "{}", &unreadable),
            ("", "", &unreadable),
            ("\u{e9}", "", &unreadable),
        ];
        for (value, body, expected) in cases {
            let got = check_content_md5(value.as_bytes(), body.as_bytes()).err();
            assert_eq!(got, *expected, "{value}");
            assert!(got.is_none_or(|error| error.name() == "InvalidDigest"));
        }
    }
}
