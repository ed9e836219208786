//! Backfills that die, are stopped, or meet other writers.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;
use lance_worker::operations::supervisor::{Measure, Refused, Stop, Supervisor};
use tokio::sync::Mutex;

use super::*;
use crate::attempts::commits;

/// When something happens: while fragments are filled, or right before a commit, this one or each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Planned,
    Confirmed(u32),
    Each,
}

pub type Happening = Box<dyn Fn() -> BoxFuture<'static, Option<Refused>> + Send + Sync>;

/// Has something happen.
struct Meanwhile {
    when: When,
    what: Happening,
    confirmations: AtomicU32,
    /// From then on.
    refused: Mutex<Option<Refused>>,
}

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.when.fmt(f)
    }
}

#[async_trait]
impl Supervisor for Meanwhile {
    async fn confirm(&self) -> Result<(), Refused> {
        let number = self.confirmations.fetch_add(1, Ordering::SeqCst);
        if self.when == When::Confirmed(number) || self.when == When::Each {
            *self.refused.lock().await = (self.what)().await;
        }
        self.refused.lock().await.map_or(Ok(()), Err)
    }

    fn is_canceled(&self) -> bool {
        false
    }

    async fn stopped(&self) -> Stop {
        std::future::pending().await
    }

    fn runs_with(&self, _: TaskParams) {}

    async fn reserve(&self, _: u64) {
        if self.when == When::Planned {
            (self.what)().await;
        }
    }

    fn measure(&self, _: Measure) {}
}

pub fn meanwhile(table: &Table, when: When, what: Happening) -> OperationContext {
    let mut ctx = table.context();
    ctx.supervisor = Arc::new(Meanwhile {
        when,
        what,
        confirmations: AtomicU32::new(0),
        refused: Mutex::default(),
    });
    ctx
}

/// Others do this to the table once.
pub fn others<F>(table: &Arc<Table>, when: When, what: F) -> OperationContext
where
    F: Fn(Arc<Table>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let by = Arc::clone(table);
    let happening = move || -> BoxFuture<'static, Option<Refused>> {
        let done = what(Arc::clone(&by));
        Box::pin(async move {
            done.await;
            None
        })
    };
    meanwhile(table, when, Box::new(happening))
}

/// The attempt is lost right before its second commit.
pub fn lost_at_second_commit(table: &Table) -> OperationContext {
    let lost: Happening = Box::new(|| Box::pin(async { Some(Refused::Lost) }));
    meanwhile(table, When::Confirmed(2), lost)
}

fn checkpoints(table: &Table, ctx: &OperationContext) -> Vec<String> {
    let folder: PathBuf = table
        .path()
        .join("_maintenance/T")
        .join(&ctx.task_id)
        .join("checkpoints");
    // They come and go meanwhile.
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for fragment in entries(folder) {
        for entry in entries(fragment.path()) {
            let name = entry.file_name().into_string().unwrap();
            if !name.contains('#') {
                found.push(name);
            }
        }
    }
    found
}

/// Runs until there are so many checkpoints, and dies.
async fn die(table: &Table, ctx: &OperationContext, body: &str, at: usize) {
    let params = backfill(body);
    let watching = async {
        while checkpoints(table, ctx).len() < at {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        outcome = run(&params, ctx) => panic!("{outcome:?}"),
        () = watching => {}
    }
}

const SLOW: &str = r#"{"column":"c","task_size":500,"checkpoint_size":1000,"concurrency":1,"intra_applier_concurrency":1}"#;

#[tokio::test]
async fn an_attempt_goes_on_where_one_died() {
    for stable in [false, true] {
        let table = Table::write(numbers(0..100_000), 50_000, stable).await;
        table.delete("id = 77").await;
        declare(&table, "c", "a + 1").await;
        let mut ctx = table.context();
        die(&table, &ctx, SLOW, 20).await;
        let kept = checkpoints(&table, &ctx);
        let rows: u64 = kept
            .iter()
            .map(|name| {
                let numbers: Vec<u64> = name.split('-').map(|n| n.parse().unwrap()).collect();
                assert!(numbers[1] - numbers[0] <= 1000, "{name}");
                numbers[2]
            })
            .sum();
        // The first parts are small.
        assert!(rows >= 19_500, "{rows}");
        ctx.attempt = 2;
        let result = fill_as(&ctx, SLOW).await;
        assert_eq!(result.rows_filled, 99_999);
        assert!(
            result.rows_resumed >= rows,
            "{} {rows}",
            result.rows_resumed
        );
        assert_eq!(result.rows_left, 0);
        check_values(&table, |id| Some(id * 10 + 1)).await;
        check_files(&table, "resumed").await;
        assert!(!table.path().join("_maintenance").exists());
    }
}

#[tokio::test]
async fn what_was_committed_counts_for_the_next_attempt() {
    for stable in [false, true] {
        let table = declared(stable).await;
        let body = r#"{"column":"c","commit_granularity":4,"num_frags":9}"#;
        let mut ctx = lost_at_second_commit(&table);
        let error = run(&backfill(body), &ctx).await.unwrap_err();
        assert_eq!(error.error, ErrorName::ConcurrentModification);
        assert_eq!(commits(&table, &ctx).await, 1);
        assert!(!checkpoints(&table, &ctx).is_empty());
        ctx.supervisor = table.context().supervisor;
        ctx.attempt = 2;
        let result = fill_as(&ctx, body).await;
        assert_eq!(counts(&result), [900, 400, 100, 9, 1], "{stable}");
        let found = values(&table, "c").await;
        assert_eq!(found.values().filter(|c| c.is_some()).count(), 900);
        check_files(&table, "resumed").await;
    }
}

#[tokio::test]
async fn checkpoints_of_a_task_that_is_gone_go_with_the_next() {
    let table = Table::write(numbers(0..50_000), 50_000, false).await;
    declare(&table, "c", "a + 1").await;
    let ctx = table.context();
    die(&table, &ctx, SLOW, 3).await;
    table.run(compact("{}")).await.unwrap();
    check_files(&table, "").await;
    assert!(!table.path().join("_maintenance").exists());
}

#[tokio::test]
async fn a_canceled_backfill_keeps_what_it_committed() {
    let table = declared(true).await;
    let body = r#"{"column":"c","commit_granularity":4}"#;
    let cancel: Happening = Box::new(|| Box::pin(async { Some(Refused::Canceled) }));
    let mut ctx = meanwhile(&table, When::Confirmed(2), cancel);
    ctx.attempt = 2;
    let error = run(&backfill(body), &ctx).await.unwrap_err();
    assert_eq!(error.error, ErrorName::Canceled);
    assert!(error.detail.contains("stay"), "{error}");
    let found = values(&table, "c").await;
    assert_eq!(found.values().filter(|c| c.is_some()).count(), 400);
    check_files(&table, "canceled").await;
    assert!(!table.path().join("_maintenance").exists());
}

#[tokio::test]
async fn others_write_meanwhile() {
    // What they do, rows of theirs that are left, whether a second look is needed.
    let cases: [(&str, u64); 6] = [
        ("append", 100),
        ("delete", 0),
        ("drop", 0),
        ("compact", 0),
        ("update", 1),
        ("config", 0),
    ];
    for stable in [false, true] {
        for when in [When::Planned, When::Confirmed(1)] {
            for (what, left) in cases {
                let case = format!("{stable} {when:?} {what}");
                let table = declared(stable).await;
                // Small fragments, so that there is something to compact.
                let uri = table.uri();
                let other = Arc::new(table);
                let ctx = others(&other, when, move |table| {
                    Box::pin(async move {
                        match what {
                            "append" => table.append_batch(numbers(1000..1100)).await,
                            "delete" => table.delete("id % 10 = 3").await,
                            "drop" => table.delete("id >= 200 and id < 300").await,
                            "compact" => drop(table.run(compact("{}")).await.unwrap()),
                            "update" => update(&table, "id = 5", "a", "7").await,
                            _ => {
                                let mut dataset = table.open().await;
                                dataset.update_config([("k", "v")]).await.unwrap();
                            }
                        }
                    })
                });
                let result = fill_as(&ctx, r#"{"column":"c"}"#).await;
                let table = &*other;
                let found = values(table, "c").await;
                let rows = table.open().await.count_rows(None).await.unwrap();
                assert_eq!(found.len(), rows, "{case} {uri}");
                let unfilled: BTreeSet<i64> = found
                    .iter()
                    .filter(|(_, c)| c.is_none())
                    .map(|(id, _)| *id)
                    .collect();
                // Those that others wrote may be filled on a second look.
                assert!(unfilled.len() as u64 <= left, "{case} {unfilled:?}");
                assert_eq!(result.rows_left, unfilled.len() as u64, "{case}");
                for (id, c) in &found {
                    let a = if what == "update" && *id == 5 {
                        7
                    } else {
                        id * 10
                    };
                    if c.is_some() {
                        assert_eq!(*c, Some(a + 1), "{case} {id}");
                    }
                }
                assert_eq!(
                    table.open().await.count_rows(None).await.unwrap(),
                    found.len()
                );
                check_files(table, &case).await;
                table.open().await.validate().await.unwrap();
                fill(table, r#"{"column":"c"}"#).await;
                check_values(table, |id| {
                    let a = if what == "update" && id == 5 {
                        7
                    } else {
                        id * 10
                    };
                    Some(a + 1)
                })
                .await;
            }
        }
    }
}
