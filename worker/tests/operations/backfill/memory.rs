//! How much memory a backfill takes.

use std::process::Command;
use std::time::Instant;

use super::*;

const ROWS: i64 = 2_000_000;
const MEMORY: u64 = 500 << 20;
/// Where the table is that this process measures.
const MEASURED: &str = "BACKFILL_MEASURED_TABLE";

/// Memory is that of a process, so the backfill has one of its own.
#[tokio::test]
async fn two_million_rows_take_little_memory() {
    let table = Table::write(numbers(0..ROWS), 1_000_000, true).await;
    declare(&table, "c", "a * 2 + id").await;
    let status = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "backfill::memory::measured",
            "--ignored",
            "--nocapture",
        ])
        .env(MEASURED, table.uri())
        .status()
        .unwrap();
    assert!(status.success());
    let filled = table.open().await;
    let wrong = filled.count_rows(Some("c != id * 21 or c is null".to_owned()));
    assert_eq!(wrong.await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above, in a process of its own"]
async fn measured() {
    let Ok(location) = std::env::var(MEASURED) else {
        return;
    };
    let task_id = uuid::Uuid::new_v4().simple().to_string();
    let ctx = OperationContext::unsupervised(task_id, location, Default::default());
    let before = memory("VmRSS:");
    let started = Instant::now();
    let column = std::env::var("BACKFILL_MEASURED_COLUMN").unwrap_or_else(|_| "c".to_owned());
    let result = fill_as(&ctx, &format!(r#"{{"column":"{column}"}}"#)).await;
    let grown = memory("VmHWM:").saturating_sub(before);
    println!("{:?}, {} MiB, {result:?}", started.elapsed(), grown >> 20);
    assert!(grown < MEMORY, "{grown}");
}

/// Of this process, in bytes: now, or the most there was.
fn memory(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}
