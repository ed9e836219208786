//! Attempts that stop, die, come late or lose: what becomes of their effect, and of what they wrote.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;
use lance_worker::operations::commit::{TASK_ID_PROPERTY, begin_commit, committed};
use lance_worker::operations::compact::Compaction;
use lance_worker::operations::supervisor::{Measure, Refused, Stop, Supervisor};
use lance_worker::operations::table::{Table as Opened, open};
use lance_worker::operations::{OperationContext, run};

use crate::support::{Table, compact, files, optimize, scalar, vector};

/// Lets an operation go on for some confirmations and stops it after some time.
#[derive(Debug)]
struct Strict {
    /// How many more confirmations are given.
    confirmations: AtomicU32,
    /// When it has to stop.
    stop: Option<Duration>,
    /// Runs before the last confirmation that is given: how others use the time.
    meanwhile: Option<Meanwhile>,
    orphans: AtomicU32,
}

#[derive(Debug)]
struct Meanwhile {
    at: u32,
    params: TaskParams,
    ctx: OperationContext,
    done: AtomicBool,
}

impl Default for Strict {
    fn default() -> Self {
        Self {
            confirmations: AtomicU32::new(u32::MAX),
            stop: None,
            meanwhile: None,
            orphans: AtomicU32::new(0),
        }
    }
}

#[async_trait]
impl Supervisor for Strict {
    async fn confirm(&self) -> Result<(), Refused> {
        let left = self.confirmations.fetch_sub(1, Ordering::SeqCst);
        if let Some(meanwhile) = &self.meanwhile
            && u32::MAX - left == meanwhile.at
        {
            run(&meanwhile.params, &meanwhile.ctx).await.unwrap();
            meanwhile.done.store(true, Ordering::SeqCst);
        }
        match left {
            0 => Err(Refused::Lost),
            _ => Ok(()),
        }
    }

    fn is_canceled(&self) -> bool {
        false
    }

    async fn stopped(&self) -> Stop {
        match self.stop {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
        Stop::Told
    }

    fn runs_with(&self, _: TaskParams) {}

    async fn reserve(&self, _: u64) {}

    fn measure(&self, measure: Measure) {
        if let Measure::OrphansRemoved(number) = measure {
            self.orphans.fetch_add(number as u32, Ordering::SeqCst);
        }
    }
}

/// What changes a table of these kinds, with what it needs to be there before.
pub fn writing() -> Vec<(TaskParams, Option<TaskParams>)> {
    let by_id = scalar(r#"{"column":"id"}"#);
    let by_vector = r#"{"column":"vector","index_type":"IVF_FLAT","num_partitions":4}"#;
    vec![
        (compact("{}"), None),
        (compact("{}"), Some(by_id.clone())),
        (scalar(r#"{"column":"kind","index_type":"BITMAP"}"#), None),
        (
            scalar(r#"{"column":"id","replace":true}"#),
            Some(by_id.clone()),
        ),
        (vector(by_vector), None),
        (optimize("{}"), Some(by_id)),
        (optimize("{}"), Some(vector(by_vector))),
    ]
}

pub async fn prepared(before: &Option<TaskParams>) -> Table {
    let table = Table::with_rows(0..500, 500).await;
    if let Some(params) = before {
        table.run(params.clone()).await.unwrap();
    }
    for n in 5..10 {
        table.append(n * 100..(n + 1) * 100).await;
    }
    table
}

/// Checks that the table has all that its versions refer to, and nothing else.
pub async fn check_files(table: &Table, case: &str) {
    assert_eq!(table.missing().await, BTreeSet::new(), "{case}");
    assert_eq!(table.litter().await, BTreeSet::new(), "{case}");
}

/// How many versions the task made.
pub async fn commits(table: &Table, ctx: &OperationContext) -> usize {
    let dataset = table.open().await;
    let mut commits = 0;
    for version in dataset.version_refs().await.unwrap() {
        let read = dataset.read_version_transaction(version.version).await;
        let properties = read.unwrap().transaction.unwrap().transaction_properties;
        commits += usize::from(
            properties.is_some_and(|all| all.get(TASK_ID_PROPERTY) == Some(&ctx.task_id)),
        );
    }
    commits
}

/// A table and a compaction that has rewritten it, and goes no further.
pub async fn rewritten(table: &Table, ctx: &OperationContext) -> Opened {
    let opened = open(ctx).await.unwrap();
    let TaskParams::Compact(params) = compact("{}") else {
        unreachable!()
    };
    let compaction = Compaction::plan(&opened.dataset, &params, ctx)
        .await
        .unwrap();
    compaction.rewrite(&opened.dataset, ctx).await.unwrap();
    assert!(!table.litter().await.is_empty());
    opened
}

#[tokio::test]
async fn nothing_is_left_of_what_runs_through() {
    for (params, before) in writing() {
        let table = prepared(&before).await;
        let rows = table.contents().await;
        table.run(params.clone()).await.unwrap();
        check_files(&table, &format!("{params:?}")).await;
        assert!(!table.path().join("_maintenance").exists(), "{params:?}");
        assert_eq!(table.contents().await, rows);
    }
}

#[tokio::test]
async fn a_stopped_operation_leaves_nothing_behind() {
    for (params, before) in writing() {
        let table = prepared(&before).await;
        for millis in [0, 2, 5, 10, 20, 40, 80] {
            let mut ctx = table.context();
            ctx.supervisor = Arc::new(Strict {
                stop: Some(Duration::from_millis(millis)),
                ..Strict::default()
            });
            let outcome = run(&params, &ctx).await;
            let made = commits(&table, &ctx).await;
            check_files(&table, &format!("{params:?} {millis}")).await;
            if let Err(error) = outcome {
                assert_eq!(error.error, ErrorName::ServiceUnavailable, "{error}");
                assert_eq!(made, 0, "{params:?} {millis}");
            } else {
                break;
            }
        }
    }
}

#[tokio::test]
async fn what_a_dead_attempt_left_goes_with_the_next_task() {
    for next in [
        compact("{}"),
        scalar(r#"{"column":"id"}"#),
        crate::support::cleanup(r#"{"retain_versions":100}"#),
    ] {
        let table = prepared(&None).await;
        let rows = table.contents().await;
        let dead = table.context();
        drop(rewritten(&table, &dead).await);
        // One of its files was still being written.
        let book = table.path().join("_maintenance/T").join(&dead.task_id);
        let entered = files(&book).into_keys().next().unwrap();
        let file = entered.split_once('/').unwrap().1;
        std::fs::write(table.path().join(format!("{file}#1")), b"half").unwrap();
        // None of these is that attempt's: foreign files, and what another service has entered.
        let foreign = [
            "data/foreign.lance",
            "data/foreign.lance#1",
            "media/a.lance",
            "notes.txt",
        ];
        for name in foreign
            .iter()
            .chain(&["_maintenance/U/task/1-1/data/foreign.lance"])
        {
            let path = table.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"theirs").unwrap();
        }

        let mut ctx = table.context();
        let supervisor = Arc::new(Strict::default());
        ctx.supervisor = Arc::clone(&supervisor) as Arc<dyn Supervisor>;
        run(&next, &ctx).await.unwrap();

        let left: BTreeSet<String> = table.litter().await;
        let expected = [
            "_maintenance/U/task/1-1/data/foreign.lance",
            foreign[0],
            foreign[1],
        ];
        assert_eq!(left, expected.map(str::to_owned).into(), "{next:?}");
        assert!(supervisor.orphans.load(Ordering::SeqCst) > 0);
        for name in foreign {
            assert!(table.path().join(name).exists(), "{name}");
        }
        assert_eq!(table.contents().await, rows);
    }
}

#[tokio::test]
async fn what_an_attempt_left_at_its_commit_stays_until_its_task_has_committed() {
    let table = prepared(&None).await;
    let mut ctx = table.context();
    let opened = rewritten(&table, &ctx).await;
    begin_commit(&opened, &ctx).await.unwrap();
    let half = table.litter().await;
    drop(opened);
    // It may still commit, for all that another task knows.
    table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    assert_eq!(table.litter().await, half);
    // The same task knows that it would conflict.
    ctx.attempt = 2;
    run(&compact("{}"), &ctx).await.unwrap();
    check_files(&table, "").await;
    assert_eq!(commits(&table, &ctx).await, 1);
}

#[tokio::test]
async fn what_a_version_refers_to_stays_whatever_is_entered() {
    let table = prepared(&Some(scalar(r#"{"column":"id"}"#))).await;
    let mut ctx = table.context();
    run(&compact("{}"), &ctx).await.unwrap();
    let rows = table.contents().await;
    // The attempt died after its commit, with all that it wrote still entered.
    let referred: Vec<String> = files(&table.path())
        .into_keys()
        .filter_map(|file| match file.split('/').collect::<Vec<_>>()[..] {
            ["_indices", uuid, _] => Some(format!("_indices/{uuid}")),
            ["data" | "_transactions", _] => Some(file),
            _ => None,
        })
        .collect();
    for name in referred.iter().map(String::as_str).chain(["_commit"]) {
        let path = table
            .path()
            .join("_maintenance/T")
            .join(&ctx.task_id)
            .join("1-0")
            .join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }
    ctx.attempt = 2;
    run(&compact("{}"), &ctx).await.unwrap();
    check_files(&table, "").await;
    assert_eq!(table.contents().await, rows);
    for name in referred {
        assert!(table.path().join(&name).exists(), "{name}");
    }
    assert_eq!(commits(&table, &ctx).await, 1);
}

#[tokio::test]
async fn a_lost_attempt_does_not_commit() {
    for (params, before) in writing() {
        let table = prepared(&before).await;
        let version = table.open().await.version_id();
        // It is lost before it has begun, then right before its commit.
        for confirmations in [0, 1] {
            let mut ctx = table.context();
            ctx.supervisor = Arc::new(Strict {
                confirmations: AtomicU32::new(confirmations),
                ..Strict::default()
            });
            let error = run(&params, &ctx).await.unwrap_err();
            assert_eq!(error.error, ErrorName::ConcurrentModification, "{error}");
            assert_eq!(table.open().await.version_id(), version, "{params:?}");
            check_files(&table, &format!("{params:?}")).await;
        }
    }
}

/// The first attempt is held up until the second has done all the work: right after it opened the
/// table, and right before its commit, when it has been told already that it may.
#[tokio::test]
async fn an_attempt_that_comes_late_has_no_second_effect() {
    for (params, before) in writing() {
        for at in [0, 1] {
            let table = prepared(&before).await;
            let rows = table.contents().await;
            let mut late = table.context();
            let mut other = late.clone();
            other.attempt = 2;
            let supervisor = Arc::new(Strict {
                meanwhile: Some(Meanwhile {
                    at,
                    params: params.clone(),
                    ctx: other.clone(),
                    done: AtomicBool::new(false),
                }),
                ..Strict::default()
            });
            late.supervisor = Arc::clone(&supervisor) as Arc<dyn Supervisor>;
            let outcome = run(&params, &late).await;
            let meanwhile = supervisor.meanwhile.as_ref().unwrap();
            assert!(meanwhile.done.load(Ordering::SeqCst));
            assert_eq!(
                commits(&table, &late).await,
                1,
                "{params:?} {at} {outcome:?}"
            );
            check_files(&table, &format!("{params:?} {at}")).await;
            assert_eq!(table.contents().await, rows);
            let second = run(&params, &other).await.unwrap();
            assert_eq!(outcome.unwrap(), second, "{params:?} {at}");
        }
    }
}

#[tokio::test]
async fn the_book_of_a_commit_is_closed() {
    let table = prepared(&None).await;
    let ctx = table.context();
    let mut opened = rewritten(&table, &ctx).await;
    begin_commit(&opened, &ctx).await.unwrap();
    // Nothing of it was committed after all: all that it wrote is of no use.
    opened.dataset.checkout_latest().await.unwrap();
    committed(&opened, &ctx).await;
    check_files(&table, "").await;
    let rows: Vec<_> = table
        .open()
        .await
        .scan()
        .try_into_stream()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(
        rows.iter().map(|batch| batch.num_rows()).sum::<usize>(),
        1000
    );
}
