//! Policies and credentials: they are read back as they were, and a decision follows from the
//! statements one by one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use lance_maintenance_auth::Credential;
use lance_maintenance_auth::policy::{ACTIONS, Decision, Policy, PolicyKind, Request, decide};
use serde_json::{Value, json};

use crate::Wire;

const KINDS: [PolicyKind; 2] = [PolicyKind::Identity, PolicyKind::Resource];
const ACCOUNTS: [&str; 2] = ["1234", "99"];
const USERS: [&str; 4] = ["alice", "bob", "1234", "ak+1=:*"];
const RESOURCES: [&str; 3] = [
    "acs:osstables:local:1234:bucket/b",
    "acs:osstables:local:1234:bucket/b/table/t",
    "acs:ram::1234:user/alice",
];

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    asked: Asked,
    /// A policy, a credential, a list of credentials, or anything.
    json: Wire<'a>,
}

/// Numbers are of the lists above, counted around.
#[derive(Arbitrary, Debug)]
struct Asked {
    account: u8,
    user: u8,
    action: u8,
    /// Of the texts in the policy too, which are patterns: they match themselves at least.
    resource: u8,
    source: Option<Source>,
    now: i64,
    secure: bool,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Source {
    V4([u8; 4]),
    V6([u8; 16]),
}

impl From<Source> for IpAddr {
    fn from(source: Source) -> Self {
        match source {
            Source::V4(bytes) => Ipv4Addr::from(bytes).into(),
            Source::V6(bytes) => Ipv6Addr::from(bytes).into(),
        }
    }
}

/// Says whether there was a policy or a credential, and fails if something is read in two ways, or access is given that no statement gives.
pub fn check(input: &Input<'_>) -> bool {
    let mut understood = false;
    for kind in KINDS {
        let Ok(policy) = Policy::parse(input.json.0, kind) else {
            continue;
        };
        assert_eq!(policy.kind(), kind);
        let again = Policy::parse(policy.as_json().to_string().as_bytes(), kind);
        assert_eq!(again.as_ref(), Ok(&policy));
        decisions(&policy, &input.asked);
        understood = true;
    }
    let one = Credential::parse(input.json.0).map(|it| vec![it]);
    let lists = [one, Credential::parse_list(input.json.0)];
    for credential in lists.into_iter().flatten().flatten() {
        let again = Credential::parse(&credential.stored()).unwrap();
        assert_eq!(again.stored(), credential.stored());
        assert_eq!(again.info(), credential.info());
        assert_eq!(again.expires_at, credential.expires_at);
        assert_eq!(again.policy, credential.policy);
        if let Some(policy) = &credential.policy {
            decisions(policy, &input.asked);
        }
        understood = true;
    }
    understood
}

fn decisions(policy: &Policy, asked: &Asked) {
    let texts = texts(policy.as_json());
    let resources: Vec<&str> = RESOURCES.into_iter().chain(texts).collect();
    let request = Request {
        account_id: pick(&ACCOUNTS, asked.account),
        user: pick(&USERS, asked.user),
        action: pick(ACTIONS, asked.action),
        resource: pick(&resources, asked.resource),
        source_address: asked.source.map(IpAddr::from),
        now_unix_seconds: asked.now,
        secure_transport: asked.secure,
    };
    let got = decide_by(policy, &request);
    assert_eq!(got, one_by_one(policy, &request), "{request:?}");

    // Deny wins, from whichever policy.
    let [own, others] = KINDS.map(|kind| everything("Deny", kind));
    assert_eq!(decide(&request, Some(&own), &[policy]), Decision::Denied);
    assert_eq!(decide(&request, Some(policy), &[&others]), Decision::Denied);
    let [own, others] = KINDS.map(|kind| everything("Allow", kind));
    let with_allow = match policy.kind() {
        PolicyKind::Identity => decide(&request, Some(policy), &[&others]),
        PolicyKind::Resource => decide(&request, Some(&own), &[policy]),
    };
    assert_eq!(with_allow == Decision::Denied, got == Decision::Denied);

    // A policy of the wrong kind gives nothing.
    let misplaced = match policy.kind() {
        PolicyKind::Identity => decide(&request, None, &[policy]),
        PolicyKind::Resource => decide(&request, Some(policy), &[]),
    };
    assert_ne!(misplaced, Decision::Allowed);

    // Nor is it of use to hide where one comes from.
    let hidden = Request {
        source_address: None,
        ..request
    };
    if decide_by(policy, &hidden) == Decision::Allowed {
        assert_eq!(got, Decision::Allowed, "{request:?}");
    }
}

fn decide_by(policy: &Policy, request: &Request<'_>) -> Decision {
    match policy.kind() {
        PolicyKind::Identity => decide(request, Some(policy), &[]),
        PolicyKind::Resource => decide(request, None, &[policy]),
    }
}

/// The decision from those of policies that have one of the statements each.
fn one_by_one(policy: &Policy, request: &Request<'_>) -> Decision {
    let statements = match &policy.as_json()["Statement"] {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let decisions: Vec<Decision> = statements
        .into_iter()
        .map(|statement| {
            let denies = statement["Effect"] == "Deny";
            let got = decide_by(&parse(&statement, policy.kind()), request);
            assert_ne!(
                got,
                if denies {
                    Decision::Allowed
                } else {
                    Decision::Denied
                }
            );
            got
        })
        .collect();
    [Decision::Denied, Decision::Allowed]
        .into_iter()
        .find(|it| decisions.contains(it))
        .unwrap_or(Decision::NotAllowed)
}

fn parse(statement: &Value, kind: PolicyKind) -> Policy {
    let json = json!({"Version": "1", "Statement": statement}).to_string();
    Policy::parse(json.as_bytes(), kind).unwrap()
}

fn everything(effect: &str, kind: PolicyKind) -> Policy {
    let mut statement = json!({"Effect": effect, "Action": "*", "Resource": "*"});
    if kind == PolicyKind::Resource {
        statement["Principal"] = json!("*");
    }
    parse(&statement, kind)
}

fn texts(json: &Value) -> Vec<&str> {
    match json {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(texts).collect(),
        Value::Object(map) => map.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn pick<'a>(list: &[&'a str], number: u8) -> &'a str {
    list[usize::from(number) % list.len()]
}
