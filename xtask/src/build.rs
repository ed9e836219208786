//! `cargo xtask build`: the components, the worker and the local host.

use std::time::Instant;

use crate::stop::Stop;
use crate::workspace::{HOST_PACKAGE, LANCE_PACKAGES, Workspace, select};
use crate::{cargo, step, wasm};

/// Builds everything that runs.
pub fn run(workspace: &Workspace, stop: &Stop) -> anyhow::Result<()> {
    let started = Instant::now();
    wasm::build(workspace, &workspace.packages()?, stop)?;
    native(workspace, stop, "build the worker", &LANCE_PACKAGES)?;
    native(workspace, stop, "build the local host", &[HOST_PACKAGE])?;
    println!("built in {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn native(workspace: &Workspace, stop: &Stop, what: &str, packages: &[&str]) -> anyhow::Result<()> {
    let mut command = cargo::command(workspace)?;
    command.args(["build", "--locked"]).args(select(packages));
    step::run(stop, what, &mut command)?;
    Ok(())
}
