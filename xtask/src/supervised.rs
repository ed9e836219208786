//! A program that is to run as long as this one, and is started again when it ends.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::health::Health;
use crate::stop::Stop;

const POLL: Duration = Duration::from_millis(20);
/// How long a program may take to stop before it is killed: longer than both take to give up on
/// what they have running.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause before the first new start, doubled with each, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After running this long a program counts as started well.
const SETTLED: Duration = Duration::from_secs(60);
/// For how long a program says that it fails before it is believed.
const FAILING: Duration = Duration::from_secs(2);
/// How much of a log is shown, in lines.
const TAIL: usize = 20;

/// Variables of the environment that would go before the files the programs are given.
const OVERRIDES: [&str; 2] = ["SPIN_VARIABLE_", "LANCE_WORKER_"];

/// A log file, locked. The program holds it open too, so that the lock lasts until both this process
/// and the program have ended.
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Begins a log anew, unless somebody holds it.
    pub fn begin(path: PathBuf) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "another up is running, or stopping, on this folder: it writes {}",
                path.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| path.display().to_string());
            }
        }
        file.set_len(0)?;
        Ok(Self { path, file })
    }

    /// Its last lines.
    pub fn tail(&self) -> String {
        let text = fs::read(&self.path).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&text), TAIL)
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// What to run.
pub struct Program {
    /// For people.
    pub name: &'static str,
    /// The file.
    pub executable: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where its output goes.
    pub log: Log,
}

impl Program {
    /// Starts it in a process group of its own, so that a Ctrl-C reaches this process alone, and
    /// with a pipe as its standard input, whose end tells it when this process is gone.
    fn start(&self) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.executable);
        for (name, _) in env::vars_os() {
            if is_override(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command
            .args(&self.arguments)
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stdout(self.log.file.try_clone()?)
            .stderr(self.log.file.try_clone()?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("can't start {}", self.executable.display()))
    }
}

fn is_override(name: &str) -> bool {
    OVERRIDES.iter().any(|prefix| name.starts_with(prefix))
}

/// A program that runs, or is about to again. Stops it when dropped.
pub struct Supervised {
    program: Program,
    stop: Stop,
    state: State,
    pause: Duration,
}

enum State {
    Running { child: Child, since: Instant },
    Pausing { until: Instant },
}

impl Supervised {
    /// Starts a program.
    pub fn start(program: Program, stop: &Stop) -> anyhow::Result<Self> {
        let child = program.start()?;
        Ok(Self {
            program,
            stop: stop.clone(),
            state: running(child),
            pause: FIRST_PAUSE,
        })
    }

    /// The process, if it runs.
    pub fn id(&self) -> Option<u32> {
        match &self.state {
            State::Running { child, .. } => Some(child.id()),
            State::Pausing { .. } => None,
        }
    }

    /// Looks after the program, and says so when it ended or was started again.
    pub fn look(&mut self) -> anyhow::Result<Option<String>> {
        let name = self.program.name;
        match &mut self.state {
            State::Running { child, since } => {
                let Some(status) = child.try_wait()? else {
                    return Ok(None);
                };
                if since.elapsed() > SETTLED {
                    self.pause = FIRST_PAUSE;
                }
                let until = Instant::now() + self.pause;
                let said = format!(
                    "{name} ended ({status}); starting it again in {:.2} s; its log is {}",
                    self.pause.as_secs_f64(),
                    self.program.log.path.display()
                );
                self.state = State::Pausing { until };
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Ok(Some(said))
            }
            State::Pausing { until } if Instant::now() < *until => Ok(None),
            State::Pausing { .. } => {
                let child = self.program.start()?;
                let said = format!("{name} runs again, as process {}", child.id());
                self.state = running(child);
                Ok(Some(said))
            }
        }
    }

    /// Waits until it is well. Fails, with the end of the log, if the program ends before, or says
    /// for a while that it fails.
    pub fn wait_until(
        &mut self,
        health: impl Fn() -> Health,
        limit: Duration,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        let mut failing: Option<Instant> = None;
        loop {
            match health() {
                Health::Well => return Ok(()),
                Health::Failing => _ = failing.get_or_insert_with(Instant::now),
                Health::Away => failing = None,
            }
            let name = self.program.name;
            let problem = match &mut self.state {
                State::Running { child, .. } => child.try_wait()?.map(|status| status.to_string()),
                State::Pausing { .. } => Some("ended".to_owned()),
            };
            let problem = problem.or_else(|| {
                let failing = failing.is_some_and(|since| since.elapsed() > FAILING);
                let late = || format!("not ready after {} s", limit.as_secs());
                match failing {
                    true => Some("it can't work with what it was given".to_owned()),
                    false => (started.elapsed() > limit).then(late),
                }
            });
            if let Some(problem) = problem {
                let Log { path, .. } = &self.program.log;
                let tail = self.program.log.tail();
                bail!("{name}: {problem}; the end of {}:\n{tail}", path.display());
            }
            if self.stop.wait(POLL) {
                return Err(crate::step::Interrupted.into());
            }
        }
    }
}

fn running(child: Child) -> State {
    State::Running {
        child,
        since: Instant::now(),
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let State::Running { child, .. } = &mut self.state else {
            return;
        };
        let told = self.stop.times();
        let started = Instant::now();
        if let Ok(id) = i32::try_from(child.id()) {
            // The only error is that it is gone.
            let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        while matches!(child.try_wait(), Ok(None)) {
            // Told once more, it is in a hurry.
            if self.stop.wait_beyond(told, POLL) || started.elapsed() > PATIENCE {
                eprintln!("{} does not stop; killing it", self.program.name);
                // The only error is that it is gone.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn shell(folder: &Path, script: &str) -> anyhow::Result<Program> {
        Ok(Program {
            name: "shell",
            executable: "/bin/sh".into(),
            arguments: ["-c", script].map(OsString::from).into(),
            log: Log::begin(folder.join("shell.log"))?,
        })
    }

    #[test]
    fn starts_again_what_ended() {
        let folder = tempfile::tempdir().unwrap();
        let program = shell(folder.path(), "exit 7").unwrap();
        let mut shell = Supervised::start(program, &Stop::default()).unwrap();
        let mut said = Vec::new();
        while said.len() < 3 {
            said.extend(shell.look().unwrap());
        }
        assert!(said[0].contains("exit status: 7"), "{}", said[0]);
        assert!(said[0].contains("in 0.25 s"), "{}", said[0]);
        assert!(said[1].contains("runs again"), "{}", said[1]);
        assert!(said[2].contains("in 0.50 s"), "{}", said[2]);
    }

    #[test]
    fn stops_what_runs_and_gives_its_log_free() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap 'echo asked; exit' TERM; echo started; while :; do sleep 0.01; done";
        let program = shell(folder.path(), script).unwrap();
        let mut running = Supervised::start(program, &Stop::default()).unwrap();
        let log = folder.path().join("shell.log");
        let started = || match fs::read_to_string(&log).unwrap().contains("started") {
            true => Health::Well,
            false => Health::Away,
        };
        running.wait_until(started, PATIENCE).unwrap();
        let error = Log::begin(log.clone()).err().unwrap();
        assert!(error.to_string().contains("another up"), "{error}");
        drop(running);
        assert_eq!(fs::read_to_string(&log).unwrap(), "started\nasked\n");
        assert!(Log::begin(log).is_ok());
    }

    #[test]
    fn shows_the_log_of_what_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let program = shell(folder.path(), "echo no such file; exit 1").unwrap();
        let mut running = Supervised::start(program, &Stop::default()).unwrap();
        let error = running.wait_until(|| Health::Away, PATIENCE).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("exit status: 1"), "{error}");
        assert!(error.ends_with("no such file"), "{error}");
    }

    #[test]
    fn does_not_wait_for_what_says_that_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let program = shell(folder.path(), "echo misspelt; exec sleep 60").unwrap();
        let mut running = Supervised::start(program, &Stop::default()).unwrap();
        let error = running
            .wait_until(|| Health::Failing, PATIENCE)
            .unwrap_err();
        let error = error.to_string();
        assert!(error.contains("can't work"), "{error}");
        assert!(error.ends_with("misspelt"), "{error}");
    }

    #[test]
    fn ends_of_texts() {
        for (text, expected) in [("", ""), ("a\n", "a"), ("a\nb\nc\n", "b\nc")] {
            assert_eq!(last_lines(text, 2), expected);
        }
    }

    #[test]
    fn knows_what_overrides_the_files() {
        for (name, expected) in [
            ("SPIN_VARIABLE_WORKER_SECRET", true),
            ("LANCE_WORKER_LISTEN", true),
            ("AWS_REGION", false),
            ("RUST_LOG", false),
        ] {
            assert_eq!(is_override(name), expected, "{name}");
        }
    }
}
