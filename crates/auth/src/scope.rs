//! The credential scope: on which day, in which region and for which service a signature is good.

use crate::dialect::{Dialect, SERVICE};
use crate::digest::sha256_hex;
use crate::error::AuthError;
use crate::mac::SigningKey;
use crate::secret::Secret;

/// `{yyyymmdd}/{region}/{service}/{terminator}` of a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub dialect: &'static Dialect,
    pub date: String,
    pub region: String,
    pub service: String,
}

impl Scope {
    /// The scope that a client signs for.
    pub fn new(dialect: &'static Dialect, date: &str, region: &str) -> Self {
        Self {
            dialect,
            date: date.to_owned(),
            region: region.to_owned(),
            service: SERVICE.to_owned(),
        }
    }

    /// Reads `{key}/{scope}`; gives the access key and its scope. From the right: a scope has no
    /// slashes of its own, an access key might.
    pub fn parse(dialect: &'static Dialect, credential: &str) -> Result<(String, Self), AuthError> {
        let parts: Vec<&str> = credential.rsplitn(5, '/').collect();
        match <[&str; 5]>::try_from(parts) {
            Ok(parts @ [terminator, service, region, date, access_key_id])
                if terminator == dialect.terminator
                    && parts.iter().all(|part| !part.is_empty()) =>
            {
                let scope = Self {
                    dialect,
                    date: date.to_owned(),
                    region: region.to_owned(),
                    service: service.to_owned(),
                };
                Ok((access_key_id.to_owned(), scope))
            }
            _ => Err(AuthError::Malformed(format!(
                "the credential is not key/date/region/service/{}",
                dialect.terminator
            ))),
        }
    }

    /// `{key}/{scope}`.
    pub fn credential(&self, access_key_id: &str) -> String {
        format!("{access_key_id}/{}", self.text())
    }

    /// The key that signs in this scope.
    pub fn key(&self, secret: &Secret) -> SigningKey {
        SigningKey::derive(self.dialect.key_prefix, secret.expose(), self.parts())
    }

    /// What is signed: scheme, time, scope and the digest of the canonical request.
    pub fn string_to_sign(&self, time: &str, canonical_request: &[u8]) -> String {
        let (name, scope) = (self.dialect.name, self.text());
        format!("{name}\n{time}\n{scope}\n{}", sha256_hex(canonical_request))
    }

    fn text(&self) -> String {
        self.parts().join("/")
    }

    fn parts(&self) -> [&str; 4] {
        let terminator = self.dialect.terminator;
        [&self.date, &self.region, &self.service, terminator]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{oss4, sigv4};

    #[test]
    fn credentials() {
        let [aws, oss] = [&sigv4::DIALECT, &oss4::DIALECT];
        let cases = [
            (aws, "ak/d/r/s/aws4_request", Some(("ak", "d", "r", "s"))),
            (aws, "a/k/d/r/s/aws4_request", Some(("a/k", "d", "r", "s"))),
            (
                oss,
                "ak/d/r/s/aliyun_v4_request",
                Some(("ak", "d", "r", "s")),
            ),
            (aws, "ak/d/r/s/aliyun_v4_request", None),
            (oss, "ak/d/r/s/aws4_request", None),
            (aws, "d/r/s/aws4_request", None),
            (aws, "/d/r/s/aws4_request", None),
            (aws, "ak/d//s/aws4_request", None),
            (aws, "ak/d/r/s/", None),
            (aws, "", None),
        ];
        for (dialect, text, expected) in cases {
            let got = Scope::parse(dialect, text);
            let parts = got.as_ref().ok().map(|(key, scope)| {
                let Scope {
                    date,
                    region,
                    service,
                    ..
                } = scope;
                (
                    key.as_str(),
                    date.as_str(),
                    region.as_str(),
                    service.as_str(),
                )
            });
            assert_eq!(parts, expected, "{text}");
            if let Ok((key, scope)) = got {
                assert_eq!(scope.credential(&key), text);
            }
        }
    }
}
