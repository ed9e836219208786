//! ListLanceTasks.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use lance_maintenance_tests::client::{Call, Table};
use serde_json::{Value, json};

use crate::support::{
    INVALID_INPUT, SUBMITS, assert_accepted, assert_refused, client, declared, keys, service,
};

fn ids(tasks: &[Value]) -> Vec<String> {
    tasks
        .iter()
        .map(|task| task["task_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn queries() {
    let table = declared("listing", "queries").await;
    let other = declared("listing", "others").await;
    let table_id = table.uuid().await.unwrap();
    for of in [&table, &other] {
        for _ in 0..2 {
            of.submit("compact", json!({})).await.unwrap();
        }
    }
    let marker = |page: Value| page["next_marker"].as_str().unwrap().to_owned();
    let first = "tasks?task_type=lance_compact&max_results=1";
    let own = marker(client().get(&table.path(first)).await.unwrap());
    let others = marker(client().get(&other.path(first)).await.unwrap());
    assert!(!own.is_empty() && !others.is_empty());

    let (one, two) = (Some(1), Some(2));
    let cases = [
        ("task_type=lance_compact".to_owned(), two),
        ("task_type=lance_compact&max_results=1".to_owned(), one),
        ("task_type=lance_compact&max_results=1000".to_owned(), two),
        ("task_type=lance_compact&marker=".to_owned(), two),
        (format!("task_type=lance_compact&marker={own}"), one),
        ("task_type=lance_compact&unknown=1&Status=x".to_owned(), two),
        ("task_type=lance_cleanup".to_owned(), Some(0)),
        (String::new(), None),
        ("task_type".to_owned(), None),
        ("task_type=".to_owned(), None),
        ("task_type=compact".to_owned(), None),
        ("task_type=create_scalar_index".to_owned(), None),
        ("task_type=LANCE_COMPACT".to_owned(), None),
        ("task_type=lance_compact,lance_cleanup".to_owned(), None),
        (
            "task_type=lance_compact&task_type=lance_cleanup".to_owned(),
            None,
        ),
        ("task_type=lance_compact&max_results=0".to_owned(), None),
        ("task_type=lance_compact&max_results=1001".to_owned(), None),
        ("task_type=lance_compact&max_results=-1".to_owned(), None),
        ("task_type=lance_compact&max_results=abc".to_owned(), None),
        ("task_type=lance_compact&max_results=1.0".to_owned(), None),
        (
            "task_type=lance_compact&max_results=99999999999".to_owned(),
            None,
        ),
        ("task_type=lance_compact&max_results=".to_owned(), None),
        ("task_type=lance_compact&status=".to_owned(), None),
        ("task_type=lance_compact&status".to_owned(), None),
        ("task_type=lance_compact&status=failed".to_owned(), None),
        ("task_type=lance_compact&mode=x".to_owned(), None),
        ("task_type=lance_compact&mode".to_owned(), None),
        ("task_type=lance_compact&marker=x".to_owned(), None),
        ("task_type=lance_compact&marker=%00".to_owned(), None),
        (format!("task_type=lance_compact&marker={others}"), None),
        (format!("task_type=lance_cleanup&marker={own}"), None),
    ];
    for (query, found) in cases {
        let target = table.path(&format!("tasks?{query}"));
        let answer = client().call(Call::get(&target)).await.unwrap();
        let Some(found) = found else {
            assert_refused(&answer, INVALID_INPUT, &query);
            continue;
        };
        assert_accepted(&answer, &table_id, &query);
        let page = answer.json().unwrap();
        assert_eq!(page.as_object().unwrap().len(), 2, "{query}");
        assert_eq!(page["tasks"].as_array().unwrap().len(), found, "{query}");
        let last = !query.ends_with("max_results=1");
        assert_eq!(page["next_marker"] == "", last, "{query}");
    }
}

#[tokio::test]
async fn a_listed_task_is_the_task() {
    let table = declared("listing", "elements").await;
    for (operation, task_type, body) in SUBMITS {
        assert!(table.tasks(task_type, 10).await.unwrap().is_empty());
        let body: Value = serde_json::from_str(body).unwrap();
        let task_id = table.submit(operation, body).await.unwrap();
        table.wait(&task_id, |_| {}).await.unwrap();
        let listed = table.tasks(task_type, 10).await.unwrap();
        let got = client()
            .get(&table.path(&format!("tasks/{task_id}")))
            .await
            .unwrap();
        assert_eq!(got.as_object().unwrap().len(), 1, "{got}");
        assert_eq!(listed, [got["task_info"].clone()]);
        let documented = [
            "completed_at",
            "created_at",
            "error",
            "params",
            "result",
            "started_at",
            "status",
            "task_id",
            "task_type",
        ];
        assert_eq!(keys(&listed[0]), documented);
    }
}

#[tokio::test]
async fn a_hundred_are_on_a_page_unless_said() {
    let table = declared("listing", "hundred").await;
    let mut submitted = Vec::new();
    for _ in 0..101 {
        submitted.insert(
            0,
            table.submit("optimize_indices", json!({})).await.unwrap(),
        );
    }
    let target = table.path("tasks?task_type=lance_optimize_indices");
    let page = client().get(&target).await.unwrap();
    assert_eq!(ids(page["tasks"].as_array().unwrap()), submitted[..100]);
    let rest = format!("{target}&marker={}", page["next_marker"].as_str().unwrap());
    let page = client().get(&rest).await.unwrap();
    assert_eq!(ids(page["tasks"].as_array().unwrap()), submitted[100..]);
    assert_eq!(page["next_marker"], "");
}

/// While others submit and delete, a reader sees no task twice, and every one that was there from
/// before its first page until after its last.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_while_others_submit_and_delete() {
    const THERE: usize = 40;
    let table = declared("listing", "pages").await;
    let mut there = Vec::new();
    let mut doomed = Vec::new();
    for number in 0..THERE {
        let task_id = table.submit("optimize_indices", json!({})).await.unwrap();
        if number % 3 == 0 {
            &mut doomed
        } else {
            &mut there
        }
        .push(task_id);
    }
    for task_id in there.iter().chain(&doomed) {
        table.wait(task_id, |_| {}).await.unwrap();
    }
    let done = AtomicBool::new(false);
    let read = async {
        for size in [1, 3, 7, 20, 1000, 2, 5] {
            let seen = ids(&table.tasks("lance_optimize_indices", size).await.unwrap());
            let unique: HashSet<&String> = seen.iter().collect();
            assert_eq!(unique.len(), seen.len(), "a task twice, {size} a page");
            for task_id in &there {
                assert!(unique.contains(task_id), "a task skipped, {size} a page");
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    let submit = submit_until(&done, &table);
    let delete = async {
        for task_id in &doomed {
            table.delete_task(task_id).await.unwrap();
        }
    };
    let ((), submitted, ()) = tokio::join!(read, submit, delete);
    assert!(submitted > 0);
    let left = ids(&table.tasks("lance_optimize_indices", 1000).await.unwrap());
    assert_eq!(left.len(), there.len() + submitted);
    assert!(doomed.iter().all(|task_id| !left.contains(task_id)));
}

async fn submit_until(done: &AtomicBool, table: &Table) -> usize {
    let table = table.with_client(service().client().unwrap());
    let mut submitted = 0;
    while !done.load(Ordering::Relaxed) {
        table.submit("optimize_indices", json!({})).await.unwrap();
        submitted += 1;
    }
    submitted
}
