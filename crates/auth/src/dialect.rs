//! How each scheme spells what both have. The schemes differ in their canonical requests, which
//! are in [`sigv4`] and [`oss4`]; everything else is these names.

use crate::{oss4, sigv4};

/// The service that requests are signed for, in both schemes.
pub const SERVICE: &str = "osstables";

/// Every scheme that is verified here.
pub(crate) const DIALECTS: [&Dialect; 2] = [&sigv4::DIALECT, &oss4::DIALECT];

/// Which scheme: it decides how the canonical request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Aws4,
    Oss4,
}

/// The names of one scheme.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub algorithm: Algorithm,
    /// The scheme's name on the wire.
    pub name: &'static str,
    /// What stands before the secret at the start of the key chain.
    pub key_prefix: &'static str,
    /// The last part of a credential scope.
    pub terminator: &'static str,
    /// What the names of the scheme's headers start with; all of them are signed.
    pub header_prefix: &'static str,
    pub date_header: &'static str,
    pub digest_header: &'static str,
    pub token_header: &'static str,
    /// The part of `Authorization` that lists signed headers.
    pub header_list: &'static str,
    /// Whether there has to be such a list.
    pub header_list_required: bool,
    /// The parameters of the query form.
    pub query: Parameters<&'static str>,
}

/// One thing for each parameter of the query form: its name, or its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters<T> {
    pub algorithm: T,
    pub credential: T,
    pub date: T,
    pub expires: T,
    pub headers: T,
    pub token: T,
    pub signature: T,
}

impl Parameters<&'static str> {
    /// The place for the value of the parameter with this name, and the name.
    pub fn place<'v, T>(
        &self,
        name: &str,
        values: &'v mut Parameters<T>,
    ) -> Option<(&'static str, &'v mut T)> {
        [
            (self.algorithm, &mut values.algorithm),
            (self.credential, &mut values.credential),
            (self.date, &mut values.date),
            (self.expires, &mut values.expires),
            (self.headers, &mut values.headers),
            (self.token, &mut values.token),
            (self.signature, &mut values.signature),
        ]
        .into_iter()
        .find(|(known, _)| *known == name)
    }
}
