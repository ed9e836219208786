//! Options of object stores, credentials among them, by the prefix of a table's location.
//!
//! ```toml
//! [[storage]]
//! prefix = "s3://bucket/warehouse"
//! options = { aws_region = "eu-central-1", aws_secret_access_key = "${WAREHOUSE_KEY}" }
//! ```
//!
//! The longest prefix wins, alone: options of different prefixes are not mixed. A value that is
//! `${NAME}` is taken from the environment.

use std::collections::HashMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use toml::Spanned;

use crate::toml_file::{self, TomlError};

/// The options of every prefix.
#[derive(Clone, Default)]
pub struct StorageOptions {
    /// Longest prefix first.
    prefixes: Vec<(String, HashMap<String, SecretString>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StorageFile {
    #[serde(default)]
    storage: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    prefix: Spanned<String>,
    options: Spanned<toml::Value>,
}

impl StorageOptions {
    /// Reads the text of a file; `variable` looks up the environment.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, TomlError> {
        let file: StorageFile = toml_file::parse(text)?;
        let mut prefixes: Vec<(String, HashMap<String, SecretString>)> = Vec::new();
        for entry in file.storage {
            let at = entry.prefix.span().start;
            let prefix = entry.prefix.into_inner().trim_end_matches('/').to_owned();
            if !prefix.contains("://") {
                let message = "a prefix is a URI, such as s3://bucket/path";
                return Err(TomlError::at(text, at, message));
            }
            if prefixes.iter().any(|(known, _)| *known == prefix) {
                return Err(TomlError::at(text, at, "this prefix is there twice"));
            }
            let at = entry.options.span().start;
            let options = entry.options.into_inner();
            let options = read_options(options, &variable)
                .map_err(|message| TomlError::at(text, at, message))?;
            prefixes.push((prefix, options));
        }
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(Self { prefixes })
    }

    /// The options for a table's location: those of the longest prefix that ends at a `/` of it or
    /// is all of it; none if no prefix does.
    pub fn for_location(&self, location: &str) -> HashMap<String, String> {
        self.prefixes
            .iter()
            .find(|(prefix, _)| {
                location
                    .strip_prefix(prefix.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .map(|(_, options)| {
                options
                    .iter()
                    .map(|(key, value)| (key.clone(), value.expose_secret().to_owned()))
                    .collect()
            })
            .unwrap_or_default()
    }
}

/// Reads a table of strings. Done by hand, as a general error would show the value that is wrong.
fn read_options(
    options: toml::Value,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<HashMap<String, SecretString>, String> {
    let toml::Value::Table(options) = options else {
        return Err("options have to be a table".to_owned());
    };
    options
        .into_iter()
        .map(|(key, value)| {
            let toml::Value::String(value) = value else {
                return Err(format!("option {key} has to be a string"));
            };
            let name = value.strip_prefix("${").and_then(|v| v.strip_suffix('}'));
            let value = match name {
                Some(name) => variable(name).ok_or_else(|| {
                    format!("the environment has no variable {name} for option {key}")
                })?,
                None => value,
            };
            Ok((key, SecretString::from(value)))
        })
        .collect()
}

impl fmt::Debug for StorageOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.prefixes.iter().map(|(prefix, _)| prefix))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        (name == "KEY").then(|| "from-outside".to_owned())
    }

    #[test]
    fn the_longest_prefix_wins_at_a_border_of_a_path() {
        let options = StorageOptions::parse(
            r#"
            [[storage]]
            prefix = "s3://b"
            options = { which = "bucket" }
            [[storage]]
            prefix = "s3://b/deep/er/"
            options = { which = "deeper", key = "${KEY}" }
            [[storage]]
            prefix = "s3://b/deep"
            options = { which = "deep" }
            "#,
            environment,
        )
        .unwrap();
        let cases = [
            ("s3://b/t.lance", Some("bucket")),
            ("s3://b/deep/t.lance", Some("deep")),
            ("s3://b/deeper/t.lance", Some("bucket")),
            ("s3://b/deep/er/t.lance", Some("deeper")),
            ("s3://b/deep/er", Some("deeper")),
            ("s3://bucket/t.lance", None),
            ("file:///b/t.lance", None),
        ];
        for (location, which) in cases {
            let found = options.for_location(location);
            assert_eq!(found.get("which").map(String::as_str), which, "{location}");
        }
        let found = options.for_location("s3://b/deep/er/t.lance");
        assert_eq!(found["key"], "from-outside");
        let shown = format!("{options:?}");
        assert!(shown.contains("s3://b/deep") && !shown.contains("from-outside"));
    }

    #[test]
    fn errors_name_the_line_and_show_no_value() {
        let cases = [
            (
                "[[storage]]\nprefix = \"s3://b\"",
                "line 1: missing field `options`",
            ),
            (
                "[[storage]]\nprefix = \"b\"\noptions = {}",
                "line 2, prefix: a prefix is a URI",
            ),
            (
                "[[storage]]\nprefix = \"s3://b\"\noptions = {}\n[[storage]]\nprefix = \"s3://b/\"\noptions = {}",
                "line 5, prefix: this prefix is there twice",
            ),
            (
                "[[storage]]\nprefix = \"s3://b\"\noptions = { pin = 4711 }",
                "line 3, options: option pin has to be a string",
            ),
            (
                "[[storage]]\nprefix = \"s3://b\"\noptions = \"4711\"",
                "line 3, options: options have to be a table",
            ),
            (
                "[[storage]]\nprefix = \"s3://b\"\n[storage.options]\nkey = \"${NOPE}\"",
                "line 3: the environment has no variable NOPE for option key",
            ),
            ("[[storage]]\nkey \"4711=\"", "line 2: "),
            (
                "[[storages]]\nprefix = \"s3://b\"",
                "line 1: unknown field `storages`",
            ),
        ];
        for (text, expected) in cases {
            let error = StorageOptions::parse(text, environment)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("4711"), "{error}");
        }
    }
}
