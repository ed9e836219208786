//! The service, running: `xtask up` in a folder of its own.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Deserialize;
use tempfile::TempDir;

use crate::client::{Client, Credentials};

/// How long the service may take to start; it compiles its components the first time.
const START_TIME: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(20);
const FACTS: &str = "up.json";

/// What `xtask up` says of what runs.
#[derive(Clone, Debug, Deserialize)]
pub struct Facts {
    /// The application's URL.
    pub endpoint: String,
    /// The table bucket of requests to it.
    pub bucket: String,
    /// The file with credentials.
    pub credentials: PathBuf,
    /// The worker's URL.
    pub worker: String,
    /// The worker's process, if it runs.
    pub worker_pid: Option<u32>,
    /// The application's process, if it runs.
    pub application_pid: Option<u32>,
}

impl Facts {
    /// Reads the file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read(path).with_context(|| path.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| path.display().to_string())
    }

    /// A client of the application.
    pub fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.endpoint, Credentials::read(&self.credentials)?)
    }
}

/// A running service. It stops when it is dropped, or when this process ends, whichever way: it is
/// told by the end of its standard input.
#[derive(Debug)]
pub struct Server {
    up: Child,
    folder: PathBuf,
    // Removed after the service has stopped.
    _own_folder: Option<TempDir>,
}

impl Server {
    /// Starts the service in a temporary folder, with these variables of the application.
    pub fn start(variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("lance-maintenance-")
            .tempdir()?;
        let mut server = Self::start_in(folder.path(), variables)?;
        server._own_folder = Some(folder);
        Ok(server)
    }

    /// Starts the service in a folder.
    pub fn start_in(folder: &Path, variables: &[(&str, &str)]) -> anyhow::Result<Self> {
        let executable = xtask()?;
        // One that a crash left would tell of what runs no more.
        match fs::remove_file(folder.join(FACTS)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut command = Command::new(&executable);
        command
            .args(["up", "--no-build", "--stop-with-stdin"])
            .args(["--listen", "127.0.0.1:0", "--data"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        for (name, value) in variables {
            command.arg("--variable").arg(format!("{name}={value}"));
        }
        let up = command
            .spawn()
            .with_context(|| format!("can't start {}", executable.display()))?;
        let mut server = Self {
            up,
            folder: folder.to_owned(),
            _own_folder: None,
        };
        let started = Instant::now();
        while !server.folder.join(FACTS).exists() {
            if let Some(status) = server.up.try_wait()? {
                bail!("the service did not start: {status}");
            }
            if started.elapsed() > START_TIME {
                bail!("the service did not start in {START_TIME:?}");
            }
            std::thread::sleep(POLL);
        }
        Ok(server)
    }

    /// Where everything is that it keeps.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What runs just now.
    pub fn facts(&self) -> anyhow::Result<Facts> {
        Facts::read(&self.folder.join(FACTS))
    }

    /// A client, for the Tokio runtime that it is made on.
    pub fn client(&self) -> anyhow::Result<Client> {
        self.facts()?.client()
    }
}

/// Sends a signal, such as `KILL`, to a process.
pub fn signal(name: &str, process: u32) -> anyhow::Result<()> {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {process}")])
        .status()?;
    anyhow::ensure!(status.success(), "can't send {name} to {process}");
    Ok(())
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.up.stdin.take());
        // It can't be waited for if it is gone.
        let _ = self.up.wait();
    }
}

/// The executable, which lies where cargo builds it: beside this one, or beside this one's folder.
fn xtask() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("XTASK") {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("xtask"))
        .find(|path| path.is_file())
        .context("there is no xtask here: build it, or say where it is with XTASK")
}
