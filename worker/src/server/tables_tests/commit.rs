use lance::dataset::{WriteMode, WriteParams};
use lance_maintenance_dispatch::tables::COMMIT_PATH;
use lance_table::io::commit::ManifestNamingScheme;
use object_store::ObjectStoreExt;
use serde_json::json;

use super::*;

/// Writes the version after the table's newest in a copy of it, and stages its manifest under this
/// name in the table itself; the path as a client would say it.
async fn stage(bench: &Bench, table: &str, name: &str) -> String {
    let copy = tempfile::tempdir().unwrap();
    for file in files(&bench.path(table)) {
        let target = copy.path().join(&file);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(bench.path(table).join(&file), target).unwrap();
    }
    let before = files(copy.path());
    let batch = rows(100..110);
    let params = WriteParams {
        mode: if before.is_empty() {
            WriteMode::Create
        } else {
            WriteMode::Append
        },
        ..Default::default()
    };
    let reader = arrow_array::RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let uri = copy.path().to_str().unwrap();
    Dataset::write(reader, uri, Some(params)).await.unwrap();
    for file in files(copy.path()).difference(&before) {
        let target = match file.strip_prefix("_versions/") {
            Some(version) if version.ends_with(".manifest") => format!("_versions/{name}"),
            Some(_) => continue,
            None => file.clone(),
        };
        let target = bench.path(table).join(target);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(copy.path().join(file), target).unwrap();
    }
    manifest_path(bench, table, name)
}

/// Paths in stores begin without a slash.
fn manifest_path(bench: &Bench, table: &str, name: &str) -> String {
    let path = bench.path(table).join("_versions").join(name);
    path.to_str().unwrap().trim_start_matches('/').to_owned()
}

fn final_name(version: u64) -> String {
    let path = ManifestNamingScheme::V2.manifest_path(&"".into(), version);
    path.filename().unwrap().to_owned()
}

#[tokio::test]
async fn a_staged_manifest_becomes_the_next_version() {
    let bench = Bench::new().await;
    // The first version of a table, then the next.
    for version in 1..=2 {
        let name = format!("{}-0b1c", final_name(version));
        let staged = stage(&bench, "t", &name).await;
        let size = std::fs::metadata(format!("/{staged}")).unwrap().len();
        let store = lance_io::object_store::ObjectStore::local();
        let path = object_store::path::Path::parse(&staged).unwrap();
        let e_tag = store.inner.head(&path);
        // Lance's own writer says it without quotes.
        let e_tag = e_tag.await.unwrap().e_tag.unwrap().replace('"', "");
        let request = json!({
            "location": bench.uri("t"),
            "version": version,
            "manifest_path": staged,
            "manifest_size": size,
            "e_tag": e_tag,
            "naming_scheme": "V2",
        });
        let (status, answer) = bench.ask(COMMIT_PATH, &request).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["version"], version);
        assert_eq!(
            answer["manifest_path"],
            manifest_path(&bench, "t", &final_name(version))
        );
        assert_eq!(answer["manifest_size"], size);
        assert!(answer["e_tag"].is_string() && answer["timestamp_millis"].is_i64());
        let dataset = bench.open("t").await;
        assert_eq!(dataset.version_id(), version);
        assert_eq!(dataset.count_rows(None).await.unwrap() as u64, 10 * version);
        assert!(!files(&bench.path("t")).contains(&format!("_versions/{name}")));

        // Said again, it is another writer's.
        let (status, answer) = bench.ask(COMMIT_PATH, &request).await;
        assert_eq!(
            (status, &answer["error"]),
            (409, &json!("ConcurrentModification"))
        );
    }
}

#[tokio::test]
async fn what_does_not_become_a_version() {
    let bench = Bench::new().await;
    bench.table("t", 0..10).await;
    bench.table("other", 0..10).await;
    bench.write("t", "overwrite", &stream(&[rows(0..20)])).await;
    let staged = stage(&bench, "t", "staged").await;
    stage(&bench, "other", "staged").await;
    std::fs::write(bench.path("t/_versions/text"), "no manifest").unwrap();
    std::fs::create_dir_all(bench.path("t/_versions/deep")).unwrap();
    std::fs::copy(
        bench.path("t/_versions/staged"),
        bench.path("t/_versions/deep/staged"),
    )
    .unwrap();
    std::fs::copy(
        bench.path("t/_versions/staged"),
        bench.path("t/data/staged"),
    )
    .unwrap();
    let at = |table: &str, name: &str| json!(manifest_path(&bench, table, name));
    let folder = manifest_path(&bench, "t", "");
    let conflict = (409, "ConcurrentModification");
    let invalid = (400, "InvalidInput");
    let cases = [
        ("made", json!({"version": 2}), conflict),
        ("old", json!({"version": 1}), conflict),
        ("zero", json!({"version": 0}), conflict),
        ("too new", json!({"version": 4}), conflict),
        ("far too new", json!({"version": u64::MAX}), conflict),
        ("size", json!({"manifest_size": 5}), invalid),
        ("tag", json!({"e_tag": "x"}), invalid),
        ("naming", json!({"naming_scheme": "V1"}), invalid),
        ("no naming", json!({"naming_scheme": "V3"}), invalid),
        (
            "nothing",
            json!({"manifest_path": at("t", "missing")}),
            invalid,
        ),
        (
            "a version",
            json!({"manifest_path": at("t", &final_name(2))}),
            invalid,
        ),
        (
            "no manifest",
            json!({"manifest_path": at("t", "text")}),
            invalid,
        ),
        (
            "other table",
            json!({"manifest_path": at("other", "staged")}),
            invalid,
        ),
        (
            "no version's",
            json!({"manifest_path": at("t", "../data/staged")}),
            invalid,
        ),
        (
            "up",
            json!({"manifest_path": at("t", "../../other/_versions/staged")}),
            invalid,
        ),
        (
            "deep",
            json!({"manifest_path": at("t", "deep/staged")}),
            invalid,
        ),
        ("folder", json!({"manifest_path": folder}), invalid),
        (
            "relative",
            json!({"manifest_path": "_versions/staged"}),
            invalid,
        ),
        ("empty", json!({"manifest_path": ""}), invalid),
        ("elsewhere", json!({"manifest_path": "etc/passwd"}), invalid),
        ("branch", json!({"branch": "b"}), invalid),
        (
            "no branch",
            json!({"branch": "../b"}),
            (404, "TableBranchNotFound"),
        ),
        ("location", json!({"location": "memory://t"}), invalid),
        // The manifest of another version than is asked for.
        (
            "empty table",
            json!({"location": bench.uri("new"), "version": 2}),
            invalid,
        ),
    ];
    let before = (files(&bench.path("t")), files(&bench.path("other")));
    for (name, changes, expected) in cases {
        let mut request = json!({
            "location": bench.uri("t"),
            "version": 3,
            "manifest_path": staged,
        });
        let changes = changes.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(changes);
        let (status, answer) = bench.ask(COMMIT_PATH, &request).await;
        let error = answer["error"].as_str().unwrap();
        assert_eq!((status, error), expected, "{name}: {answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(
            !detail.contains(".rs") && !detail.contains("/tmp"),
            "{detail}"
        );
        let after = (files(&bench.path("t")), files(&bench.path("other")));
        assert_eq!(after, before, "{name}");
    }
    assert_eq!(bench.open("t").await.version_id(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_two_commits_wins() {
    let bench = Bench::new().await;
    bench.table("t", 0..10).await;
    for version in 2..8 {
        let first = stage(&bench, "t", "first").await;
        let second = stage(&bench, "t", "second").await;
        let request = |path: &str| json!({"location": bench.uri("t"), "version": version, "manifest_path": path});
        let (one, two) = (request(&first), request(&second));
        let (one, two) = tokio::join!(bench.ask(COMMIT_PATH, &one), bench.ask(COMMIT_PATH, &two));
        let mut statuses = [one.0, two.0];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
        let dataset = bench.open("t").await;
        assert_eq!(dataset.version_id(), version);
        dataset.validate().await.unwrap();
    }
}
