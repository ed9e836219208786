//! `cargo xtask test --fuzz`: the targets under `fuzz`, each for a while.
//!
//! cargo-fuzz needs a nightly toolchain, which nothing else here does. What it finds of interest
//! goes into the target folder and is what the next run begins with; an input that makes a target
//! fail goes to `fuzz/artifacts`.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};

use crate::stop::Stop;
use crate::workspace::Workspace;
use crate::{cargo, step};

/// The toolchain that targets are built with.
const TOOLCHAIN: &str = "nightly";
/// No request that matters is larger.
const MOST_BYTES: u32 = 4096;
/// How long a target may take beyond its time: it ends the input that it is at, and says what it
/// found.
const GRACE: Duration = Duration::from_secs(60);

/// Builds the targets, or those with `filter` in their names, and runs each for a time.
pub struct Fuzz<'a> {
    workspace: &'a Workspace,
    stop: &'a Stop,
    /// Where cargo-fuzz may be, if it is not installed for everybody.
    tools: PathBuf,
}

impl<'a> Fuzz<'a> {
    /// Gets what is needed, or says what is missing.
    pub fn new(workspace: &'a Workspace, stop: &'a Stop) -> anyhow::Result<Self> {
        let tools = workspace.target().join("fuzz").join("tools");
        let fuzz = Self {
            workspace,
            stop,
            tools,
        };
        if !fuzz.succeeds(&["rustc", "--version"])? {
            bail!(
                "fuzzing needs a nightly toolchain; install one with\n    \
                 rustup toolchain install {TOOLCHAIN} --profile minimal"
            );
        }
        Ok(fuzz)
    }

    /// Installs cargo-fuzz, if there is none, and builds the targets. Returns their names.
    pub fn build(&self, filter: Option<&str>) -> anyhow::Result<Vec<String>> {
        if !self.succeeds(&["cargo", "fuzz", "--version"])? {
            let mut install =
                self.command(&["cargo", "install", "cargo-fuzz", "--locked", "--root"])?;
            install.arg(&self.tools);
            step::run(self.stop, "install cargo-fuzz", &mut install).context(
                "cargo-fuzz is neither there nor to be had; once it is to be had,\n    \
                          cargo install cargo-fuzz --locked\n",
            )?;
        }
        let targets = self.targets(filter)?;
        let mut build = self.cargo_fuzz("build")?;
        step::run(self.stop, "build the fuzz targets", &mut build)?;
        Ok(targets)
    }

    /// Runs a target.
    pub fn run(&self, target: &str, time: Duration) -> anyhow::Result<()> {
        let corpus = self.workspace.target().join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let mut run = self.cargo_fuzz("run")?;
        run.arg(target)
            .arg(&corpus)
            .arg(self.folder().join("seeds").join(target))
            .arg("--")
            .arg(format!("-max_total_time={}", time.as_secs()))
            .arg(format!("-max_len={MOST_BYTES}"))
            // An input takes microseconds; what takes this long is a finding too.
            .args(["-timeout=10", "-rss_limit_mb=2048"])
            .args(["-print_final_stats=1", "-verbosity=0", "-print_funcs=0"]);
        // libFuzzer says much that is of interest only if something was found.
        let log = self
            .workspace
            .target()
            .join("fuzz")
            .join(format!("{target}.log"));
        run.stderr(File::create(&log)?);
        let started = SystemTime::now();
        let what = format!("fuzz {target} for {} s", time.as_secs());
        let status = step::status_within(self.stop, &what, &mut run, time + GRACE)?;
        let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
        if status.success() {
            println!("    {} inputs", inputs(&said).unwrap_or("unknown"));
            return Ok(());
        }
        println!("{said}");
        match newest(&self.folder().join("artifacts").join(target), started) {
            Some(artifact) => bail!("{}", self.found(target, &artifact)),
            None => bail!("{what}: cargo fuzz failed ({status})"),
        }
    }

    fn found(&self, target: &str, artifact: &Path) -> String {
        let path = artifact.strip_prefix(&self.workspace.root);
        let path = path.unwrap_or(artifact).display();
        format!(
            "{target} fails for the input in {path}; run it again, or make it smaller, with\n    \
             cargo +{TOOLCHAIN} fuzz run --sanitizer none {target} {path}\n    \
             cargo +{TOOLCHAIN} fuzz tmin --sanitizer none {target} {path}"
        )
    }

    /// The names of the targets.
    fn targets(&self, filter: Option<&str>) -> anyhow::Result<Vec<String>> {
        let output = self
            .command(&["cargo", "fuzz", "list"])?
            .stderr(Stdio::inherit())
            .output()?;
        if !output.status.success() {
            bail!("cargo fuzz list failed");
        }
        let names = String::from_utf8(output.stdout)?;
        let wanted = |name: &&str| filter.is_none_or(|filter| name.contains(filter));
        Ok(names.lines().filter(wanted).map(str::to_owned).collect())
    }

    /// A subcommand of cargo-fuzz that builds. Without the address sanitizer: the crates have no
    /// unsafe code, and building and running take less time without.
    fn cargo_fuzz(&self, subcommand: &str) -> anyhow::Result<Command> {
        let mut command = self.command(&["cargo", "fuzz", subcommand])?;
        command
            .args(["--sanitizer", "none", "--target-dir"])
            .arg(self.workspace.target().join("fuzz"));
        Ok(command)
    }

    fn succeeds(&self, arguments: &[&str]) -> anyhow::Result<bool> {
        let status = self
            .command(arguments)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("fuzzing needs rustup, to choose a nightly toolchain: https://rustup.rs")?;
        Ok(status.success())
    }

    /// A program of the nightly toolchain. This process runs with another one, and the cargo it
    /// was started by knows nothing of `+nightly`.
    fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = cargo::command_of(self.workspace, OsStr::new("rustup"))?;
        command
            .args(["run", TOOLCHAIN])
            .args(arguments)
            .env("PATH", path_with(&self.tools.join("bin"))?)
            // Those of this build are not for that one.
            .env_remove("RUSTC_WORKSPACE_WRAPPER")
            .env_remove("CARGO_BUILD_TARGET");
        Ok(command)
    }

    fn folder(&self) -> PathBuf {
        self.workspace.root.join("fuzz")
    }
}

/// The search path with one more folder at its end: what is installed for everybody comes first.
fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain([folder.to_owned()]);
    env::join_paths(folders).context("PATH is of no use")
}

/// How many inputs a target was run with, by what libFuzzer says at its end.
fn inputs(said: &str) -> Option<&str> {
    said.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .map(str::trim)
}

/// The newest file of a folder, if it is newer than this.
fn newest(folder: &Path, than: SystemTime) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(|file| {
            let file = file.ok()?;
            Some((file.metadata().ok()?.modified().ok()?, file.path()))
        })
        .filter(|(modified, _)| *modified >= than)
        .max()
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_number_of_inputs() {
        let said = "Done 12 runs\nstat::number_of_executed_units: 12\nstat::peak_rss_mb: 40\n";
        assert_eq!(inputs(said), Some("12"));
        assert_eq!(inputs("panicked"), None);
    }

    #[test]
    fn finds_what_a_run_left() {
        let folder = tempfile::tempdir().unwrap();
        let long_ago = SystemTime::UNIX_EPOCH;
        assert_eq!(newest(&folder.path().join("none"), long_ago), None);
        assert_eq!(newest(folder.path(), long_ago), None);
        let crash = folder.path().join("crash-1");
        fs::write(&crash, "x").unwrap();
        assert_eq!(newest(folder.path(), long_ago), Some(crash));
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(newest(folder.path(), later), None);
    }
}
