//! A fault campaign: a cluster of everything, clients and writers that use it, and faults that hit it
//! all the while; at the end, whether anything was lost, done twice, or left lying about.
//!
//! | module | what it does |
//! |---|---|
//! | `plan` | which faults happen when, as a function of the seed |
//! | `process`, `proxy`, `cluster` | what is broken: Redis, two nodes, three workers, the HTTP between |
//! | `drive`, `work` | let the faults happen, those of workers while they work |
//! | `rows`, `writer`, `recorder` | writers of the tables, with a model of what must come out |
//! | `load` | clients that submit all types of task |
//! | `observer` | sees every version of every table |
//! | `judge`, `report` | compare the end with what it must be, and tell |

mod campaign;
mod cluster;
mod drive;
mod judge;
mod load;
mod observer;
mod plan;
mod process;
mod proxy;
mod recorder;
mod report;
mod rng;
mod rows;
mod work;
mod writer;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;

use crate::cluster::Paths;

/// Breaks a cluster under load, and says whether it kept its promises.
#[derive(Parser)]
struct Options {
    /// From which all faults follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For how long faults happen, in minutes, such as 0.5.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// The manifest of the application.
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    /// A folder for compiled components, which is kept.
    #[arg(long, value_name = "DIR")]
    compiled: PathBuf,
    /// An empty folder for tables and logs, which is kept. Without it, a temporary one that is kept
    /// if anything is wrong.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only say which faults would happen.
    #[arg(long)]
    plan: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was as it must be.
fn run(options: &Options) -> anyhow::Result<bool> {
    let length = Duration::try_from_secs_f64(options.minutes * 60.0).context("--minutes")?;
    let plan = plan::plan(options.seed, length);
    println!(
        "seed {}, {} faults in {} minutes, plan {:016x}",
        options.seed,
        plan.len(),
        options.minutes,
        plan::digest(&plan)
    );
    if options.plan {
        for planned in plan {
            println!("{:7.1} s  {}", planned.at.as_secs_f64(), planned.fault);
        }
        return Ok(true);
    }
    let (folder, temporary) = match &options.data {
        Some(folder) => {
            std::fs::create_dir_all(folder)?;
            if std::fs::read_dir(folder)?.next().is_some() {
                bail!("{} is not empty; choose another --data", folder.display());
            }
            (folder.canonicalize()?, None)
        }
        None => {
            let mut made = tempfile::Builder::new()
                .prefix("lance-maintenance-chaos-")
                .tempdir()?;
            // Until it is known that nothing is wrong.
            made.disable_cleanup(true);
            (made.path().canonicalize()?, Some(made))
        }
    };
    println!("everything is kept in {}", folder.display());
    let executables = std::env::current_exe()?;
    let paths = Paths {
        data: folder.clone(),
        compiled: options.compiled.clone(),
        manifest: options.manifest.clone(),
        executables: executables.parent().context("no folder")?.to_owned(),
    };
    let result = campaign::run(&paths, options.seed, plan, length);
    if let (Ok(true), Some(mut made)) = (&result, temporary) {
        made.disable_cleanup(false);
        println!("removed {}", folder.display());
    } else {
        println!("tables and logs are in {}", folder.display());
    }
    result
}
