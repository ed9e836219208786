//! The resources that policies speak of.

use serde_json::Value;

use super::error::{Place, PolicyError, shown};
use super::{fields, glob};

/// A pattern for ARNs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResourcePattern(String);

impl ResourcePattern {
    /// Reads `*` or an ARN with wildcards.
    pub(super) fn read(value: &Value, place: &Place<'_>) -> Result<Self, PolicyError> {
        let text = fields::text(value, place)?;
        if let Some(problem) = problem(text) {
            return Err(place.error(format!("'{}' {problem}", shown(text))));
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn matches(&self, resource: &str) -> bool {
        glob::matches(&self.0, resource)
    }
}

fn problem(text: &str) -> Option<&'static str> {
    if text == "*" {
        return None;
    }
    // Taken for literal text, a variable would make a Deny that protects nothing.
    if text.contains("${") {
        return Some("has a variable; there are none here");
    }
    let parts: Vec<&str> = text.splitn(5, ':').collect();
    match parts.as_slice() {
        ["acs", service, _, _, relative] if !service.is_empty() && !relative.is_empty() => None,
        _ => Some("must be * or acs:{service}:{region}:{account}:{resource}, * for any of them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns() {
        const TABLE: &str = "acs:osstables:local:1234:bucket/b/table/t-1";
        let cases = [
            ("*", Some(true)),
            (TABLE, Some(true)),
            ("acs:osstables:*:*:bucket/b/table/*", Some(true)),
            ("acs:osstables:*:*:*", Some(true)),
            ("acs:*:*:*:*", Some(true)),
            ("acs:*:::*", Some(false)),
            ("acs:osstables:*:*:bucket/b", Some(false)),
            ("acs:osstables:*:*:bucket/B/table/*", Some(false)),
            ("acs:osstables:*:*:table/t-?", Some(false)),
            ("acs:osstables:*:*:*table/t-?", Some(true)),
            ("acs:osstables:*:9:*", Some(false)),
            ("acs:ram::1234:user/alice", Some(false)),
            ("acs:osstables:*:*:a:b", Some(false)),
            ("", None),
            ("**", None),
            ("bucket/b", None),
            ("acs:*", None),
            ("acs:osstables:*:bucket/b", None),
            ("acs:osstables:*:*:", None),
            ("acs::*:*:bucket/b", None),
            ("arn:osstables:*:*:bucket/b", None),
            ("*:osstables:*:*:bucket/b", None),
            ("ACS:osstables:*:*:bucket/b", None),
            ("acs:osstables:*:*:bucket/${acs:user}", None),
        ];
        for (pattern, expected) in cases {
            let read = ResourcePattern::read(&json!(pattern), &Place::Root);
            let got = read.ok().map(|pattern| pattern.matches(TABLE));
            assert_eq!(got, expected, "{pattern}");
        }
    }
}
