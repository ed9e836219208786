//! The cluster: Redis, application nodes, workers, and the proxies between them.
//!
//! ```text
//! clients -> proxy -> node 0, 1 -> proxy -> worker 0, 1, 2
//!                       ^   |               |
//!                       |   +-> Redis       v
//!                       +---------- a proxy of each worker
//! ```

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use lance_maintenance_tests::client::{Client, Credentials};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::plan::{Fault, Link, NODES, WORKERS};
use crate::process::{Process, Program};
use crate::proxy::Proxy;

/// How long a process may take to be ready. A node compiles its components the first time.
const READY: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
const SECRET: &str = "chaos-secret-of-the-workers-0123456789";
/// A cleanup never removes a version younger than this, so that every version is seen before.
pub const VERSION_AGE: Duration = Duration::from_secs(8);

/// Where things are.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The folder of this campaign.
    pub data: PathBuf,
    /// The folder of compiled components, which campaigns share.
    pub compiled: PathBuf,
    /// The manifest of the application.
    pub manifest: PathBuf,
    /// The folder with the executables.
    pub executables: PathBuf,
}

impl Paths {
    /// The log of a worker.
    pub fn worker_log(&self, worker: usize) -> PathBuf {
        self.data.join(format!("logs/worker-{worker}.log"))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.data.join(format!("logs/{name}.log"))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.data.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }
}

/// The cluster, running.
#[derive(Debug)]
pub struct Cluster {
    workers: Vec<Process>,
    nodes: Vec<Process>,
    redis: Process,
    clients: Proxy,
    to_workers: Proxy,
    to_nodes: Vec<Proxy>,
    addresses: Addresses,
    credentials: Credentials,
}

#[derive(Debug)]
struct Addresses {
    redis: SocketAddr,
    nodes: Vec<SocketAddr>,
    workers: Vec<SocketAddr>,
}

impl Cluster {
    /// Starts everything, and waits until it is ready.
    pub async fn start(paths: &Paths) -> anyhow::Result<Self> {
        for folder in ["logs", "redis", "warehouse"] {
            fs::create_dir_all(paths.data.join(folder))?;
        }
        fs::create_dir_all(&paths.compiled)?;
        let addresses = Addresses::free()?;
        let credentials = Credentials {
            access_key_id: "LMCHAOS".to_owned(),
            secret_access_key: "chaos-secret-of-the-clients".to_owned(),
            region: "local".to_owned(),
        };
        let redis = Process::start(redis(paths, &addresses)?)?;
        wait_until("Redis", || answers_ping(addresses.redis)).await?;

        let clients = Proxy::start(addresses.nodes.clone()).await?;
        let to_workers = Proxy::start(addresses.workers.clone()).await?;
        write_variables(paths, &credentials, to_workers.address())?;
        let config = format!(
            "[key_value_store.default]\ntype = \"redis\"\nurl = \"redis://{}/0\"\n",
            addresses.redis
        );
        paths.write("redis.toml", &config)?;
        let mut nodes = Vec::new();
        for (number, address) in addresses.nodes.iter().enumerate() {
            nodes.push(Process::start(node(paths, number, *address))?);
            // One after another: the first compiles for all.
            wait_until("a node", || answers_http(*address, "/healthz")).await?;
        }

        let (mut workers, mut to_nodes) = (Vec::new(), Vec::new());
        for (number, address) in addresses.workers.iter().enumerate() {
            let proxy = Proxy::start(addresses.nodes.clone()).await?;
            let program = worker(paths, number, *address, proxy.address())?;
            workers.push(Process::start(program)?);
            to_nodes.push(proxy);
        }
        for address in &addresses.workers {
            wait_until("a worker", || answers_http(*address, "/readyz")).await?;
        }
        Ok(Self {
            workers,
            nodes,
            redis,
            clients,
            to_workers,
            to_nodes,
            addresses,
            credentials,
        })
    }

    /// A client of the nodes, for the Tokio runtime that it is made on.
    pub fn client(&self) -> anyhow::Result<Client> {
        let endpoint = format!("http://{}", self.clients.address());
        Client::new(&endpoint, self.credentials.clone())
    }

    /// The workers.
    pub fn workers(&self) -> &[Process] {
        &self.workers
    }

    /// Lets a fault happen.
    pub fn begin(&mut self, fault: Fault) -> anyhow::Result<()> {
        match fault {
            Fault::KillWorker(worker, _) => self.workers[worker].kill(),
            Fault::EndWorker(worker, _) => self.workers[worker].tell_to_end()?,
            Fault::StopWorker(worker, _) => self.workers[worker].signal("STOP")?,
            Fault::KillNode(node, _) => self.nodes[node].kill(),
            Fault::StopRedis(_) => self.redis.signal("STOP")?,
            Fault::KillRedis(_) => self.redis.kill(),
            Fault::Http(link, trouble, _) => self.proxy(link).set(Some(trouble)),
        }
        Ok(())
    }

    /// Whether a fault can be undone: a worker that was told to end has ended.
    pub fn is_over(&self, fault: Fault) -> bool {
        match fault {
            Fault::EndWorker(worker, _) => self.workers[worker].has_ended(),
            _ => true,
        }
    }

    /// Undoes a fault.
    pub fn undo(&mut self, fault: Fault) -> anyhow::Result<()> {
        match fault {
            Fault::KillWorker(worker, _) | Fault::EndWorker(worker, _) => {
                self.workers[worker].start_again()
            }
            Fault::StopWorker(worker, _) => self.workers[worker].signal("CONT"),
            Fault::KillNode(node, _) => self.nodes[node].start_again(),
            Fault::StopRedis(_) => self.redis.signal("CONT"),
            Fault::KillRedis(_) => self.redis.start_again(),
            Fault::Http(link, ..) => {
                self.proxy(link).set(None);
                Ok(())
            }
        }
    }

    fn proxy(&self, link: Link) -> &Proxy {
        match link {
            Link::Clients => &self.clients,
            Link::Workers => &self.to_workers,
            Link::Application(worker) => &self.to_nodes[worker],
        }
    }

    /// Waits until everything is ready again, after the last fault.
    pub async fn settle(&self) -> anyhow::Result<()> {
        wait_until("Redis", || answers_ping(self.addresses.redis)).await?;
        for address in &self.addresses.nodes {
            wait_until("a node", || answers_http(*address, "/healthz")).await?;
        }
        for address in &self.addresses.workers {
            wait_until("a worker", || answers_http(*address, "/readyz")).await?;
        }
        Ok(())
    }

    /// Notes which processes have ended. Fails if one did that nobody told to.
    pub fn look(&mut self) -> anyhow::Result<()> {
        let all = self.workers.iter_mut().chain(&mut self.nodes);
        for process in all.chain([&mut self.redis]) {
            process.look()?;
        }
        Ok(())
    }
}

impl Addresses {
    /// Free ports, which nobody else is likely to take before they are used.
    fn free() -> anyhow::Result<Self> {
        let mut listeners = (0..1 + NODES + WORKERS)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter();
        let mut next = || -> anyhow::Result<SocketAddr> {
            let listener = listeners.next().context("too few ports")?;
            Ok(listener.local_addr()?)
        };
        // Each is held until the last is found, so that they differ.
        let redis = next()?;
        let nodes = (0..NODES).map(|_| next()).collect::<Result<_, _>>()?;
        let workers = (0..WORKERS).map(|_| next()).collect::<Result<_, _>>()?;
        Ok(Self {
            redis,
            nodes,
            workers,
        })
    }
}

fn redis(paths: &Paths, addresses: &Addresses) -> anyhow::Result<Program> {
    let folder = paths.data.join("redis");
    // What it has answered it still knows after it was killed.
    let text = format!(
        "bind 127.0.0.1\nport {}\ndir {}\nappendonly yes\nappendfsync always\nsave \"\"\n",
        addresses.redis.port(),
        serde_json::to_string(&folder)?,
    );
    let config = paths.write("redis.conf", &text)?;
    Ok(Program {
        name: "Redis".to_owned(),
        executable: "redis-server".into(),
        arguments: vec![config.into()],
        log: paths.log("redis"),
        ends_with_stdin: false,
    })
}

fn node(paths: &Paths, number: usize, listen: SocketAddr) -> Program {
    let arguments = vec![
        "--manifest".into(),
        paths.manifest.clone().into(),
        "--listen".into(),
        listen.to_string().into(),
        "--state-dir".into(),
        paths.compiled.clone().into(),
        "--variables-file".into(),
        paths.data.join("variables.json").into(),
        "--runtime-config-file".into(),
        paths.data.join("redis.toml").into(),
        "--stop-with-stdin".into(),
    ];
    Program {
        name: format!("node {number}"),
        executable: paths.executables.join("lance-local-host"),
        arguments,
        log: paths.log(&format!("node-{number}")),
        ends_with_stdin: true,
    }
}

fn worker(
    paths: &Paths,
    number: usize,
    listen: SocketAddr,
    application: SocketAddr,
) -> anyhow::Result<Program> {
    let text = format!(
        "listen = \"{listen}\"\n\
         application_url = \"http://{application}\"\n\
         worker_id = \"worker-{number}\"\n\
         secret = \"{SECRET}\"\n\
         shutdown_grace = \"2s\"\n\
         [limits]\n\
         max_concurrent_tasks = 2\n\
         minimum_version_age = \"{}s\"\n",
        VERSION_AGE.as_secs()
    );
    let config = paths.write(&format!("worker-{number}.toml"), &text)?;
    let arguments = vec![
        "--config".into(),
        config.into(),
        "--log-format".into(),
        "json".into(),
        "--stop-with-stdin".into(),
    ];
    Ok(Program {
        name: format!("worker {number}"),
        executable: paths.executables.join("lance-worker"),
        arguments,
        log: paths.worker_log(number),
        ends_with_stdin: true,
    })
}

fn write_variables(
    paths: &Paths,
    credentials: &Credentials,
    worker: SocketAddr,
) -> anyhow::Result<()> {
    let everything = json!([{
        "access_key_id": credentials.access_key_id,
        "secret_access_key": credentials.secret_access_key,
        "user": "admin",
        "policy": {
            "Version": "1",
            "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
        },
    }]);
    let variables = json!({
        "region": credentials.region,
        "default_bucket": "lance",
        "table_buckets": "lance",
        "credentials": everything.to_string(),
        "internal_secret": "chaos-secret-of-the-components-0123456789",
        "worker_secret": SECRET,
        "worker_url": format!("http://{worker}"),
        "warehouse": uri(&paths.data.join("warehouse")),
        "register_roots": uri(&paths.data),
    });
    paths.write("variables.json", &variables.to_string())?;
    Ok(())
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

async fn wait_until<Asking: Future<Output = bool>>(
    what: &str,
    mut is_ready: impl FnMut() -> Asking,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while !is_ready().await {
        if started.elapsed() > READY {
            bail!("{what} is not ready after {READY:?}");
        }
        sleep(POLL).await;
    }
    Ok(())
}

async fn answers_ping(address: SocketAddr) -> bool {
    says(address, b"PING\r\n", b"+PONG").await
}

async fn answers_http(address: SocketAddr, path: &str) -> bool {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    says(address, request.as_bytes(), b"HTTP/1.1 200").await
}

/// Whether the first that is answered is this.
async fn says(address: SocketAddr, request: &[u8], expected: &[u8]) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request).await?;
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(Duration::from_secs(5), ask).await;
    matches!(answer, Ok(Ok(answer)) if answer == expected)
}
