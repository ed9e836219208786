//! Takes out of an error's text what is not for the user: source locations, backtraces,
//! credentials, and where on the worker's machine or store the table lies.

use super::OperationContext;
use super::table::watched;

const MAX_CHARACTERS: usize = 1500;

/// What must not be shown, for one table.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    roots: Vec<String>,
}

impl Redactor {
    /// Hides this context's credentials; its table's location is cut from paths, so that they are
    /// relative to the table.
    pub fn new(ctx: &OperationContext) -> Self {
        let mut secrets = Vec::new();
        for (key, value) in &ctx.storage_options {
            if is_secret(key) && value.len() >= 4 {
                secrets.push(value.clone());
            } else if let Some((_, host)) = value.split_once("://") {
                // Where a store listens is nobody's business either.
                secrets.push(value.trim_end_matches('/').to_owned());
                secrets.push(host.trim_end_matches('/').to_owned());
            }
        }
        // The longer first: one may hold another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let location = ctx.location.trim_end_matches('/');
        let mut roots = vec![watched(location), location.to_owned()];
        // Stores print the path without the scheme, some also without the bucket.
        if let Some((_, rest)) = location.split_once("://") {
            roots.push(rest.to_owned());
            match rest.strip_prefix('/') {
                Some(path) => roots.push(path.to_owned()),
                None => roots.extend(rest.split_once('/').map(|(_, path)| path.to_owned())),
            }
        }
        roots.retain(|root| root.len() > 3);
        Self { secrets, roots }
    }

    /// The text, fit to be shown.
    pub fn clean(&self, text: &str) -> String {
        let text = without_backtrace(text);
        let mut text = text.replace(
            "Encountered internal error. Please file a bug report at \
             https://github.com/lance-format/lance/issues. ",
            "",
        );
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "***");
        }
        // A root of one word would also be found inside of the paths that are to be kept.
        for root in self.roots.iter().filter(|root| root.contains('/')) {
            text = text.replace(&format!("{root}/"), "");
            text = replace_word(&text, root, "the table's location");
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut kept: Vec<String> = Vec::with_capacity(words.len());
        for word in words {
            if is_source_location(word) {
                // What introduces a location goes with it, and so does the comma before both.
                while kept.last().is_some_and(|last| introduces_location(last)) {
                    kept.pop();
                }
                if let Some(last) = kept.last_mut() {
                    let end = last.trim_end_matches(',').len();
                    last.truncate(end);
                }
            } else {
                kept.push(without_query(word));
            }
        }
        let text = kept.join(" ");
        match text.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text,
        }
    }

    /// A path as the user knows it: relative to the table.
    pub fn path(&self, path: &str) -> String {
        let path = path.trim_matches('/');
        for root in &self.roots {
            if let Some(rest) = path.strip_prefix(root.trim_matches('/'))
                && let Some(rest) = rest.strip_prefix('/')
            {
                return rest.to_owned();
            }
        }
        path.to_owned()
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    [
        "key",
        "secret",
        "token",
        "password",
        "credential",
        "sas",
        "signature",
    ]
    .iter()
    .any(|part| key.contains(part))
}

fn without_backtrace(text: &str) -> &str {
    ["stack backtrace:", "Backtrace [", "\nbacktrace:"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()
        .map_or(text, |end| &text[..end])
}

/// `/some/where/src/thing.rs:12:34`, with whatever punctuation around it.
fn is_source_location(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/');
    let Some(at) = word.rfind(".rs:") else {
        return word.ends_with(".rs") && word.contains('/');
    };
    word[at + 4..]
        .chars()
        .all(|c| c.is_ascii_digit() || c == ':')
}

fn introduces_location(word: &str) -> bool {
    matches!(word, "location:" | "at" | "in" | "Location:")
}

/// Signed URLs carry their signature in the query.
fn without_query(word: &str) -> String {
    match (word.find("://"), word.find('?')) {
        (Some(scheme), Some(query)) if scheme < query => word[..query].to_owned(),
        _ => word.to_owned(),
    }
}

/// Replaces `word` where it stands alone, not as part of a longer name.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let part_of_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.';
        let alone = !before.ends_with(part_of_name) && !after.starts_with(part_of_name);
        out.push_str(before);
        out.push_str(if alone { by } else { word });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn redactor(location: &str) -> Redactor {
        let options = HashMap::from([
            ("aws_secret_access_key".to_owned(), "verysecret".to_owned()),
            ("access_key_id".to_owned(), "AKIDTEST".to_owned()),
            ("region".to_owned(), "index".to_owned()),
            ("endpoint".to_owned(), "http://10.0.0.7:9000/".to_owned()),
        ]);
        Redactor::new(&OperationContext::unsupervised(
            String::new(),
            location.to_owned(),
            options,
        ))
    }

    #[test]
    fn what_is_left_of_a_text() {
        let cases = [
            ("plain words", "plain words"),
            (
                "LanceError(IO): broken, /home/me/.cargo/registry/src/x/lance-14.0.2/src/dataset.rs:12:34",
                "LanceError(IO): broken",
            ),
            (
                "Append with different schema: a, location: rust/lance/src/dataset/write.rs:7:1",
                "Append with different schema: a",
            ),
            ("two: one, /a/b.rs:1:2, more", "two: one more"),
            ("bad\n\nstack backtrace:\n 0: std", "bad"),
            (
                "denied for AKIDTEST with verysecret",
                "denied for *** with ***",
            ),
            (
                "Not found: data/warehouse/t.lance/data/1.lance, x/y.rs:3:4",
                "Not found: data/1.lance",
            ),
            (
                "file:///data/warehouse/t.lance was not found",
                "the table's location was not found",
            ),
            (
                "an index on /data/warehouse/t.lance2",
                "an index on /data/warehouse/t.lance2",
            ),
            (
                "error sending request for url (http://10.0.0.7:9000/b/x?list-type=2)",
                "error sending request for url (***/b/x?list-type=2)",
            ),
            (
                "GET https://b.example/x?X-Amz-Signature=abc failed",
                "GET https://b.example/x failed",
            ),
        ];
        let redactor = redactor("file:///data/warehouse/t.lance");
        for (text, clean) in cases {
            assert_eq!(redactor.clean(text), clean);
        }
    }

    #[test]
    fn paths_are_relative_to_the_table() {
        for (location, path) in [
            ("file:///w/t.lance", "w/t.lance/data/1.lance"),
            ("file:///w/t.lance", "/w/t.lance/data/1.lance"),
            ("s3://bucket/w/t.lance/", "w/t.lance/data/1.lance"),
        ] {
            assert_eq!(redactor(location).path(path), "data/1.lance", "{location}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let text = redactor("s3://b/t").clean(&"é".repeat(5000));
        assert_eq!(text.chars().count(), MAX_CHARACTERS + 3);
    }
}
