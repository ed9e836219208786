//! What a signature says of itself.

use std::collections::BTreeSet;

use crate::authorization::Authorization;
use crate::dialect::{DIALECTS, Dialect};
use crate::error::AuthError;
use crate::query::QuerySignature;
use crate::request::RequestParts;
use crate::scope::Scope;
use crate::secret::Secret;
use crate::time;
use crate::validity::{Expiry, Validity};

/// What a signature says of itself: well-formed, and nothing of it is believed yet.
#[derive(Debug)]
pub(crate) struct Claim {
    pub access_key_id: String,
    pub scope: Scope,
    /// The request's time as it is written, and the time of its validity.
    pub date: String,
    pub validity: Validity,
    /// Lower-case names of the headers that are listed as signed, in that order, each once.
    pub headers: Vec<String>,
    pub token: Option<Secret>,
    pub signature: [u8; 32],
}

impl Claim {
    /// Reads the signature of a request, which has one: in a header or in the query.
    pub fn read(request: &RequestParts<'_>) -> Result<Self, AuthError> {
        let in_query = QuerySignature::find(request.query.unwrap_or_default())?;
        let authorization = request.single_text("authorization")?;
        let claim = match (authorization, in_query) {
            (None, None) => return Err(AuthError::NotSigned),
            (Some(_), Some(_)) => return Err(AuthError::SignedTwice),
            (Some(text), None) => Self::in_header(request, &Authorization::parse(text)?)?,
            (None, Some(signature)) => Self::in_query(signature)?,
        };
        claim.check_token_headers(request)?;
        Ok(claim)
    }

    /// The scheme of the signature.
    pub fn dialect(&self) -> &'static Dialect {
        self.scope.dialect
    }

    /// Whether the signature is in the query.
    pub fn is_in_query(&self) -> bool {
        self.validity.expiry.is_some()
    }

    fn in_header(
        request: &RequestParts<'_>,
        authorization: &Authorization<'_>,
    ) -> Result<Self, AuthError> {
        let dialect = authorization.dialect;
        let (access_key_id, scope) = Scope::parse(dialect, authorization.credential)?;
        let date = request.single_text(dialect.date_header)?;
        let (date, time) = dated(dialect.date_header, date, &scope)?;
        let token = request.single_text(dialect.token_header)?;
        Ok(Self {
            access_key_id,
            scope,
            date,
            validity: Validity { time, expiry: None },
            headers: header_names(authorization.headers)?,
            token: token.map(Secret::new),
            signature: parse_signature(authorization.signature)?,
        })
    }

    fn in_query(signature: QuerySignature) -> Result<Self, AuthError> {
        let QuerySignature { dialect, values } = signature;
        let names = &dialect.query;
        let required = |name: &'static str, value: Option<String>| {
            value.ok_or_else(|| AuthError::Malformed(format!("the query is without {name}")))
        };
        if required(names.algorithm, values.algorithm)? != dialect.name {
            return Err(AuthError::UnsupportedScheme);
        }
        let credential = required(names.credential, values.credential)?;
        let (access_key_id, scope) = Scope::parse(dialect, &credential)?;
        let (date, time) = dated(names.date, values.date.as_deref(), &scope)?;
        let expires = required(names.expires, values.expires)?;
        let expiry = Expiry::parse(names.expires, &expires)?;
        let headers = match dialect.header_list_required {
            true => Some(required(names.headers, values.headers)?),
            false => values.headers,
        };
        Ok(Self {
            access_key_id,
            scope,
            date,
            validity: Validity {
                time,
                expiry: Some(expiry),
            },
            headers: header_names(headers.as_deref())?,
            token: values.token.map(Secret::new),
            signature: parse_signature(&required(names.signature, values.signature)?)?,
        })
    }

    /// A session token where this signature does not have its token would be one too many: it is
    /// not signed, or it is signed and nobody looks at it.
    fn check_token_headers(&self, request: &RequestParts<'_>) -> Result<(), AuthError> {
        for dialect in DIALECTS {
            let own = dialect == self.dialect() && !self.is_in_query();
            if !own && request.single(dialect.token_header)?.is_some() {
                return Err(AuthError::Malformed(format!(
                    "it has no place for a session token in the header {}",
                    dialect.token_header
                )));
            }
        }
        Ok(())
    }
}

/// The request's time as text and in seconds; it is on the day of the scope.
fn dated(
    name: &'static str,
    text: Option<&str>,
    scope: &Scope,
) -> Result<(String, i64), AuthError> {
    let unreadable = AuthError::UnreadableDate(name);
    let text = text.ok_or_else(|| unreadable.clone())?;
    let seconds = time::parse(text).ok_or(unreadable)?;
    match text.strip_prefix(&scope.date) {
        Some(rest) if rest.starts_with('T') => Ok((text.to_owned(), seconds)),
        _ => Err(AuthError::OtherDate(name)),
    }
}

fn header_names(list: Option<&str>) -> Result<Vec<String>, AuthError> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let names: Vec<&str> = list.split(';').collect();
    let mut distinct = BTreeSet::new();
    let acceptable = names.iter().all(|name| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
            && distinct.insert(*name)
    });
    if acceptable {
        Ok(names.into_iter().map(str::to_owned).collect())
    } else {
        Err(AuthError::Malformed(
            "the signed headers are not distinct lower-case names".to_owned(),
        ))
    }
}

fn parse_signature(text: &str) -> Result<[u8; 32], AuthError> {
    let mut signature = [0; 32];
    hex::decode_to_slice(text, &mut signature)
        .map(|()| signature)
        .map_err(|_| AuthError::Malformed("the signature is not 64 hexadecimal digits".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_headers() {
        let cases = [
            (None, Some(vec![])),
            (Some("host"), Some(vec!["host"])),
            (Some("host;x-amz-date"), Some(vec!["host", "x-amz-date"])),
            (Some("b;a"), Some(vec!["b", "a"])),
            (Some(""), None),
            (Some("host;"), None),
            (Some("Host"), None),
            (Some("host;host"), None),
            (Some("ho st"), None),
            (Some("h\u{e9}"), None),
        ];
        for (list, expected) in cases {
            let names = header_names(list).ok();
            let expected = expected.map(|names| names.into_iter().map(str::to_owned).collect());
            assert_eq!(names, expected, "{list:?}");
        }
    }

    #[test]
    fn signatures() {
        let cases = [
            ("0a".repeat(32), Some([10; 32])),
            ("0A".repeat(32), Some([10; 32])),
            ("0a".repeat(33), None),
            ("0a".to_owned(), None),
            ("zz".repeat(32), None),
            ("\u{e9}".repeat(32), None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_signature(&text).ok(), expected, "{text}");
        }
    }
}
