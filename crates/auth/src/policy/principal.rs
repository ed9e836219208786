//! Whom the policies of buckets and tables speak of.

use serde_json::Value;

use super::error::{Place, PolicyError, shown};
use super::fields::{self, Fields};
use super::{Request, glob};

/// How a user's ARN goes on after the account.
const USER: &str = ":user/";

/// A kind of callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Principal {
    /// Every authenticated caller.
    Everybody,
    /// Every user of an account.
    Account(String),
    /// A user of the account that the caller belongs to.
    User(String),
    /// The users of an account whose names match a pattern.
    Users { account: String, names: String },
}

impl Principal {
    /// Reads a `Principal`: one, a list, or `{"RAM": ...}` around these.
    pub(super) fn read_all(value: &Value, place: &Place<'_>) -> Result<Vec<Self>, PolicyError> {
        if value.is_object() {
            let fields = Fields::read(value, place, &["RAM"])?;
            let (inner, at) = fields.required("RAM")?;
            return fields::one_or_many(inner, &at, Self::read);
        }
        fields::one_or_many(value, place, Self::read)
    }

    fn read(value: &Value, place: &Place<'_>) -> Result<Self, PolicyError> {
        let text = fields::text(value, place)?;
        Self::parse(text).ok_or_else(|| {
            place.error(format!(
                "'{}' must be *, an account id, the name of a user, \
                 or acs:ram::{{account}}:user/{{name}}",
                shown(text)
            ))
        })
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Everybody);
        }
        if let Some(rest) = text.strip_prefix("acs:ram::") {
            let (account, names) = rest.split_once(USER)?;
            return (is_account_id(account) && is_user_pattern(names)).then(|| Self::Users {
                account: account.to_owned(),
                names: names.to_owned(),
            });
        }
        if is_account_id(text) {
            return Some(Self::Account(text.to_owned()));
        }
        is_user_name(text).then(|| Self::User(text.to_owned()))
    }

    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Account(account) => account == request.account_id,
            Self::User(name) => name == request.user,
            Self::Users { account, names } => {
                account == request.account_id && glob::matches(names, request.user)
            }
        }
    }
}

fn is_account_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text may be the name of a user.
pub(crate) fn is_user_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte))
}

/// In an ARN a name may be all that an access key may be, because a user who was given no name is
/// called like the key.
fn is_user_pattern(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b",/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn principals() {
        let request = Request {
            account_id: "1234",
            user: "alice",
            action: "oss:GetTable",
            resource: "acs:osstables:local:1234:bucket/b",
            source_address: None,
            now_unix_seconds: 0,
            secure_transport: false,
        };
        let numbered = Request {
            user: "1234",
            account_id: "5",
            ..request
        };
        // Whether alice of 1234 and 1234 of 5 are meant; none if it can't be read.
        let cases = [
            (json!("*"), Some((true, true))),
            (json!("1234"), Some((true, false))),
            (json!("5"), Some((false, true))),
            (json!("alice"), Some((true, false))),
            (json!("Alice"), Some((false, false))),
            (json!("acs:ram::1234:user/alice"), Some((true, false))),
            (json!("acs:ram::1234:user/al*"), Some((true, false))),
            (json!("acs:ram::1234:user/?????"), Some((true, false))),
            (json!("acs:ram::1234:user/bob"), Some((false, false))),
            (json!("acs:ram::5:user/*"), Some((false, true))),
            (json!("acs:ram::5:user/1234"), Some((false, true))),
            (
                json!("acs:ram::1234:user/key+1=:user"),
                Some((false, false)),
            ),
            (json!(["bob", "alice"]), Some((true, false))),
            (json!({"RAM": "alice"}), Some((true, false))),
            (json!({"RAM": ["bob", "5"]}), Some((false, true))),
            (json!("al*"), None),
            (json!(""), None),
            (json!("a/b"), None),
            (json!("a".repeat(65)), None),
            (json!("acs:ram::*:user/alice"), None),
            (json!("acs:ram:::user/alice"), None),
            (json!("acs:ram::1234:root"), None),
            (json!("acs:ram::1234:user/"), None),
            (json!("acs:ram::1234:user/a/b"), None),
            (json!("acs:ram::1234:user/a b"), None),
            (json!("acs:ram:local:1234:user/alice"), None),
            (json!([]), None),
            (json!({}), None),
            (json!({"AWS": "*"}), None),
            (json!({"RAM": {"RAM": "*"}}), None),
            (json!(1234), None),
        ];
        for (value, expected) in cases {
            let read = Principal::read_all(&value, &Place::Root).ok();
            let got = read.map(|list| {
                let meant = |request: &Request<'_>| list.iter().any(|it| it.matches(request));
                (meant(&request), meant(&numbered))
            });
            assert_eq!(got, expected, "{value}");
        }
    }
}
