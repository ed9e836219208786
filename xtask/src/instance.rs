//! The application and one worker, running.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use crate::data::Data;
use crate::health;
use crate::stop::Stop;
use crate::supervised::{Log, Program, Supervised};
use crate::workspace::{HOST_PACKAGE, Workspace};

const WORKER: &str = "lance-worker";
const UP: &str = "up.json";
const POLL: Duration = Duration::from_millis(100);
/// How long a program may take to be ready: the local host compiles the components the first time.
const READY_TIME: Duration = Duration::from_secs(120);

/// A claim to a folder and an address, to be had before anything is built.
pub struct Place {
    data: Data,
    listener: TcpListener,
    application_log: Log,
    worker_log: Log,
}

impl Place {
    /// Fails if another instance is in the folder, or anyone at the address. Port 0 takes a free
    /// one.
    pub fn take(data: Data, listen: SocketAddr) -> anyhow::Result<Self> {
        let logs = data.path("logs");
        let begin = |name: &str| Log::begin(logs.join(format!("{name}.log")));
        let (application_log, worker_log) = (begin(HOST_PACKAGE)?, begin(WORKER)?);
        let listener = TcpListener::bind(listen).with_context(|| {
            format!("can't listen on {listen}; choose another with --listen ADDRESS:PORT")
        })?;
        // One that a crash left tells of what runs no more.
        data.remove(UP)?;
        Ok(Self {
            data,
            listener,
            application_log,
            worker_log,
        })
    }
}

/// What runs, for those who look for it: the content of `up.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// The folder with logs.
    pub logs: PathBuf,
}

/// The application and one worker, running. Stops both when dropped: first the worker, which tells
/// the application of what it ends, then the application.
pub struct Instance {
    worker: Supervised,
    application: Supervised,
    data: Data,
    facts: Facts,
}

impl Instance {
    /// Starts both, and waits until they are ready. `runtime_config` is the absolute path of a file
    /// for the application.
    pub fn start(
        workspace: &Workspace,
        stop: &Stop,
        place: Place,
        variables: &[(String, String)],
        runtime_config: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let Place {
            data,
            listener,
            application_log,
            worker_log,
        } = place;
        let (credentials, secrets) = (data.credentials()?, data.secrets()?);
        let address = listener.local_addr()?;
        let reachable = reachable(address);
        let endpoint = format!("http://{reachable}");
        // The application has to know the worker's port before the worker runs.
        let worker_listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let worker_address = worker_listener.local_addr()?;

        let variables = data.variables(&credentials, &secrets, worker_address, variables)?;
        data.write_json("variables.json", &variables)?;
        let config = data.worker_config(&secrets, worker_address, &endpoint)?;
        data.write("worker.toml", &config)?;
        let application = application(workspace, &data, address, runtime_config, application_log)?;
        let worker = worker(workspace, &data, worker_log)?;

        // Each port is held until the program that needs it is about to take it.
        drop(listener);
        let mut application = Supervised::start(application, stop)?;
        application.wait_until(|| health::ask(reachable, "/healthz"), READY_TIME)?;
        drop(worker_listener);
        let mut worker = Supervised::start(worker, stop)?;
        worker.wait_until(|| health::ask(worker_address, "/readyz"), READY_TIME)?;

        let facts = Facts {
            endpoint,
            bucket: variables.get("default_bucket").cloned().unwrap_or_default(),
            credentials: data.path("credentials.json"),
            worker: format!("http://{worker_address}"),
            worker_pid: worker.id(),
            application_pid: application.id(),
            logs: data.path("logs"),
        };
        data.write_json(UP, &facts)?;
        Ok(Self {
            worker,
            application,
            data,
            facts,
        })
    }

    /// What runs.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The file that says what runs.
    pub fn facts_file(&self) -> PathBuf {
        self.data.path(UP)
    }

    /// Starts again what ends, until `done` or until it is told to stop; `false` for the latter.
    pub fn look_after(
        &mut self,
        stop: &Stop,
        mut done: impl FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        while !stop.wait(POLL) {
            if done()? {
                return Ok(true);
            }
            let (application, worker) = (self.application.look()?, self.worker.look()?);
            for said in [&application, &worker].into_iter().flatten() {
                eprintln!("{said}");
            }
            if application.is_some() || worker.is_some() {
                self.facts.application_pid = self.application.id();
                self.facts.worker_pid = self.worker.id();
                self.data.write_json(UP, &self.facts)?;
            }
        }
        Ok(false)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = self.data.remove(UP) {
            eprintln!("{error:#}");
        }
    }
}

fn application(
    workspace: &Workspace,
    data: &Data,
    listen: SocketAddr,
    runtime_config: Option<&Path>,
    log: Log,
) -> anyhow::Result<Program> {
    let mut arguments: Vec<OsString> = vec![
        "--manifest".into(),
        workspace.root.join("spin.toml").into(),
        "--listen".into(),
        listen.to_string().into(),
        "--state-dir".into(),
        data.path("state").into(),
        "--variables-file".into(),
        data.path("variables.json").into(),
    ];
    if let Some(path) = runtime_config {
        arguments.extend(["--runtime-config-file".into(), path.into()]);
    }
    Ok(Program {
        name: "the application",
        executable: workspace.executable(HOST_PACKAGE)?,
        arguments,
        log,
    })
}

fn worker(workspace: &Workspace, data: &Data, log: Log) -> anyhow::Result<Program> {
    Ok(Program {
        name: WORKER,
        executable: workspace.executable(WORKER)?,
        arguments: vec!["--config".into(), data.path("worker.toml").into()],
        log,
    })
}

/// An address to call for one to listen on.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn calls_an_address_and_not_all_of_them() {
        for (listen, expected) in [
            ("127.0.0.1:3000", "127.0.0.1:3000"),
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:80", "[::1]:80"),
            ("10.0.0.7:80", "10.0.0.7:80"),
        ] {
            let address = reachable(listen.parse().unwrap());
            assert_eq!(address.to_string(), expected);
        }
    }

    #[test]
    fn two_can_not_have_one_place() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let take = |folder: &tempfile::TempDir, listen: &str| {
            Place::take(Data::open(folder.path()).unwrap(), listen.parse().unwrap())
                .map_err(|error| format!("{error:#}"))
        };
        let first = take(&folders[0], "127.0.0.1:0").unwrap();
        let address = first.listener.local_addr().unwrap().to_string();
        let error = take(&folders[0], "127.0.0.1:0").err().unwrap();
        assert!(error.contains("another up is running"), "{error}");
        let error = take(&folders[1], &address).err().unwrap();
        assert!(error.contains("--listen"), "{error}");
        drop(first);
        // A process that a test beside this one is just starting has the lock too, until it runs its
        // program.
        let end = Instant::now() + Duration::from_secs(10);
        let mut again = take(&folders[0], &address);
        while again.is_err() && Instant::now() < end {
            sleep(Duration::from_millis(10));
            again = take(&folders[0], &address);
        }
        assert!(again.is_ok(), "{:?}", again.err());
    }
}
