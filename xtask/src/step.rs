//! Running other programs to their end, with a line that says so.

use std::fmt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::stop::Stop;

const POLL: Duration = Duration::from_millis(20);
/// How long a program may take to stop before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The person told this command to stop.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Runs a program with its output going through, and fails if it does.
pub fn run(stop: &Stop, what: &str, command: &mut Command) -> anyhow::Result<Duration> {
    run_within(stop, what, command, Duration::MAX)
}

/// The same, with a limit to its time.
pub fn run_within(
    stop: &Stop,
    what: &str,
    command: &mut Command,
    limit: Duration,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let status = status_within(stop, what, command, limit)?;
    if !status.success() {
        bail!("{what}: {}", says(command, status));
    }
    Ok(started.elapsed())
}

/// The same, where failures have meanings.
pub fn status_within(
    stop: &Stop,
    what: &str,
    command: &mut Command,
    limit: Duration,
) -> anyhow::Result<ExitStatus> {
    println!("==> {what}");
    let started = Instant::now();
    let mut group = Group::spawn(command)?;
    let status = loop {
        if let Some(status) = group.0.try_wait()? {
            break status;
        }
        if stop.wait(POLL) {
            group.stop();
            return Err(Interrupted.into());
        }
        if started.elapsed() > limit {
            group.stop();
            bail!("{what}: took longer than {} s", limit.as_secs());
        }
    };
    println!("    {:.1} s", started.elapsed().as_secs_f64());
    Ok(status)
}

fn says(command: &Command, status: ExitStatus) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    format!("{} failed ({status})", name.to_string_lossy())
}

/// A program and what it starts, in a process group of their own: a Ctrl-C reaches this process
/// alone, which stops the whole group once.
pub struct Group(pub Child);

impl Group {
    /// Starts a program.
    pub fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        // A background group that reads from the terminal would be halted.
        command.stdin(Stdio::null()).process_group(0);
        let child = command
            .spawn()
            .with_context(|| format!("can't run {}", command.get_program().display()))?;
        Ok(Self(child))
    }

    /// Asks the group to stop, and kills what has not after a while.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        self.signal(Signal::SIGKILL);
        // It can't refuse; an error means that it is gone.
        let _ = self.0.wait();
    }

    fn signal(&self, signal: Signal) {
        if let Ok(id) = i32::try_from(self.0.id()) {
            // The only error is that the group is gone.
            let _ = killpg(Pid::from_raw(id), signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn says_what_failed() {
        let error = run(&Stop::default(), "lints", &mut shell("exit 3")).unwrap_err();
        assert_eq!(error.to_string(), "lints: sh failed (exit status: 3)");
    }

    #[test]
    fn stops_the_whole_group() {
        let stop = Stop::default();
        stop.tell();
        // The child would outlive its shell.
        let started = Instant::now();
        let error = run(&stop, "sleep", &mut shell("sleep 60 & wait")).unwrap_err();
        assert!(error.is::<Interrupted>());
        assert!(started.elapsed() < PATIENCE);
    }

    #[test]
    fn limits_the_time() {
        let limit = Duration::from_millis(50);
        let error = run_within(&Stop::default(), "sleep", &mut shell("sleep 60"), limit);
        assert!(error.unwrap_err().to_string().contains("took longer"));
    }
}
