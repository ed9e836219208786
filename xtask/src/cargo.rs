//! Running cargo from within cargo.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::workspace::Workspace;

const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// A cargo command in the repository's root, with what Lance's build scripts need: `protoc` and
/// Google's include files, of which a package has both.
pub fn command(workspace: &Workspace) -> anyhow::Result<Command> {
    let own = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command_of(workspace, &own)
}

/// The same with another cargo.
pub fn command_of(workspace: &Workspace, cargo: &OsStr) -> anyhow::Result<Command> {
    let mut command = Command::new(cargo);
    command.current_dir(&workspace.root);
    for name in inherited_from_cargo(env::vars_os().map(|(name, _)| name)) {
        command.env_remove(name);
    }
    if let Some(paths) = env::var_os(LIBRARY_PATH) {
        match without_cargos(&paths, workspace.target())? {
            Some(paths) => command.env(LIBRARY_PATH, paths),
            None => command.env_remove(LIBRARY_PATH),
        };
    }
    // It may be relative to the folder that the caller is in.
    if let Some(target) = env::var_os("CARGO_TARGET_DIR") {
        let target = std::path::absolute(target).context("CARGO_TARGET_DIR is of no use")?;
        command.env("CARGO_TARGET_DIR", target);
    }
    if env::var_os("PROTOC").is_none() {
        command
            .env("PROTOC", protoc_bin_vendored::protoc_bin_path()?)
            .env("PROTOC_INCLUDE", protoc_bin_vendored::include_path()?);
    }
    Ok(command)
}

/// What `cargo run` sets for the program it runs. Passed on, it makes build scripts that look at it
/// (ring's, for one) run again, and everything above them.
fn inherited_from_cargo(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    const PREFIXES: [&str; 4] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    const NAMES: [&str; 3] = ["CARGO", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"];
    names
        .filter(|name| {
            name.to_str().is_some_and(|name| {
                NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            })
        })
        .collect()
}

/// A library path without the folders that `cargo run` puts in front of it.
fn without_cargos(paths: &OsStr, target: &Path) -> anyhow::Result<Option<OsString>> {
    let own: Vec<_> = env::split_paths(paths)
        .filter(|path| {
            let of_toolchain = path.components().any(|part| part.as_os_str() == "rustlib");
            !path.as_os_str().is_empty() && !path.starts_with(target) && !of_toolchain
        })
        .collect();
    let joined = (!own.is_empty()).then(|| env::join_paths(own));
    joined.transpose().context("LD_LIBRARY_PATH is of no use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_on_the_settings_and_not_the_package() {
        let names = [
            "CARGO_MANIFEST_DIR",
            "CARGO_PKG_NAME",
            "CARGO_HOME",
            "CARGO_TARGET_DIR",
            "CARGO",
            "CARGO_NET_OFFLINE",
            "PATH",
        ];
        let removed = inherited_from_cargo(names.into_iter().map(OsString::from));
        assert_eq!(removed, ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO"]);
    }

    #[test]
    fn passes_on_the_library_path_of_the_caller() {
        for (paths, expected) in [
            ("/t/debug/deps:/t/debug:/rust/lib/rustlib/x86_64/lib", None),
            (
                "/t/debug:/rust/lib/rustlib/x86_64/lib:/opt/lib:",
                Some("/opt/lib"),
            ),
        ] {
            let own = without_cargos(OsStr::new(paths), Path::new("/t")).unwrap();
            assert_eq!(own.as_deref(), expected.map(OsStr::new), "{paths}");
        }
    }
}
