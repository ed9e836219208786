//! A process of the cluster, which is killed and started again, and when it ran.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, bail};
use lance_maintenance_tests::harness::signal;

/// Variables of the environment that would go before what the programs are given.
const OVERRIDES: [&str; 3] = ["SPIN_VARIABLE_", "LANCE_WORKER_", "RUST_LOG"];

/// How a program is started, the same each time.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, for messages.
    pub name: String,
    /// The executable.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where its output goes, one start after another.
    pub log: PathBuf,
    /// Whether it ends when its standard input does. If not, a process that watches over ours ends
    /// it.
    pub ends_with_stdin: bool,
}

/// When a process ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Since when.
    pub start: SystemTime,
    /// Until when, unless it still runs.
    pub end: Option<SystemTime>,
}

/// A program, running or not. It is killed when it is dropped, and when this process ends, whichever
/// way.
#[derive(Debug)]
pub struct Process {
    program: Program,
    child: Option<Child>,
    watcher: Option<Child>,
    // Ends the process when it is closed.
    _stdin: Option<ChildStdin>,
    lives: Vec<Life>,
    told_to_end: bool,
}

impl Process {
    /// Starts a program.
    pub fn start(program: Program) -> anyhow::Result<Self> {
        let mut process = Self {
            program,
            child: None,
            watcher: None,
            _stdin: None,
            lives: Vec::new(),
            told_to_end: false,
        };
        process.start_again()?;
        Ok(process)
    }

    /// When it ran.
    pub fn lives(&self) -> &[Life] {
        &self.lives
    }

    /// Starts it, if it does not run.
    pub fn start_again(&mut self) -> anyhow::Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        let program = &self.program;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&program.log)
            .with_context(|| program.log.display().to_string())?;
        let mut command = Command::new(&program.executable);
        command
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if OVERRIDES.iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("can't start {}", program.executable.display()))?;
        self._stdin = child.stdin.take();
        if !program.ends_with_stdin {
            self.watcher = Some(watch(child.id())?);
        }
        self.child = Some(child);
        self.told_to_end = false;
        self.lives.push(Life {
            start: SystemTime::now(),
            end: None,
        });
        Ok(())
    }

    /// Sends a signal, such as `STOP`.
    pub fn signal(&self, name: &str) -> anyhow::Result<()> {
        match &self.child {
            Some(child) => signal(name, child.id()),
            None => Ok(()),
        }
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            // Before its process is gone, whose number may be given away.
            let _ = watcher.kill();
            let _ = watcher.wait();
        }
        if let Some(mut child) = self.child.take() {
            // An error says that it has ended.
            let _ = child.kill();
            let _ = child.wait();
            self.ended();
        }
    }

    /// Tells it to end.
    pub fn tell_to_end(&mut self) -> anyhow::Result<()> {
        self.told_to_end = true;
        self.signal("TERM")
    }

    /// Whether it runs no more.
    pub fn has_ended(&self) -> bool {
        self.child.is_none()
    }

    /// Notes its end, if it has ended by itself. Fails if nobody told it to.
    pub fn look(&mut self) -> anyhow::Result<()> {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        let Some(status) = child.try_wait()? else {
            return Ok(());
        };
        self.child = None;
        self.ended();
        if !self.told_to_end {
            bail!("{} ended by itself: {status}", self.program.name);
        }
        Ok(())
    }

    fn ended(&mut self) {
        if let Some(life) = self.lives.last_mut() {
            life.end = Some(SystemTime::now());
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process that kills another when ours ends.
fn watch(process: u32) -> anyhow::Result<Child> {
    Command::new("sh")
        .args(["-c", &format!("cat >/dev/null; kill -9 {process}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("can't start a shell")
}
