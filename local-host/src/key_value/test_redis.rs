//! A Redis server for one test.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::RedisUrl;

/// How long a server may take to answer.
const START_TIME: Duration = Duration::from_secs(20);

/// A server on a port of its own, which keeps nothing. Killed when dropped.
pub struct Server {
    process: Child,
    port: u16,
    options: Vec<String>,
    folder: TempDir,
}

impl Server {
    /// Starts one and waits until it answers. `options` are those of its command line.
    pub fn start(options: &[&str]) -> Self {
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        let folder = tempfile::tempdir().unwrap();
        // Another process may take a free port first.
        for _ in 0..5 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            if let Some(process) = launch(port, &options, &folder) {
                return Self {
                    process,
                    port,
                    options,
                    folder,
                };
            }
        }
        panic!("redis-server does not start with {options:?}");
    }

    /// Its URL; `login` is what comes before the address, such as `:password@`.
    pub fn url(&self, login: &str) -> RedisUrl {
        RedisUrl::parse(&format!("redis://{login}127.0.0.1:{}", self.port)).unwrap()
    }

    /// Makes it silent, with its connections open.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again at the same port, with nothing in it.
    pub fn start_again(&mut self) {
        self.process = launch(self.port, &self.options, &self.folder).unwrap();
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.process.id()).unwrap());
        kill(pid, signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that a test killed is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `None` if it ends.
fn launch(port: u16, options: &[String], folder: &TempDir) -> Option<Child> {
    let mut process = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
        .args(["--save", "", "--appendonly", "no", "--dir"])
        .arg(folder.path())
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "these tests start redis-server ({error}); install it, on Debian with\n    \
                 apt-get install redis-server"
            )
        });
    let end = Instant::now() + START_TIME;
    while Instant::now() < end {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        if answers(port) {
            return Some(process);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    None
}

/// Any answer will do, `-NOAUTH` too.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let ask = || -> std::io::Result<u8> {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(Duration::from_secs(1)))?;
        connection.write_all(b"PING\r\n")?;
        let mut first = [0];
        connection.read_exact(&mut first)?;
        Ok(first[0])
    };
    ask().is_ok_and(|first| first == b'+' || first == b'-')
}
