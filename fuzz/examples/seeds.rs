//! Writes `seeds`: inputs to start from, out of the cases of the crates' own tests.

use std::fs;
use std::path::{Path, PathBuf};

use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::task::{TaskId, TaskType};
use serde_json::{Value, json};

/// Enough of each kind; few enough to look through.
const MOST: usize = 60;

fn main() {
    write("canonicalise", canonicalise());
    write("identifier", identifier());
    write("policy", policy());
    write("bodies", bodies());
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn write(target: &str, mut seeds: Vec<Vec<u8>>) {
    let folder = here("seeds").join(target);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    seeds.sort();
    seeds.dedup();
    // If there are too many, some of each sort.
    let step = seeds.len().div_ceil(MOST).max(1);
    for (number, seed) in seeds.iter().step_by(step).enumerate() {
        fs::write(folder.join(format!("{number:02}")), seed).unwrap();
    }
}

/// What a derived `Arbitrary` takes for one of so many variants.
fn variant(number: u32, of: u32) -> [u8; 4] {
    (u32::MAX / of * number + number).to_le_bytes()
}

/// Files of a folder, sorted, with one of these extensions.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(here(folder))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|own| own == extension))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

fn canonicalise() -> Vec<Vec<u8>> {
    const CAPTURED: &str = "../crates/auth/tests/auth/captured";
    let of_sdks = files(CAPTURED, "json").into_iter().flat_map(|text| {
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        cases.into_iter().filter_map(|case| {
            let mut text = format!(
                "{} {} HTTP/1.1\n",
                case["method"].as_str()?,
                case["target"].as_str()?
            );
            for header in case["headers"].as_array()? {
                text += &format!("{}: {}\n", header[0].as_str()?, header[1].as_str()?);
            }
            Some(format!(
                "{text}\n{}",
                case["body"].as_str().unwrap_or_default()
            ))
        })
    });
    let messages = files(CAPTURED, "http").into_iter().chain(of_sdks);
    let seed = |(number, message): (usize, String)| {
        let number = u32::try_from(number).unwrap();
        let flag = |bit: u32| u8::from(number >> bit & 1 == 1);
        let mut seed = variant(number % 4, 4).to_vec();
        seed.extend([flag(2), flag(1), flag(0), flag(3)]);
        // Changes of all sorts, of all parts over time; and a time.
        for change in 0..4_u8 {
            let sort = (number as u8).wrapping_mul(4).wrapping_add(change);
            seed.extend([number as u8 + change, sort, b'A', sort, 0]);
        }
        seed.extend(1_785_200_523_i64.to_le_bytes());
        seed.extend(message.into_bytes());
        seed
    };
    let messages: Vec<String> = messages.collect();
    // Each in two forms at least.
    let twice = messages.iter().chain(messages.iter().skip(1)).cloned();
    twice.enumerate().map(seed).collect()
}

fn identifier() -> Vec<Vec<u8>> {
    let ids = [
        ("prod$documents", ""),
        ("prod%24documents", "$"),
        ("prod__documents", "__"),
        ("prod%2524documents", ""),
        ("documents", ""),
        ("%24", ""),
        ("a.b$t", "."),
        ("Prod$t", ""),
        ("aws1$t", ""),
        ("p%00$t", ""),
        ("%ff$t", ""),
        ("aa-bb", "a-b"),
    ];
    let marker = Marker::new("table-a", "lance_compact");
    let others = [
        TaskId::new(TaskType::Compact, 1, [0x11; 10]).to_string(),
        "1".repeat(32),
        marker.encode(7),
        marker.encode_pair((7, 8)),
        "lance_cleanup".to_owned(),
        "TaskNotFound".to_owned(),
    ];
    let queries = [
        "delimiter=%24&task_type=lance_compact&status&b=x+y".to_owned(),
        "task_type=lance_compact&max_results=1000".to_owned(),
        format!("task_type=lance_compact&marker={}", others[2]),
        format!("limit=10&page_token={}", others[2]),
        format!("page_token={}", others[3]),
        "a&%61".to_owned(),
    ];
    let seed = |(number, operation): (usize, &Operation)| {
        let (id, delimiter) = ids[number % ids.len()];
        let path = operation
            .path()
            .replace("{id}", id)
            .replace("{task_id}", &others[0]);
        let text = format!(
            "{id}\n{delimiter}\n{path}?{}\n{}",
            queries[number % 6],
            others[number / 6 % 6]
        );
        let mut seed = vec![
            u8::try_from(number).unwrap(),
            u8::try_from(number % 5).unwrap(),
        ];
        seed.extend(7_u64.to_le_bytes());
        seed.extend(8_u64.to_le_bytes());
        seed.extend([0x11; 10]);
        seed.extend(text.into_bytes());
        seed
    };
    Operation::ALL.iter().enumerate().map(seed).collect()
}

/// The texts between quotes of this sort that a file of tests has.
fn literals<'a>(source: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let pieces = source.split(open).skip(1);
    pieces
        .filter_map(|piece| Some(piece.split_once(close)?.0))
        .collect()
}

fn policy() -> Vec<Vec<u8>> {
    const TESTS: &str = "../crates/auth/tests/auth/policy/decisions.rs";
    let source = fs::read_to_string(here(TESTS)).unwrap();
    let mut notations: Vec<&str> = ["Allow ", "Deny "]
        .into_iter()
        .flat_map(|effect| {
            let quoted: Vec<&str> = source.split('"').collect();
            quoted
                .into_iter()
                .filter(move |text| text.starts_with(effect))
        })
        .collect();
    notations.sort_unstable();
    notations.dedup();
    let policies = notations.iter().filter_map(|notation| {
        let statements: Option<Vec<Value>> = notation.split(';').map(statement).collect();
        Some(json!({"Version": "1", "Statement": statements?}))
    });
    let policies: Vec<Value> = policies.collect();
    let own = policies
        .iter()
        .find(|it| it["Statement"][0].get("Principal").is_none());
    let credentials = [
        json!({"access_key_id": "ak", "secret_access_key": "hunter2-hunter2"}),
        json!([{
            "access_key_id": "ak", "secret_access_key": "hunter2-hunter2", "session_token": "t",
            "user": "alice", "status": "inactive", "expires_at": "2027-01-01T08:00:00.75+08:00",
            "policy": own,
        }]),
    ];
    let seed = |(number, json): (usize, &Value)| {
        let number = u8::try_from(number).unwrap();
        let mut seed = vec![0, 0, number, number % 4, 1];
        seed.extend(variant(0, 2));
        seed.extend([10, 0, 0, 1]);
        seed.extend(1_785_200_523_i64.to_le_bytes());
        seed.push(1);
        seed.extend(json.to_string().into_bytes());
        seed
    };
    policies
        .iter()
        .chain(&credentials)
        .enumerate()
        .map(seed)
        .collect()
}

/// A statement from the notation of the tests: effect, actions, resources, perhaps principals, and
/// conditions.
fn statement(notation: &str) -> Option<Value> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (conditions, parts): (Vec<&str>, Vec<&str>) = notation
        .split_whitespace()
        .partition(|part| part.contains('='));
    let resources = list(parts.get(2)?)
        .into_iter()
        .map(|text| match text.split_once('/') {
            Some(("bucket", _)) => format!("acs:osstables:*:*:{text}"),
            Some(("user", _)) => format!("acs:ram::*:{text}"),
            _ => text,
        });
    let mut statement = json!({
        "Effect": parts[0],
        "Action": list(parts[1]),
        "Resource": resources.collect::<Vec<_>>(),
    });
    if let Some(principals) = parts.get(3) {
        statement["Principal"] = json!(list(principals));
    }
    for condition in conditions {
        let (operator, values) = condition.split_once('=')?;
        let key = match operator {
            "IpAddress" | "NotIpAddress" => "acs:SourceIp",
            "Bool" => "acs:SecureTransport",
            _ => "acs:CurrentTime",
        };
        statement["Condition"][operator] = json!({key: list(values)});
    }
    Some(statement)
}

fn bodies() -> Vec<Vec<u8>> {
    let sources = ["params", "namespace", "."]
        .into_iter()
        .flat_map(|folder| files(&format!("../crates/api/src/{folder}"), "rs"));
    let bodies = sources.flat_map(|source| {
        let bodies = literals(&source, "r#\"", "\"#").into_iter();
        bodies
            .filter(|it| it.starts_with('{') && !it.starts_with("{{"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let own = [r#"{"materialize_deletions_threshold":0.1234567890123456e-10}"#.to_owned()];
    let bodies = bodies.chain(own);
    let queries = [
        "",
        "check_declared=true",
        "mode=exist_ok&properties=%7B%22a%22%3A%22b%22%7D",
        "descending=true&branch=b",
    ];
    bodies
        .enumerate()
        .map(|(number, body)| {
            let query = queries[number % queries.len()];
            [
                &[u8::try_from(number % 4).unwrap()],
                query.as_bytes(),
                b"\n",
                body.as_bytes(),
            ]
            .concat()
        })
        .collect()
}
