//! A request that owns its parts, so that it can be signed and changed.

use arbitrary::Arbitrary;
use lance_maintenance_auth::{
    AccessKey, AuthError, Credential, CredentialStatus, Realm, RequestParts, Scheme, Secret,
    check_content_md5, oss4, read, sigv4,
};

/// Not the key of any request that tests have captured, nor a guess of the fuzzer.
const KEY: &str = "fuzz-ak";
const SECRET: &str = "jD8-fuzz-w0Zt7-sk";
const TOKEN: &str = "fuzz-token";
/// 20260728T010203Z
pub const NOW: i64 = 1_785_200_523;
const EXPIRES: u32 = 3600;
const REALM: Realm<'_> = Realm {
    region: "cn-hangzhou",
    account_id: "1234567890",
    bucket: "my-bucket",
};
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Where a signature is, and of which scheme.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Aws4Header,
    Aws4Query,
    Oss4Header,
    Oss4Query,
}

impl Form {
    pub fn is_oss4(self) -> bool {
        matches!(self, Self::Oss4Header | Self::Oss4Query)
    }

    /// What the names of the scheme's headers start with.
    pub fn prefix(self) -> &'static str {
        if self.is_oss4() { "x-oss-" } else { "x-amz-" }
    }

    pub fn digest_header(self) -> &'static str {
        if self.is_oss4() {
            "x-oss-content-sha256"
        } else {
            "x-amz-content-sha256"
        }
    }
}

/// How a request is to be signed.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Signing {
    pub form: Form,
    /// With a session token.
    pub token: bool,
    /// With a header that holds the body's digest, where the scheme leaves that open.
    pub digest: bool,
    /// With `host` as an additional header, where the scheme leaves that open.
    pub host: bool,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub scheme: Scheme,
}

impl Message {
    /// Reads a request about as HTTP/1.1 has it: a line with method and target, header lines, an
    /// empty line and the body.
    pub fn read(text: &[u8], https: bool) -> Option<Self> {
        let mut rest = text;
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            line.strip_suffix(b"\r").unwrap_or(line)
        };
        let (method, target) = str::from_utf8(line()).ok()?.split_once(' ')?;
        let target = target.strip_suffix(" HTTP/1.1").unwrap_or(target);
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        let mut headers = Vec::new();
        loop {
            let line = line();
            if line.is_empty() {
                break;
            }
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = str::from_utf8(&line[..colon]).ok()?;
            let token = |byte| b"!#$%&'*+-.^_`|~".contains(&byte) || byte.is_ascii_alphanumeric();
            if name.is_empty() || !name.bytes().all(token) {
                return None;
            }
            headers.push((name.to_owned(), line[colon + 1..].to_vec()));
        }
        Some(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            headers,
            body: rest.to_vec(),
            scheme: if https { Scheme::Https } else { Scheme::Http },
        })
    }

    /// The request without what a signature brings, and with the host that it needs.
    pub fn unsigned(mut self) -> Self {
        const ADDED: [&str; 3] = ["date", "content-sha256", "security-token"];
        self.headers.retain(|(name, _)| {
            let name = name.to_ascii_lowercase();
            let own = name.strip_prefix("x-amz-").or(name.strip_prefix("x-oss-"));
            name != "authorization" && !own.is_some_and(|own| ADDED.contains(&own))
        });
        if self.values("host").next().is_none() {
            self.headers
                .push(("Host".to_owned(), b"my-bucket".to_vec()));
        }
        let is_own = |pair: &&str| {
            form_urlencoded::parse(pair.as_bytes())
                .all(|(name, _)| !name.starts_with("X-Amz-") && !name.starts_with("x-oss-"))
        };
        self.query = self.query.map(|query| {
            query
                .split('&')
                .filter(is_own)
                .collect::<Vec<_>>()
                .join("&")
        });
        self
    }

    /// The values of a header.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.headers
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    pub fn sign(mut self, how: &Signing) -> Result<Self, AuthError> {
        if how.digest && how.form != Form::Aws4Header {
            let digest = self.sha256()?;
            self.headers
                .push((how.form.digest_header().to_owned(), digest));
        }
        let secret = Secret::new(SECRET);
        let token = how.token.then(|| Secret::new(TOKEN));
        let key = AccessKey {
            id: KEY,
            secret: &secret,
            session_token: token.as_ref(),
        };
        let additional: &[&str] = if how.host { &["Host"] } else { &[] };
        let headers = self.borrowed();
        let request = self.parts(&headers);
        let signed = match how.form {
            Form::Aws4Header => sigv4::sign(&request, &key, REALM.region, NOW)?,
            Form::Oss4Header => oss4::sign(&request, &key, &REALM, additional, NOW)?,
            Form::Aws4Query => {
                let query = sigv4::presign(&request, &key, REALM.region, NOW, EXPIRES)?;
                self.query = Some(query);
                return Ok(self);
            }
            Form::Oss4Query => {
                let query = oss4::presign(&request, &key, &REALM, additional, NOW, EXPIRES)?;
                self.query = Some(query);
                return Ok(self);
            }
        };
        let added = signed
            .iter()
            .map(|(name, value)| (name.to_owned(), value.into()));
        self.headers.extend(added);
        Ok(self)
    }

    /// The digest of the body, as the AWS4 signer writes it.
    fn sha256(&self) -> Result<Vec<u8>, AuthError> {
        let bare = Self {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            query: None,
            headers: vec![("host".to_owned(), Vec::new())],
            ..self.clone()
        };
        let form = Form::Aws4Header;
        let how = Signing {
            form,
            token: false,
            digest: false,
            host: false,
        };
        let signed = bare.sign(&how)?;
        let digest = signed
            .values(form.digest_header())
            .next()
            .map(<[u8]>::to_vec);
        Ok(digest.unwrap_or_default())
    }

    /// Whether this is believed, at a time, of who has or has not a session token.
    pub fn verify(&self, token: bool, now: i64) -> Result<(), AuthError> {
        let credential = Credential {
            access_key_id: KEY.to_owned(),
            secret_access_key: Secret::new(SECRET),
            session_token: token.then(|| Secret::new(TOKEN)),
            user: "alice".to_owned(),
            status: CredentialStatus::Active,
            expires_at: None,
            policy: None,
        };
        for value in self.values("content-md5") {
            // It must not panic; what it means is another matter.
            let _ = check_content_md5(value, &self.body);
        }
        let headers = self.borrowed();
        read(&self.parts(&headers))?.verify(Some(&credential), &REALM, now)
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
