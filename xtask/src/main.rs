//! The commands of the README. `cargo xtask --help` lists them.

mod access;
mod build;
mod cargo;
mod chaos;
mod data;
mod debian;
mod demo;
mod fuzz;
mod health;
mod instance;
mod python;
mod redis;
mod step;
mod stop;
mod supervised;
mod test;
mod toolchain;
mod up;
mod wasm;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::step::Interrupted;
use crate::stop::Stop;
use crate::workspace::Workspace;

/// Builds, runs and tests this project.
#[derive(Parser)]
#[command(name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the components, the worker and the local host.
    Build,
    /// Build, then run the application and one worker until Ctrl-C.
    Up(up::Options),
    /// Run all five tasks on a table that a busy writer left, and show what they did.
    Demo(demo::Options),
    /// Break a cluster under load, and check that nothing is lost, done twice or left lying about.
    Chaos(chaos::Options),
    /// Run every test of the project: format, lints, unit tests, whole-system tests, clients.
    Test(test::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(code) => code,
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("stopped");
            // What a shell reports of a program that Ctrl-C ended.
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let workspace = Workspace::find()?;
    match command {
        Command::Build => build::run(&workspace, &stop).map(|()| ExitCode::SUCCESS),
        Command::Up(options) => up::run(&workspace, &stop, options).map(|()| ExitCode::SUCCESS),
        Command::Demo(options) => demo::run(&workspace, &stop, &options),
        Command::Chaos(options) => chaos::run(&workspace, &stop, &options),
        Command::Test(options) => {
            test::run(&workspace, &stop, &options).map(|()| ExitCode::SUCCESS)
        }
    }
}
