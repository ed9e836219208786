//! What the worker is told: `worker.toml`, the command line and the environment.
//!
//! The command line wins over the environment, the environment over the file, the file over the
//! defaults. `worker/worker.toml` in the repository shows every key with its default.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use crate::cli::{Cli, LogFormat};
use crate::memory;
use crate::operations;
use crate::storage::StorageOptions;
use crate::toml_file::{self, TomlError, plain_string};

/// The variable of the environment that holds the secret.
pub const SECRET_VARIABLE: &str = "LANCE_WORKER_SECRET";

/// Why the worker can't start with what it was told. Holds no value that may be secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file can't be read.
    #[error("{path} can't be read: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file does not say what it should.
    #[error("{path}, {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The line, the key and what is wrong with it.
        error: TomlError,
    },
    /// Two keys exclude each other.
    #[error("set either secret or secret_file, not both")]
    TwoSecrets,
    /// There is no secret.
    #[error(
        "there is no secret to share with the application: set {SECRET_VARIABLE}, or secret or \
         secret_file in the configuration file"
    )]
    NoSecret,
    /// The application's URL is of no use.
    #[error("application_url '{url}' is not usable: {reason}")]
    ApplicationUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The worker's name is of no use.
    #[error("worker_id '{0}' is not usable: take 1 to 128 of A-Z a-z 0-9 . _ : -")]
    WorkerId(String),
}

/// What the worker is told, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the worker listens.
    pub listen: SocketAddr,
    /// Where the application is: scheme, host and port.
    pub application_url: Url,
    /// The worker's name; without one it is made of the host's name and the port.
    pub worker_id: Option<String>,
    /// What the application and the worker sign with.
    pub secret: SecretString,
    /// Options of the object stores.
    pub storage: StorageOptions,
    /// How much the worker does.
    pub limits: Limits,
    /// How long running tasks may go on after the worker was told to stop.
    pub shutdown_grace: Duration,
    /// How log lines look.
    pub log_format: LogFormat,
}

/// How much the worker does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// How many tables are worked on at the same time.
    pub max_concurrent_tasks: NonZeroUsize,
    /// How many tasks wait at most; further ones are refused and come back later.
    pub max_queued_tasks: NonZeroUsize,
    /// How long a task may run.
    #[serde(with = "duration")]
    pub task_timeout: Duration,
    /// How much memory the operations may use that run side by side, as far as can be told before.
    pub memory_budget: ByteSize,
    /// How much memory one task may use; it is stopped when it takes more. Without it, as much as all
    /// together.
    pub task_memory: Option<ByteSize>,
    /// How long a table's store may take to answer.
    #[serde(with = "duration")]
    pub store_timeout: Duration,
    /// How often a task starts over after losing a commit to another writer.
    pub max_conflict_retries: u32,
    /// A cleanup never removes a version younger than this.
    #[serde(with = "duration")]
    pub minimum_version_age: Duration,
    /// How many groups of fragments a compaction rewrites at the same time.
    pub concurrent_rewrites: NonZeroUsize,
}

impl Default for Limits {
    fn default() -> Self {
        let operation = operations::Limits::default();
        let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self {
            // An operation uses several cores by itself; more at once cost memory.
            max_concurrent_tasks: NonZeroUsize::new(cores.get() / 2)
                .unwrap_or(NonZeroUsize::MIN)
                .saturating_add(1),
            max_queued_tasks: NonZeroUsize::MIN.saturating_add(999),
            task_timeout: Duration::from_secs(6 * 60 * 60),
            memory_budget: ByteSize(memory::of_machine() / 4 * 3),
            task_memory: None,
            store_timeout: operation.store_timeout,
            max_conflict_retries: operation.max_conflict_retries,
            minimum_version_age: operation.minimum_version_age,
            concurrent_rewrites: NonZeroUsize::new(operation.concurrent_rewrites).unwrap_or(cores),
        }
    }
}

impl Limits {
    /// The part that operations keep to.
    pub fn operation(&self) -> operations::Limits {
        operations::Limits {
            minimum_version_age: self.minimum_version_age,
            max_conflict_retries: self.max_conflict_retries,
            concurrent_rewrites: self.concurrent_rewrites.get(),
            store_timeout: self.store_timeout,
        }
    }

    /// How much memory one task may use, in bytes.
    pub fn task_memory(&self) -> u64 {
        self.task_memory.unwrap_or(self.memory_budget).as_u64()
    }
}

/// The configuration file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    listen: SocketAddr,
    application_url: String,
    worker_id: Option<String>,
    #[serde(deserialize_with = "plain_string")]
    secret: Option<String>,
    secret_file: Option<PathBuf>,
    storage_options_file: Option<PathBuf>,
    #[serde(with = "duration")]
    shutdown_grace: Duration,
    limits: Limits,
}

impl Default for ConfigFile {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 3100)),
            application_url: "http://127.0.0.1:3000".to_owned(),
            worker_id: None,
            secret: None,
            secret_file: None,
            storage_options_file: None,
            shutdown_grace: Duration::from_secs(20),
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// Reads the files that the command line names. `variable` looks up the environment.
    pub fn load(cli: &Cli, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let (file, folder) = match &cli.config {
            Some(path) => (
                parse(path, toml_file::parse)?,
                path.parent().unwrap_or(Path::new("")),
            ),
            None => (ConfigFile::default(), Path::new("")),
        };
        let storage = match &file.storage_options_file {
            // Paths in the file are relative to the file.
            Some(path) => parse(&folder.join(path), |text| {
                StorageOptions::parse(text, &variable)
            })?,
            None => StorageOptions::default(),
        };
        let secret = secret(&file, folder, variable(SECRET_VARIABLE))?;
        let url = cli
            .application_url
            .as_ref()
            .unwrap_or(&file.application_url);
        let worker_id = cli.worker_id.clone().or(file.worker_id);
        if let Some(id) = worker_id.as_ref().filter(|id| !is_worker_id(id)) {
            return Err(ConfigError::WorkerId(id.clone()));
        }
        Ok(Self {
            listen: cli.listen.unwrap_or(file.listen),
            application_url: application_url(url)?,
            worker_id,
            secret,
            storage,
            limits: file.limits,
            shutdown_grace: file.shutdown_grace,
            log_format: cli.log_format,
        })
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parse<T>(path: &Path, parse: impl Fn(&str) -> Result<T, TomlError>) -> Result<T, ConfigError> {
    parse(&read(path)?).map_err(|error| ConfigError::File {
        path: path.to_owned(),
        error,
    })
}

fn secret(
    file: &ConfigFile,
    folder: &Path,
    variable: Option<String>,
) -> Result<SecretString, ConfigError> {
    let secret = match (variable, &file.secret, &file.secret_file) {
        (_, Some(_), Some(_)) => return Err(ConfigError::TwoSecrets),
        (Some(secret), ..) => secret,
        (None, Some(secret), None) => secret.clone(),
        // Editors end a file with a line break; no secret does.
        (None, None, Some(path)) => read(&folder.join(path))?.trim_end().to_owned(),
        (None, None, None) => return Err(ConfigError::NoSecret),
    };
    let secret = SecretString::from(secret);
    if secret.expose_secret().is_empty() {
        return Err(ConfigError::NoSecret);
    }
    Ok(secret)
}

fn application_url(text: &str) -> Result<Url, ConfigError> {
    let unusable = |reason: &str| ConfigError::ApplicationUrl {
        url: text.to_owned(),
        reason: reason.to_owned(),
    };
    let url = Url::parse(text).map_err(|error| unusable(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable("it has to begin with http:// or https://"));
    }
    // Signatures cover the path: a prefix would have to be known on both sides.
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(unusable("it has to end after the host and the port"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::ApplicationUrl {
            url: url.host_str().unwrap_or_default().to_owned(),
            reason: "it can't hold credentials".to_owned(),
        });
    }
    Ok(url)
}

fn is_worker_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

/// Durations as text: `90s`, `5m`, `6h 30m`, `1day`.
mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, de::Error};

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_duration(&text).map_err(|error| {
            D::Error::custom(format!(
                "'{text}' is not a duration, which looks like \"90s\", \"5m\" or \"6h\": {error}"
            ))
        })
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
