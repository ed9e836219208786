//! What is wrong with a policy or a credential, and where.

use std::fmt;

/// How many characters of a client's text an error repeats.
const MAX_SHOWN: usize = 80;

/// What is wrong with a policy or a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// Where: a path of keys and indexes like `Statement[0].Action[1]`, empty for the JSON as a
    /// whole; `line 1 column 2` if it is not JSON.
    pub place: String,
    /// What is wrong, as a phrase that follows the place, and what to do about it.
    pub problem: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for PolicyError {}

/// A place in JSON, as a chain from the inside out: it costs nothing until something is wrong.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// That something is wrong here.
    pub(crate) fn error(&self, problem: impl Into<String>) -> PolicyError {
        PolicyError {
            place: self.to_string(),
            problem: problem.into(),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(&shown(key)),
            Self::Key(parent, key) => write!(f, "{parent}.{}", shown(key)),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A client's text as errors repeat it: on one line and not at any length.
pub(crate) fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters
        .by_ref()
        .take(MAX_SHOWN)
        .flat_map(|character| match character {
            '\'' | '"' => character.to_string().chars().collect::<Vec<_>>(),
            other => other.escape_debug().collect(),
        })
        .collect();
    if characters.next().is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let root = Place::Root;
        let list = Place::Index(&root, 1);
        let policy = Place::Key(&list, "policy");
        let statement = Place::Key(&policy, "Statement");
        let first = Place::Index(&statement, 0);
        let odd = Place::Key(&first, "a\n\u{202e}b");
        let cases = [
            (root, "", "is wrong"),
            (list, "[1]", "[1]: is wrong"),
            (policy, "[1].policy", "[1].policy: is wrong"),
            (
                first,
                "[1].policy.Statement[0]",
                "[1].policy.Statement[0]: is wrong",
            ),
            (
                odd,
                "[1].policy.Statement[0].a\\n\\u{202e}b",
                "[1].policy.Statement[0].a\\n\\u{202e}b: is wrong",
            ),
        ];
        for (place, path, sentence) in cases {
            let error = place.error("is wrong");
            assert_eq!(error.place, path);
            assert_eq!(error.to_string(), sentence);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let cases = [
            ("it's \"so\"".to_owned(), "it's \"so\"".to_owned()),
            ("\u{e9}".repeat(80), "\u{e9}".repeat(80)),
            ("\u{e9}".repeat(81), "\u{e9}".repeat(80) + "..."),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(&text), expected);
        }
    }
}
