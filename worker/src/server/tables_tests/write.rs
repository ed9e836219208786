use std::time::Duration;

use arrow_array::RunArray;
use arrow_array::types::Int32Type;
use futures::stream as futures_stream;
use lance_maintenance_api::ErrorName;
use lance_maintenance_dispatch::signature;
use lance_maintenance_dispatch::tables::{EXIST_PATH, WRITE_LIMIT};
use serde_json::json;

use super::*;
use crate::testing::read;
use crate::time::unix_seconds;

#[tokio::test]
async fn makes_tables_and_versions() {
    let bench = Bench::new().await;
    let one = stream(&[rows(0..10)]);
    let two = stream(&[rows(0..10), rows(10..15)]);
    let zstd = stream_of(&schema(), &[rows(0..500)], Some(CompressionType::ZSTD));
    let lz4 = stream_of(&schema(), &[rows(0..500)], Some(CompressionType::LZ4_FRAME));
    let empty = stream_of(&schema(), &[], None);
    let cases = [
        ("new", "create", &one, 1, 10),
        ("new", "overwrite", &two, 2, 15),
        ("nothing there", "overwrite", &two, 1, 15),
        ("zstd", "create", &zstd, 1, 500),
        ("lz4", "create", &lz4, 1, 500),
        ("empty", "create", &empty, 1, 0),
        ("empty", "overwrite", &one, 2, 10),
        ("a%20b$c", "create", &one, 1, 10),
    ];
    for (table, mode, stream, version, rows) in cases {
        let (status, answer) = bench.write(table, mode, stream).await;
        assert_eq!(
            (status, &answer),
            (200, &json!({"version": version})),
            "{table}"
        );
        let dataset = bench.open(table).await;
        assert_eq!(dataset.count_rows(None).await.unwrap(), rows, "{table}");
        assert_eq!(dataset.metadata_of_schema(), "here");
        dataset.validate().await.unwrap();
    }
}

trait MetadataOfSchema {
    fn metadata_of_schema(&self) -> &str;
}

impl MetadataOfSchema for Dataset {
    fn metadata_of_schema(&self) -> &str {
        &self.schema().metadata["made"]
    }
}

fn with_fields(fields: Vec<Field>) -> Vec<u8> {
    stream_of(&Schema::new(fields), &[], None)
}

#[tokio::test]
async fn what_is_refused_leaves_nothing() {
    let bench = Bench::new().await;
    bench.table("there", 0..3).await;
    let good = stream(&[rows(0..10)]);
    let long = stream(&[rows(0..3000), rows(3000..6000)]);
    let cut = long[..long.len() - 1000].to_vec();
    let mut swapped = long.clone();
    for byte in &mut swapped[40..400] {
        *byte = 0xff;
    }
    let run_ends: RunArray<Int32Type> = vec!["a", "a", "b"].into_iter().collect();
    let run_ends = RecordBatch::try_from_iter([("r", Arc::new(run_ends) as _)]).unwrap();
    let id = |name: &str| Field::new(name, DataType::Int64, true);
    let invalid = ("InvalidInput", 13, 400);
    let schema = ("TableSchemaValidationError", 20, 400);
    let exists = ("TableAlreadyExists", 5, 409);
    let at = |table: &str| write_path(&bench.uri(table), "create");
    let cases = [
        ("there already", at("there"), good.clone(), exists),
        ("no stream", at("a"), vec![], invalid),
        (
            "text",
            at("a"),
            b"hello, this is no stream".to_vec(),
            invalid,
        ),
        ("a file's magic", at("a"), b"ARROW1\0\0".to_vec(), invalid),
        ("cut", at("a"), cut.clone(), invalid),
        ("changed", at("a"), swapped, invalid),
        (
            "cut over a table",
            write_path(&bench.uri("there"), "overwrite"),
            cut,
            invalid,
        ),
        (
            "Lance's own column",
            at("a"),
            with_fields(vec![id("_rowid")]),
            schema,
        ),
        (
            "two of a name",
            at("a"),
            with_fields(vec![id("x"), id("x")]),
            schema,
        ),
        ("a dot", at("a"), with_fields(vec![id("x.y")]), schema),
        ("runs", at("a"), stream(&[run_ends]), schema),
        (
            "mode",
            write_path(&bench.uri("a"), "append"),
            good.clone(),
            invalid,
        ),
        ("no query", WRITE_PATH.to_owned(), good.clone(), invalid),
        (
            "no location",
            write_path("", "create"),
            good.clone(),
            invalid,
        ),
        (
            "memory",
            write_path("memory://a", "create"),
            good.clone(),
            invalid,
        ),
        (
            "all of a disk",
            write_path("file:///", "create"),
            good,
            invalid,
        ),
    ];
    let before = files(&bench.path("there"));
    for (name, path, body, (error, code, status)) in cases {
        let (seen, _, answer) = bench.served.post(&path, &body, SECRET, 0).await;
        assert_eq!(
            (seen, &answer["error"]),
            (status, &json!(error)),
            "{name}: {answer}"
        );
        assert_eq!(answer["code"], code, "{name}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(
            !detail.contains(".rs") && !detail.contains("/tmp"),
            "{detail}"
        );
        assert_eq!(files(&bench.path("a")), BTreeSet::new(), "{name}");
        assert_eq!(files(&bench.path("there")), before, "{name}");
    }
    let dataset = bench.open("there").await;
    assert_eq!(
        (
            dataset.version_id(),
            dataset.count_rows(None).await.unwrap()
        ),
        (1, 3)
    );
}

#[tokio::test]
async fn what_a_version_may_refer_to_stays() {
    let bench = Bench::new().await;
    // A file where the folder of versions has to be: Lance can't tell what became of the commit.
    std::fs::create_dir(bench.path("a")).unwrap();
    std::fs::write(bench.path("a/_versions"), "").unwrap();
    let body = stream(&[rows(0..10)]);
    let (status, answer) = bench.write("a", "create", &body).await;
    let error = answer["error"].as_str().unwrap();
    assert_eq!((status, error), (503, "ServiceUnavailable"), "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    assert!(detail.contains("did not say whether"), "{detail}");
    assert!(
        !detail.contains(".rs") && !detail.contains("/tmp"),
        "{detail}"
    );
    assert_eq!(files(&bench.path("a/data")).len(), 1);
    // The store is as it should be again, and so is the table.
    std::fs::remove_file(bench.path("a/_versions")).unwrap();
    assert_eq!(bench.write("a", "create", &body).await.0, 200);
}

#[tokio::test]
async fn the_query_is_signed() {
    let bench = Bench::new().await;
    let body = stream(&[rows(0..1)]);
    let time = unix_seconds();
    let path = write_path(&bench.uri("a"), "create");
    let other = write_path(&bench.uri("b"), "create");
    for signed in [WRITE_PATH, other.as_str(), ""] {
        let signature = signature::sign(SECRET, "POST", signed, time, &body);
        let request = bench
            .served
            .client
            .post(format!("{}{path}", bench.served.url))
            .header(signature::TIMESTAMP_HEADER, time)
            .header(signature::SIGNATURE_HEADER, signature)
            .body(body.clone());
        let (status, _, answer) = read(request).await;
        assert_eq!(
            (status, &answer["error"]),
            (401, &json!("AccessDenied")),
            "{signed}"
        );
    }
    assert_eq!(files(&bench.path("a")), BTreeSet::new());
}

#[tokio::test]
async fn how_much_is_read() {
    let bench = Bench::new().await;
    // More than other messages may be.
    let ids = Int64Array::from_iter_values(0..300_000);
    let large = RecordBatch::try_from_iter([("id", Arc::new(ids) as _)]).unwrap();
    let (status, answer) = bench.write("large", "create", &stream(&[large])).await;
    assert_eq!(status, 200, "{answer}");
    let (status, _, answer) = bench
        .served
        .post(EXIST_PATH, &vec![b' '; (1 << 20) + 1], SECRET, 0)
        .await;
    assert_eq!((status, &answer["error"]), (413, &json!("RequestTooLarge")));

    let chunk = axum::body::Bytes::from(vec![0; 1 << 20]);
    let chunks = (0..=WRITE_LIMIT >> 20).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
    let request = bench
        .served
        .client
        .post(format!(
            "{}{}",
            bench.served.url,
            write_path(&bench.uri("a"), "create")
        ))
        .body(reqwest::Body::wrap_stream(futures_stream::iter(chunks)));
    let (status, _, answer) = read(request).await;
    assert_eq!((status, &answer["error"]), (413, &json!("RequestTooLarge")));
}

#[tokio::test]
async fn no_more_at_once_than_may() {
    let bench = Bench::new().await;
    let body = stream(&[rows(0..10)]);
    let path = write_path(&bench.uri("a"), "create");
    let busy = bench.served.desk.writes.clone().acquire_many_owned(4).await;
    let (status, headers, answer) = bench.served.post(&path, &body, SECRET, 0).await;
    assert_eq!(
        (status, &answer["error"]),
        (503, &json!("ServiceUnavailable"))
    );
    assert_eq!(headers["retry-after"], "1");
    // Whoever is in the middle of sending hears of it, too.
    let large = vec![0; 24 << 20];
    let (status, ..) = bench.served.post(&path, &large, SECRET, 0).await;
    assert_eq!(status, 503);
    drop(busy);
    // Every write, however it ends, gives its place back.
    for _ in 0..6 {
        bench.served.post(&path, b"", SECRET, 0).await;
    }
    assert_eq!(bench.write("a", "create", &body).await.0, 200);
    let all = bench.served.desk.writes.acquire_many(4);
    let all = tokio::time::timeout(Duration::from_secs(5), all).await;
    drop(all.unwrap().unwrap());
    bench.served.intake.close();
    let (status, answer) = bench.write("b", "create", &body).await;
    assert_eq!(
        (status, &answer["error"]),
        (503, &json!("ServiceUnavailable"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_two_creates_wins() {
    let bench = Bench::new().await;
    for round in 0..12 {
        let table = format!("t{round}");
        let (few, many) = (stream(&[rows(0..10)]), stream(&[rows(0..2000)]));
        let (first, second) = tokio::join!(
            bench.write(&table, "create", &few),
            bench.write(&table, "create", &many)
        );
        let rows = match (first.0, second.0) {
            (200, 409) => 10,
            (409, 200) => 2000,
            _ => panic!("{first:?} {second:?}"),
        };
        let loser = if first.0 == 409 { first.1 } else { second.1 };
        assert_eq!(loser["error"], "TableAlreadyExists");
        let dataset = bench.open(&table).await;
        assert_eq!(dataset.version_id(), 1);
        assert_eq!(dataset.count_rows(None).await.unwrap(), rows);
        let data = files(&bench.path(&table).join("data"));
        assert_eq!(data.len(), 1, "the loser's data is gone: {data:?}");
    }
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let served = Served::with_room(1).await;
    let answer = served.desk.run::<()>(async { panic!("secret text") }).await;
    let error = answer.unwrap_err();
    assert_eq!(error.name, ErrorName::InternalError);
    assert!(!error.detail.contains("secret"));
}
