//! The runtime configuration file: what Spin is told with the same file, as far as this host has it.
//!
//! ```toml
//! [key_value_store.default]
//! type = "redis"
//! url = "redis://127.0.0.1:6379"
//! ```

use std::path::Path;

use toml::{Table, Value};

use crate::key_value::RedisUrl;

/// The one store that can be configured, and the one that is there without a file.
pub const DEFAULT_STORE: &str = "default";

/// Where the key-value store is.
#[derive(Clone, Debug, Default)]
pub enum KeyValueStore {
    /// `type = "spin"`: in a SQLite file in the state folder.
    #[default]
    Spin,
    /// `type = "redis"`: on a server.
    Redis(RedisUrl),
}

/// What the file says.
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// Of the store `default`.
    pub key_value_store: KeyValueStore,
}

/// Why a file is no runtime configuration. Never has a value in it: URLs have passwords.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    /// The file can't be read.
    #[error("{0}")]
    Unreadable(String),
    /// The file is not TOML.
    #[error("not TOML (line {0})")]
    NotToml(usize),
    /// Spin may have this setting.
    #[error("{0} is not supported here; this host reads [key_value_store.default] alone")]
    Unsupported(String),
    /// A setting of the wrong kind.
    #[error("{0} must be a {1}")]
    WrongType(String, &'static str),
    /// The store's type is none that this host has.
    #[error("key_value_store.default.type must be \"spin\" or \"redis\"")]
    UnknownStore,
    /// A store without a setting it needs.
    #[error("key_value_store.default.url is missing")]
    NoUrl,
    /// A URL that is none.
    #[error(
        "key_value_store.default.url is not the URL of a Redis server, such as \
         redis://:PASSWORD@HOST:6379/0 (special characters in the password as %XX), or rediss:// \
         for TLS"
    )]
    BadUrl,
}

impl RuntimeConfig {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, RuntimeConfigError> {
        std::fs::read_to_string(path)
            .map_err(|error| RuntimeConfigError::Unreadable(error.to_string()))
            .and_then(|text| Self::parse(&text))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, RuntimeConfigError> {
        // The parser's own message would repeat the line.
        let mut file: Table = text.parse().map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            RuntimeConfigError::NotToml(before.matches('\n').count() + 1)
        })?;
        let stores = take_table(&mut file, "", "key_value_store")?;
        refuse_rest(&file, "")?;
        let Some(mut stores) = stores else {
            return Ok(Self::default());
        };
        let store = take_table(&mut stores, "key_value_store.", DEFAULT_STORE)?;
        refuse_rest(&stores, "key_value_store.")?;
        Ok(Self {
            key_value_store: store.map_or(Ok(KeyValueStore::Spin), read_store)?,
        })
    }
}

fn read_store(mut store: Table) -> Result<KeyValueStore, RuntimeConfigError> {
    const PREFIX: &str = "key_value_store.default.";
    let found = match take_text(&mut store, PREFIX, "type")?.as_deref() {
        Some("spin") => KeyValueStore::Spin,
        Some("redis") => {
            let url = take_text(&mut store, PREFIX, "url")?.ok_or(RuntimeConfigError::NoUrl)?;
            KeyValueStore::Redis(RedisUrl::parse(&url).ok_or(RuntimeConfigError::BadUrl)?)
        }
        _ => return Err(RuntimeConfigError::UnknownStore),
    };
    refuse_rest(&store, PREFIX)?;
    Ok(found)
}

fn take_table(
    from: &mut Table,
    prefix: &str,
    name: &str,
) -> Result<Option<Table>, RuntimeConfigError> {
    match from.remove(name) {
        None => Ok(None),
        Some(Value::Table(table)) => Ok(Some(table)),
        Some(_) => Err(RuntimeConfigError::WrongType(
            format!("{prefix}{name}"),
            "table",
        )),
    }
}

fn take_text(
    from: &mut Table,
    prefix: &str,
    name: &str,
) -> Result<Option<String>, RuntimeConfigError> {
    match from.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RuntimeConfigError::WrongType(
            format!("{prefix}{name}"),
            "string",
        )),
    }
}

fn refuse_rest(table: &Table, prefix: &str) -> Result<(), RuntimeConfigError> {
    match table.keys().next() {
        None => Ok(()),
        Some(name) => Err(RuntimeConfigError::Unsupported(format!("{prefix}{name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIS: &str = "[key_value_store.default]\ntype = \"redis\"\n";

    #[test]
    fn reads_where_the_store_is() {
        for (text, expected) in [
            ("", "Spin"),
            ("[key_value_store]", "Spin"),
            ("[key_value_store.default]\ntype = \"spin\"", "Spin"),
            (
                &format!("{REDIS}url = \"redis://:secret@db.example:7000/3\""),
                "Redis(RedisUrl(db.example:7000))",
            ),
            (
                &format!("{REDIS}url = \"redis://127.0.0.1\""),
                "Redis(RedisUrl(127.0.0.1:6379))",
            ),
            (
                &format!("{REDIS}url = \"rediss://user:secret@db.example\""),
                "Redis(RedisUrl(db.example:6379))",
            ),
            (
                &format!("{REDIS}url = \"unix:///run/redis.sock\""),
                "Redis(RedisUrl(/run/redis.sock))",
            ),
        ] {
            let config = RuntimeConfig::parse(text).unwrap();
            assert_eq!(format!("{:?}", config.key_value_store), expected, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_no_value() {
        for (text, expected) in [
            ("\nurl = secret", "line 2"),
            ("state_dir = \"secret\"", "state_dir is not supported"),
            ("[sqlite_database.default]", "sqlite_database is not"),
            (
                "[key_value_store.other]\ntype = \"spin\"",
                "key_value_store.other is not supported",
            ),
            ("key_value_store = \"secret\"", "key_value_store must be"),
            (
                "key_value_store.default = \"secret\"",
                "key_value_store.default must be a table",
            ),
            ("[key_value_store.default]", "\"spin\" or \"redis\""),
            (
                "[key_value_store.default]\ntype = \"azure_cosmos\"",
                "\"spin\" or \"redis\"",
            ),
            (
                "[key_value_store.default]\ntype = 1",
                "key_value_store.default.type must be a string",
            ),
            (
                "[key_value_store.default]\ntype = \"spin\"\npath = \"secret\"",
                "key_value_store.default.path is not supported",
            ),
            (REDIS, "url is missing"),
            (&format!("{REDIS}url = 6379"), "url must be a string"),
            (&format!("{REDIS}url = \"http://secret\""), "not the URL of"),
            (
                &format!("{REDIS}url = \"redis://:secret@host:port\""),
                "not the URL of",
            ),
            (
                &format!("{REDIS}url = \"redis://host\"\ntls = \"secret\""),
                "key_value_store.default.tls is not supported",
            ),
        ] {
            let error = RuntimeConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
