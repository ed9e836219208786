//! The bodies of the five submits: every row of the specification that says accept or reject.

use lance_maintenance_tests::client::Call;
use serde_json::{Value, json};

use crate::support::{
    INVALID_INPUT, SUBMITS, assert_accepted, assert_refused, client, declared, narrow_service,
};

/// A body, and what is stored of it: some of the parameters, or nothing because it is refused.
type Case = (&'static str, Option<&'static str>);

#[tokio::test]
async fn compact() {
    let all = r#"{"target_rows_per_fragment":1048576,"materialize_deletions":true,
        "materialize_deletions_threshold":0.1,"max_rows_per_group":1024,"max_bytes_per_file":0,
        "compaction_mode":"reencode"}"#;
    check(
        "compact",
        &[
            ("", Some(all)),
            ("{}", Some(all)),
            (r#"{"batch_size":1024}"#, Some(all)),
            (
                r#"{"target_rows_per_fragment":null,"materialize_deletions":null}"#,
                Some(all),
            ),
            (
                r#"{"target_rows_per_fragment":1}"#,
                Some(r#"{"target_rows_per_fragment":1}"#),
            ),
            (
                r#"{"target_rows_per_fragment":1,"target_rows_per_fragment":7}"#,
                Some(r#"{"target_rows_per_fragment":7}"#),
            ),
            (
                r#"{"target_rows_per_fragment":9223372036854775807}"#,
                Some("{}"),
            ),
            (r#"{"target_rows_per_fragment":0}"#, None),
            (r#"{"target_rows_per_fragment":-1}"#, None),
            (r#"{"target_rows_per_fragment":1.5}"#, None),
            (r#"{"target_rows_per_fragment":"5"}"#, None),
            (r#"{"target_rows_per_fragment":true}"#, None),
            (r#"{"target_rows_per_fragment":[5]}"#, None),
            (r#"{"target_rows_per_fragment":9223372036854775808}"#, None),
            (r#"{"target_rows_per_fragment":1e400}"#, None),
            (
                r#"{"materialize_deletions":false}"#,
                Some(r#"{"materialize_deletions":false}"#),
            ),
            (r#"{"materialize_deletions":0}"#, None),
            (r#"{"materialize_deletions":"true"}"#, None),
            (
                r#"{"materialize_deletions_threshold":0}"#,
                Some(r#"{"materialize_deletions_threshold":0.1}"#),
            ),
            (
                r#"{"materialize_deletions_threshold":-1}"#,
                Some(r#"{"materialize_deletions_threshold":-1.0}"#),
            ),
            (
                r#"{"materialize_deletions_threshold":2.5}"#,
                Some(r#"{"materialize_deletions_threshold":2.5}"#),
            ),
            (r#"{"materialize_deletions_threshold":"0.1"}"#, None),
            (
                r#"{"max_rows_per_group":1}"#,
                Some(r#"{"max_rows_per_group":1}"#),
            ),
            (r#"{"max_rows_per_group":0}"#, None),
            (
                r#"{"max_bytes_per_file":0}"#,
                Some(r#"{"max_bytes_per_file":0}"#),
            ),
            (
                r#"{"max_bytes_per_file":1000}"#,
                Some(r#"{"max_bytes_per_file":1000}"#),
            ),
            (r#"{"max_bytes_per_file":-1}"#, None),
            (
                r#"{"compaction_mode":"try_binary_copy"}"#,
                Some(r#"{"compaction_mode":"try_binary_copy"}"#),
            ),
            (
                r#"{"compaction_mode":"force_binary_copy"}"#,
                Some(r#"{"compaction_mode":"force_binary_copy"}"#),
            ),
            (r#"{"compaction_mode":"REENCODE"}"#, None),
            (r#"{"compaction_mode":""}"#, None),
            (r#"{"compaction_mode":"binary"}"#, None),
            (r#"{"compaction_mode":1}"#, None),
        ],
    )
    .await;
}

#[tokio::test]
async fn cleanup() {
    check(
        "cleanup",
        &[
            (
                r#"{"retain_versions":2}"#,
                Some(
                    r#"{"older_than":"","retain_versions":2,"delete_unverified":false,
                        "error_if_tagged_old_versions":false}"#,
                ),
            ),
            (
                r#"{"older_than":"7d"}"#,
                Some(r#"{"older_than":"7d","retain_versions":0}"#),
            ),
            // Only that it is there is checked before the task runs.
            (r#"{"older_than":"7D"}"#, Some(r#"{"older_than":"7D"}"#)),
            (
                r#"{"older_than":"7d","retain_versions":3}"#,
                Some(r#"{"older_than":"7d","retain_versions":3}"#),
            ),
            (
                r#"{"retain_versions":1,"delete_unverified":false}"#,
                Some("{}"),
            ),
            (
                r#"{"retain_versions":1,"delete_unverified":null}"#,
                Some("{}"),
            ),
            (r#"{"retain_versions":0}"#, None),
            ("{}", None),
            ("", None),
            (r#"{"retain_versions":-1}"#, None),
            (r#"{"retain_versions":"2"}"#, None),
            (r#"{"retain_versions":2,"delete_unverified":true}"#, None),
            (
                r#"{"retain_versions":2,"error_if_tagged_old_versions":true}"#,
                None,
            ),
            (r#"{"older_than":"7d","retain_versions":-1}"#, None),
            (r#"{"older_than":"","retain_versions":0}"#, None),
            (r#"{"older_than":null}"#, None),
            (r#"{"older_than":7}"#, None),
        ],
    )
    .await;
}

#[tokio::test]
async fn create_scalar_index() {
    check(
        "create_scalar_index",
        &[
            (
                r#"{"column":"id"}"#,
                Some(r#"{"column":"id","index_type":"BTREE","name":"","replace":true,"zone_size":4096}"#),
            ),
            (
                r#"{"column":"id","index_type":"bitmap","index_name":"n","replace":false}"#,
                Some(r#"{"index_type":"BITMAP","name":"n","replace":false}"#),
            ),
            (r#"{"column":"id","index_type":"LABEL_LIST"}"#, Some(r#"{"index_type":"LABEL_LIST"}"#)),
            (r#"{"column":"id","index_type":"NGRAM"}"#, Some(r#"{"index_type":"NGRAM"}"#)),
            (r#"{"column":"id","index_type":"BLOOMFILTER"}"#, Some(r#"{"index_type":"BLOOMFILTER"}"#)),
            (r#"{"column":"id","index_type":"ZONEMAP"}"#, Some(r#"{"rows_per_zone":8192}"#)),
            (
                r#"{"column":"t","index_type":"FTS"}"#,
                Some(
                    r#"{"index_type":"INVERTED","with_position":false,"base_tokenizer":"simple",
                        "language":"English","max_token_length":40,"lower_case":true,"stem":true,
                        "remove_stop_words":true,"ascii_folding":true}"#,
                ),
            ),
            (
                r#"{"column":"t","index_type":"INVERTED","base_tokenizer":"ngram"}"#,
                Some(r#"{"base_tokenizer":"ngram","stem":false,"remove_stop_words":false}"#),
            ),
            // Whether there is such a column is seen when the task runs.
            (r#"{"column":"no such column"}"#, Some(r#"{"column":"no such column"}"#)),
            ("", None),
            ("{}", None),
            (r#"{"column":""}"#, None),
            (r#"{"column":7}"#, None),
            (r#"{"column":["id"]}"#, None),
            (r#"{"column":"c","index_type":""}"#, None),
            (r#"{"column":"c","index_type":"IVF_PQ"}"#, None),
            (r#"{"column":"c","replace":"no"}"#, None),
            (r#"{"column":"c","name":1}"#, None),
            (r#"{"column":"c","zone_size":0}"#, None),
            (r#"{"column":"c","index_type":"ZONEMAP","rows_per_zone":0}"#, None),
            (r#"{"column":"c","index_type":"FTS","base_tokenizer":"words"}"#, None),
            (r#"{"column":"c","index_type":"FTS","max_token_length":-1}"#, None),
            (r#"{"column":"c","index_type":"FTS","stem":1}"#, None),
        ],
    )
    .await;
}

#[tokio::test]
async fn create_vector_index() {
    check(
        "create_vector_index",
        &[
            (
                r#"{"column":"v"}"#,
                Some(
                    r#"{"column":"v","index_type":"IVF_PQ","name":"","metric_type":"l2",
                        "replace":false,"num_partitions":0,"target_partition_size":0,
                        "num_sub_vectors":16,"num_bits":8,"sample_rate":256,"max_iterations":50}"#,
                ),
            ),
            (
                r#"{"column":"v","index_type":"IVF_FLAT","distance_type":"euclidean"}"#,
                Some(r#"{"index_type":"IVF_FLAT","metric_type":"l2"}"#),
            ),
            (
                r#"{"column":"v","metric":"cosine"}"#,
                Some(r#"{"metric_type":"cosine"}"#),
            ),
            (
                r#"{"column":"v","metric_type":"dot"}"#,
                Some(r#"{"metric_type":"dot"}"#),
            ),
            (
                r#"{"column":"v","metric_type":"hamming"}"#,
                Some(r#"{"metric_type":"hamming"}"#),
            ),
            (
                r#"{"column":"v","index_type":"IVF_SQ"}"#,
                Some(r#"{"num_bits":8}"#),
            ),
            (
                r#"{"column":"v","index_type":"IVF_RQ"}"#,
                Some(r#"{"num_bits":5}"#),
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_FLAT"}"#,
                Some(r#"{"m":20,"ef_construction":150,"max_level":7}"#),
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_PQ"}"#,
                Some(r#"{"num_sub_vectors":16}"#),
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","m":4}"#,
                Some(r#"{"m":4}"#),
            ),
            // Whether it divides the dimension is seen when the task runs.
            (
                r#"{"column":"v","num_sub_vectors":7}"#,
                Some(r#"{"num_sub_vectors":7}"#),
            ),
            ("", None),
            ("{}", None),
            (r#"{"column":""}"#, None),
            (r#"{"column":null}"#, None),
            (r#"{"column":"v","index_type":"BTREE"}"#, None),
            (r#"{"column":"v","metric_type":"manhattan"}"#, None),
            (r#"{"column":"v","num_partitions":-1}"#, None),
            (r#"{"column":"v","num_partitions":"4"}"#, None),
            (r#"{"column":"v","target_partition_size":-1}"#, None),
            (r#"{"column":"v","num_sub_vectors":0}"#, None),
            (r#"{"column":"v","num_bits":0}"#, None),
            (r#"{"column":"v","sample_rate":0}"#, None),
            (r#"{"column":"v","max_iterations":0}"#, None),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","ef_construction":0}"#,
                None,
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","max_level":0}"#,
                None,
            ),
            (r#"{"column":"v","replace":1}"#, None),
        ],
    )
    .await;
}

#[tokio::test]
async fn optimize_indices() {
    let all = r#"{"index_names":[],"num_indices_to_merge":null,"retrain":false}"#;
    check(
        "optimize_indices",
        &[
            ("", Some(all)),
            ("{}", Some(all)),
            (
                r#"{"index_names":["a","b"],"num_indices_to_merge":0,"retrain":true}"#,
                Some(r#"{"index_names":["a","b"],"num_indices_to_merge":0,"retrain":true}"#),
            ),
            (r#"{"index_names":[""]}"#, None),
            (r#"{"index_names":"a"}"#, None),
            (r#"{"index_names":[1]}"#, None),
            (r#"{"num_indices_to_merge":-1}"#, None),
            (r#"{"num_indices_to_merge":1.5}"#, None),
            (r#"{"retrain":"yes"}"#, None),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_no_json_object() {
    let table = declared("bodies", "no_object").await;
    let deep = "[".repeat(100_000);
    for (operation, task_type, _) in SUBMITS {
        for body in [
            &b"null"[..],
            b"[]",
            b"1",
            b"\"{}\"",
            b"{",
            b"{} {}",
            b"{'column':'id'}",
            b"\x00",
            b"\xff\xfe{}",
            b" ",
            deep.as_bytes(),
        ] {
            let case = format!(
                "{operation} {:?}",
                String::from_utf8_lossy(&body[..body.len().min(20)])
            );
            let call = Call::post(table.path(operation), body);
            let answer = client().call(call).await.unwrap();
            assert_refused(&answer, INVALID_INPUT, &case);
        }
        assert!(
            table.tasks(task_type, 100).await.unwrap().is_empty(),
            "{operation}"
        );
    }
}

#[tokio::test]
async fn content_types_do_not_matter() {
    let table = declared("bodies", "content_types").await;
    let table_id = table.uuid().await.unwrap();
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/json; charset=utf-8"),
    ] {
        let mut call = Call::post(table.path("compact"), "{}");
        call.headers.clear();
        if let Some(content_type) = content_type {
            call = call.header("content-type", content_type);
        }
        let answer = client().call(call).await.unwrap();
        assert_accepted(&answer, &table_id, &format!("{content_type:?}"));
    }
}

#[tokio::test]
async fn the_servers_own_compaction_mode_is_none() {
    let client = narrow_service().client().unwrap();
    let table = crate::support::declared_by(&client, "bodies", "mode").await;
    let call = Call::post(table.path("compact"), "{}");
    let answer = client.call(call).await.unwrap();
    assert_refused(&answer, (500, "InternalError", 18), "no mode");
    assert!(table.tasks("lance_compact", 100).await.unwrap().is_empty());
    let body = json!({"compaction_mode": "reencode"});
    table.submit("compact", body).await.unwrap();
}

/// Sends each body. What is accepted answers with a task id alone, and the task has the documented
/// fields; what is refused leaves nothing.
async fn check(operation: &str, cases: &[Case]) {
    let (_, task_type, _) = SUBMITS
        .iter()
        .find(|(word, ..)| *word == operation)
        .unwrap();
    let table = declared("bodies", operation).await;
    let table_id = table.uuid().await.unwrap();
    let mut accepted = Vec::new();
    for (body, stored) in cases {
        let call = Call::post(table.path(operation), *body);
        let answer = client().call(call).await.unwrap();
        let Some(stored) = stored else {
            assert_refused(&answer, INVALID_INPUT, body);
            continue;
        };
        assert_accepted(&answer, &table_id, body);
        let answer = answer.json().unwrap();
        let task_id = answer["task_id"].as_str().unwrap().to_owned();
        assert_eq!(answer, json!({"task_id": task_id}), "{body}");
        assert_eq!(task_id.len(), 32, "{body}");
        let info = table.task(&task_id).await.unwrap();
        assert_eq!(info["task_id"], task_id.as_str(), "{body}");
        assert_eq!(info["task_type"], *task_type, "{body}");
        assert_time(&info["created_at"], body);
        let stored: Value = serde_json::from_str(stored).unwrap();
        for (name, value) in stored.as_object().unwrap() {
            assert_eq!(info["params"][name], *value, "{body}: {name}");
        }
        assert_eq!(info["params"]["batch_size"], Value::Null, "{body}");
        accepted.insert(0, task_id);
    }
    let tasks = table.tasks(task_type, 1000).await.unwrap();
    let listed: Vec<&str> = tasks
        .iter()
        .map(|task| task["task_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        listed, accepted,
        "newest first, and nothing of what was refused"
    );
}

/// `2026-09-18T04:00:00.000000+00:00`
fn assert_time(value: &Value, case: &str) {
    let shape: String = value
        .as_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000+00:00", "{case}");
}
