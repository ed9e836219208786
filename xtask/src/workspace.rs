//! Where things are: the repository, the executables, and its packages.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::cargo;

/// The packages that link Lance. They are always built together, so that every build resolves to
/// the same features and Lance is compiled once.
pub const LANCE_PACKAGES: [&str; 2] = ["lance-worker", "lance-maintenance-tests"];
/// The package that links wasmtime.
pub const HOST_PACKAGE: &str = "lance-local-host";

/// The repository and its target folder.
pub struct Workspace {
    /// The folder of the root `Cargo.toml`.
    pub root: PathBuf,
    /// This executable.
    pub xtask: PathBuf,
    /// Where this executable and its siblings lie: `target/debug`, usually.
    pub executables: PathBuf,
}

impl Workspace {
    /// To be called first: a build that replaces this executable would hide its path.
    pub fn find() -> anyhow::Result<Self> {
        let xtask = std::env::current_exe().context("can't find this executable")?;
        let executables = xtask.parent().context("this executable lies nowhere")?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the repository lies nowhere")?;
        if !root.join("spin.toml").is_file() {
            bail!(
                "there is no {}: was the repository moved?",
                root.join("spin.toml").display()
            );
        }
        Ok(Self {
            root: root.to_owned(),
            executables: executables.to_owned(),
            xtask,
        })
    }

    /// The target folder of native builds.
    pub fn target(&self) -> &Path {
        self.executables.parent().unwrap_or(&self.executables)
    }

    /// Where the components are built, as `spin.toml` and `spin build` have it, wherever native
    /// builds go.
    pub fn wasm_target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// A built executable.
    pub fn executable(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.executables.join(name);
        if !path.is_file() {
            bail!(
                "there is no {}: build first, with cargo xtask build",
                path.display()
            );
        }
        Ok(path)
    }

    /// Asks cargo for the packages.
    pub fn packages(&self) -> anyhow::Result<Packages> {
        let output = cargo::command(self)?
            .args(["metadata", "--format-version=1", "--no-deps"])
            .stderr(std::process::Stdio::inherit())
            .output()
            .context("can't run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed");
        }
        Packages::read(&self.root, &output.stdout)
    }
}

/// The names of the workspace's packages.
#[derive(Debug, PartialEq, Eq)]
pub struct Packages {
    /// The members under `components/`.
    pub components: Vec<String>,
    /// The others, but for those that link Lance or wasmtime.
    pub small: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
}

impl Packages {
    fn read(root: &Path, metadata: &[u8]) -> anyhow::Result<Self> {
        let metadata: Metadata =
            serde_json::from_slice(metadata).context("can't read what cargo metadata says")?;
        let folder = root.join("components");
        let (components, others): (Vec<_>, Vec<_>) = metadata
            .packages
            .into_iter()
            .partition(|package| package.manifest_path.starts_with(&folder));
        let names = |packages: Vec<Package>| packages.into_iter().map(|package| package.name);
        let large = |name: &String| {
            LANCE_PACKAGES.contains(&name.as_str()) || name.as_str() == HOST_PACKAGE
        };
        Ok(Self {
            components: names(components).collect(),
            small: names(others).filter(|name| !large(name)).collect(),
        })
    }
}

/// `-p NAME` for each name.
pub fn select<S: AsRef<str>>(names: &[S]) -> Vec<String> {
    names
        .iter()
        .flat_map(|name| ["-p".to_owned(), name.as_ref().to_owned()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_packages_by_what_they_cost() {
        let metadata = br#"{"packages": [
            {"name": "component-router", "manifest_path": "/r/components/router/Cargo.toml"},
            {"name": "lance-maintenance-api", "manifest_path": "/r/crates/api/Cargo.toml"},
            {"name": "lance-worker", "manifest_path": "/r/worker/Cargo.toml"},
            {"name": "lance-local-host", "manifest_path": "/r/local-host/Cargo.toml"},
            {"name": "lance-maintenance-tests", "manifest_path": "/r/tests/Cargo.toml"},
            {"name": "xtask", "manifest_path": "/r/xtask/Cargo.toml"}
        ]}"#;
        let packages = Packages::read(Path::new("/r"), metadata).unwrap();
        assert_eq!(packages.components, ["component-router"]);
        assert_eq!(packages.small, ["lance-maintenance-api", "xtask"]);
        assert_eq!(select(&packages.components), ["-p", "component-router"]);
    }
}
