//! `cargo xtask test`: everything that has to pass.
//!
//! The lints come out of the same compilation as the tests: clippy's compiler stands in for rustc on
//! the workspace's own packages, and what they depend on, Lance above all, is compiled once for all
//! commands. The components are the exception: natively they can be tested and checked, and not
//! linked, as the names of their exports mean something to WebAssembly alone.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;

use crate::fuzz::Fuzz;
use crate::step::Interrupted;
use crate::stop::Stop;
use crate::workspace::{HOST_PACKAGE, LANCE_PACKAGES, Workspace, select};
use crate::{cargo, chaos, python, redis, step, toolchain, wasm};

/// What `test` is told.
#[derive(Args)]
pub struct Options {
    /// Run only tests with this in their names, and don't check the format.
    filter: Option<String>,
    /// Run the fuzz targets instead, or those with FILTER in their names. Needs a nightly
    /// toolchain.
    #[arg(long)]
    fuzz: bool,
    /// For how many seconds each of them runs.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, requires = "fuzz",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    fuzz_seconds: u64,
}

/// Runs all tests, the fast ones first, up to the first that fails.
pub fn run(workspace: &Workspace, stop: &Stop, options: &Options) -> anyhow::Result<()> {
    let mut summary = Summary::default();
    let result = match options.fuzz {
        true => run_fuzz(workspace, stop, options, &mut summary),
        false => run_all(workspace, stop, options, &mut summary),
    };
    summary.print();
    result
}

fn run_all(
    workspace: &Workspace,
    stop: &Stop,
    options: &Options,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let filter = options.filter.as_deref();
    let tests = Tests::new(workspace, stop, filter)?;
    let packages = workspace.packages()?;
    if filter.is_none() {
        summary.time("format", || tests.format())?;
    }
    let small = &packages.small;
    summary.time("lints of the small packages", || tests.lint(small))?;
    summary.time("tests of the small packages", || tests.test(small))?;
    let components = &packages.components;
    summary.time("lints of the components", || tests.check(components))?;
    summary.time("tests of the components", || tests.test(components))?;
    summary.time("components", || wasm::build(workspace, &packages, stop))?;
    let host = [HOST_PACKAGE.to_owned()];
    summary.time("lints of the local host", || tests.lint(&host))?;
    summary.time("Redis", || redis::ensure(stop))?;
    summary.time("tests of the local host", || tests.test(&host))?;
    let lance = LANCE_PACKAGES.map(str::to_owned);
    summary.time("lints of the worker and system tests", || {
        tests.lint(&lance)
    })?;
    summary.time("worker and system tests", || tests.test(&lance))?;
    if filter.is_none() {
        summary.time("short fault campaign", || chaos::short(workspace, stop))?;
    }
    let interpreter = summary.time("Python", || python::environment(workspace, stop))?;
    summary.time("Python package", || {
        python::test_package(workspace, stop, &interpreter, filter)
    })?;
    summary.time("clients", || {
        python::test(workspace, stop, &interpreter, filter)
    })
}

/// Runs the fuzz targets, all of them: one that fails says nothing about the others.
fn run_fuzz(
    workspace: &Workspace,
    stop: &Stop,
    options: &Options,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let fuzz = Fuzz::new(workspace, stop)?;
    let filter = options.filter.as_deref();
    let targets = summary.time("build of the fuzz targets", || fuzz.build(filter))?;
    if targets.is_empty() {
        bail!("there is no fuzz target with such a name");
    }
    let time = Duration::from_secs(options.fuzz_seconds);
    let mut failures = Vec::new();
    for target in targets {
        let name = format!("fuzz target {target}");
        match summary.time(&name, || fuzz.run(&target, time)) {
            Ok(()) => {}
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    Ok(())
}

struct Tests<'a> {
    workspace: &'a Workspace,
    stop: &'a Stop,
    filter: Option<&'a str>,
    clippy: std::path::PathBuf,
}

impl<'a> Tests<'a> {
    fn new(
        workspace: &'a Workspace,
        stop: &'a Stop,
        filter: Option<&'a str>,
    ) -> anyhow::Result<Self> {
        let clippy = toolchain::sysroot(workspace)?.join("bin/clippy-driver");
        if !clippy.is_file() {
            bail!(
                "there is no {}; install it with\n    rustup component add clippy rustfmt",
                clippy.display()
            );
        }
        Ok(Self {
            workspace,
            stop,
            filter,
            clippy,
        })
    }

    fn format(&self) -> anyhow::Result<()> {
        let mut command = cargo::command(self.workspace)?;
        command.args(["fmt", "--all", "--check"]);
        step::run(self.stop, "check the format", &mut command)?;
        Ok(())
    }

    /// Compiles everything in the packages, with warnings denied.
    fn lint(&self, packages: &[String]) -> anyhow::Result<()> {
        let mut command = self.cargo()?;
        command
            .args(["build", "--locked", "--all-targets"])
            .args(select(packages));
        let what = format!("compile with lints: {}", packages.join(" "));
        step::run(self.stop, &what, &mut command)?;
        Ok(())
    }

    /// The same without code at the end.
    fn check(&self, packages: &[String]) -> anyhow::Result<()> {
        let mut command = cargo::command(self.workspace)?;
        command
            .args(["clippy", "--locked", "--all-targets"])
            .args(select(packages))
            .args(["--", "-D", "warnings"]);
        let what = format!("check with lints: {}", packages.join(" "));
        step::run(self.stop, &what, &mut command)?;
        Ok(())
    }

    fn test(&self, packages: &[String]) -> anyhow::Result<()> {
        let mut command = self.cargo()?;
        command
            .args(["test", "--locked"])
            .args(select(packages))
            .args(self.filter)
            // Tests start the system with it.
            .env("XTASK", &self.workspace.xtask);
        let what = format!("test: {}", packages.join(" "));
        step::run(self.stop, &what, &mut command)?;
        Ok(())
    }

    fn cargo(&self) -> anyhow::Result<Command> {
        let mut command = cargo::command(self.workspace)?;
        command
            .env("RUSTC_WORKSPACE_WRAPPER", &self.clippy)
            // The separator is clippy's own.
            .env(
                "CLIPPY_ARGS",
                "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
            );
        Ok(command)
    }
}

/// How long each part took.
#[derive(Default)]
struct Summary(Vec<Part>);

struct Part {
    name: String,
    time: Duration,
    passed: bool,
}

impl Summary {
    fn time<T>(
        &mut self,
        name: &str,
        run: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let started = Instant::now();
        let result = run();
        self.0.push(Part {
            name: name.to_owned(),
            time: started.elapsed(),
            passed: result.is_ok(),
        });
        result
    }

    fn print(&self) {
        println!();
        for part in &self.0 {
            let result = if part.passed { "passed" } else { "FAILED" };
            println!("{result} {:>7.1} s  {}", part.time.as_secs_f64(), part.name);
        }
    }
}
