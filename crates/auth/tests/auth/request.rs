//! A request that owns its parts, so that tests can sign it and change it.

use lance_maintenance_auth::{AuthError, Caller, RequestParts, Scheme, Secret, sigv4, verify};

pub const KEY: &str = "test-ak";
pub const SECRET: &str = "test-sk";
pub const REGION: &str = "cn-hangzhou";
/// 20260728T010203Z
pub const NOW: i64 = 1_785_200_523;

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub scheme: Scheme,
}

impl Request {
    /// A request for a target (path and query), to a bucket's host.
    pub fn new(method: &str, target: &str) -> Self {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            headers: Vec::new(),
            body: Vec::new(),
            scheme: Scheme::Http,
        }
        .with(
            "Host",
            "my-bucket-1234567890.cn-hangzhou.oss-tables.aliyuncs.com",
        )
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers
            .push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// With another value for a header, or without it.
    pub fn set(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers
            .retain(|(key, _)| !key.eq_ignore_ascii_case(name));
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub fn body(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self
    }

    pub fn header(&self, name: &str) -> String {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        String::from_utf8(found.unwrap().1.clone()).unwrap()
    }

    /// With a text replaced in its `authorization`.
    pub fn reauthorize(self, from: &str, to: &str) -> Self {
        let value = self.header("authorization");
        assert!(value.contains(from), "{value}");
        self.set("authorization", Some(&value.replace(from, to)))
    }

    /// Signed for a region, as of a time.
    pub fn sign_as(self, secret: &str, region: &str, now: i64) -> Self {
        self.try_sign_as(secret, region, now).unwrap()
    }

    pub fn try_sign_as(mut self, secret: &str, region: &str, now: i64) -> Result<Self, AuthError> {
        let headers = self.borrowed();
        let secret = Secret::new(secret);
        let signed = sigv4::sign(&self.parts(&headers), KEY, &secret, region, now)?;
        for (name, value) in signed.iter() {
            self.headers
                .push((name.to_owned(), value.as_bytes().to_vec()));
        }
        Ok(self)
    }

    pub fn sign(self) -> Self {
        self.sign_as(SECRET, REGION, NOW)
    }

    pub fn verify_at(&self, now: i64) -> Result<Caller, AuthError> {
        let headers = self.borrowed();
        let secret_of = |key: &str| (key == KEY).then(|| Secret::new(SECRET));
        verify(&self.parts(&headers), REGION, now, secret_of)
    }

    pub fn verify(&self) -> Result<Caller, AuthError> {
        self.verify_at(NOW)
    }

    fn borrowed(&self) -> Vec<(&str, &[u8])> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
            .collect()
    }

    fn parts<'a>(&'a self, headers: &'a [(&'a str, &'a [u8])]) -> RequestParts<'a> {
        RequestParts {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            headers,
            body: &self.body,
            scheme: self.scheme,
        }
    }
}
