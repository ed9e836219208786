use lance_maintenance_dispatch::tables::{DESCRIBE_PATH, EXIST_PATH, VERSIONS_PATH};
use lance_table::io::commit::ManifestNamingScheme;
use serde_json::json;

use super::*;

/// Three versions, a tag on the first, and a branch off the second with one version more.
async fn table_with_everything(bench: &Bench) {
    bench.table("t", 0..10).await;
    let (status, _) = bench.write("t", "overwrite", &stream(&[rows(0..20)])).await;
    assert_eq!(status, 200);
    let mut dataset = bench.open("t").await;
    dataset.delete("id < 5").await.unwrap();
    dataset.tags().create("first", 1).await.unwrap();
    let mut branch = dataset.create_branch("team/b", 2, None).await.unwrap();
    branch.delete("id < 1").await.unwrap();
    dataset.tags().create("side", ("team/b", 3)).await.unwrap();
}

#[tokio::test]
async fn descriptions() {
    let bench = Bench::new().await;
    table_with_everything(&bench).await;
    std::fs::create_dir(bench.path("folder")).unwrap();
    bench.table("broken", 0..10).await;
    let manifest = ManifestNamingScheme::V2.manifest_path(&"".into(), 1);
    std::fs::write(bench.path("broken").join(manifest.as_ref()), "no manifest").unwrap();
    let found = [
        (json!({}), 3, 5),
        (json!({"version": 1}), 1, 0),
        (json!({"version": 2}), 2, 0),
        (json!({"tag": "first"}), 1, 0),
        (json!({"branch": "main"}), 3, 5),
        (json!({"branch": "team/b"}), 3, 1),
        (json!({"branch": "team/b", "version": 2}), 2, 0),
        (json!({"branch": "team/b", "tag": "side"}), 3, 1),
        (json!({"tag": "side"}), 3, 1),
    ];
    for (mut question, version, deleted) in found {
        question["location"] = json!(bench.uri("t"));
        let (status, answer) = bench.ask(DESCRIBE_PATH, &question).await;
        assert_eq!(status, 200, "{question}: {answer}");
        let expected = json!({
            "version": version,
            "schema": {
                "fields": [
                    {"name": "id", "nullable": false, "type": {"type": "int64"}},
                    {"name": "text", "nullable": true, "type": {"type": "utf8"}},
                ],
                "metadata": {"made": "here"},
            },
            "metadata": {"made": "here"},
            "num_deleted_rows": deleted,
            "num_fragments": 1,
        });
        assert_eq!(answer, expected, "{question}");
    }
    let state = (409, "InvalidTableState");
    let refused = [
        ("t", json!({"version": 4}), (404, "TableVersionNotFound")),
        ("t", json!({"version": 0}), (404, "TableVersionNotFound")),
        ("t", json!({"tag": "second"}), (404, "TableTagNotFound")),
        ("t", json!({"tag": "../x"}), (404, "TableTagNotFound")),
        ("t", json!({"branch": "team"}), (404, "TableBranchNotFound")),
        ("t", json!({"branch": "../t"}), (404, "TableBranchNotFound")),
        (
            "t",
            json!({"branch": "team/b", "tag": "first"}),
            (404, "TableTagNotFound"),
        ),
        (
            "t",
            json!({"branch": "team/b", "version": 9}),
            (404, "TableVersionNotFound"),
        ),
        (
            "t",
            json!({"version": 1, "tag": "first"}),
            (400, "InvalidInput"),
        ),
        ("nothing", json!({}), state),
        ("nothing", json!({"version": 1}), state),
        ("nothing", json!({"tag": "first"}), state),
        (
            "nothing",
            json!({"branch": "b"}),
            (404, "TableBranchNotFound"),
        ),
        ("folder", json!({}), state),
        ("broken", json!({}), state),
        ("broken", json!({"version": 1}), state),
    ];
    for (table, mut question, expected) in refused {
        question["location"] = json!(bench.uri(table));
        let (status, answer) = bench.ask(DESCRIBE_PATH, &question).await;
        let error = answer["error"].as_str().unwrap();
        assert_eq!((status, error), expected, "{table} {question}: {answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(
            !detail.contains(".rs") && !detail.contains("/tmp"),
            "{detail}"
        );
        let declared = matches!(table, "nothing" | "folder") && status == 409;
        assert_eq!(
            detail.contains("nothing has been written"),
            declared,
            "{detail}"
        );
    }
    for question in [
        json!({}),
        json!({"location": ""}),
        json!({"location": "file:///"}),
    ] {
        let (status, answer) = bench.ask(DESCRIBE_PATH, &question).await;
        assert_eq!((status, &answer["error"]), (400, &json!("InvalidInput")));
    }
}

#[tokio::test]
async fn which_tables_exist() {
    let bench = Bench::new().await;
    bench.table("a", 0..1).await;
    bench.table("broken", 0..1).await;
    for file in files(&bench.path("broken").join("_versions")) {
        std::fs::write(bench.path("broken").join("_versions").join(file), "").unwrap();
    }
    std::fs::create_dir_all(bench.path("empty/_versions")).unwrap();
    std::fs::create_dir_all(bench.path("file")).unwrap();
    std::fs::write(bench.path("file/_versions"), "").unwrap();
    let tables = ["a", "nothing", "empty", "broken", "file", "a"];
    let mut locations: Vec<String> = tables.iter().map(|table| bench.uri(table)).collect();
    let mut expected = vec![true, false, false, true, false, true];
    // More than are looked at at once, and in order.
    locations.extend((0..50).map(|number| bench.uri(if number % 7 == 0 { "a" } else { "b" })));
    expected.extend((0..50).map(|number| number % 7 == 0));
    let (status, answer) = bench
        .ask(EXIST_PATH, &json!({"locations": locations}))
        .await;
    assert_eq!((status, answer), (200, json!({"exist": expected})));
    let (status, answer) = bench.ask(EXIST_PATH, &json!({"locations": []})).await;
    assert_eq!((status, answer), (200, json!({"exist": []})));
    let bad = json!({"locations": [bench.uri("a"), "memory://x"]});
    assert_eq!(bench.ask(EXIST_PATH, &bad).await.0, 400);
}

#[tokio::test]
async fn lists_of_versions() {
    let bench = Bench::new().await;
    table_with_everything(&bench).await;
    let cases = [
        ("t", json!({}), vec![1, 2, 3], false),
        ("t", json!({"descending": true}), vec![3, 2, 1], false),
        ("t", json!({"limit": 2}), vec![1, 2], true),
        ("t", json!({"limit": 3}), vec![1, 2, 3], false),
        ("t", json!({"limit": 1, "descending": true}), vec![3], true),
        ("t", json!({"limit": 0}), vec![], true),
        ("t", json!({"after": 1}), vec![2, 3], false),
        ("t", json!({"after": 1, "limit": 1}), vec![2], true),
        ("t", json!({"after": 3}), vec![], false),
        (
            "t",
            json!({"after": 3, "descending": true}),
            vec![2, 1],
            false,
        ),
        (
            "t",
            json!({"after": 3, "descending": true, "limit": 1}),
            vec![2],
            true,
        ),
        ("t", json!({"after": 1, "descending": true}), vec![], false),
        ("t", json!({"version": 2}), vec![2], false),
        ("t", json!({"branch": "team/b"}), vec![2, 3], false),
        (
            "t",
            json!({"branch": "team/b", "version": 3}),
            vec![3],
            false,
        ),
        ("nothing", json!({}), vec![], false),
        (
            "nothing",
            json!({"descending": true, "limit": 1}),
            vec![],
            false,
        ),
    ];
    for (table, mut question, versions, more) in cases {
        question["location"] = json!(bench.uri(table));
        let (status, answer) = bench.ask(VERSIONS_PATH, &question).await;
        assert_eq!(status, 200, "{question}: {answer}");
        let listed = answer["versions"].as_array().unwrap();
        let seen: Vec<u64> = listed
            .iter()
            .map(|v| v["version"].as_u64().unwrap())
            .collect();
        assert_eq!(
            (seen, &answer["more"]),
            (versions, &json!(more)),
            "{question}"
        );
        for version in listed {
            let path = format!("/{}", version["manifest_path"].as_str().unwrap());
            let size = std::fs::metadata(path).unwrap().len();
            assert_eq!(version["manifest_size"], size);
            assert!(version["e_tag"].is_string());
            let age = chrono::Utc::now().timestamp_millis()
                - version["timestamp_millis"].as_i64().unwrap();
            assert!((0..60_000).contains(&age), "{age}");
            assert_eq!(version["metadata"]["total_fragments"], "1");
        }
    }
    let refused = [
        ("t", json!({"version": 4}), "TableVersionNotFound"),
        ("t", json!({"version": u64::MAX}), "TableVersionNotFound"),
        ("t", json!({"branch": "c"}), "TableBranchNotFound"),
        ("nothing", json!({"version": 1}), "TableVersionNotFound"),
        ("nothing", json!({"branch": "c"}), "TableBranchNotFound"),
    ];
    for (table, mut question, error) in refused {
        question["location"] = json!(bench.uri(table));
        let (status, answer) = bench.ask(VERSIONS_PATH, &question).await;
        assert_eq!(
            (status, &answer["error"]),
            (404, &json!(error)),
            "{question}"
        );
    }
}
