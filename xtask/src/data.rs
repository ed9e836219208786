//! The folder of `cargo xtask up`: what it generates once, and what it writes at every start.
//!
//! | file | what it is |
//! |---|---|
//! | `credentials.json` | who may call; generated once |
//! | `secrets.json` | what the parts sign with among each other; generated once |
//! | `variables.json` | the application's variables, written at every start |
//! | `worker.toml` | the worker's configuration, written at every start |
//! | `access.json` | yours, if it is there: more credentials, and bucket policies |
//! | `storage.toml` | yours, if it is there: storage options for the worker |
//! | `up.json` | where to find what runs, while it runs |
//! | `state/`, `warehouse/`, `logs/` | the key-value store, declared tables, logs |

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::access::Access;

/// The bucket that tables are in where nothing else is said.
const BUCKET: &str = "lance";

/// What `up` sets itself, and what from.
const OWN_VARIABLES: [(&str, &str); 6] = [
    ("credentials", "credentials.json and access.json"),
    ("bucket_policies", "access.json"),
    ("region", "credentials.json"),
    ("internal_secret", "secrets.json"),
    ("worker_secret", "secrets.json"),
    ("worker_url", "the port of the worker it starts"),
];

/// Who may call the application, in the form that clients read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credentials {
    /// What a signature names.
    pub access_key_id: String,
    /// What a signature is made with.
    pub secret_access_key: String,
    /// The region in signatures and ARNs.
    pub region: String,
}

/// What the application's parts and the worker sign with among each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// Between the application's components.
    pub internal_secret: String,
    /// Between the application and the worker.
    pub worker_secret: String,
}

/// The folder.
#[derive(Clone, Debug)]
pub struct Data(PathBuf);

impl Data {
    /// Makes the folder if it is not there.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let open = || -> anyhow::Result<Self> {
            fs::create_dir_all(folder)?;
            let folder = folder.canonicalize()?;
            check_for_uri(&folder)?;
            for name in ["state", "warehouse", "logs"] {
                fs::create_dir_all(folder.join(name))?;
            }
            Ok(Self(folder))
        };
        open().with_context(|| format!("can't keep data in {}", folder.display()))
    }

    /// A file or folder in it, absolute.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A URI of a folder in it.
    fn uri(&self, name: &str) -> String {
        let path = self.0.join(name);
        format!("file://{}", path.display())
            .trim_end_matches('/')
            .to_owned()
    }

    /// The credentials, generated the first time.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        self.read_or_generate("credentials.json", || {
            Ok(Credentials {
                access_key_id: format!("LM{}", random_hex(9)?.to_ascii_uppercase()),
                secret_access_key: random_hex(20)?,
                region: "local".to_owned(),
            })
        })
    }

    /// The secrets, generated the first time.
    pub fn secrets(&self) -> anyhow::Result<Secrets> {
        self.read_or_generate("secrets.json", || {
            Ok(Secrets {
                internal_secret: random_hex(32)?,
                worker_secret: random_hex(32)?,
            })
        })
    }

    fn read_or_generate<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        generate: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        if let Some(value) = self.read_json(name)? {
            return Ok(value);
        }
        let value = generate()?;
        self.write_json(name, &value)?;
        Ok(value)
    }

    /// What a file holds, if it is there.
    fn read_json<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        // The error tells place and kind, and no value.
        serde_json::from_slice(&text)
            .map(Some)
            .with_context(|| path.display().to_string())
    }

    /// Writes a file as JSON, for the owner alone to read.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(value)?;
        text.push('\n');
        self.write(name, &text)
    }

    /// Writes a file, for the owner alone to read. Whoever reads it sees all of it or the one before.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        let new = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            // One that a crash left keeps its permissions.
            if new.exists() {
                fs::remove_file(&new)?;
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&new, &path)
        };
        write().with_context(|| format!("can't write {}", path.display()))
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("can't remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// The application's variables: those that `up` sets, with the caller's on top.
    pub fn variables(
        &self,
        credentials: &Credentials,
        secrets: &Secrets,
        worker: SocketAddr,
        given: &[(String, String)],
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let access = Access::of(credentials, self.read_json("access.json")?);
        let mut variables: BTreeMap<_, _> = [
            ("region", credentials.region.clone()),
            ("default_bucket", BUCKET.to_owned()),
            ("table_buckets", BUCKET.to_owned()),
            ("credentials", access.credentials()),
            ("bucket_policies", access.bucket_policies()),
            ("internal_secret", secrets.internal_secret.clone()),
            ("worker_secret", secrets.worker_secret.clone()),
            ("worker_url", format!("http://{worker}")),
            ("warehouse", self.uri("warehouse")),
            ("register_roots", self.uri("")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in given {
            if let Some((_, source)) = OWN_VARIABLES.iter().find(|(own, _)| own == name) {
                bail!("--variable {name}: up sets it itself, from {source}");
            }
            variables.insert(name.clone(), value.clone());
        }
        Ok(variables)
    }

    /// The text of the worker's configuration.
    pub fn worker_config(
        &self,
        secrets: &Secrets,
        worker: SocketAddr,
        application_url: &str,
    ) -> anyhow::Result<String> {
        // A JSON string is a TOML string too.
        let quote = |text: &str| serde_json::to_string(text);
        let mut text = format!(
            "# Written by `cargo xtask up` at every start.\n\
             listen = {}\n\
             application_url = {}\n\
             worker_id = \"local\"\n\
             secret = {}\n",
            quote(&worker.to_string())?,
            quote(application_url)?,
            quote(&secrets.worker_secret)?,
        );
        let storage = self.path("storage.toml");
        if storage.is_file() {
            let storage = quote(&storage.display().to_string())?;
            text += &format!("storage_options_file = {storage}\n");
        }
        Ok(text)
    }
}

/// Tables' locations are URIs under the folder, in a list with commas: its path must be one part of
/// both as it is.
fn check_for_uri(folder: &Path) -> anyhow::Result<()> {
    let plain = folder.to_str().is_some_and(|path| {
        !path.contains(['%', '?', '#', '\\', ',']) && !path.contains(char::is_control)
    });
    if !plain {
        bail!("the path of the folder may have none of % ? # \\ , in it");
    }
    Ok(())
}

fn random_hex(bytes: usize) -> anyhow::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).context("the system gives no random numbers")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const WORKER: &str = "127.0.0.1:4000";

    fn opened() -> (tempfile::TempDir, Data) {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::open(&folder.path().join("a b/data")).unwrap();
        (folder, data)
    }

    fn secrets() -> Secrets {
        Secrets {
            internal_secret: "i".to_owned(),
            worker_secret: "w\"".to_owned(),
        }
    }

    #[test]
    fn generates_once_for_the_owner_alone() {
        let (_folder, data) = opened();
        let (credentials, secrets) = (data.credentials().unwrap(), data.secrets().unwrap());
        assert_eq!(data.credentials().unwrap(), credentials);
        assert_eq!(data.secrets().unwrap(), secrets);
        assert_ne!(secrets.internal_secret, secrets.worker_secret);
        assert_eq!(credentials.access_key_id.len(), 20);
        for name in ["credentials.json", "secrets.json"] {
            let mode = fs::metadata(data.path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn replaces_what_it_writes_and_what_a_crash_left() {
        let (_folder, data) = opened();
        fs::write(data.path("up.new"), "half").unwrap();
        for text in ["one", "two"] {
            data.write("up.json", text).unwrap();
            assert_eq!(fs::read_to_string(data.path("up.json")).unwrap(), text);
        }
        assert!(!data.path("up.new").exists());
        for _ in 0..2 {
            data.remove("up.json").unwrap();
            assert!(!data.path("up.json").exists());
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_file_without_its_values() {
        let (_folder, data) = opened();
        fs::write(data.path("secrets.json"), r#"{"internal_secret": "abc"}"#).unwrap();
        let error = format!("{:#}", data.secrets().unwrap_err());
        assert!(error.contains("secrets.json"), "{error}");
        assert!(error.contains("worker_secret"), "{error}");
        assert!(!error.contains("abc"), "{error}");
    }

    #[test]
    fn gives_the_application_its_variables() {
        let (_folder, data) = opened();
        let credentials = Credentials {
            access_key_id: "id".to_owned(),
            secret_access_key: "key".to_owned(),
            region: "here".to_owned(),
        };
        let variables = |given: &[(&str, &str)]| {
            let given: Vec<_> = given
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            data.variables(&credentials, &secrets(), WORKER.parse().unwrap(), &given)
        };
        let values = variables(&[("table_buckets", "a,b"), ("task_quota", "3")]).unwrap();
        let folder = data.path("").display().to_string();
        let folder = folder.trim_end_matches('/');
        for (name, expected) in [
            ("region", "here"),
            ("default_bucket", "lance"),
            ("table_buckets", "a,b"),
            ("task_quota", "3"),
            ("bucket_policies", "{}"),
            ("internal_secret", "i"),
            ("worker_url", "http://127.0.0.1:4000"),
            ("warehouse", &format!("file://{folder}/warehouse")),
            ("register_roots", &format!("file://{folder}")),
        ] {
            assert_eq!(values[name], expected, "{name}");
        }
        assert!(values["credentials"].contains(r#""access_key_id":"id""#));
        for (name, _) in OWN_VARIABLES {
            let error = variables(&[(name, "x")]).unwrap_err().to_string();
            assert!(error.contains("up sets it itself"), "{error}");
        }
    }

    #[test]
    fn configures_the_worker() {
        let (_folder, data) = opened();
        let config = || {
            data.worker_config(&secrets(), WORKER.parse().unwrap(), "http://127.0.0.1:3000")
                .unwrap()
        };
        let text = config();
        for line in [
            "listen = \"127.0.0.1:4000\"",
            "application_url = \"http://127.0.0.1:3000\"",
            "worker_id = \"local\"",
            "secret = \"w\\\"\"",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(!text.contains("storage"), "{text}");
        fs::write(data.path("storage.toml"), "").unwrap();
        assert!(config().contains("/storage.toml\"\n"));
    }

    #[test]
    fn refuses_folders_that_are_no_plain_uri() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a%20b", "a#b", "a,b", "a?b", "a\\b", "a\nb"] {
            assert!(Data::open(&folder.path().join(name)).is_err(), "{name:?}");
        }
    }
}
