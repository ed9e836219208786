//! What of a request is signed.

use crate::error::AuthError;

/// A request as it came on the wire.
#[derive(Clone, Copy)]
pub struct RequestParts<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path before `?`, still percent-encoded.
    pub path: &'a str,
    /// What follows `?`, still percent-encoded; `None` and the empty query are signed alike.
    pub query: Option<&'a str>,
    /// Names (in any case) and values, one entry per header line. `host` is one of them: where
    /// the transport carries an authority instead, the caller adds it here.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The whole body.
    pub body: &'a [u8],
    /// The scheme that the client used, for the default port.
    pub scheme: Scheme,
}

/// The scheme of the URL that a client signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Default port 80.
    #[default]
    Http,
    /// Default port 443.
    Https,
}

impl Scheme {
    /// What a host ends with if it spells the default port out.
    fn default_port_suffix(self) -> &'static [u8] {
        match self {
            Self::Http => b":80",
            Self::Https => b":443",
        }
    }
}

impl<'a> RequestParts<'a> {
    /// The value of a header that a request may carry only once.
    pub(crate) fn single(&self, name: &str) -> Result<Option<&'a [u8]>, AuthError> {
        let mut values = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let first = values.next().map(|(_, value)| *value);
        match values.next() {
            Some(_) => Err(AuthError::RepeatedHeader(name.to_owned())),
            None => Ok(first),
        }
    }

    /// The same as text without surrounding whitespace.
    pub(crate) fn single_text(&self, name: &str) -> Result<Option<&'a str>, AuthError> {
        self.single(name)?
            .map(|value| {
                str::from_utf8(value.trim_ascii())
                    .map_err(|_| AuthError::UnreadableHeader(name.to_owned()))
            })
            .transpose()
    }

    /// The value of `host` as it is signed: lower case, without the scheme's default port.
    pub(crate) fn canonical_host(&self, value: &[u8]) -> Vec<u8> {
        let host = value.trim_ascii();
        host.strip_suffix(self.scheme.default_port_suffix())
            .unwrap_or(host)
            .to_ascii_lowercase()
    }
}
