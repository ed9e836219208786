//! What holds for every policy.

use super::{ACCOUNT, NOW, arn, policy_json};
use lance_maintenance_auth::Credential;
use lance_maintenance_auth::policy::{ACTIONS, Decision, Policy, PolicyKind, Request, decide};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

/// Statements in the notation of `super::policy`, from few enough parts to often apply.
fn statements(effect: &'static str, kind: PolicyKind) -> impl Strategy<Value = String> {
    let actions = select(vec![
        "*",
        "oss:*",
        "oss:Get*",
        "oss:gettable",
        "ram:*",
        "oss:GetTable,oss:ListTables",
    ]);
    let resources = select(vec![
        "*",
        "bucket/*",
        "bucket/b",
        "bucket/b/table/*",
        "bucket/b/table/?",
        "user/*",
    ]);
    let principals = select(vec![
        "*",
        "1234",
        "99",
        "alice",
        "bob",
        "acs:ram::1234:user/a*",
    ]);
    let conditions = select(vec![
        "",
        "IpAddress=10.0.0.0/8",
        "NotIpAddress=10.0.0.0/8",
        "Bool=true",
        "Bool=false IpAddress=0.0.0.0/0",
        "DateLessThan=2026-07-28T01:02:04Z",
        "DateGreaterThanEquals=2026-07-28T01:02:04Z",
    ]);
    (actions, resources, principals, conditions).prop_map(
        move |(action, resource, principal, condition)| {
            let principal = match kind {
                PolicyKind::Identity => "",
                PolicyKind::Resource => principal,
            };
            format!("{effect} {action} {resource} {principal} {condition}")
        },
    )
}

fn any_effect(kind: PolicyKind) -> impl Strategy<Value = Vec<String>> {
    let one = prop_oneof![3 => statements("Allow", kind), 1 => statements("Deny", kind)];
    vec(one, 0..4)
}

/// A caller's policy, a bucket's and a table's, as statements.
fn policies() -> impl Strategy<Value = [Vec<String>; 3]> {
    use PolicyKind::{Identity, Resource};
    (
        any_effect(Identity),
        any_effect(Resource),
        any_effect(Resource),
    )
        .prop_map(|(identity, bucket, table)| [identity, bucket, table])
}

#[derive(Clone, Debug)]
struct Asked {
    user: &'static str,
    action: &'static str,
    relative: &'static str,
    source: Option<&'static str>,
    later: i64,
    secure: bool,
}

fn requests() -> impl Strategy<Value = Asked> {
    (
        select(vec!["alice", "bob", "carol"]),
        select(ACTIONS.to_vec()),
        select(vec![
            "bucket/b",
            "bucket/b/table/t",
            "bucket/b/table/tt",
            "bucket/c",
        ]),
        select(vec![
            None,
            Some("10.0.0.1"),
            Some("::ffff:10.0.0.1"),
            Some("2001:db8::1"),
        ]),
        0..3i64,
        any::<bool>(),
    )
        .prop_map(|(user, action, relative, source, later, secure)| Asked {
            user,
            action,
            relative,
            source,
            later,
            secure,
        })
}

const KINDS: [PolicyKind; 3] = [
    PolicyKind::Identity,
    PolicyKind::Resource,
    PolicyKind::Resource,
];

fn decision(statements: &[Vec<String>; 3], asked: &Asked) -> Decision {
    let [identity, bucket, table] =
        [0, 1, 2].map(|at| super::policy(&statements[at].join(";"), KINDS[at]));
    let of_resources: Vec<&Policy> = [&bucket, &table].into_iter().flatten().collect();
    let request = Request {
        account_id: ACCOUNT,
        user: asked.user,
        action: asked.action,
        resource: &arn(asked.relative),
        source_address: asked.source.map(|text| text.parse().unwrap()),
        now_unix_seconds: NOW + asked.later,
        secure_transport: asked.secure,
    };
    decide(&request, identity.as_ref(), &of_resources)
}

/// Any JSON, with more than a fair share of the keys and values of policies.
fn any_json() -> impl Strategy<Value = Value> {
    let words = select(vec![
        "1",
        "Allow",
        "Deny",
        "*",
        "oss:GetTable",
        "oss:*",
        "acs:osstables:*:*:*",
        "alice",
        "1234",
        "10.0.0.0/8",
        "2027-01-01T00:00:00Z",
        "true",
        "acs:ram::1234:user/alice",
    ]);
    let keys = select(vec![
        "Version",
        "Statement",
        "Sid",
        "Effect",
        "Action",
        "Resource",
        "Principal",
        "RAM",
        "Condition",
        "IpAddress",
        "DateLessThan",
        "Bool",
        "acs:SourceIp",
        "acs:CurrentTime",
        "acs:SecureTransport",
        "x",
    ]);
    let leaf = prop_oneof![
        4 => words.prop_map(|word| json!(word)),
        1 => any::<bool>().prop_map(|it| json!(it)),
        1 => any::<f64>().prop_map(|it| json!(it)),
        1 => any::<String>().prop_map(|it| json!(it)),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        let object = vec((keys.clone(), inner.clone()), 0..6).prop_map(|entries| {
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()
        });
        prop_oneof![vec(inner, 0..4).prop_map(Value::Array), object]
    })
}

/// A policy that is right but for one value, which is any JSON.
fn nearly_right(put: &Value, at: Index) -> Value {
    let mut policy = json!({
        "Version": "1",
        "Statement": [{
            "Sid": "x", "Effect": "Allow", "Action": ["*"], "Resource": ["*"], "Principal": {"RAM": ["*"]},
            "Condition": {"IpAddress": {"acs:SourceIp": ["::1"]}},
        }],
    });
    let places = [
        "",
        "/Version",
        "/Statement",
        "/Statement/0",
        "/Statement/0/Sid",
        "/Statement/0/Effect",
        "/Statement/0/Action",
        "/Statement/0/Action/0",
        "/Statement/0/Resource",
        "/Statement/0/Resource/0",
        "/Statement/0/Principal",
        "/Statement/0/Principal/RAM",
        "/Statement/0/Principal/RAM/0",
        "/Statement/0/Condition",
        "/Statement/0/Condition/IpAddress",
        "/Statement/0/Condition/IpAddress/acs:SourceIp",
        "/Statement/0/Condition/IpAddress/acs:SourceIp/0",
    ];
    *policy.pointer_mut(places[at.index(places.len())]).unwrap() = put.clone();
    policy
}

/// What was read can be read again, and is the same.
fn round_trip(json: &[u8], kind: PolicyKind) -> Result<bool, TestCaseError> {
    let Ok(policy) = Policy::parse(json, kind) else {
        return Ok(false);
    };
    let again = Policy::parse(policy.as_json().to_string().as_bytes(), kind);
    prop_assert_eq!(again, Ok(policy));
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn arbitrary_bytes_do_not_panic(json in vec(any::<u8>(), 0..200)) {
        for kind in KINDS {
            round_trip(&json, kind)?;
        }
        let _ = (Credential::parse(&json), Credential::parse_list(&json));
    }

    #[test]
    fn arbitrary_json_does_not_panic(json in any_json(), at in any::<Index>()) {
        for json in [nearly_right(&json, at), json.clone(), json!({"access_key_id": "a", "secret_access_key": "12345678", "policy": json})] {
            let json = json.to_string();
            for kind in KINDS {
                round_trip(json.as_bytes(), kind)?;
            }
            let _ = (Credential::parse(json.as_bytes()), Credential::parse_list(json.as_bytes()));
        }
    }

    #[test]
    fn policies_round_trip(statements in policies()) {
        for (statements, kind) in statements.iter().zip(KINDS) {
            if let Some(json) = policy_json(&statements.join(";"), kind) {
                prop_assert!(round_trip(json.to_string().as_bytes(), kind)?);
                let parsed = Policy::parse(json.to_string().as_bytes(), kind).unwrap();
                prop_assert_eq!(parsed.as_json(), &json);
            }
        }
    }

    #[test]
    fn a_deny_always_wins(mut statements in policies(), asked in requests(), to in 0..3usize, at in any::<Index>()) {
        let deny = ["Deny * *", "Deny * * *", "Deny * * *"][to].to_owned();
        let at = at.index(statements[to].len() + 1);
        statements[to].insert(at, deny);
        prop_assert_eq!(decision(&statements, &asked), Decision::Denied);
    }

    #[test]
    fn a_deny_never_gives_access(
        mut statements in policies(), asked in requests(), to in 0..3usize,
        own in statements("Deny", PolicyKind::Identity), other in statements("Deny", PolicyKind::Resource),
    ) {
        let before = decision(&statements, &asked);
        statements[to].push(if to == 0 { own } else { other });
        let after = decision(&statements, &asked);
        prop_assert!(after == before || after == Decision::Denied, "{before:?} {after:?}");
    }

    #[test]
    fn an_allow_never_takes_access(
        mut statements in policies(), asked in requests(), to in 0..3usize,
        own in statements("Allow", PolicyKind::Identity), other in statements("Allow", PolicyKind::Resource),
    ) {
        let before = decision(&statements, &asked);
        statements[to].push(if to == 0 { own } else { other });
        let after = decision(&statements, &asked);
        prop_assert!(after == before || (before, after) == (Decision::NotAllowed, Decision::Allowed), "{before:?} {after:?}");
    }

    /// Whoever hides where they come from is never better off.
    #[test]
    fn an_unknown_address_never_gives_access(statements in policies(), asked in requests()) {
        let hidden = Asked { source: None, ..asked.clone() };
        if decision(&statements, &hidden) == Decision::Allowed {
            prop_assert_eq!(decision(&statements, &asked), Decision::Allowed);
        }
    }

    #[test]
    fn the_order_of_statements_means_nothing(statements in policies(), asked in requests()) {
        let mut reversed = statements.clone();
        reversed.iter_mut().for_each(|list| list.reverse());
        reversed.swap(1, 2);
        prop_assert_eq!(decision(&reversed, &asked), decision(&statements, &asked));
    }

    #[test]
    fn without_policies_nothing_is_allowed(asked in requests()) {
        let none = [vec![], vec![], vec![]];
        prop_assert_eq!(decision(&none, &asked), Decision::NotAllowed);
    }

    /// No error about a credential has any part of a value in it that could be a secret.
    #[test]
    fn errors_about_credentials_show_no_values(secret in "[a-z]{12}[ -~\u{e9}]{0,8}", field in 0..5usize, wrap in any::<bool>()) {
        let fields = ["access_key_id", "secret_access_key", "session_token", "user", "expires_at"];
        let mut credential = json!({"access_key_id": "a,", "secret_access_key": "12345678"});
        credential[fields[field]] = if wrap { json!([secret]) } else { json!(secret) };
        if let Err(error) = Credential::parse(credential.to_string().as_bytes()) {
            prop_assert!(!error.to_string().contains(&secret[..12]), "{}", error);
        }
        let cut = credential.to_string();
        if let Err(error) = Credential::parse(&cut.as_bytes()[..40]) {
            prop_assert!(!error.to_string().contains(&secret[..8]), "{}", error);
        }
    }
}
