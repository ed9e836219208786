//! What the toolchain's compiler says of its folders.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::Workspace;

/// The toolchain's folder.
pub fn sysroot(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    print(workspace, &["--print", "sysroot"])
}

/// Where its own libraries for this machine are; its tools are in `bin` beside it.
pub fn libraries(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    print(workspace, &["--print", "target-libdir"])
}

/// Whether it has the libraries of another target.
pub fn has_target(workspace: &Workspace, target: &str) -> anyhow::Result<bool> {
    let folder = print(workspace, &["--print", "target-libdir", "--target", target])?;
    Ok(folder.is_dir())
}

fn print(workspace: &Workspace, arguments: &[&str]) -> anyhow::Result<PathBuf> {
    let output = Command::new("rustc")
        // The folder may decide on the toolchain.
        .current_dir(&workspace.root)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .context("can't run rustc")?;
    if !output.status.success() {
        bail!("rustc {} failed", arguments.join(" "));
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().into())
}
