//! The tests that are public clients in Python, in a virtual environment of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::step;
use crate::stop::Stop;
use crate::workspace::Workspace;

/// pytest's exit code where no test has the name.
const NO_TESTS: i32 = 5;

/// Makes the environment, if the packages in it are not the ones the tests need; returns its
/// interpreter.
pub fn environment(workspace: &Workspace, stop: &Stop) -> anyhow::Result<PathBuf> {
    let folder = workspace.target().join("clients-venv");
    let requirements = tests(workspace).join("requirements.txt");
    let wanted =
        fs::read(&requirements).with_context(|| format!("no {}", requirements.display()))?;
    let interpreter = folder.join("bin/python");
    let installed = folder.join("requirements.txt");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(interpreter);
    }
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"]).arg(&folder);
    step::run(stop, "make a virtual environment for Python", &mut venv).context(
        "the tests with Python need python3 with venv; on Debian:\n    \
         apt-get install python3 python3-venv\n",
    )?;
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--requirement"])
        .arg(&requirements);
    step::run(stop, "install the clients", &mut pip)?;
    fs::write(&installed, wanted)?;
    Ok(interpreter)
}

/// Runs the tests, or those with `filter` in their names.
pub fn test(
    workspace: &Workspace,
    stop: &Stop,
    interpreter: &Path,
    filter: Option<&str>,
) -> anyhow::Result<()> {
    let mut pytest = Command::new(interpreter);
    pytest
        .current_dir(&workspace.root)
        .args(["-m", "pytest"])
        .arg(tests(workspace))
        .env("XTASK", &workspace.xtask);
    if let Some(filter) = filter {
        pytest.args(["-k", filter]);
    }
    let status = step::status_within(stop, "test with clients", &mut pytest, Duration::MAX)?;
    if !passed(status, filter.is_some()) {
        bail!("test with clients: pytest failed ({status})");
    }
    Ok(())
}

/// Checks the Python package and runs its own tests, or those with `filter` in their names.
pub fn test_package(
    workspace: &Workspace,
    stop: &Stop,
    interpreter: &Path,
    filter: Option<&str>,
) -> anyhow::Result<()> {
    let python = |arguments: &[&str]| {
        let mut python = Command::new(interpreter);
        python
            .current_dir(workspace.root.join("clients/python"))
            .args(arguments);
        python
    };
    if filter.is_none() {
        let mut ruff = python(&["-m", "ruff", "check", "--no-cache", "."]);
        step::run(stop, "check the Python package", &mut ruff)?;
        let mut mypy = python(&["-m", "mypy", "src", "--cache-dir"]);
        mypy.arg(workspace.target().join("mypy"));
        step::run(stop, "check the types of the Python package", &mut mypy)?;
    }
    let mut pytest = python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.args(filter.iter().flat_map(|filter| ["-k", filter]));
    let status = step::status_within(stop, "test the Python package", &mut pytest, Duration::MAX)?;
    if !passed(status, filter.is_some()) {
        bail!("test the Python package: pytest failed ({status})");
    }
    Ok(())
}

fn passed(status: ExitStatus, filtered: bool) -> bool {
    status.success() || filtered && status.code() == Some(NO_TESTS)
}

fn tests(workspace: &Workspace) -> PathBuf {
    workspace.root.join("tests/clients")
}
