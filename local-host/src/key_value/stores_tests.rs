//! What guests may rely on, on each backend.

use std::sync::Arc;

use tempfile::TempDir;

use super::Stores;
use crate::key_value::test_redis::Server;
use crate::key_value::{Database, RedisStore};

/// Stores of its own for one test.
struct Fixture {
    backend: &'static str,
    stores: Stores,
    _database: Option<TempDir>,
    _server: Option<Server>,
}

impl Fixture {
    fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("key-value.db")).unwrap();
        Self {
            backend: "SQLite",
            stores: Stores::Sqlite(database),
            _database: Some(folder),
            _server: None,
        }
    }

    fn redis() -> Self {
        let server = Server::start(&[]);
        Self {
            backend: "Redis",
            stores: Stores::Redis(RedisStore::new(server.url(""))),
            _database: None,
            _server: Some(server),
        }
    }

    /// One of each.
    fn all() -> [Self; 2] {
        [Self::sqlite(), Self::redis()]
    }

    async fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.stores.get(store(), key(name)).await.unwrap()
    }

    async fn exists(&self, name: &str) -> bool {
        self.stores.exists(store(), key(name)).await.unwrap()
    }

    async fn set(&self, pairs: &[(&str, &[u8])]) {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (key(name), value.to_vec()))
            .collect();
        self.stores.set_many(store(), pairs).await.unwrap();
    }

    async fn delete(&self, names: &[&str]) {
        let names = names.iter().map(|name| key(name)).collect();
        self.stores.delete_many(store(), names).await.unwrap();
    }

    async fn keys(&self) -> Vec<String> {
        let mut keys = self.stores.keys(store()).await.unwrap();
        keys.sort();
        keys
    }

    async fn add(&self, name: &str, delta: i64) -> Result<i64, String> {
        let sum = self.stores.increment(store(), key(name), delta).await;
        sum.map_err(|error| error.to_string())
    }
}

fn store() -> Arc<str> {
    "default".into()
}

fn key(name: &str) -> String {
    name.to_owned()
}

#[tokio::test]
async fn sets_gets_and_deletes() {
    for fixture in Fixture::all() {
        fixture.stores.ready().await.unwrap();
        assert_eq!(fixture.get("k").await, None, "{}", fixture.backend);
        assert!(!fixture.exists("k").await);

        fixture.set(&[("k", b"1"), ("j", b"")]).await;
        fixture.set(&[("k", b"2")]).await;
        fixture.set(&[]).await;
        assert_eq!(fixture.get("k").await, Some(b"2".to_vec()));
        assert_eq!(fixture.get("j").await, Some(vec![]));
        assert!(fixture.exists("j").await);
        assert_eq!(fixture.keys().await, ["j", "k"], "{}", fixture.backend);

        fixture.delete(&["k", "absent"]).await;
        fixture.delete(&[]).await;
        assert_eq!(fixture.keys().await, ["j"], "{}", fixture.backend);
    }
}

#[tokio::test]
async fn keeps_every_key_and_value_as_it_is() {
    let all_bytes: Vec<u8> = (0..=255).collect();
    let large = vec![b'\r'; 3_000_000];
    let values: [&[u8]; 5] = [b"", b"\0", b"\r\n$3\r\n", &all_bytes, &large];
    let keys = ["", " ", "a*[b]?", "täsk/ü\0\n", "{slot}"];
    for fixture in Fixture::all() {
        for name in keys {
            for value in values {
                fixture.set(&[(name, value)]).await;
                assert_eq!(fixture.get(name).await.as_deref(), Some(value), "{name:?}");
            }
        }
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        assert_eq!(fixture.keys().await, expected, "{}", fixture.backend);
    }
}

#[tokio::test]
async fn the_last_of_two_values_for_one_key_counts() {
    for fixture in Fixture::all() {
        fixture.set(&[("k", b"1"), ("j", b"0"), ("k", b"2")]).await;
        let backend = fixture.backend;
        assert_eq!(fixture.get("k").await, Some(b"2".to_vec()), "{backend}");
    }
}

#[tokio::test]
async fn a_batch_read_leaves_absent_keys_out() {
    for fixture in Fixture::all() {
        fixture.set(&[("b", b"b"), ("a", b"\xff")]).await;
        let many = async |names: &[&str]| {
            let names = names.iter().map(|name| key(name)).collect();
            fixture.stores.get_many(store(), names).await.unwrap()
        };
        let expected = [
            (key("a"), Some(b"\xff".to_vec())),
            (key("b"), Some(b"b".to_vec())),
        ];
        assert_eq!(many(&["b", "x", "a", "b"]).await, expected);
        assert_eq!(many(&["x"]).await, [], "{}", fixture.backend);
        assert_eq!(many(&[]).await, [], "{}", fixture.backend);
    }
}

/// What `get` says of a counter differs: see [`Stores`].
#[tokio::test]
async fn increments() {
    for fixture in Fixture::all() {
        // Adding nothing to nothing makes a counter.
        for (delta, sum) in [(0, 0), (3, 3), (-5, -2), (0, -2), (i64::MAX, i64::MAX - 2)] {
            assert_eq!(fixture.add("n", delta).await, Ok(sum), "{delta}");
            assert!(fixture.exists("n").await);
        }
        assert_eq!(fixture.add("m", i64::MIN).await, Ok(i64::MIN));
        for (name, delta) in [("n", i64::MAX), ("n", 3), ("m", -1)] {
            let error = fixture.add(name, delta).await.unwrap_err();
            assert!(error.contains("overflow"), "{}: {error}", fixture.backend);
        }
        assert_eq!(fixture.add("n", 0).await, Ok(i64::MAX - 2));

        fixture.set(&[("n", b"text")]).await;
        for delta in [0, 1] {
            let error = fixture.add("n", delta).await.unwrap_err();
            let expected = "the value of \"n\" is not a counter";
            assert_eq!(error, expected, "{}", fixture.backend);
        }
        assert_eq!(fixture.get("n").await, Some(b"text".to_vec()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_increment_gets_a_number_of_its_own() {
    for fixture in Fixture::all() {
        let tasks: Vec<_> = (0..32)
            .map(|_| {
                let stores = fixture.stores.clone();
                tokio::spawn(async move {
                    let mut numbers = Vec::new();
                    for _ in 0..10 {
                        numbers.push(stores.increment(store(), key("n"), 1).await.unwrap());
                    }
                    numbers
                })
            })
            .collect();
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.extend(task.await.unwrap());
        }
        numbers.sort_unstable();
        let expected: Vec<i64> = (1..=320).collect();
        assert_eq!(numbers, expected, "{}", fixture.backend);
    }
}

/// One change that fails does not take those with it that are made at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_change_fails_alone() {
    for fixture in Fixture::all() {
        fixture.set(&[("bad", b"text")]).await;
        let names = ["bad", "good"];
        let outcomes =
            futures::future::join_all((0..50).map(|n| fixture.add(names[n % 2], 1))).await;
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        assert_eq!(failed, 25, "{}", fixture.backend);
        assert_eq!(fixture.add("good", 0).await, Ok(25), "{}", fixture.backend);
    }
}
