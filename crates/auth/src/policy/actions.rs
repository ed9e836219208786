//! The actions that policies can speak of.

use serde_json::Value;

use super::error::{Place, PolicyError, shown};
use super::{fields, glob};

/// All actions that there are, sorted. Every action pattern of a policy matches at least one.
///
/// | action | what it lets do |
/// |---|---|
/// | `oss:CreateNamespace` | make a namespace in a bucket |
/// | `oss:CreateTable` | make a table in a namespace |
/// | `oss:DeleteNamespace` | drop a namespace |
/// | `oss:DeleteTable` | drop a table |
/// | `oss:DeleteTableBucketPolicy` | remove a bucket's policy |
/// | `oss:DeleteTablePolicy` | remove a table's policy |
/// | `oss:GetNamespace` | see a namespace and its properties |
/// | `oss:GetTable` | see what a table is and where, and its versions |
/// | `oss:GetTableBucketPolicy` | see a bucket's policy |
/// | `oss:GetTableMaintenanceJobStatus` | see the maintenance tasks of a table |
/// | `oss:GetTablePolicy` | see a table's policy |
/// | `oss:ListNamespaces` | list namespaces |
/// | `oss:ListTables` | list tables |
/// | `oss:PutTableBucketPolicy` | set a bucket's policy |
/// | `oss:PutTableData` | write a table's rows or a version |
/// | `oss:PutTableMaintenanceConfiguration` | submit, change and cancel maintenance tasks of a table |
/// | `oss:PutTablePolicy` | set a table's policy |
/// | `oss:RenameTable` | rename a table |
/// | `ram:CreateAccessKey` | make an access key |
/// | `ram:DeleteAccessKey` | delete an access key |
/// | `ram:GetAccessKey` | see an access key, without its secret |
/// | `ram:ListAccessKeys` | list access keys |
/// | `ram:UpdateAccessKey` | activate or deactivate an access key, or change its policy |
pub const ACTIONS: &[&str] = &[
    "oss:CreateNamespace",
    "oss:CreateTable",
    "oss:DeleteNamespace",
    "oss:DeleteTable",
    "oss:DeleteTableBucketPolicy",
    "oss:DeleteTablePolicy",
    "oss:GetNamespace",
    "oss:GetTable",
    "oss:GetTableBucketPolicy",
    "oss:GetTableMaintenanceJobStatus",
    "oss:GetTablePolicy",
    "oss:ListNamespaces",
    "oss:ListTables",
    "oss:PutTableBucketPolicy",
    "oss:PutTableData",
    "oss:PutTableMaintenanceConfiguration",
    "oss:PutTablePolicy",
    "oss:RenameTable",
    "ram:CreateAccessKey",
    "ram:DeleteAccessKey",
    "ram:GetAccessKey",
    "ram:ListAccessKeys",
    "ram:UpdateAccessKey",
];

/// A pattern for actions, which RAM compares in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ActionPattern(String);

impl ActionPattern {
    /// Reads `*` or `service:Name`. A pattern that matches nothing is a mistake: an `Allow` would
    /// be of no use and a `Deny` would protect nothing.
    pub(super) fn read(value: &Value, place: &Place<'_>) -> Result<Self, PolicyError> {
        let text = fields::text(value, place)?;
        let pattern = Self(text.to_owned());
        if text == "*" {
            return Ok(pattern);
        }
        let service = text.split_once(':').map(|(service, _)| service);
        if !service.is_some_and(|it| ["oss", "ram"].iter().any(|s| it.eq_ignore_ascii_case(s))) {
            return Err(place.error(format!(
                "'{}' must be * or start with oss: or ram:; the nearest action is {}",
                shown(text),
                nearest(text)
            )));
        }
        if !ACTIONS.iter().any(|action| pattern.matches(action)) {
            return Err(place.error(format!(
                "'{}' matches no action; the nearest is {}",
                shown(text),
                nearest(text)
            )));
        }
        Ok(pattern)
    }

    pub(super) fn matches(&self, action: &str) -> bool {
        glob::matches_in_any_case(&self.0, action)
    }
}

/// The action that takes the fewest changes to get to.
fn nearest(pattern: &str) -> &'static str {
    let letters: Vec<char> = pattern
        .chars()
        .filter(|character| !"*?".contains(*character))
        .map(|character| character.to_ascii_lowercase())
        .collect();
    ACTIONS
        .iter()
        .min_by_key(|action| distance(&letters, &action.to_ascii_lowercase()))
        .copied()
        .unwrap_or_default()
}

/// How many letters have to be put in, taken out or replaced (Levenshtein). One row of the table
/// at a time: `row[i]` is the distance of the first `i` letters to what was seen of the action.
fn distance(letters: &[char], action: &str) -> usize {
    let mut row: Vec<usize> = (0..=letters.len()).collect();
    for (seen, wanted) in action.chars().enumerate() {
        let mut left = seen + 1;
        let mut diagonal = seen;
        let mut next = vec![left];
        for (letter, above) in letters.iter().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(*letter != wanted);
            left = replaced.min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_is_sorted() {
        assert!(ACTIONS.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn patterns() {
        let cases = [
            ("*", 23),
            ("oss:*", 18),
            ("ram:*", 5),
            ("oss:GetTable", 1),
            ("OSS:gettable", 1),
            ("oss:GetTable*", 4),
            ("oss:*Polic?", 6),
            ("oss:???Table", 1),
            ("oss:*Namespace*", 4),
        ];
        for (pattern, count) in cases {
            let read = ActionPattern::read(&json!(pattern), &Place::Root).unwrap();
            let matched = ACTIONS.iter().filter(|action| read.matches(action));
            assert_eq!(matched.count(), count, "{pattern}");
        }
    }

    #[test]
    fn a_mistake_is_answered_with_the_nearest() {
        let no = |pattern: &str, nearest: &str| {
            format!("'{pattern}' matches no action; the nearest is {nearest}")
        };
        let service = |pattern: &str, nearest: &str| {
            format!(
                "'{pattern}' must be * or start with oss: or ram:; the nearest action is {nearest}"
            )
        };
        let cases = [
            ("oss:GetTabel", no("oss:GetTabel", "oss:GetTable")),
            ("oss:gettabels*", no("oss:gettabels*", "oss:GetTable")),
            ("oss:ListTable", no("oss:ListTable", "oss:ListTables")),
            ("oss:", no("oss:", "oss:GetTable")),
            (
                "oss:CreateAccessKey",
                no("oss:CreateAccessKey", "ram:CreateAccessKey"),
            ),
            (
                "ram:ListAccesKeys",
                no("ram:ListAccesKeys", "ram:ListAccessKeys"),
            ),
            ("GetTable", service("GetTable", "oss:GetTable")),
            ("", service("", "oss:GetTable")),
            ("**", service("**", "oss:GetTable")),
            ("*:*", service("*:*", "oss:GetTable")),
            ("o*:GetTable", service("o*:GetTable", "oss:GetTable")),
            (
                "s3:DeleteTable",
                service("s3:DeleteTable", "oss:DeleteTable"),
            ),
        ];
        for (pattern, expected) in cases {
            let error = ActionPattern::read(&json!(pattern), &Place::Root).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
