//! Bytes, what tags and branches hold, and files that are not there.

use std::collections::BTreeMap;

use lance::dataset::cleanup::CleanupPolicyBuilder;
use lance_maintenance_api::ErrorName;
use lance_maintenance_api::health::Missing;
use lance_maintenance_api::health::advice::Rule;

use super::{ask, check, rules, sound};
use crate::support::{self, Table, compact, scalar};

/// Three versions with a fragment each, compacted into one.
async fn compacted() -> Table {
    let table = Table::with_rows(0..100, 100).await;
    table.append(100..200).await;
    table.append(200..300).await;
    table.run(compact("{}")).await.unwrap();
    table
}

/// Bytes that Lance's cleanup frees of all but the newest version and those that are held.
async fn freed(table: &Table) -> u64 {
    let dataset = table.open().await;
    let policy = CleanupPolicyBuilder::default()
        .error_if_tagged_old_versions(false)
        .retain_n_versions(&dataset, 1)
        .await
        .unwrap();
    let cleanup = dataset.cleanup(policy.build());
    cleanup.execute().await.unwrap().bytes_removed
}

#[tokio::test]
async fn reclaimable_is_what_a_cleanup_frees() {
    let table = compacted().await;
    let before = sound(&table).await.bytes.unwrap();
    assert!(before.reclaimable > 0);
    assert_eq!(before.live + before.reclaimable, before.total);
    assert_eq!(freed(&table).await, before.reclaimable);
    let after = sound(&table).await.bytes.unwrap();
    assert_eq!(after.total, before.live);
    assert_eq!((after.live, after.reclaimable), (before.live, 0));
}

#[tokio::test]
async fn tags_hold_their_versions() {
    let table = compacted().await;
    let untagged = sound(&table).await.bytes.unwrap();
    let dataset = table.open().await;
    dataset.tags().create("keep", 2).await.unwrap();
    dataset
        .tags()
        .create("newest", dataset.version_id())
        .await
        .unwrap();
    let report = sound(&table).await;
    let tags = [
        ("keep".to_owned(), 2),
        ("newest".to_owned(), dataset.version_id()),
    ];
    assert_eq!(report.tags, Some(BTreeMap::from(tags)));
    let bytes = report.bytes.unwrap();
    assert!(bytes.reclaimable < untagged.reclaimable);
    assert_eq!(freed(&table).await, bytes.reclaimable);
    assert_eq!(sound(&table).await.bytes.unwrap().reclaimable, 0);
}

#[tokio::test]
async fn branches_hold_what_they_began_with() {
    let table = compacted().await;
    let alone = sound(&table).await.bytes.unwrap();
    let mut dataset = table.open().await;
    let mut branch = dataset.create_branch("team/dev", 2, None).await.unwrap();
    branch
        .create_branch("sub", ("team/dev", None), None)
        .await
        .unwrap();
    let report = sound(&table).await;
    let names = ["sub", "team/dev"].map(str::to_owned);
    assert_eq!(report.branches, Some(names.to_vec()));
    let bytes = report.bytes.unwrap();
    let found = support::files(&table.path());
    assert_eq!(bytes.total, found.values().sum::<u64>());
    assert!(bytes.reclaimable < alone.reclaimable);
    assert_eq!(freed(&table).await, bytes.reclaimable);
    assert_eq!(sound(&table).await.bytes.unwrap().reclaimable, 0);
    // Neither lost anything.
    for (name, rows) in [("team/dev", 200), ("sub", 200)] {
        let branch = table.open().await.checkout_branch(name).await.unwrap();
        assert_eq!(support::contents(&branch).await.len(), rows, "{name}");
    }
}

#[tokio::test]
async fn of_many_tags_some_are_looked_at() {
    let table = Table::with_rows(0..10, 100).await;
    let mut dataset = table.open().await;
    for n in 1..=34 {
        let tag = format!("tag{n}");
        dataset.tags().create(&tag, n).await.unwrap();
        let value = tag.as_str();
        dataset.update_config([("tag", value)]).await.unwrap();
    }
    let report = check(&table, false).await;
    assert_eq!(report.tags.unwrap().len(), 34);
    assert!(
        report.errors["reclaimable"].contains(" 34 "),
        "{:?}",
        report.errors
    );
    assert_eq!(report.errors.len(), 1);
    // Of the two that were not looked at, the notes of what was committed.
    let reclaimable = report.bytes.unwrap().reclaimable;
    assert!((1..2000).contains(&reclaimable), "{reclaimable}");
}

#[tokio::test]
async fn files_of_others_are_not_counted() {
    let table = compacted().await;
    let before = sound(&table).await;
    let path = table.path();
    for name in [
        "media/a.lance",
        "notes.txt",
        "data/readme.md",
        "_maintenance/t/k/1-1/x",
    ] {
        let file = path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, [7; 1000]).unwrap();
    }
    let report = sound(&table).await;
    assert_eq!(report.bytes, before.bytes);
    // What nobody refers to is counted, by its name.
    std::fs::write(path.join("data/1.lance"), [7; 1000]).unwrap();
    let bytes = sound(&table).await.bytes.unwrap();
    assert_eq!(bytes.reclaimable, before.bytes.unwrap().reclaimable + 1000);
}

#[tokio::test]
async fn missing_files_are_looked_for_on_request() {
    let table = Table::with_rows(0..300, 100).await;
    let body = r#"{"column":"id","index_type":"BTREE"}"#;
    table.run(scalar(body)).await.unwrap();
    table.delete("id < 10").await;
    let before = sound(&table).await;
    let found = support::files(&table.path());
    let first = |folder: &str| {
        let name = found.keys().find(|name| name.starts_with(folder));
        name.unwrap().clone()
    };
    let (data, deletion, index) = (first("data/"), first("_deletions/"), first("_indices/"));
    for file in [&data, &deletion] {
        std::fs::remove_file(table.path().join(file)).unwrap();
    }
    let index = index.rsplit_once('/').unwrap().0;
    std::fs::remove_dir_all(table.path().join(index)).unwrap();

    // Nothing else suffers, nor does a file that is only damaged.
    let other = found.keys().filter(|name| name.starts_with("data/")).nth(1);
    std::fs::write(table.path().join(other.unwrap()), "").unwrap();
    let report = check(&table, false).await;
    assert_eq!(report.missing, None);
    assert_eq!(report.errors, BTreeMap::new());
    let mut names = [data, deletion];
    names.sort();
    let report = check(&table, true).await;
    assert_eq!(report.errors, BTreeMap::new());
    assert_eq!(
        report.missing,
        Some(Missing {
            num_files: 3,
            data_files: names.to_vec(),
            index_folders: vec![index.to_owned()],
        })
    );
    assert_eq!(report.indices, before.indices);
    assert_eq!(report.num_rows, Some(290));
    assert_eq!(rules(&report)[0], Rule::MissingFiles);
}

#[tokio::test]
async fn files_of_a_clone_lie_elsewhere() {
    let table = Table::with_rows(0..300, 100).await;
    let body = r#"{"column":"id","index_type":"BTREE"}"#;
    table.run(scalar(body)).await.unwrap();
    table.delete("id < 10").await;
    let mut dataset = table.open().await;
    let version = dataset.version_id();
    let clone = Table::nothing();
    dataset
        .shallow_clone(&clone.uri(), version, None)
        .await
        .unwrap();
    let report = sound(&clone).await;
    assert_eq!(
        (report.num_rows, report.num_fragments),
        (Some(290), Some(3))
    );

    let found = support::files(&table.path());
    for (folder, name) in [("data/", true), ("_deletions/", true), ("_indices/", false)] {
        let gone: Vec<_> = found
            .keys()
            .filter(|name| name.starts_with(folder))
            .collect();
        let gone = if name { &gone[..1] } else { &gone[..] };
        for name in gone {
            std::fs::remove_file(table.path().join(name)).unwrap();
        }
    }
    let missing = check(&clone, true).await.missing.unwrap();
    assert_eq!(missing.num_files, 3);
    assert_eq!(
        (missing.data_files.len(), missing.index_folders.len()),
        (2, 1)
    );
    assert!(
        missing.data_files[0].contains("/_deletions/"),
        "{missing:?}"
    );
}

#[tokio::test]
async fn where_there_is_no_table() {
    let nothing = Table::nothing();
    let refused = |error: lance_maintenance_api::ApiError| (error.name, error.detail);
    let ask = async |table: &Table| refused(ask(&table.uri(), true).await.unwrap_err());
    let (name, detail) = ask(&nothing).await;
    assert_eq!(name, ErrorName::InvalidTableState);
    assert!(detail.contains("nothing has been written"), "{detail}");
    std::fs::create_dir(nothing.path()).unwrap();
    std::fs::write(nothing.path().join(".lance-reserved"), "").unwrap();
    assert_eq!(ask(&nothing).await.0, ErrorName::InvalidTableState);
    std::fs::write(nothing.path().join("part-0.parquet"), "PAR1").unwrap();
    let (name, detail) = ask(&nothing).await;
    assert_eq!(name, ErrorName::InvalidInput);
    assert!(detail.contains("part-0.parquet"), "{detail}");

    let table = Table::with_rows(0..10, 100).await;
    table.append(10..20).await;
    let manifest = table.open().await.manifest_location().path.clone();
    let manifest = format!("/{manifest}");
    for contents in [vec![0; 1000], b"nonsense".to_vec(), Vec::new()] {
        std::fs::write(&manifest, contents).unwrap();
        assert_eq!(ask(&table).await.0, ErrorName::InvalidTableState);
    }
}

#[tokio::test]
async fn one_section_that_fails_leaves_the_others() {
    let table = compacted().await;
    let tags = table.path().join("_refs/tags");
    std::fs::create_dir_all(&tags).unwrap();
    std::fs::write(tags.join("broken.json"), "{").unwrap();
    let oldest = table.path().join("_versions");
    let oldest = oldest.join(format!("{}.manifest", u64::MAX - 1));
    std::fs::write(oldest, "nonsense").unwrap();
    let report = check(&table, true).await;
    let sections: Vec<&str> = report.errors.keys().map(String::as_str).collect();
    assert_eq!(sections, ["bytes", "oldest_version", "tags"]);
    assert_eq!((&report.tags, &report.bytes), (&None, &None));
    assert_eq!(report.num_versions, Some(table.open().await.version_id()));
    assert_eq!(report.missing, Some(Missing::default()));
    for text in report.errors.values() {
        assert!(!text.contains(".rs") && !text.contains("/tmp"), "{text}");
    }
}
