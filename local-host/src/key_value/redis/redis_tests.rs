//! What is Redis' own: its layout, its failures.

use std::time::{Duration, Instant};

use redis::Commands;

use super::RedisStore;
use crate::key_value::test_redis::Server;
use crate::key_value::{RedisUrl, StoreError};

/// How long a test's store waits.
const PATIENCE: Duration = Duration::from_millis(500);

fn store(server: &Server) -> RedisStore {
    RedisStore::with_patience(server.url(""), PATIENCE)
}

/// A client that knows nothing of this store.
fn other(server: &Server) -> redis::Connection {
    server.url("").client().get_connection().unwrap()
}

fn key(name: &str) -> String {
    name.to_owned()
}

/// What Spin and everyone else at the server sees.
#[tokio::test]
async fn lays_keys_and_values_out_plainly() {
    let server = Server::start(&[]);
    let (store, mut other) = (store(&server), other(&server));
    let pairs = vec![(key("a/b"), b"\xff".to_vec())];
    store.set_many(pairs).await.unwrap();
    store.increment(key("n"), -12).await.unwrap();

    let mut keys: Vec<String> = other.keys("*").unwrap();
    keys.sort();
    assert_eq!(keys, ["a/b", "n"]);
    let value: Vec<u8> = other.get("a/b").unwrap();
    assert_eq!(value, b"\xff");
    let counter: String = other.get("n").unwrap();
    assert_eq!(counter, "-12");
    for name in ["a/b", "n"] {
        let seconds: i64 = other.ttl(name).unwrap();
        assert_eq!(seconds, -1, "{name} expires");
    }

    let _: () = other.set("c", "from Spin").unwrap();
    let value = store.get(key("c")).await.unwrap();
    assert_eq!(value.as_deref(), Some(&b"from Spin"[..]));
}

#[tokio::test]
async fn what_is_not_its_own_is_an_error() {
    let server = Server::start(&[]);
    let (store, mut other) = (store(&server), other(&server));
    let _: () = other.rpush("list", "secret").unwrap();
    let get = store.get(key("list")).await.unwrap_err();
    let increment = store.increment(key("list"), 1).await.unwrap_err();
    for error in [get, increment] {
        let expected = "the value of \"list\" is not one of a key-value store";
        assert_eq!(error.to_string(), expected);
    }
    assert!(store.exists(key("list")).await.unwrap());
    let found = store.get_many(vec![key("list")]).await.unwrap();
    assert!(found.is_empty());
    // It can be replaced and deleted.
    let pairs = vec![(key("list"), b"1".to_vec())];
    store.set_many(pairs).await.unwrap();
    assert_eq!(store.increment(key("list"), 1).await.unwrap(), 2);

    let _: () = other.set(b"\xff", "secret").unwrap();
    let error = store.keys().await.unwrap_err().to_string();
    assert!(error.starts_with("Redis: "), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_an_error_in_time() {
    let server = Server::start(&[]);
    let store = store(&server);
    store.increment(key("n"), 1).await.unwrap();
    server.pause();
    // The first have a connection, those after them wait for one.
    for _ in 0..2 {
        let started = Instant::now();
        let tasks: Vec<_> = (0..8)
            .map(|n| {
                let store = store.clone();
                tokio::spawn(async move {
                    match n % 2 {
                        0 => store.get(key("n")).await.map(drop),
                        _ => store.ready().await,
                    }
                })
            })
            .collect();
        for task in tasks {
            let error = task.await.unwrap().unwrap_err();
            assert!(matches!(error, StoreError::NoAnswer(_)), "{error}");
            assert_eq!(error.to_string(), "Redis: no answer within 0.5 s");
        }
        let time = started.elapsed();
        assert!(time >= PATIENCE, "{time:?}");
        assert!(time < PATIENCE * 4, "{time:?}");
    }
    server.resume();
    // Not even the first fails.
    assert_eq!(store.increment(key("n"), 1).await.unwrap(), 2);
}

#[tokio::test]
async fn a_server_that_is_back_is_found_again() {
    let mut server = Server::start(&[]);
    let store = store(&server);
    for _ in 0..3 {
        assert_eq!(store.increment(key("n"), 1).await.unwrap(), 1);
        server.kill();
        let started = Instant::now();
        for _ in 0..3 {
            let error = store.get(key("n")).await.unwrap_err();
            assert!(matches!(error, StoreError::Redis(_)), "{error}");
        }
        let error = store.ready().await.unwrap_err().to_string();
        assert!(error.contains("refused"), "{error}");
        assert!(started.elapsed() < PATIENCE);
        server.start_again();
    }
    // It went and came back while nobody looked: a guest that opens the store sees nothing of that.
    assert_eq!(store.increment(key("n"), 1).await.unwrap(), 1);
    server.kill();
    server.start_again();
    store.ready().await.unwrap();
    assert_eq!(store.increment(key("n"), 1).await.unwrap(), 1);
}

#[tokio::test]
async fn starts_without_a_server() {
    let mut server = Server::start(&[]);
    server.kill();
    let store = store(&server);
    store.ready().await.unwrap_err();
    server.start_again();
    store.ready().await.unwrap();
}

#[tokio::test]
async fn logs_in_and_never_tells_the_password() {
    let open = Server::start(&[]);
    let locked = Server::start(&["--requirepass", "s3cret"]);
    let no_login = Server::start(&["--rename-command", "AUTH", ""]);
    for (server, login, expected) in [
        (&locked, ":s3cret@", None),
        (&locked, "default:s3cret@", None),
        (&locked, "", Some("NOAUTH")),
        (&locked, ":s3cret-2@", Some("authentication failed")),
        (&locked, "nobody:s3cret-2@", Some("authentication failed")),
        (&open, ":s3cret@", Some("authentication failed")),
        (&no_login, ":s3cret@", Some("authentication failed")),
    ] {
        let url = server.url(login);
        assert!(!format!("{url} {url:?}").contains("s3cret"));
        let store = RedisStore::with_patience(url, PATIENCE);
        let got = store.get(key("k")).await;
        match expected {
            None => assert_eq!(got.unwrap(), None),
            Some(expected) => {
                let error = format!("{0} {0:?}", got.unwrap_err());
                assert!(error.contains(expected), "{login}: {error}");
                assert!(!error.contains("s3cret"), "{login}: {error}");
            }
        }
    }
}

/// How many connections the server has had.
fn connections(other: &mut redis::Connection) -> String {
    let info: String = redis::cmd("INFO").arg("stats").query(other).unwrap();
    let count = info
        .lines()
        .find(|line| line.starts_with("total_connections_received:"));
    count.unwrap().to_owned()
}

#[tokio::test]
async fn all_share_one_connection_that_a_refusal_does_not_end() {
    let server = Server::start(&["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"]);
    let (store, mut other) = (store(&server), other(&server));
    let connected = connections(&mut other);
    let reads = (0..32).map(|n| store.get(format!("k{n}")));
    for value in futures::future::join_all(reads).await {
        assert_eq!(value.unwrap(), None);
    }
    let once = connections(&mut other);
    assert_ne!(once, connected);

    let _ = store.set_many(vec![(key("k"), vec![0; 4_000_000])]).await;
    let pairs = vec![(key("j"), vec![0; 10])];
    let error = store.set_many(pairs).await.unwrap_err().to_string();
    assert!(error.contains("OOM"), "{error}");
    store.get(key("j")).await.unwrap();
    assert_eq!(connections(&mut other), once);
}

#[tokio::test]
async fn tls_is_not_plain_text() {
    let server = Server::start(&[]);
    let url = format!("rediss://{}", server.url(""));
    let store = RedisStore::with_patience(RedisUrl::parse(&url).unwrap(), PATIENCE);
    let started = Instant::now();
    store.get(key("k")).await.unwrap_err();
    assert!(started.elapsed() < PATIENCE * 4);
}
