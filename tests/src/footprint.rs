//! What a process holds of the machine, as Linux tells under `/proc`.

use std::fs;
use std::path::{Path, PathBuf};

/// What a process holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory, in bytes.
    pub memory: u64,
    /// Threads.
    pub threads: u64,
    /// Open file descriptors.
    pub files: u64,
}

impl Footprint {
    /// That of a process; none if it is gone.
    pub fn of(process: u32) -> Option<Self> {
        let folder = folder(process);
        let status = fs::read_to_string(folder.join("status")).ok()?;
        Some(Self {
            // Missing of a process that has ended and was not waited for.
            memory: field(&status, "VmRSS:")? << 10,
            threads: field(&status, "Threads:")?,
            files: entries(&folder.join("fd"))?,
        })
    }
}

/// The processes that a process has started and that are not gone.
pub fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(folder(process).join("task")) else {
        return Vec::new();
    };
    threads
        .filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|line| {
            let ids = line.split_whitespace().filter_map(|id| id.parse().ok());
            ids.collect::<Vec<_>>()
        })
        .collect()
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The number of a line; units behind it are left out.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn entries(folder: &Path) -> Option<u64> {
    Some(fs::read_dir(folder).ok()?.count() as u64)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn of_a_child_that_waits() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(children(std::process::id()).contains(&child.id()));
        let held = Footprint::of(child.id()).unwrap();
        assert!((1..1 << 30).contains(&held.memory), "{held:?}");
        assert_eq!(held.threads, 1);
        assert!(held.files >= 3, "{held:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(Footprint::of(child.id()), None);
        assert_eq!(children(child.id()), [0; 0]);
    }
}
