//! Debian's packages. Above all its Rust for the web: a compiler, the source of the standard library,
//! and WASI's C library.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::stop::Stop;
use crate::workspace::Workspace;
use crate::{cargo, step};

const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const WASI_LIBRARIES: &str = "/usr/lib/wasm32-wasi";
const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "wasi-libc"];

/// Whether this is Debian, and not one of its many children.
pub fn is_debian() -> bool {
    fs::read_to_string("/etc/os-release")
        .is_ok_and(|text| text.lines().any(|line| line == "ID=debian"))
}

/// Whether everything that [`cargo`] uses is there, and new enough for this repository.
pub fn is_complete() -> bool {
    let new_enough = output_of(Command::new(RUSTC).arg("--version"))
        .is_some_and(|version| at_least(&version, env!("CARGO_PKG_RUST_VERSION")));
    let source = || {
        output_of(Command::new(RUSTC).args(["--print", "sysroot"]))
            .map(|sysroot| Path::new(sysroot.trim_end()).join("lib/rustlib/src/rust/library"))
    };
    new_enough
        && Path::new(CARGO).is_file()
        && Path::new(WASI_LIBRARIES).join("libc.a").is_file()
        && source().is_some_and(|source| source.join("Cargo.lock").is_file())
}

/// Installs Rust for the web, which only root can.
pub fn install_toolchain(stop: &Stop) -> anyhow::Result<()> {
    install(stop, &PACKAGES)
}

/// Installs packages, which only root can.
pub fn install(stop: &Stop, packages: &[&str]) -> anyhow::Result<()> {
    let mut install = apt_get();
    install
        .args(["install", "-y", "--no-install-recommends"])
        .args(packages);
    // Without fresh lists it would find old versions, or nothing.
    step::run(
        stop,
        "update Debian's package lists",
        apt_get().arg("update"),
    )?;
    let what = format!("install from Debian: {}", packages.join(" "));
    step::run(stop, &what, &mut install)?;
    Ok(())
}

/// What the person types to install Rust for the web.
pub fn install_line() -> String {
    format!(
        "apt-get update && apt-get install --no-install-recommends {}",
        PACKAGES.join(" ")
    )
}

/// A cargo that builds for `wasm32-wasip2` and the standard library with it, once subcommand and
/// linker are added.
pub fn cargo(workspace: &Workspace) -> anyhow::Result<Command> {
    let mut command = cargo::command_of(workspace, OsStr::new(CARGO))?;
    command
        .args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="])
        .env("RUSTC", RUSTC)
        // Building the standard library is not for stable toolchains otherwise.
        .env("RUSTC_BOOTSTRAP", "1")
        .env(
            "CARGO_TARGET_WASM32_WASIP2_RUSTFLAGS",
            format!("-L native={WASI_LIBRARIES}"),
        );
    Ok(command)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the compiler with this version line is not older than `minimum`, such as 1.95.
fn at_least(version_line: &str, minimum: &str) -> bool {
    let number = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let found = version_line.split(' ').nth(1).and_then(number);
    found.is_some() && found >= number(minimum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_versions_by_number() {
        for (line, minimum, expected) in [
            ("rustc 1.96.0 (ac68faa20 2026-05-25)", "1.95", true),
            ("rustc 1.95.0 (59807616e 2026-04-14)", "1.95", true),
            ("rustc 1.85.0 (4d91de4e4 2025-02-17)", "1.95", false),
            ("rustc 1.100.0", "1.95", true),
            ("rustc 2.0.0", "1.95.0", true),
            ("", "1.95", false),
        ] {
            assert_eq!(at_least(line, minimum), expected, "{line}");
        }
    }
}
