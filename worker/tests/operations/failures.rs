use std::os::unix::fs::PermissionsExt;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::params::TaskParams;

use crate::support::{Table, cleanup, compact, files, optimize, scalar, vector};

fn every_operation() -> Vec<TaskParams> {
    vec![
        compact("{}"),
        scalar(r#"{"column":"id"}"#),
        vector(r#"{"column":"vector","index_type":"IVF_FLAT"}"#),
        optimize("{}"),
        cleanup(r#"{"retain_versions":1}"#),
    ]
}

#[tokio::test]
async fn nothing_at_the_location() {
    let table = Table::nothing();
    for params in every_operation() {
        let error = table.run(params.clone()).await.unwrap_err();
        assert_eq!(error.error, ErrorName::TableNotFound, "{params:?}: {error}");
        assert!(!table.path().exists());
    }
}

#[tokio::test]
async fn something_else_at_the_location() {
    let table = Table::nothing();
    std::fs::create_dir_all(table.path()).unwrap();
    std::fs::write(table.path().join("part-0.parquet"), b"PAR1....PAR1").unwrap();
    let before = files(&table.path());
    for params in every_operation() {
        let error = table.run(params.clone()).await.unwrap_err();
        assert_eq!(error.error, ErrorName::InvalidInput, "{params:?}: {error}");
        assert!(error.detail.contains("'part-0.parquet'"), "{error}");
        assert_eq!(files(&table.path()), before);
    }
}

/// A data file of the table, in the middle of those that a compaction would merge.
async fn a_data_file(table: &Table) -> (std::path::PathBuf, String) {
    let dataset = table.open().await;
    let name = format!("data/{}", dataset.fragments()[4].files[0].path);
    (table.path().join(&name), name)
}

/// Whatever reads data names the file; what does not still runs.
async fn named_by_readers(table: &Table, name: &str) {
    for params in [
        compact("{}"),
        scalar(r#"{"column":"kind"}"#),
        vector(r#"{"column":"vector","index_type":"IVF_FLAT"}"#),
        optimize("{}"),
    ] {
        let error = table.run(params.clone()).await.unwrap_err();
        assert_eq!(
            error.error,
            ErrorName::InvalidTableState,
            "{params:?}: {error}"
        );
        assert!(
            error.detail.contains(&format!("'{name}'")),
            "{params:?}: {error}"
        );
        assert!(!error.detail.contains(".rs:"), "{error}");
        assert!(!error.detail.contains("tmp"), "{error}");
    }
    let dataset = table.open().await;
    assert_eq!(table.litter().await, Default::default());
    table
        .run(cleanup(r#"{"retain_versions":1}"#))
        .await
        .unwrap();
    assert_eq!(table.open().await.version_id(), dataset.version_id());
}

async fn indexed() -> Table {
    let table = Table::with_rows(0..100, 100).await;
    table.run(scalar(r#"{"column":"id"}"#)).await.unwrap();
    for n in 1..10 {
        table.append(n * 100..(n + 1) * 100).await;
    }
    table
}

#[tokio::test]
async fn a_data_file_is_missing() {
    let table = indexed().await;
    let (path, name) = a_data_file(&table).await;
    std::fs::remove_file(path).unwrap();
    named_by_readers(&table, &name).await;
}

#[tokio::test]
async fn a_data_file_is_cut_short() {
    let table = indexed().await;
    let (path, name) = a_data_file(&table).await;
    let content = std::fs::read(&path).unwrap();
    std::fs::write(path, &content[..content.len() / 2]).unwrap();
    named_by_readers(&table, &name).await;
}

#[tokio::test]
async fn a_data_file_is_garbage() {
    let table = indexed().await;
    let (path, name) = a_data_file(&table).await;
    let length = std::fs::read(&path).unwrap().len();
    std::fs::write(path, vec![b'x'; length]).unwrap();
    named_by_readers(&table, &name).await;
}

#[tokio::test]
async fn the_inside_of_a_data_file_is_garbage() {
    let table = indexed().await;
    let (path, name) = a_data_file(&table).await;
    let mut content = std::fs::read(&path).unwrap();
    // Everything but the footer, which says where things are.
    let end = content.len() - 40;
    content[..end].fill(0xff);
    std::fs::write(path, content).unwrap();
    named_by_readers(&table, &name).await;
}

#[tokio::test]
async fn what_other_groups_wrote_goes_when_one_fails() {
    let table = Table::with_rows(0..100_000, 5_000).await;
    let name = table.open().await.fragments()[15].files[0].path.clone();
    let path = table.path().join("data").join(&name);
    let mut content = std::fs::read(&path).unwrap();
    let end = content.len() - 40;
    content[end / 2..end].fill(0xff);
    std::fs::write(path, content).unwrap();
    for body in [r#"{"target_rows_per_fragment":10000}"#, "{}"] {
        let error = table.run(compact(body)).await.unwrap_err();
        assert!(error.detail.contains(&name), "{error}");
        assert_eq!(table.litter().await, Default::default(), "{body}");
    }
}

#[tokio::test]
async fn manifests_that_are_garbage() {
    let table = indexed().await;
    let versions = table.path().join("_versions");
    for entry in std::fs::read_dir(&versions).unwrap() {
        std::fs::write(entry.unwrap().path(), b"not a manifest at all").unwrap();
    }
    for params in every_operation() {
        let error = table.run(params).await.unwrap_err();
        assert!(!error.detail.contains(".rs:"), "{error}");
        assert!(!error.detail.contains("panicked"), "{error}");
        assert_eq!(error.error, ErrorName::InvalidTableState, "{error}");
    }
}

#[tokio::test]
async fn a_store_that_may_not_be_written() {
    // The administrator may write anywhere.
    if std::fs::write("/proc/self/mem_probe", b"").is_ok() {
        return;
    }
    let table = indexed().await;
    let data = table.path().join("data");
    let probe = data.join("probe");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o555)).unwrap();
    let may_write_anyway = std::fs::write(&probe, b"").is_ok();
    let outcome = match may_write_anyway {
        true => None,
        false => Some(table.run(compact("{}")).await),
    };
    std::fs::remove_file(&probe).ok();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    if let Some(outcome) = outcome {
        let error = outcome.unwrap_err();
        assert_eq!(error.error, ErrorName::PermissionDenied, "{error}");
    }
}
