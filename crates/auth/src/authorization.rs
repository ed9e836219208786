//! The `Authorization` header.

use crate::dialect::{DIALECTS, Dialect};
use crate::error::AuthError;

/// `{scheme} Credential={key}/{scope}, SignedHeaders=a;b, Signature={hex}`, the parts in any order,
/// with or without a blank after the commas. OSS4 has `AdditionalHeaders`, which may be left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authorization<'a> {
    pub dialect: &'static Dialect,
    pub credential: &'a str,
    pub headers: Option<&'a str>,
    pub signature: &'a str,
}

impl<'a> Authorization<'a> {
    /// Parses the header's value.
    pub fn parse(text: &'a str) -> Result<Self, AuthError> {
        let (scheme, parts) = text.split_once(' ').unwrap_or((text, ""));
        let dialect = DIALECTS
            .into_iter()
            .find(|dialect| dialect.name == scheme)
            .ok_or(AuthError::UnsupportedScheme)?;
        let [mut credential, mut headers, mut signature] = [None; 3];
        for part in parts.split(',') {
            let (name, value) = part
                .trim_ascii()
                .split_once('=')
                .ok_or_else(|| malformed("not a list of name=value"))?;
            let place = match name {
                "Credential" => &mut credential,
                "Signature" => &mut signature,
                _ if name == dialect.header_list => &mut headers,
                _ => return Err(malformed("of a part that is unknown")),
            };
            if place.replace(value).is_some() {
                return Err(malformed("of a part that is there twice"));
            }
        }
        let missing = |name: &str| malformed(&format!("without {name}"));
        if dialect.header_list_required && headers.is_none() {
            return Err(missing(dialect.header_list));
        }
        Ok(Self {
            dialect,
            credential: credential.ok_or_else(|| missing("Credential"))?,
            headers,
            signature: signature.ok_or_else(|| missing("Signature"))?,
        })
    }
}

fn malformed(what: &str) -> AuthError {
    AuthError::Malformed(format!("the Authorization header is {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{oss4, sigv4};

    #[test]
    #[rustfmt::skip] // a line is a case
    fn reads() {
        let [aws, oss] = [&sigv4::DIALECT, &oss4::DIALECT];
        let cases = [
            (aws, Some("h"), "AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=s"),
            (aws, Some("h"), "AWS4-HMAC-SHA256 Credential=c,SignedHeaders=h,Signature=s"),
            (aws, Some("h"), "AWS4-HMAC-SHA256   Signature=s ,\tSignedHeaders=h,  Credential=c "),
            (oss, Some("h"), "OSS4-HMAC-SHA256 Credential=c,AdditionalHeaders=h,Signature=s"),
            (oss, Some("h"), "OSS4-HMAC-SHA256 Credential=c, AdditionalHeaders=h, Signature=s"),
            (oss, None, "OSS4-HMAC-SHA256 Credential=c,Signature=s"),
        ];
        for (dialect, headers, text) in cases {
            let expected = Authorization { dialect, credential: "c", headers, signature: "s" };
            assert_eq!(Authorization::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    #[rustfmt::skip] // a line is a case
    fn refuses() {
        let cases = [
            ("", None),
            ("Bearer Credential=c, SignedHeaders=h, Signature=s", None),
            ("aws4-hmac-sha256 Credential=c, SignedHeaders=h, Signature=s", None),
            ("AWS4-HMAC-SHA256", Some("not a list of name=value")),
            ("AWS4-HMAC-SHA256 ,", Some("not a list of name=value")),
            ("AWS4-HMAC-SHA256 Credential", Some("not a list of name=value")),
            ("AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=s,", Some("not a list of name=value")),
            ("AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h", Some("without Signature")),
            ("AWS4-HMAC-SHA256 Credential=c, Signature=s", Some("without SignedHeaders")),
            ("AWS4-HMAC-SHA256 SignedHeaders=h, Signature=s", Some("without Credential")),
            ("AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=s, Signature=s", Some("of a part that is there twice")),
            ("AWS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=s, More=1", Some("of a part that is unknown")),
            ("AWS4-HMAC-SHA256 Credential=c, AdditionalHeaders=h, Signature=s", Some("of a part that is unknown")),
            ("OSS4-HMAC-SHA256 Credential=c, SignedHeaders=h, Signature=s", Some("of a part that is unknown")),
            ("OSS4-HMAC-SHA256 Credential=c Signature=s", Some("without Signature")),
        ];
        for (text, what) in cases {
            let expected = what.map_or(AuthError::UnsupportedScheme, malformed);
            assert_eq!(Authorization::parse(text), Err(expected), "{text}");
        }
    }
}
