use std::path::PathBuf;
use std::sync::Arc;

use super::Database;

/// A database file of its own in a folder that is removed again.
struct Fixture {
    folder: PathBuf,
    database: Database,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("local-host-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let database = Database::open(&folder.join("key-value.db")).unwrap();
        Self { folder, database }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn store(name: &str) -> Arc<str> {
    name.into()
}

fn key(name: &str) -> String {
    name.to_owned()
}

#[tokio::test]
async fn sets_gets_and_deletes() {
    let fixture = Fixture::new("set");
    let db = &fixture.database;
    assert_eq!(db.get(store("a"), key("k")).await.unwrap(), None);
    assert!(!db.exists(store("a"), key("k")).await.unwrap());

    db.set_many(
        store("a"),
        vec![(key("k"), b"1".to_vec()), (key("j"), vec![])],
    )
    .await
    .unwrap();
    db.set_many(store("a"), vec![(key("k"), b"2".to_vec())])
        .await
        .unwrap();
    assert_eq!(
        db.get(store("a"), key("k")).await.unwrap(),
        Some(b"2".to_vec())
    );
    assert_eq!(db.get(store("a"), key("j")).await.unwrap(), Some(vec![]));
    assert!(db.exists(store("a"), key("j")).await.unwrap());
    assert_eq!(db.keys(store("a")).await.unwrap(), ["j", "k"]);

    // Stores don't see each other.
    assert_eq!(db.get(store("b"), key("k")).await.unwrap(), None);
    assert!(db.keys(store("b")).await.unwrap().is_empty());

    db.delete_many(store("a"), vec![key("k"), key("absent")])
        .await
        .unwrap();
    db.delete_many(store("a"), vec![]).await.unwrap();
    assert_eq!(db.keys(store("a")).await.unwrap(), ["j"]);
}

#[tokio::test]
async fn a_batch_read_leaves_absent_keys_out() {
    let fixture = Fixture::new("many");
    let db = &fixture.database;
    let pairs = ["b", "a"].map(|name| (key(name), name.as_bytes().to_vec()));
    db.set_many(store("s"), pairs.to_vec()).await.unwrap();

    let keys = ["b", "x", "a", "b"].map(key).to_vec();
    let found = db.get_many(store("s"), keys).await.unwrap();
    assert_eq!(
        found,
        [
            (key("a"), Some(b"a".to_vec())),
            (key("b"), Some(b"b".to_vec()))
        ]
    );
    assert!(db.get_many(store("s"), vec![]).await.unwrap().is_empty());
}

#[tokio::test]
async fn increments() {
    let fixture = Fixture::new("increment");
    let db = &fixture.database;
    let add = |delta| db.increment(store("s"), key("n"), delta);

    // Adding nothing to nothing makes a counter.
    assert_eq!(add(0).await.unwrap(), 0);
    assert!(db.exists(store("s"), key("n")).await.unwrap());
    assert_eq!(add(3).await.unwrap(), 3);
    assert_eq!(add(-5).await.unwrap(), -2);
    assert_eq!(add(0).await.unwrap(), -2);
    assert_eq!(
        db.get(store("s"), key("n")).await.unwrap(),
        Some((-2_i64).to_le_bytes().to_vec())
    );

    assert!(
        add(i64::MIN)
            .await
            .unwrap_err()
            .to_string()
            .contains("overflow")
    );
    db.set_many(store("s"), vec![(key("n"), b"text".to_vec())])
        .await
        .unwrap();
    for delta in [0, 1] {
        let error = add(delta).await.unwrap_err().to_string();
        assert!(error.contains("not a counter"), "{error}");
    }
    assert_eq!(
        db.get(store("s"), key("n")).await.unwrap(),
        Some(b"text".to_vec())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_increment_gets_a_number_of_its_own() {
    let fixture = Fixture::new("race");
    let tasks: Vec<_> = (0..200)
        .map(|_| {
            let db = fixture.database.clone();
            tokio::spawn(async move { db.increment(store("s"), key("n"), 1).await.unwrap() })
        })
        .collect();
    let mut numbers = Vec::new();
    for task in tasks {
        numbers.push(task.await.unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=200).collect::<Vec<_>>());
}

/// One change that fails does not take those with it that share its commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_change_fails_alone() {
    let fixture = Fixture::new("alone");
    let db = &fixture.database;
    db.set_many(store("s"), vec![(key("bad"), b"text".to_vec())])
        .await
        .unwrap();
    let outcomes = futures::future::join_all((0..50).map(|n| {
        let name = if n % 2 == 0 { "bad" } else { "good" };
        db.increment(store("s"), key(name), 1)
    }))
    .await;
    assert_eq!(
        outcomes.iter().filter(|outcome| outcome.is_err()).count(),
        25
    );
    assert_eq!(db.increment(store("s"), key("good"), 0).await.unwrap(), 25);
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let fixture = Fixture::new("reopen");
    let db = &fixture.database;
    db.set_many(store("s"), vec![(key("k"), b"v".to_vec())])
        .await
        .unwrap();
    // Nothing is closed first: this is what a killed process leaves.
    let again = Database::open(&fixture.folder.join("key-value.db")).unwrap();
    assert_eq!(
        again.get(store("s"), key("k")).await.unwrap(),
        Some(b"v".to_vec())
    );
}
