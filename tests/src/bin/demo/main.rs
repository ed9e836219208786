//! All five tasks on a real table that a busy writer left, over HTTP, with what they did.

mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;
use lance_maintenance_tests::busy_table::{self, Plan};
use lance_maintenance_tests::client::{Client, Table};
use lance_maintenance_tests::harness::Facts;
use lance_maintenance_tests::inspect::{self, TableState};
use lance_maintenance_tests::wine::wine;
use serde_json::{Value, json};

use crate::report::{Checks, Step};

/// What the writer adds after the indices were created.
const LATER_APPENDS: i64 = 8;
const ROWS_PER_LATER_APPEND: i64 = 36;
/// How many versions the cleanup keeps.
const VERSIONS_KEPT: usize = 1;

/// Runs all five maintenance tasks on a table that a busy writer left, and checks what they did.
#[derive(Parser)]
struct Options {
    /// The file `up.json` of a running `cargo xtask up`.
    #[arg(long, value_name = "FILE")]
    up: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match demo(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything is as it should be.
async fn demo(options: &Options) -> anyhow::Result<bool> {
    let client = Facts::read(&options.up)?.client()?;
    let table = declare(&client).await?;
    println!("table     {}", table.location);

    let plan = Plan::every_wine();
    let step = Step::begin("writing");
    busy_table::write(&table.location, &plan, |rows| {
        step.progress(rows * 100 / plan.rows, "wines, in small appends");
    })
    .await?;
    let written = TableState::of(&table.location).await?;
    step.end(&format!("{} versions", written.versions.len()));

    for (operation, body) in [
        (
            "create_scalar_index",
            json!({"column": "id", "index_type": "BTREE"}),
        ),
        (
            "create_scalar_index",
            json!({"column": "review", "index_type": "FTS"}),
        ),
        (
            "create_vector_index",
            json!({"column": "vector", "index_type": "IVF_PQ", "num_sub_vectors": 8}),
        ),
    ] {
        run(&table, operation, body).await?;
    }

    let step = Step::begin("writing");
    for number in 0..LATER_APPENDS {
        let first = plan.rows + number * ROWS_PER_LATER_APPEND;
        busy_table::append(&table.location, first..first + ROWS_PER_LATER_APPEND).await?;
        step.progress(number * 100 / LATER_APPENDS, "more wines");
    }
    busy_table::delete(&table.location, "id % 50 = 1").await?;
    let before = TableState::of(&table.location).await?;
    step.end(&format!("{} rows without an index", before.coverage().1));

    run(&table, "optimize_indices", json!({})).await?;
    let optimized = TableState::of(&table.location).await?;
    run(&table, "compact", json!({})).await?;
    let compacted = TableState::of(&table.location).await?;
    run(&table, "cleanup", json!({"retain_versions": VERSIONS_KEPT})).await?;
    let after = TableState::of(&table.location).await?;

    report::states(&[
        ("written", &written),
        ("indexed, written to", &before),
        ("maintained", &after),
    ]);

    let mut checks = Checks::default();
    checks.add(
        "the rows are the same, every value of them",
        [&optimized, &compacted, &after]
            .iter()
            .all(|state| (state.rows, state.content_hash) == (before.rows, before.content_hash)),
    );
    checks.add(
        "the indices cover every row",
        optimized.coverage().1 == 0 && after.coverage() == (3 * after.rows as u64, 0),
    );
    checks.add(
        "small fragments are merged",
        // Fragments under different segments of an index stay apart.
        after.fragments == compacted.fragments && 10 * after.fragments <= before.fragments,
    );
    checks.add(
        "deleted rows are gone",
        before.deleted_rows > 0 && after.deleted_rows == 0,
    );
    checks.add(
        "old versions are gone",
        after.versions.len() == VERSIONS_KEPT && after.versions.last() == Some(&after.version),
    );
    checks.add("less disk is used", after.bytes < before.bytes);
    checks.add(
        "queries use the indices",
        queries_use_indices(&table).await?,
    );
    Ok(checks.all_hold())
}

/// A table of its own in the namespace `demo`, which may be there from an earlier run.
async fn declare(client: &Client) -> anyhow::Result<Table> {
    client.ensure_namespace("demo").await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    client.declare("demo", &format!("wines_{now}")).await
}

/// Runs a task that must complete.
async fn run(table: &Table, operation: &str, body: Value) -> anyhow::Result<()> {
    let step = Step::begin(operation);
    let task_id = table.submit(operation, body.clone()).await?;
    let info = table
        .wait(&task_id, |info| {
            let progress = &info["progress"];
            step.progress(
                progress["percent"].as_i64().unwrap_or(0),
                progress["message"].as_str().unwrap_or_default(),
            );
        })
        .await?;
    if info["status"] != "completed" {
        step.end("failed");
        anyhow::bail!("{operation} {body}: {}", info["error"]["detail"]);
    }
    step.end(&report::result_of(&info["result"]));
    Ok(())
}

async fn queries_use_indices(table: &Table) -> anyhow::Result<bool> {
    let uri = &table.location;
    let filter = inspect::filter_plan(uri, "id = 1500").await?;
    let (search, found) = inspect::text_search(uri, "remarkable alcohol").await?;
    let nearest = inspect::nearest_plan(uri, "vector", wine(7)).await?;
    Ok(filter.contains("ScalarIndexQuery")
        && search.contains("MatchQuery")
        && found > 0
        && nearest.contains("ANNIvf"))
}
