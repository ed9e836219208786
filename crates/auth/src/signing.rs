//! Signing, for tests, tools and clients: what both schemes do alike.

use crate::dialect::Dialect;
use crate::encoding;
use crate::error::AuthError;
use crate::query::QuerySignature;
use crate::request::RequestParts;
use crate::scope::Scope;
use crate::secret::Secret;
use crate::time;
use crate::validity::Expiry;

/// What a client signs with.
#[derive(Clone, Copy, Debug)]
pub struct AccessKey<'a> {
    /// The key's public half.
    pub id: &'a str,
    /// The key's secret half.
    pub secret: &'a Secret,
    /// The token of a session; a permanent key has none.
    pub session_token: Option<&'a Secret>,
}

/// The headers that make a request a signed one.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedHeaders(Vec<(&'static str, String)>);

impl SignedHeaders {
    /// Names (in lower case) and values, to be added to the request.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The headers of a request and then these.
    pub(crate) fn beside<'a>(
        &'a self,
        headers: &[(&'a str, &'a [u8])],
    ) -> Vec<(&'a str, &'a [u8])> {
        let own = self.iter().map(|(name, value)| (name, value.as_bytes()));
        headers.iter().copied().chain(own).collect()
    }
}

/// A key in the scope and at the time of one signature.
pub(crate) struct Signing<'a> {
    key: &'a AccessKey<'a>,
    scope: Scope,
    date: String,
}

impl<'a> Signing<'a> {
    /// Signs for a region as of a time (seconds since 1970). Fails if the request is signed
    /// already, or if the year does not have four digits.
    pub fn new(
        dialect: &'static Dialect,
        request: &RequestParts<'_>,
        key: &'a AccessKey<'a>,
        region: &str,
        now_unix_seconds: i64,
    ) -> Result<Self, AuthError> {
        let in_query = QuerySignature::find(request.query.unwrap_or_default())?.is_some();
        if in_query || request.single("authorization")?.is_some() {
            return Err(AuthError::SignedTwice);
        }
        let date =
            time::format(now_unix_seconds).ok_or(AuthError::UnreadableDate(dialect.date_header))?;
        let day = date.split('T').next().unwrap_or_default();
        Ok(Self {
            key,
            scope: Scope::new(dialect, day, region),
            date,
        })
    }

    /// The signature of a canonical request, in hexadecimal digits.
    pub fn sign(&self, canonical_request: &[u8]) -> String {
        let text = self.scope.string_to_sign(&self.date, canonical_request);
        hex::encode(self.scope.key(self.key.secret).sign(&text))
    }

    /// The headers that are added before the signature is made: time, session token, and the
    /// digest if there is to be one.
    pub fn headers(&self, digest: Option<String>) -> SignedHeaders {
        let dialect = self.scope.dialect;
        let token = self.key.session_token;
        let token = token.map(|token| (dialect.token_header, token.expose().to_owned()));
        let headers = [(dialect.date_header, self.date.clone())]
            .into_iter()
            .chain(digest.map(|digest| (dialect.digest_header, digest)))
            .chain(token);
        SignedHeaders(headers.collect())
    }

    /// Those headers with the signature, as the last of them.
    pub fn authorize(
        &self,
        mut headers: SignedHeaders,
        separator: &str,
        listed: &[String],
        canonical_request: &[u8],
    ) -> SignedHeaders {
        let dialect = self.scope.dialect;
        let mut parts = vec![format!("Credential={}", self.scope.credential(self.key.id))];
        if !listed.is_empty() {
            parts.push(format!("{}={}", dialect.header_list, listed.join(";")));
        }
        parts.push(format!("Signature={}", self.sign(canonical_request)));
        let value = format!("{} {}", dialect.name, parts.join(separator));
        headers.0.push(("authorization", value));
        headers
    }

    /// The query of a presigned URL without its signature. Fails if it is not good for a time that
    /// is allowed.
    pub fn query(
        &self,
        own: Option<&str>,
        listed: &[String],
        expires_seconds: u32,
    ) -> Result<String, AuthError> {
        let dialect = self.scope.dialect;
        let names = &dialect.query;
        let expires = Expiry::new(names.expires, expires_seconds)?.seconds();
        let listed = (!listed.is_empty()).then(|| listed.join(";"));
        let token = self
            .key
            .session_token
            .map(|token| token.expose().to_owned());
        let parameters = [
            (names.algorithm, Some(dialect.name.to_owned())),
            (names.credential, Some(self.scope.credential(self.key.id))),
            (names.date, Some(self.date.clone())),
            (names.expires, Some(expires.to_string())),
            (names.headers, listed),
            (names.token, token),
        ];
        let pairs = parameters.into_iter().filter_map(|(name, value)| {
            value.map(|value| format!("{name}={}", encoding::component(&value)))
        });
        let own = own.filter(|own| !own.is_empty()).map(str::to_owned);
        Ok(own.into_iter().chain(pairs).collect::<Vec<_>>().join("&"))
    }

    /// That query with the signature, as the last parameter.
    pub fn presigned(&self, query: &str, canonical_request: &[u8]) -> String {
        let name = self.scope.dialect.query.signature;
        format!("{query}&{name}={}", self.sign(canonical_request))
    }
}
