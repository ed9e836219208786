//! Operations in processes of their own: what they do, and how each kind of bad end is told.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lance_maintenance_api::params::TaskParams;
use lance_maintenance_api::task::TaskId;
use lance_maintenance_api::{ErrorName, TaskError};
use lance_maintenance_dispatch::{Dispatch, TableRef};
use lance_worker::cli::LogFormat;
use lance_worker::execute::Execute;
use lance_worker::operations::Limits;
use lance_worker::operations::supervisor::{Measure, Refused, Stop, Supervisor};
use lance_worker::process::executor::ProcessExecutor;
use lance_worker::progress::Progress;
use lance_worker::storage::StorageOptions;
use serde_json::Value;

use crate::support::{TABLE_ID, Table, compact, scalar, vector};

/// Says yes, and keeps what it hears.
#[derive(Debug, Default)]
struct Attentive {
    stop_after: Option<Duration>,
    confirmed: AtomicU32,
    reserved: AtomicU64,
    measures: Mutex<Vec<Measure>>,
}

#[async_trait]
impl Supervisor for Attentive {
    async fn confirm(&self) -> Result<(), Refused> {
        self.confirmed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn is_canceled(&self) -> bool {
        false
    }

    async fn stopped(&self) -> Stop {
        match self.stop_after {
            Some(after) => tokio::time::sleep(after).await,
            None => std::future::pending().await,
        }
        Stop::Told
    }

    fn runs_with(&self, _: TaskParams) {}

    async fn reserve(&self, bytes: u64) {
        self.reserved.fetch_add(bytes, Ordering::SeqCst);
    }

    fn measure(&self, measure: Measure) {
        self.measures.lock().unwrap().push(measure);
    }
}

fn executor(program: impl Into<PathBuf>) -> ProcessExecutor {
    ProcessExecutor {
        program: program.into(),
        storage: StorageOptions::default(),
        limits: Limits::default(),
        task_memory: 8 << 30,
        log_format: LogFormat::Text,
    }
}

fn worker() -> ProcessExecutor {
    executor(env!("CARGO_BIN_EXE_lance-worker"))
}

fn dispatch(location: &str, params: TaskParams) -> Dispatch {
    Dispatch {
        task_id: TaskId::new(
            params.task_type(),
            1,
            *uuid::Uuid::new_v4().as_bytes().first_chunk().unwrap(),
        ),
        attempt: 1,
        table: TableRef {
            id: TABLE_ID.to_owned(),
            arn: "acs:osstables:r:1:bucket/b/table/T".to_owned(),
            location: location.to_owned(),
        },
        params,
        request_id: "request".to_owned(),
    }
}

async fn execute(
    executor: &ProcessExecutor,
    location: &str,
    params: TaskParams,
    supervisor: Arc<Attentive>,
) -> Result<Value, TaskError> {
    let task = dispatch(location, params);
    executor.execute(&task, Progress::new(), supervisor).await
}

/// A program that is no worker.
fn script(folder: &Path, lines: &str) -> PathBuf {
    let path = folder.join("program");
    std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn an_operation_reports_asks_measures_and_ends() {
    let table = Table::with_rows(0..1000, 100).await;
    let rows = table.contents().await;
    let supervisor = Arc::new(Attentive::default());
    let progress = Progress::new();
    let mut reports = progress.subscribe();
    let result = worker()
        .execute(
            &dispatch(&table.uri(), compact("{}")),
            progress,
            supervisor.clone(),
        )
        .await
        .unwrap();
    assert_eq!(result["fragments_removed"], 10);
    assert_eq!(table.contents().await, rows);
    assert!(reports.borrow_and_update().percent > 0);
    // After opening, and before the commit.
    assert_eq!(supervisor.confirmed.load(Ordering::SeqCst), 2);
    assert!(supervisor.reserved.load(Ordering::SeqCst) > 1 << 20);
    let measures = supervisor.measures.lock().unwrap().clone();
    let phases = measures
        .iter()
        .filter(|measure| matches!(measure, Measure::Phase(..)));
    assert_eq!(phases.count(), 4, "{measures:?}");
    let written: u64 = measures
        .iter()
        .filter_map(|measure| match measure {
            Measure::Changed(changed) => Some(changed.bytes_written),
            _ => None,
        })
        .sum();
    assert!(written > 10_000, "{measures:?}");

    let params = scalar(r#"{"column":"nope"}"#);
    let outcome = execute(&worker(), &table.uri(), params, supervisor.clone()).await;
    assert_eq!(outcome.unwrap_err().error, ErrorName::TableColumnNotFound);
}

#[tokio::test]
async fn too_much_memory_ends_the_task_alone() {
    let table = Table::with_rows(0..100_000, 1000).await;
    let rows = table.contents().await;
    let mut small = worker();
    // Less than any process has.
    small.task_memory = 1 << 20;
    let error = execute(&small, &table.uri(), compact("{}"), Arc::default())
        .await
        .unwrap_err();
    assert_eq!(error.error, ErrorName::ServiceUnavailable);
    assert!(error.detail.contains("limit of 1 MiB"), "{error}");
    // What it may have left goes with the next task.
    execute(&worker(), &table.uri(), compact("{}"), Arc::default())
        .await
        .unwrap();
    assert_eq!(table.litter().await, Default::default());
    assert_eq!(table.contents().await, rows);
}

#[tokio::test]
async fn an_operation_that_is_told_to_stop_does() {
    let table = Table::with_rows(0..200_000, 1000).await;
    for millis in [1, 100, 400] {
        let supervisor = Arc::new(Attentive {
            stop_after: Some(Duration::from_millis(millis)),
            ..Attentive::default()
        });
        let by_vector =
            vector(r#"{"column":"vector","index_type":"IVF_PQ","max_iterations":1000}"#);
        let started = Instant::now();
        let outcome = execute(&worker(), &table.uri(), by_vector, supervisor).await;
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?}",
            started.elapsed()
        );
        assert_eq!(table.litter().await, Default::default());
        match outcome {
            Err(error) => assert_eq!(error.error, ErrorName::ServiceUnavailable, "{error}"),
            Ok(_) => break,
        }
    }
}

#[tokio::test]
async fn how_processes_end_that_should_not() {
    let cases = [
        ("exit 1", ErrorName::InternalError, "broke off"),
        ("exit 0", ErrorName::InternalError, "broke off"),
        ("kill -SEGV $$", ErrorName::InternalError, "broke off"),
        (
            "kill -KILL $$",
            ErrorName::ServiceUnavailable,
            "run out of memory",
        ),
        (
            "echo hello; echo '{\"end\":{}}'; read line",
            ErrorName::InternalError,
            "broke off",
        ),
    ];
    for (lines, name, detail) in cases {
        let folder = tempfile::tempdir().unwrap();
        let program = executor(script(folder.path(), lines));
        let error = execute(&program, "file:///nowhere", compact("{}"), Arc::default()).await;
        let error = error.unwrap_err();
        assert_eq!(error.error, name, "{lines}: {error}");
        assert!(error.detail.contains(detail), "{lines}: {error}");
    }
    let missing = executor("/nowhere/program");
    let outcome = execute(&missing, "file:///x", compact("{}"), Arc::default()).await;
    assert_eq!(outcome.unwrap_err().error, ErrorName::ServiceUnavailable);
}

#[tokio::test]
async fn a_process_does_not_outlive_whoever_waits_for_it_and_holds_no_secret_of_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let lines = format!(
        "{{ echo $$; env; cat /proc/$$/cmdline; }} > {0}.new; mv {0}.new {0}; exec sleep 60",
        seen.display()
    );
    let program = executor(script(folder.path(), &lines));
    let task = dispatch("file:///nowhere", compact("{}"));
    let waiting =
        tokio::spawn(program.execute(&task, Progress::new(), Arc::new(Attentive::default())));
    let end = Instant::now() + Duration::from_secs(20);
    while !seen.exists() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(!seen.contains("LANCE_WORKER_SECRET"), "{seen}");
    let process = PathBuf::from("/proc").join(seen.lines().next().unwrap());
    assert!(process.exists());
    waiting.abort();
    // A process that has ended and was not waited for yet has no executable.
    while process.join("exe").read_link().is_ok() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The end of its standard input is the end of the operation, however busy it is.
#[tokio::test]
async fn a_process_does_not_outlive_its_worker() {
    let table = Table::with_rows(0..200_000, 2000).await;
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_lance-worker"))
        .arg(lance_worker::process::FLAG)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let order = lance_worker::process::messages::ToOperation::Run(Box::new(
        lance_worker::process::messages::Order {
            dispatch: dispatch(&table.uri(), compact("{}")),
            storage_options: Default::default(),
            limits: Limits::default(),
            log_format: LogFormat::Json,
            is_canceled: false,
        },
    ));
    let mut input = child.stdin.take().unwrap();
    let mut line = serde_json::to_vec(&order).unwrap();
    line.push(b'\n');
    std::io::Write::write_all(&mut input, &line).unwrap();
    // It waits for the answer to its first question.
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    drop(input);
    let end = Instant::now() + Duration::from_secs(10);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(table.open().await.version_id(), 1);
}

/// A store that takes every connection and never answers.
#[tokio::test]
async fn a_stuck_store_fails_the_task_and_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut connections = Vec::new();
        // It ends with the test's process.
        for connection in listener.incoming() {
            connections.push(connection);
        }
    });
    let mut executor = worker();
    executor.storage = StorageOptions::parse(
        &format!(
            "[[storage]]\nprefix = \"s3://stuck\"\noptions = {{ aws_endpoint = \"http://{address}\", \
             allow_http = \"true\", aws_region = \"here\", aws_access_key_id = \"key\", \
             aws_secret_access_key = \"verysecret\" }}\n"
        ),
        |_| None,
    )
    .unwrap();
    executor.limits.store_timeout = Duration::from_millis(1500);
    let started = Instant::now();
    let error = execute(
        &executor,
        "s3://stuck/t.lance",
        compact("{}"),
        Arc::default(),
    )
    .await;
    let error = error.unwrap_err();
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(error.error, ErrorName::ServiceUnavailable, "{error}");
    assert!(error.detail.contains("store does not answer"), "{error}");
    assert!(error.detail.contains("more than 1s 500ms"), "{error}");
    assert!(
        !error.detail.contains("verysecret") && !error.detail.contains("127.0.0.1"),
        "{error}"
    );
}

/// Ten thousand fragments of a row each: progress is seen, and memory stays far from what a row per
/// process would take.
#[tokio::test]
async fn ten_thousand_fragments_of_a_row_each() {
    let table = Table::with_rows(0..10_000, 1).await;
    let mut limited = worker();
    limited.task_memory = 1 << 30;
    let progress = Progress::new();
    let mut reports = progress.subscribe();
    let seen = tokio::spawn(async move {
        let mut percents = std::collections::BTreeSet::new();
        while reports.changed().await.is_ok() {
            percents.insert(reports.borrow_and_update().percent);
        }
        percents
    });
    let started = Instant::now();
    let task = dispatch(&table.uri(), compact("{}"));
    let result = limited
        .execute(&task, progress, Arc::new(Attentive::default()))
        .await
        .unwrap();
    println!("took {:?}", started.elapsed());
    assert_eq!(result["fragments_removed"], 10_000);
    assert_eq!(result["fragments_added"], 1);
    assert!(seen.await.unwrap().len() > 5);
    assert_eq!(table.open().await.count_rows(None).await.unwrap(), 10_000);
    assert_eq!(table.litter().await, Default::default());
}
