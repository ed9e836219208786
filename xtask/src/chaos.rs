//! `cargo xtask chaos`: a cluster under load, faults that hit it, and what came of it.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;

use crate::stop::Stop;
use crate::workspace::Workspace;
use crate::{build, redis, step};

/// The campaign of `cargo xtask test`: its seed, and for how many minutes faults happen. It has every
/// kind of fault but the long ones, and takes about 40 seconds in all.
const SHORT: (u64, f64) = (1, 0.4);

/// What `chaos` is told.
#[derive(Args)]
pub struct Options {
    /// From which all faults follow: the same seed, the same faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long faults happen, in minutes, such as 0.5. From 2 on, workers are also silent for
    /// longer than their lease.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Keep tables and logs in this folder, which must be empty. Without it they are in a temporary
    /// one, which is kept if anything is wrong.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only say which faults would happen.
    #[arg(long)]
    plan: bool,
}

/// Runs a campaign; its exit code is 1 if anything was lost, done twice or left lying about.
pub fn run(workspace: &Workspace, stop: &Stop, options: &Options) -> anyhow::Result<ExitCode> {
    build::run(workspace, stop)?;
    redis::ensure(stop)?;
    let mut command = command(workspace, options.seed, options.minutes)?;
    if let Some(folder) = &options.data {
        command.arg("--data").arg(folder);
    }
    if options.plan {
        command.arg("--plan");
    }
    let what = "break a cluster under load";
    let status = step::status_within(stop, what, &mut command, Duration::MAX)?;
    // Without a code it was killed.
    let code = status.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Runs the short campaign with what has been built.
pub fn short(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let (seed, minutes) = SHORT;
    let mut command = command(workspace, seed, minutes)?;
    step::run(stop, "break a cluster under load", &mut command)?;
    Ok(())
}

fn command(workspace: &Workspace, seed: u64, minutes: f64) -> anyhow::Result<Command> {
    let mut command = Command::new(workspace.executable("chaos")?);
    command
        .args(["--seed", &seed.to_string()])
        .args(["--minutes", &minutes.to_string()])
        .arg("--manifest")
        .arg(workspace.root.join("spin.toml"))
        .arg("--compiled")
        .arg(workspace.target().join("chaos-compiled"));
    Ok(command)
}
