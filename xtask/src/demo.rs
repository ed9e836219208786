//! `cargo xtask demo`: the application and one worker in a temporary folder, and the demo on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Args;

use crate::build;
use crate::data::Data;
use crate::instance::{Instance, Place};
use crate::step::{Group, Interrupted};
use crate::stop::Stop;
use crate::workspace::Workspace;

/// What `demo` is told.
#[derive(Args)]
pub struct Options {
    /// Keep the folder with the table, the tasks and the logs.
    #[arg(long)]
    keep: bool,
}

/// Runs the demo; its exit code is the demo's.
pub fn run(workspace: &Workspace, stop: &Stop, options: &Options) -> anyhow::Result<ExitCode> {
    build::run(workspace, stop)?;
    let mut folder = tempfile::Builder::new()
        .prefix("lance-maintenance-demo-")
        .tempdir()
        .context("can't make a temporary folder")?;
    folder.disable_cleanup(options.keep);
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let place = Place::take(Data::open(folder.path())?, listen)?;
    let mut instance = Instance::start(workspace, stop, place, &[], None)?;

    let mut command = Command::new(workspace.executable("demo")?);
    command.arg("--up").arg(instance.facts_file());
    let mut demo = Group::spawn(&mut command)?;
    let mut status = None;
    let ended = instance.look_after(stop, || {
        status = demo.0.try_wait()?;
        Ok(status.is_some())
    });
    if !matches!(ended, Ok(true)) {
        demo.stop();
    }
    if !ended? {
        return Err(Interrupted.into());
    }
    drop(instance);
    if options.keep {
        println!("kept in {}", folder.path().display());
    }
    // Without a code it was killed.
    let code = status.and_then(|status| status.code()).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
