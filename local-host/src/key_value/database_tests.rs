//! What is SQLite's own; the rest is tested for both backends.

use std::sync::Arc;

use tempfile::TempDir;

use super::Database;

fn database() -> (TempDir, Database) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&folder.path().join("key-value.db")).unwrap();
    (folder, database)
}

fn store(name: &str) -> Arc<str> {
    name.into()
}

fn key(name: &str) -> String {
    name.to_owned()
}

#[tokio::test]
async fn stores_do_not_see_each_other() {
    let (_folder, db) = database();
    let pairs = vec![(key("k"), b"1".to_vec()), (key("j"), vec![])];
    db.set_many(store("a"), pairs).await.unwrap();
    db.increment(store("b"), key("n"), 1).await.unwrap();

    assert_eq!(db.get(store("b"), key("k")).await.unwrap(), None);
    assert_eq!(db.keys(store("a")).await.unwrap(), ["j", "k"]);
    assert_eq!(db.keys(store("b")).await.unwrap(), ["n"]);
    db.delete_many(store("b"), vec![key("k")]).await.unwrap();
    assert!(db.exists(store("a"), key("k")).await.unwrap());
}

#[tokio::test]
async fn a_counter_is_eight_bytes() {
    let (_folder, db) = database();
    db.increment(store("s"), key("n"), -2).await.unwrap();
    let value = db.get(store("s"), key("n")).await.unwrap();
    assert_eq!(value, Some((-2_i64).to_le_bytes().to_vec()));
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let (folder, db) = database();
    let pairs = vec![(key("k"), b"v".to_vec())];
    db.set_many(store("s"), pairs).await.unwrap();
    // Nothing is closed first: this is what a killed process leaves.
    let again = Database::open(&folder.path().join("key-value.db")).unwrap();
    let value = again.get(store("s"), key("k")).await.unwrap();
    assert_eq!(value, Some(b"v".to_vec()));
}
