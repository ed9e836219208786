//! Building the components for `wasm32-wasip2`.
//!
//! There are three ways, since not every toolchain has that target and not every machine can get it:
//! the toolchain's own, the one that rustup adds, and Debian's toolchain with the source of the
//! standard library.

use std::process::Command;
use std::time::Duration;
use std::{env, iter};

use anyhow::bail;

use crate::step::{self, Interrupted};
use crate::stop::Stop;
use crate::workspace::{Packages, Workspace, select};
use crate::{cargo, debian, toolchain};

/// What components are built for.
const TARGET: &str = "wasm32-wasip2";

/// A download of 20 MB; without a server, rustup gives up by itself long before.
const RUSTUP_TIME: Duration = Duration::from_secs(180);

/// One way to get to a toolchain for the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The toolchain has the target.
    Toolchain,
    /// Debian's toolchain is there.
    Debian,
    /// Let rustup add the target to the toolchain.
    Rustup,
    /// Install Debian's toolchain.
    InstallDebian,
}

/// What this machine has.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    target_installed: bool,
    debian_toolchain: bool,
    rustup: bool,
    debian: bool,
    root: bool,
}

/// The ways to try, in order. Where a toolchain is there already, no other is asked for: a try over
/// the network at every build would be for nothing.
fn ways(facts: Facts) -> Vec<Way> {
    if facts.target_installed {
        return vec![Way::Toolchain];
    }
    if facts.debian_toolchain {
        return vec![Way::Debian];
    }
    [
        (Way::Rustup, facts.rustup),
        (Way::InstallDebian, facts.debian && facts.root),
    ]
    .into_iter()
    .filter_map(|(way, possible)| possible.then_some(way))
    .collect()
}

/// What the person can do where nothing else is left.
fn advice(facts: Facts) -> String {
    let mut advice = format!(
        "the components need the target {TARGET}; install it with\n    rustup target add {TARGET}"
    );
    if facts.debian {
        advice += &format!("\nor, as root,\n    {}", debian::install_line());
    }
    advice
}

/// Builds all components into the repository's own target folder, where `spin.toml` looks.
pub fn build(workspace: &Workspace, packages: &Packages, stop: &Stop) -> anyhow::Result<()> {
    let mut command = find_toolchain(workspace, stop)?;
    command
        .args(["build", "--locked", "--release", "--target", TARGET])
        .arg("--target-dir")
        .arg(workspace.wasm_target())
        .args(select(&packages.components))
        // They are meant for native code.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let what = format!("build {} components", packages.components.len());
    step::run(stop, &what, &mut command)?;
    Ok(())
}

/// A cargo command that builds for the target, once its arguments are added.
fn find_toolchain(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Command> {
    let facts = Facts {
        target_installed: toolchain::has_target(workspace, TARGET)?,
        debian_toolchain: debian::is_complete(),
        rustup: has_rustup(),
        debian: debian::is_debian(),
        root: nix::unistd::geteuid().is_root(),
    };
    for way in ways(facts) {
        match way {
            Way::Toolchain => return cargo::command(workspace),
            Way::Debian => return debian_command(workspace),
            Way::Rustup => match add_target(workspace, stop) {
                Ok(_) => return cargo::command(workspace),
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => println!("    {error:#}"),
            },
            Way::InstallDebian => {
                debian::install_toolchain(stop)?;
                if debian::is_complete() {
                    return debian_command(workspace);
                }
                println!("    what Debian has is incomplete or too old");
            }
        }
    }
    bail!("{}", advice(facts))
}

fn has_rustup() -> bool {
    let version = Command::new("rustup").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

fn add_target(workspace: &Workspace, stop: &Stop) -> anyhow::Result<Duration> {
    let mut command = Command::new("rustup");
    // The folder decides on the toolchain.
    command
        .current_dir(&workspace.root)
        .args(["target", "add", TARGET])
        // Without a server it says so at length otherwise.
        .env_remove("RUST_BACKTRACE");
    let what = format!("add the target {TARGET} to the toolchain");
    step::run_within(stop, &what, &mut command, RUSTUP_TIME)
}

/// Debian's compiler for code and standard library; the linker is the toolchain's, since Debian has
/// none that makes components.
fn debian_command(workspace: &Workspace) -> anyhow::Result<Command> {
    let tools = toolchain::libraries(workspace)?.with_file_name("bin");
    let linker = tools.join("wasm-component-ld");
    if !linker.is_file() {
        bail!(
            "there is no {}: Debian's toolchain needs the linker of one from rustup",
            linker.display()
        );
    }
    // The linker finds rust-lld on the path.
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = iter::once(tools).chain(env::split_paths(&path));
    let mut command = debian::cargo(workspace)?;
    command
        .env("PATH", env::join_paths(paths)?)
        .env("CARGO_TARGET_WASM32_WASIP2_LINKER", linker);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_there_before_asking_for_more() {
        let all = Facts {
            target_installed: true,
            debian_toolchain: true,
            rustup: true,
            debian: true,
            root: true,
        };
        let no_target = Facts {
            target_installed: false,
            ..all
        };
        let nothing = Facts {
            debian_toolchain: false,
            ..no_target
        };
        for (facts, expected) in [
            (all, &[Way::Toolchain][..]),
            (no_target, &[Way::Debian][..]),
            (nothing, &[Way::Rustup, Way::InstallDebian][..]),
            (
                Facts {
                    rustup: false,
                    ..nothing
                },
                &[Way::InstallDebian][..],
            ),
            (
                Facts {
                    root: false,
                    ..nothing
                },
                &[Way::Rustup][..],
            ),
            (
                Facts {
                    debian: false,
                    ..nothing
                },
                &[Way::Rustup][..],
            ),
            (Facts::default(), &[][..]),
        ] {
            assert_eq!(ways(facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn advises_what_the_machine_can_do() {
        let other = advice(Facts::default());
        assert!(other.contains("rustup target add wasm32-wasip2"), "{other}");
        assert!(!other.contains("apt-get"), "{other}");
        let debian = advice(Facts {
            debian: true,
            ..Facts::default()
        });
        assert!(
            debian.contains("apt-get install --no-install-recommends rustc-web"),
            "{debian}"
        );
    }
}
