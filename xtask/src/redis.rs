//! The Redis server that tests of the local host start.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::debian;
use crate::stop::Stop;

const SERVER: &str = "redis-server";

/// Makes sure that the server is there: installs Debian's where that is possible.
pub fn ensure(stop: &Stop) -> anyhow::Result<()> {
    if is_there() {
        return Ok(());
    }
    if debian::is_debian() && nix::unistd::geteuid().is_root() {
        debian::install(stop, &[SERVER])?;
    }
    if !is_there() {
        bail!(
            "the tests of the local host start {SERVER}; install it, on Debian with\n    \
             apt-get update && apt-get install {SERVER}"
        );
    }
    Ok(())
}

fn is_there() -> bool {
    Command::new(SERVER)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
