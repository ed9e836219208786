//! A request that owns its parts, so that tests can sign it and change it.

use lance_maintenance_auth::{
    AccessKey, AuthError, Credential, CredentialStatus, Realm, RequestParts, Scheme, Secret, oss4,
    read, sigv4,
};

pub const KEY: &str = "test-ak";
pub const SECRET: &str = "test-sk";
pub const REGION: &str = "cn-hangzhou";
/// 20260728T010203Z
pub const NOW: i64 = 1_785_200_523;
/// For how long presigned requests are good.
pub const EXPIRES: u32 = 3600;
pub const REALM: Realm<'_> = Realm {
    region: REGION,
    account_id: "1234567890",
    bucket: "my-bucket",
};

/// A permanent credential.
pub fn credential() -> Credential {
    Credential {
        access_key_id: KEY.to_owned(),
        secret_access_key: Secret::new(SECRET),
        session_token: None,
        user: "alice".to_owned(),
        status: CredentialStatus::Active,
        expires_at: None,
        policy: None,
    }
}

/// Where a signature may be, and of which scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Aws4Header,
    Aws4Query,
    Oss4Header,
    Oss4Query,
}

impl Form {
    pub const ALL: [Self; 4] = [
        Self::Aws4Header,
        Self::Aws4Query,
        Self::Oss4Header,
        Self::Oss4Query,
    ];
    pub const IN_HEADER: [Self; 2] = [Self::Aws4Header, Self::Oss4Header];
    pub const IN_QUERY: [Self; 2] = [Self::Aws4Query, Self::Oss4Query];

    /// The name of the header or the parameter with the request's time.
    pub fn date(self) -> &'static str {
        match self {
            Self::Aws4Header => "x-amz-date",
            Self::Aws4Query => "X-Amz-Date",
            Self::Oss4Header | Self::Oss4Query => "x-oss-date",
        }
    }

    /// The name of the header or the parameter with the session token.
    pub fn token(self) -> &'static str {
        match self {
            Self::Aws4Header => "x-amz-security-token",
            Self::Aws4Query => "X-Amz-Security-Token",
            Self::Oss4Header | Self::Oss4Query => "x-oss-security-token",
        }
    }
}

/// Who signs, for where and when.
#[derive(Clone, Copy, Debug)]
pub struct Signer<'a> {
    pub secret: &'a str,
    pub token: Option<&'a str>,
    pub realm: Realm<'a>,
    pub now: i64,
    pub expires: u32,
    /// OSS4 signs these too.
    pub additional: &'a [&'a str],
}

impl Default for Signer<'_> {
    fn default() -> Self {
        Self {
            secret: SECRET,
            token: None,
            realm: REALM,
            now: NOW,
            expires: EXPIRES,
            additional: &[],
        }
    }
}

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

    /// With a text replaced in its query.
    pub fn requery(mut self, from: &str, to: &str) -> Self {
        let query = self.query.unwrap();
        assert!(query.contains(from), "{query}");
        self.query = Some(query.replace(from, to));
        self
    }

    pub fn try_sign(mut self, form: Form, signer: &Signer<'_>) -> Result<Self, AuthError> {
        let headers = self.borrowed();
        let request = self.parts(&headers);
        let (secret, token) = (Secret::new(signer.secret), signer.token.map(Secret::new));
        let Signer {
            realm,
            now,
            expires,
            additional,
            ..
        } = *signer;
        let key = AccessKey {
            id: KEY,
            secret: &secret,
            session_token: token.as_ref(),
        };
        let signed = match form {
            Form::Aws4Header => sigv4::sign(&request, &key, realm.region, now)?,
            Form::Oss4Header => oss4::sign(&request, &key, &realm, additional, now)?,
            Form::Aws4Query => {
                let query = sigv4::presign(&request, &key, realm.region, now, expires)?;
                self.query = Some(query);
                return Ok(self);
            }
            Form::Oss4Query => {
                let query = oss4::presign(&request, &key, &realm, additional, now, expires)?;
                self.query = Some(query);
                return Ok(self);
            }
        };
        for (name, value) in signed.iter() {
            self.headers
                .push((name.to_owned(), value.as_bytes().to_vec()));
        }
        Ok(self)
    }

    pub fn sign_with(self, form: Form, signer: &Signer<'_>) -> Self {
        self.try_sign(form, signer).unwrap()
    }

    pub fn sign(self, form: Form) -> Self {
        self.sign_with(form, &Signer::default())
    }

    pub fn verify_for(
        &self,
        credential: Option<&Credential>,
        realm: &Realm<'_>,
        now: i64,
    ) -> Result<(), AuthError> {
        let headers = self.borrowed();
        let request = self.parts(&headers);
        read(&request)?.verify(credential, realm, now)
    }

    pub fn verify_at(&self, now: i64) -> Result<(), AuthError> {
        self.verify_for(Some(&credential()), &REALM, now)
    }

    pub fn verify(&self) -> Result<(), AuthError> {
        self.verify_at(NOW)
    }

    /// The access key that the signature names.
    pub fn access_key_id(&self) -> Result<String, AuthError> {
        let headers = self.borrowed();
        let request = self.parts(&headers);
        read(&request).map(|signed| signed.access_key_id().to_owned())
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
