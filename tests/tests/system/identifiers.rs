//! How a request names its table.

use lance_maintenance_tests::client::Call;
use reqwest::Method;

use crate::support::{
    INVALID_INPUT, Refusal, SUBMITS, TABLE_NOT_FOUND, TASK_NOT_FOUND, assert_accepted,
    assert_refused, client, declared,
};

#[tokio::test]
async fn ids_and_delimiters() {
    let table = declared("ids", "doc_uments").await;
    let table_id = table.uuid().await.unwrap();
    let unknown = Some(TABLE_NOT_FOUND);
    let invalid = Some(INVALID_INPUT);
    let long = "a".repeat(256);
    let too_long = format!("ids$t{long}");
    let cases: &[(&str, &str, Option<Refusal>)] = &[
        ("ids$doc_uments", "", None),
        ("ids%24doc_uments", "", None),
        ("%69ds%24doc%5Fuments", "", None),
        ("ids%24doc_uments", "delimiter=%24", None),
        ("ids%24doc_uments", "delimiter=", None),
        ("ids%24doc_uments", "delimiter", None),
        ("ids__doc_uments", "delimiter=__", None),
        ("ids.doc_uments", "delimiter=.", None),
        ("ids%2Edoc_uments", "delimiter=%2E", None),
        ("ids~%7E~doc_uments", "delimiter=~~~", None),
        ("ids%20doc_uments", "delimiter=+", None),
        ("ids%C3%A9doc_uments", "delimiter=%C3%A9", None),
        ("idsxxdoc_uments", "delimiter=xx", None),
        ("ids$doc_uments", "delimiter=%24&anything=else", None),
        // A name pair, never the UUID.
        (&table_id, "", invalid),
        ("ids$other", "", unknown),
        ("other$doc_uments", "", unknown),
        ("ids__doc_uments", "delimiter=", invalid),
        ("ids__doc_uments", "", invalid),
        ("ids$doc_uments", "delimiter=__", invalid),
        // Decoded once.
        ("ids%2524doc_uments", "", invalid),
        ("doc_uments", "", invalid),
        ("$doc_uments", "", invalid),
        ("ids$", "", invalid),
        ("$", "", invalid),
        ("a$b$c", "", invalid),
        ("ids$$doc_uments", "", invalid),
        ("a.b$doc_uments", "", invalid),
        ("ids%2Fdoc_uments", "", invalid),
        ("ids%00$doc_uments", "", invalid),
        ("%FF$doc_uments", "", invalid),
        ("Ids$doc_uments", "", invalid),
        ("ids$Doc", "", invalid),
        ("_ids$doc_uments", "", invalid),
        ("ids$doc_", "", invalid),
        ("ids$d-c", "", invalid),
        ("oss1$doc_uments", "", invalid),
        ("acsx$doc_uments", "", invalid),
        ("aliyun$doc_uments", "", invalid),
        ("alibaba$doc_uments", "", invalid),
        ("aws$doc_uments", "", invalid),
        (&too_long, "", invalid),
        ("ids-doc_uments", "delimiter=-", invalid),
        ("ids:doc_uments", "delimiter=:", invalid),
        ("ids%2Fdoc_uments", "delimiter=/", invalid),
        ("ids%2Fdoc_uments", "delimiter=%2F", invalid),
        ("idsa-bdoc_uments", "delimiter=a-b", invalid),
        ("ids$doc_uments", "delimiter=%24&delimiter=__", invalid),
    ];
    for (id, query, refusal) in cases {
        let target = format!("/lance/oss/v1/table/{id}/tasks?task_type=lance_compact&{query}");
        let answer = client().call(Call::get(&target)).await.unwrap();
        match refusal {
            None => assert_accepted(&answer, &table_id, &target),
            Some(refusal) => assert_refused(&answer, *refusal, &target),
        }
    }
}

#[tokio::test]
async fn all_eight_operations_take_a_delimiter() {
    let table = declared("delimiters", "t").await;
    let table_id = table.uuid().await.unwrap();
    let path = |rest: &str| format!("/lance/oss/v1/table/delimiters__t/{rest}?delimiter=__");
    for (operation, task_type, body) in SUBMITS {
        let answer = client()
            .call(Call::post(path(operation), body))
            .await
            .unwrap();
        assert_accepted(&answer, &table_id, operation);
        let answer = answer.json().unwrap();
        let task_id = answer["task_id"].as_str().unwrap();
        table.wait(task_id, |_| {}).await.unwrap();
        let task = path(&format!("tasks/{task_id}"));
        let list = format!("{}&task_type={task_type}", path("tasks"));
        for (method, target) in [
            (Method::GET, &task),
            (Method::GET, &list),
            (Method::DELETE, &task),
        ] {
            let call = Call::new(method, target);
            let answer = client().call(call).await.unwrap();
            assert_accepted(&answer, &table_id, target);
        }
    }
}

#[tokio::test]
async fn a_table_that_is_not_there() {
    client().ensure_namespace("empty").await.unwrap();
    for id in ["empty$t", "no_such_namespace$t"] {
        let path = |rest: &str| format!("/lance/oss/v1/table/{id}/{rest}");
        for (operation, _, body) in SUBMITS {
            // The table is looked for before the body is read.
            for body in [body, "no JSON"] {
                let call = Call::post(path(operation), body);
                let answer = client().call(call).await.unwrap();
                assert_refused(&answer, TABLE_NOT_FOUND, operation);
            }
        }
        let task = path("tasks/10000000000111111111111111111111");
        for call in [
            Call::get(&task),
            Call::delete(&task),
            Call::get(path("tasks?task_type=lance_compact")),
            Call::get(path("tasks")),
        ] {
            let case = call.target.clone();
            let answer = client().call(call).await.unwrap();
            assert_refused(&answer, TABLE_NOT_FOUND, &case);
        }
    }
}

#[tokio::test]
async fn task_ids() {
    let table = declared("ids", "task_ids").await;
    let other = declared("ids", "task_ids_of_another").await;
    let task_id = table
        .submit("compact", serde_json::json!({}))
        .await
        .unwrap();
    let upper = task_id.to_uppercase();
    let changed = format!("{}0", &task_id[..31]);
    let other_type = format!("2{}", &task_id[1..]);
    for (of, id) in [
        (&other, task_id.as_str()),
        (&table, "abc"),
        (&table, "11111111-1111-1111-1111-111111111111"),
        (&table, "11111111111111111111111111111111"),
        (&table, "%24"),
        (&table, "%2e%2e%2ftasks"),
        (&table, "%FF"),
        (&table, &other_type),
        (&table, if upper == task_id { "x" } else { &upper }),
        (&table, if changed == task_id { "x" } else { &changed }),
    ] {
        for method in [Method::GET, Method::DELETE] {
            let call = Call::new(method, of.path(&format!("tasks/{id}")));
            let answer = client().call(call).await.unwrap();
            assert_refused(&answer, TASK_NOT_FOUND, id);
        }
    }
    for method in [Method::GET, Method::DELETE] {
        let answer = client()
            .call(Call::new(method, table.path("tasks/")))
            .await
            .unwrap();
        assert_refused(&answer, INVALID_INPUT, "an empty task id");
    }
    table.task(&task_id).await.unwrap();
}
