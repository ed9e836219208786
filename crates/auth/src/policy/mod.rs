//! Policies: who may do what, in the form of RAM and OSS policies.
//!
//! A policy is a list of statements. A statement allows or denies some actions on some resources,
//! under some conditions. Which of them apply to a request, and what follows, says [`decide`].
//!
//! ```json
//! {
//!   "Version": "1",
//!   "Statement": [{
//!     "Sid": "office",
//!     "Effect": "Allow",
//!     "Action": ["oss:GetTable*"],
//!     "Resource": ["acs:osstables:*:*:bucket/b/table/*"],
//!     "Principal": ["acs:ram::1234:user/alice"],
//!     "Condition": {"IpAddress": {"acs:SourceIp": ["10.0.0.0/8"]}}
//!   }]
//! }
//! ```
//!
//! | part | what it may be |
//! |---|---|
//! | `Version` | the string `1` |
//! | `Statement` | a statement or a list of 1 to 100 |
//! | `Sid` | any text; it means nothing |
//! | `Effect` | `Allow` or `Deny` |
//! | `Action` | `*` or `service:Name` with wildcards, in any case; matches at least one of [`ACTIONS`] |
//! | `Resource` | `*` or an ARN with wildcards, `acs:service:region:account:relative` |
//! | `Principal` | in the policies of resources only: `*` (every authenticated caller), an account id, the name of a user of the caller's account, or `acs:ram::{account}:user/{name}` with wildcards in the name |
//! | `Condition` | operators, in them keys, in them values, see below |
//!
//! `Action`, `Resource`, `Principal` and the values of conditions are a string or a list of 1 to
//! 100; `Principal` may also be `{"RAM": ...}` around these. `*` stands for any run of characters,
//! `/` and `:` included, and `?` for one character; a pattern has to match all of a name.
//! Digits alone are an account id: a user whose name is digits is meant by an ARN only.
//!
//! | operator of a condition | key | values |
//! |---|---|---|
//! | `IpAddress`, `NotIpAddress` | `acs:SourceIp` | addresses or CIDR blocks, version 4 or 6 |
//! | `DateLessThan`, `DateLessThanEquals`, `DateGreaterThan`, `DateGreaterThanEquals` | `acs:CurrentTime` | RFC 3339 times |
//! | `Bool` | `acs:SecureTransport` | `true` or `false`, as strings or as JSON has them |
//!
//! All of a statement's conditions have to hold. One of a condition's values is enough, except
//! that `NotIpAddress` holds only if none matches. If the address a request came from is not
//! known, conditions about it hold in `Deny` statements and in no other: what is not known never
//! gives access.
//!
//! What can't be read is refused with its place: anything that is not in these tables, keys that
//! are there twice, `null`, more than 16 KiB of JSON, texts of more than 1024 bytes.
//!
//! | module | what it holds |
//! |---|---|
//! | `decide` | [`decide`], [`Request`] and [`Decision`] |
//! | `statement` | a statement, read and applied |
//! | `actions`, `resource`, `principal`, `condition` | the parts of a statement |
//! | `glob` | wildcards |
//! | `json`, `fields` | JSON without duplicate keys, and its objects and lists |
//! | `error` | [`PolicyError`], and places in JSON |

mod actions;
mod condition;
mod decide;
mod error;
pub(crate) mod fields;
mod glob;
pub(crate) mod json;
mod principal;
mod resource;
mod statement;

use serde_json::Value;

pub use actions::ACTIONS;
pub use decide::{Decision, Request, decide};
pub use error::PolicyError;

pub(crate) use error::Place;
pub(crate) use principal::is_user_name;

use fields::Fields;
use statement::Statement;

/// How many bytes of JSON a policy may have.
const MAX_BYTES: usize = 16 * 1024;
/// How many statements a policy may have.
const MAX_STATEMENTS: usize = 100;

/// What a policy belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// A user: it says what this user may do, and its statements have no `Principal`.
    Identity,
    /// A bucket or a table: it says who may do what, and all its statements have a `Principal`.
    Resource,
}

/// A policy that was understood in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    json: Value,
    kind: PolicyKind,
    statements: Vec<Statement>,
}

impl Policy {
    /// Reads a policy, or says what is wrong with it and where.
    pub fn parse(json: &[u8], kind: PolicyKind) -> Result<Self, PolicyError> {
        check_size(json.len(), &Place::Root)?;
        Self::from_value(json::read(json)?, kind, &Place::Root)
    }

    /// Reads a policy that is part of other JSON. It is measured in its shortest form, so a policy
    /// that was read once can always be read again.
    pub(crate) fn from_value(
        json: Value,
        kind: PolicyKind,
        place: &Place<'_>,
    ) -> Result<Self, PolicyError> {
        check_size(json.to_string().len(), place)?;
        let fields = Fields::read(&json, place, &["Version", "Statement"])?;
        let (version, at) = fields.required("Version")?;
        if version.as_str() != Some("1") {
            return Err(at.error("must be the string \"1\""));
        }
        let (given, at) = fields.required("Statement")?;
        let statements = match given {
            Value::Array(list) => fields::list(list, &at, MAX_STATEMENTS, |value, at| {
                Statement::read(value, kind, at)
            })?,
            one => vec![Statement::read(one, kind, &at)?],
        };
        Ok(Self {
            json,
            kind,
            statements,
        })
    }

    /// The policy as it was given, for storing and showing.
    pub fn as_json(&self) -> &Value {
        &self.json
    }

    /// What the policy belongs to.
    pub fn kind(&self) -> PolicyKind {
        self.kind
    }
}

fn check_size(bytes: usize, place: &Place<'_>) -> Result<(), PolicyError> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(place.error(format!(
        "is {bytes} bytes of JSON; a policy may have {MAX_BYTES}"
    )))
}
