//! A table of 10 000 fragments and 1000 versions.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lance::Dataset;
use lance::dataset::transaction::Operation;
use lance_maintenance_api::health::Missing;
use lance_table::format::Fragment;

use super::ask;
use crate::support::{Table, files};

const FRAGMENTS: u64 = 10_000;
const VERSIONS: u64 = 1000;
/// More than the two seconds that it takes at the most on an idle machine: tests run side by side.
const TIME: Duration = Duration::from_secs(10);
const MEMORY: u64 = 300 << 20;
/// Where the table is that this process measures.
const MEASURED: &str = "HEALTH_MEASURED_TABLE";

/// Memory is that of a process, so the check has one of its own.
#[tokio::test]
async fn a_large_table_is_checked_quickly_in_little_memory() {
    let table = large().await;
    let before = files(&table.path());
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "health::large::measured",
            "--ignored",
            "--nocapture",
        ])
        .env(MEASURED, table.uri())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(files(&table.path()), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above, in a process of its own"]
async fn measured() {
    let Ok(location) = std::env::var(MEASURED) else {
        return;
    };
    let before = memory("VmRSS:");
    let started = Instant::now();
    let report = ask(&location, true).await.unwrap();
    let took = started.elapsed();
    let grown = memory("VmHWM:").saturating_sub(before);
    println!("{took:?}, {} MiB", grown >> 20);
    assert_eq!(report.errors, BTreeMap::new());
    assert_eq!(report.missing, Some(Missing::default()));
    assert_eq!(report.num_fragments, Some(FRAGMENTS));
    assert_eq!(report.num_versions, Some(VERSIONS));
    assert_eq!(report.compaction.unwrap().fragments_rewritten, FRAGMENTS);
    assert!(took < TIME, "{took:?}");
    assert!(grown < MEMORY, "{grown}");
}

/// Fragments of a row each, of copies of one file, after versions that change nothing.
async fn large() -> Table {
    let table = Table::with_rows(0..1, 100).await;
    let mut dataset = table.open().await;
    for n in 0..VERSIONS - 2 {
        let value = n.to_string();
        dataset
            .update_config([("n", value.as_str())])
            .await
            .unwrap();
    }
    let first: Fragment = dataset.fragments()[0].clone();
    let folder = table.path().join("data");
    let fragments = (1..FRAGMENTS).map(|n| {
        let mut fragment = first.clone();
        let name = format!("{n:032x}.lance");
        std::fs::copy(folder.join(&first.files[0].path), folder.join(&name)).unwrap();
        fragment.files[0].path = name;
        fragment.id = 0;
        fragment
    });
    let append = Operation::Append {
        fragments: fragments.collect(),
    };
    let version = dataset.version_id();
    Dataset::commit(
        Arc::new(dataset),
        append,
        Some(version),
        None,
        None,
        Arc::default(),
        true,
    )
    .await
    .unwrap();
    table
}

/// Of this process, in bytes: now, or the most there was.
fn memory(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}
