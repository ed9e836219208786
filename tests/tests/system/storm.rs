//! Many clients that create, rename and drop the same few names at once: each name stands for at
//! most one table, no table is lost and none appears from nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lance_maintenance_tests::client::{Answer, Call, Client};
use serde_json::{Value, json};

use crate::support::client;

const CLIENTS: u64 = 64;
const TIME: Duration = Duration::from_secs(30);
const NAMESPACES: [&str; 2] = ["storm_a", "storm_b"];
const NAMES: [&str; 5] = ["t0", "t1", "t2", "t3", "t4"];

/// What one client did, told by the locations of tables, which are never used twice.
#[derive(Default)]
struct Did {
    created: Vec<String>,
    dropped: Vec<String>,
    renamed: usize,
    refused: BTreeMap<String, usize>,
}

/// A few numbers after one another, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn table(&mut self) -> (&'static str, &'static str) {
        (
            NAMESPACES[self.roll(NAMESPACES.len())],
            NAMES[self.roll(NAMES.len())],
        )
    }
}

async fn call(client: &Client, what: String, body: Value) -> Answer {
    let answer = client.call(Call::post(&what, body.to_string())).await;
    let answer = answer.unwrap();
    let expected = [200, 404, 409].contains(&answer.status);
    assert!(expected, "{what}: {} {answer:?}", answer.status);
    answer
}

async fn play(seed: u64, end: Instant) -> Did {
    let client = client();
    let mut dice = Dice(seed);
    let mut did = Did::default();
    while Instant::now() < end {
        let (namespace, name) = dice.table();
        let of = |what: &str| format!("/lance/v1/table/{namespace}${name}/{what}");
        let answer = match dice.roll(10) {
            0..=3 => {
                let answer = call(&client, of("declare"), json!({})).await;
                if answer.status == 200 {
                    did.created.push(location(&answer));
                }
                answer
            }
            4..=6 => {
                let (namespace, name) = dice.table();
                let to = json!({"new_table_name": name, "new_namespace_id": [namespace]});
                let answer = call(&client, of("rename"), to).await;
                did.renamed += usize::from(answer.status == 200);
                answer
            }
            7..=8 => {
                let answer = call(&client, of("drop"), json!({})).await;
                if answer.status == 200 {
                    did.dropped.push(location(&answer));
                }
                answer
            }
            _ => {
                check_listing(&client, namespace).await;
                continue;
            }
        };
        if answer.status != 200 {
            let name = answer.json().unwrap()["error"].as_str().unwrap().to_owned();
            *did.refused.entry(name).or_default() += 1;
        }
    }
    did
}

fn location(answer: &Answer) -> String {
    answer.json().unwrap()["location"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A listing in the middle of it all holds names that there can be, each once.
async fn check_listing(client: &Client, namespace: &str) {
    let listed = list(client, namespace).await;
    let names: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(names.len(), listed.len(), "{listed:?}");
    assert!(names.iter().all(|name| NAMES.contains(&name.as_str())));
}

async fn list(client: &Client, namespace: &str) -> Vec<String> {
    let target = format!("/lance/v1/namespace/{namespace}/table/list");
    let listed = client.get(&target).await.unwrap();
    serde_json::from_value(listed["tables"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_the_same_names() {
    for namespace in NAMESPACES {
        client().ensure_namespace(namespace).await.unwrap();
    }
    let end = Instant::now() + TIME;
    let players = (1..=CLIENTS).map(|client| tokio::spawn(play(client * 7_919, end)));
    let mut all = Did::default();
    for player in futures::future::join_all(players).await {
        let did = player.unwrap();
        all.created.extend(did.created);
        all.dropped.extend(did.dropped);
        all.renamed += did.renamed;
        for (name, count) in did.refused {
            *all.refused.entry(name).or_default() += count;
        }
    }
    println!(
        "created {}, dropped {}, renamed {}, refused {:?}",
        all.created.len(),
        all.dropped.len(),
        all.renamed,
        all.refused
    );
    assert!(all.created.len() > 100 && all.dropped.len() > 100 && all.renamed > 100);

    // The model: what was created and not dropped is there, once, and nothing else.
    let client = client();
    let (mut there, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let mut full_names = BTreeSet::new();
    for namespace in NAMESPACES {
        let listed: BTreeSet<String> = list(&client, namespace).await.into_iter().collect();
        for name in NAMES {
            let what = format!("/lance/v1/table/{namespace}${name}/describe");
            let answer = call(&client, what, json!({})).await;
            assert_eq!(
                answer.status == 200,
                listed.contains(name),
                "{namespace} {name}"
            );
            if answer.status == 200 {
                let described = answer.json().unwrap();
                let id = described["properties"]["table_id"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} has two names");
                assert!(there.insert(location(&answer)));
                assert_eq!(described["namespace"], json!([namespace]));
                assert_eq!(described["table"], name);
                full_names.insert(format!("{namespace}${name}"));
            }
        }
    }
    let mut expected: BTreeSet<String> = all.created.iter().cloned().collect();
    assert_eq!(expected.len(), all.created.len());
    for dropped in &all.dropped {
        assert!(expected.remove(dropped), "{dropped} was dropped twice");
    }
    assert_eq!(there, expected);
    let all_tables = client.get("/lance/v1/table?limit=1000").await.unwrap();
    let all_tables: BTreeSet<String> =
        serde_json::from_value(all_tables["tables"].clone()).unwrap();
    let of_the_storm = |name: &&String| name.starts_with("storm_");
    assert_eq!(
        all_tables.iter().filter(of_the_storm).collect::<Vec<_>>(),
        full_names.iter().collect::<Vec<_>>()
    );
}
