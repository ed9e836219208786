//! How much memory a backfill takes.

use std::process::Command;
use std::time::Instant;

use super::*;

const ROWS: i64 = 2_000_000;
/// Rows of which each has a text of `WIDTH` bytes.
const WIDE: i64 = 12_000;
const WIDTH: usize = 50_000;
const MEMORY: u64 = 500 << 20;
/// Where the table is that this process measures.
const MEASURED: &str = "BACKFILL_MEASURED_TABLE";

#[tokio::test]
async fn two_million_rows_take_little_memory() {
    let table = Table::write(numbers(0..ROWS), 1_000_000, true).await;
    declare(&table, "c", "a * 2 + id").await;
    measure(&table).await;
    let filled = table.open().await;
    let wrong = filled.count_rows(Some("c != id * 21 or c is null".to_owned()));
    assert_eq!(wrong.await.unwrap(), 0);
}

#[tokio::test]
async fn wide_rows_take_little_memory() {
    let wide = |ids: Range<i64>| {
        // Other than each other, as they would be kept once.
        let texts = ids.clone().map(|id| format!("{id:09}|").repeat(WIDTH / 10));
        batch(vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids.clone()))),
            ("text", Arc::new(StringArray::from_iter_values(texts))),
        ])
    };
    let table = Table::write(wide(0..1000), WIDE as usize, false).await;
    for start in (1000..WIDE).step_by(1000) {
        table.append_batch(wide(start..start + 1000)).await;
    }
    table.run(crate::support::compact("{}")).await.unwrap();
    declare(&table, "c", "reverse(text)").await;
    measure(&table).await;
    let filled = table.open().await;
    let wrong = filled.count_rows(Some("c != reverse(text) or c is null".to_owned()));
    assert_eq!(wrong.await.unwrap(), 0);
}

/// Fills the column `c` in a process of its own, since memory is that of a process.
async fn measure(table: &Table) {
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the tests above, in a process of its own"]
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
