//! The query: where a presigned URL carries its signature.

use crate::dialect::{DIALECTS, Dialect, Parameters};
use crate::error::AuthError;

/// The parameters of a signature in a query, decoded, and the scheme that they are of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QuerySignature {
    pub dialect: &'static Dialect,
    pub values: Parameters<Option<String>>,
}

impl QuerySignature {
    /// Looks for the parameters of a signature, whose names are exact: `x-amz-date` is nobody's.
    /// Names are compared decoded, so that no spelling of a parameter goes unseen. Fails if one is
    /// there twice, or if there are some of both schemes.
    pub fn find(query: &str) -> Result<Option<Self>, AuthError> {
        let mut found: Option<Self> = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            for dialect in DIALECTS {
                let mut unset = Parameters::<()>::default();
                let Some((name, _)) = dialect.query.place(&name, &mut unset) else {
                    continue;
                };
                let found = found.get_or_insert_with(|| Self {
                    dialect,
                    values: Parameters::default(),
                });
                if found.dialect != dialect {
                    return Err(AuthError::SignedTwice);
                }
                let place = dialect.query.place(name, &mut found.values);
                if place.is_some_and(|(_, place)| place.replace(value.to_string()).is_some()) {
                    return Err(AuthError::RepeatedParameter(name));
                }
            }
        }
        Ok(found)
    }
}

/// The pairs of a query as they are on the wire, without those that decode to this name.
pub(crate) fn pairs_without<'a>(
    query: &'a str,
    name: &'a str,
) -> impl Iterator<Item = &'a str> + 'a {
    let is_named = move |pair: &str| {
        form_urlencoded::parse(pair.as_bytes()).any(|(decoded, _)| decoded == name)
    };
    let pairs = (!query.is_empty()).then(|| query.split('&'));
    pairs
        .into_iter()
        .flatten()
        .filter(move |pair| !is_named(pair))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{oss4, sigv4};

    #[test]
    #[rustfmt::skip] // a line is a case
    fn finds() {
        let [aws, oss] = [Some(&sigv4::DIALECT), Some(&oss4::DIALECT)];
        let cases = [
            ("", Ok(None)),
            ("delimiter=%24&x-amz-date=1&X-Amz-Own=1&X-OSS-DATE=1&x-oss-own=1", Ok(None)),
            ("a=1&X-Amz-Date=d&X-Amz-Signature=s", Ok(aws)),
            ("X-Amz-Security-Token", Ok(aws)),
            ("%58-Amz-Date=d&X-Amz-Signature=s", Ok(aws)),
            ("x-oss-date=d&x-oss-signature=s&a", Ok(oss)),
            ("x-oss-signature-version=OSS4-HMAC-SHA256", Ok(oss)),
            ("X-Amz-Date=d&X-Amz-Date=d", Err(AuthError::RepeatedParameter("X-Amz-Date"))),
            ("x-oss-signature=1&%78-oss-signature=2", Err(AuthError::RepeatedParameter("x-oss-signature"))),
            ("X-Amz-Date=d&x-oss-credential=c", Err(AuthError::SignedTwice)),
        ];
        for (query, expected) in cases {
            let got = QuerySignature::find(query).map(|found| found.map(|found| found.dialect));
            assert_eq!(got, expected, "{query}");
        }
        let found = QuerySignature::find("x-oss-credential=a%2Fb&x-oss-date=").unwrap().unwrap();
        assert_eq!(found.values.credential.as_deref(), Some("a/b"));
        assert_eq!(found.values.date.as_deref(), Some(""));
        assert_eq!(found.values.signature, None);
    }

    #[test]
    fn leaves_out_one_parameter() {
        let cases = [
            ("", ""),
            ("a=%24&s=1&b", "a=%24|b"),
            ("s", ""),
            ("%73=1&ss=2&&S=3", "ss=2||S=3"),
        ];
        for (query, expected) in cases {
            let got: Vec<&str> = pairs_without(query, "s").collect();
            assert_eq!(got.join("|"), expected, "{query}");
        }
    }
}
