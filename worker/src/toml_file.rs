//! TOML files of the worker, with errors that name line and key and show no value that may be
//! secret.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{}: {message}", key.as_ref().map(|key| format!(", {key}")).unwrap_or_default())]
pub struct TomlError {
    /// The line, from 1.
    pub line: usize,
    /// The key that the line sets, if it sets one.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl TomlError {
    /// An error that belongs to the line with this byte of the text.
    pub fn at(text: &str, byte: usize, message: impl Into<String>) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count();
        let key = text
            .lines()
            .nth(line)
            .and_then(|line| line.split_once('='))
            .map(|(key, _)| key.trim())
            // A broken line may have a secret where a key should be.
            .filter(|key| key.bytes().all(is_key_byte))
            .map(str::to_owned);
        Self {
            line: line + 1,
            key,
            message: message.into(),
        }
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Reads a file's text. Unlike the library's own error, this one does not quote the line, which may
/// hold a secret.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| {
        let byte = error.span().map_or(0, |span| span.start);
        TomlError::at(text, byte, error.message())
    })
}

/// Reads a string whose value no error may show.
pub fn plain_string<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(text) => Ok(Some(text)),
        _ => Err(D::Error::custom("this has to be a string")),
    }
}
