//! What is refused, where, and with which words.

use super::policy_json;
use lance_maintenance_auth::Credential;
use lance_maintenance_auth::policy::{Policy, PolicyError, PolicyKind};
use serde_json::{Value, json};

const ALLOW: &str = "Allow oss:GetTable bucket/b/table/t alice";

fn parse(value: &Value, kind: PolicyKind) -> Result<Policy, PolicyError> {
    Policy::parse(value.to_string().as_bytes(), kind)
}

/// A resource policy of one statement, with some of its keys set, or taken out with null.
fn with(changes: Value) -> Value {
    let mut policy = policy_json(ALLOW, PolicyKind::Resource).unwrap();
    let statement = policy["Statement"][0].as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        statement.insert(key.clone(), value.clone());
        statement.retain(|_, value| !value.is_null());
    }
    policy
}

#[test]
fn the_policy_that_the_mistakes_are_made_in_is_right() {
    for right in [
        with(json!({})),
        with(json!({"Sid": "", "Condition": {}})),
        with(json!({"Action": "*", "Resource": "*", "Principal": {"RAM": "*"}})),
        json!({"Version": "1", "Statement": with(json!({}))["Statement"][0]}),
    ] {
        assert!(parse(&right, PolicyKind::Resource).is_ok(), "{right}");
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn places_and_words() {
    let condition = |operator: &str, key: &str, values: Value| with(json!({"Condition": {operator: {key: values}}}));
    let statements = |statements: Value| json!({"Version": "1", "Statement": statements});
    let cases = [
        (json!([]), "", "must be an object"),
        (json!("*"), "", "must be an object"),
        (json!({}), "Version", "is missing"),
        (json!({"Version": "1"}), "Statement", "is missing"),
        (json!({"Version": 1, "Statement": []}), "Version", "must be the string \"1\""),
        (json!({"Version": "2012-10-17", "Statement": []}), "Version", "must be the string \"1\""),
        (json!({"Version": "1", "Statement": [], "Id": "x"}), "Id", "is not known here; known: Version, Statement"),
        (json!({"version": "1", "Statement": []}), "version", "is not known here"),
        (json!({"Version": "1", "Statement": null}), "Statement", "is null"),
        (statements(json!([])), "Statement", "is empty"),
        (statements(json!("Allow")), "Statement", "must be an object"),
        (statements(json!([1])), "Statement[0]", "must be an object"),
        (statements(json!({})), "Statement.Effect", "is missing"),
        (statements(json!([with(json!({}))["Statement"][0], {}])), "Statement[1].Effect", "is missing"),
        (statements(json!([with(json!({}))["Statement"]])), "Statement[0]", "must be an object"),
        // keys
        (with(json!({"Efect": "Allow"})), "Statement[0].Efect", "is not known here; known: Sid, Effect, Action, Resource, Principal, Condition"),
        (with(json!({"NotAction": "*"})), "Statement[0].NotAction", "is not known here"),
        (with(json!({"NotResource": "*"})), "Statement[0].NotResource", "is not known here"),
        (with(json!({"NotPrincipal": "*"})), "Statement[0].NotPrincipal", "is not known here"),
        (with(json!({"effect": "Deny"})), "Statement[0].effect", "is not known here"),
        (with(json!({"Sid": 1})), "Statement[0].Sid", "must be a string"),
        // effect
        (with(json!({"Effect": null})), "Statement[0].Effect", "is missing"),
        (with(json!({"Effect": "allow"})), "Statement[0].Effect", "must be Allow or Deny"),
        (with(json!({"Effect": ["Allow"]})), "Statement[0].Effect", "must be Allow or Deny"),
        (with(json!({"Effect": ""})), "Statement[0].Effect", "must be Allow or Deny"),
        // action
        (with(json!({"Action": null})), "Statement[0].Action", "is missing"),
        (with(json!({"Action": []})), "Statement[0].Action", "is empty"),
        (with(json!({"Action": {}})), "Statement[0].Action", "must be a string"),
        (with(json!({"Action": ["*", true]})), "Statement[0].Action[1]", "must be a string"),
        (with(json!({"Action": ["*", "oss:GetTabel"]})), "Statement[0].Action[1]", "'oss:GetTabel' matches no action; the nearest is oss:GetTable"),
        (with(json!({"Action": "oss:PutTableMaintenance"})), "Statement[0].Action", "'oss:PutTableMaintenance' matches no action"),
        (with(json!({"Action": "oss:GetTable "})), "Statement[0].Action", "'oss:GetTable ' matches no action; the nearest is oss:GetTable"),
        (with(json!({"Action": "s3:GetTable"})), "Statement[0].Action", "'s3:GetTable' must be * or start with oss: or ram:"),
        (with(json!({"Action": "o".repeat(1025)})), "Statement[0].Action", "is 1025 bytes long; at most 1024 are allowed"),
        (with(json!({"Action": vec!["*"; 101]})), "Statement[0].Action", "has 101 entries; at most 100 are allowed"),
        // resource
        (with(json!({"Resource": null})), "Statement[0].Resource", "is missing"),
        (with(json!({"Resource": []})), "Statement[0].Resource", "is empty"),
        (with(json!({"Resource": ["*", "acs:osstables:*:bucket/b"]})), "Statement[0].Resource[1]", "'acs:osstables:*:bucket/b' must be * or acs:"),
        (with(json!({"Resource": "bucket/b"})), "Statement[0].Resource", "'bucket/b' must be * or acs:"),
        (with(json!({"Resource": [["*"]]})), "Statement[0].Resource[0]", "must be a string"),
        // principal
        (with(json!({"Principal": null})), "Statement[0].Principal", "is missing"),
        (with(json!({"Principal": []})), "Statement[0].Principal", "is empty"),
        (with(json!({"Principal": ["alice", "a*"]})), "Statement[0].Principal[1]", "'a*' must be *, an account id"),
        (with(json!({"Principal": {}})), "Statement[0].Principal.RAM", "is missing"),
        (with(json!({"Principal": {"AWS": "*"}})), "Statement[0].Principal.AWS", "is not known here; known: RAM"),
        (with(json!({"Principal": {"RAM": ["*", "acs:ram::1234:role/x"]}})), "Statement[0].Principal.RAM[1]", "'acs:ram::1234:role/x' must be *, an account id"),
        // condition
        (with(json!({"Condition": []})), "Statement[0].Condition", "must be an object"),
        (with(json!({"Condition": {"StringLike": {}}})), "Statement[0].Condition.StringLike", "is not known here; known: IpAddress, NotIpAddress"),
        (with(json!({"Condition": {"Bool": "true"}})), "Statement[0].Condition.Bool", "must be an object"),
        (condition("IpAddress", "acs:SourceIp", json!(["10.0.0.0/8", "ten"])), "Statement[0].Condition.IpAddress.acs:SourceIp[1]", "'ten' is no IP address"),
        (condition("IpAddress", "aws:SourceIp", json!("::1")), "Statement[0].Condition.IpAddress.aws:SourceIp", "is not known here; known: acs:SourceIp"),
        (condition("NotIpAddress", "acs:SourceIp", json!("10.0.0.0/40")), "Statement[0].Condition.NotIpAddress.acs:SourceIp", "'10.0.0.0/40' is no IP address"),
        (condition("DateLessThan", "acs:CurrentTime", json!("tomorrow")), "Statement[0].Condition.DateLessThan.acs:CurrentTime", "'tomorrow' is no RFC 3339 time"),
        (condition("DateGreaterThan", "acs:SourceIp", json!("::1")), "Statement[0].Condition.DateGreaterThan.acs:SourceIp", "is not known here; known: acs:CurrentTime"),
        (condition("Bool", "acs:SecureTransport", json!("yes")), "Statement[0].Condition.Bool.acs:SecureTransport", "must be true or false"),
        (condition("Bool", "acs:SecureTransport", json!([])), "Statement[0].Condition.Bool.acs:SecureTransport", "is empty"),
    ];
    for (policy, place, problem) in cases {
        let error = parse(&policy, PolicyKind::Resource).unwrap_err();
        assert_eq!(error.place, place, "{policy} {error}");
        assert!(error.problem.starts_with(problem), "{error}");
        let sentence = [place, &error.problem].join(if place.is_empty() { "" } else { ": " });
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn places_in_text() {
    let cases = [
        ("", "line 1 column 0", "is not JSON"),
        ("{\n  \"Version\": 1,\n}", "line 3 column 1", "is not JSON: trailing comma"),
        ("{\"Version\": \"1\"} x", "line 1 column 18", "is not JSON: trailing characters"),
        (r#"{"Version":"1","Version":"1","Statement":[]}"#, "Version", "is there twice"),
        (r#"{"Version":"1","Statement":[{"Effect":"Deny","Effect":"Allow"}]}"#, "Statement[0].Effect", "is there twice"),
        (r#"{"Version":"1","Statement":[{"Condition":{"Bool":{"acs:SecureTransport":true,"acs:SecureTransport":false}}}]}"#, "Statement[0].Condition.Bool.acs:SecureTransport", "is there twice"),
        (r#"{"Version":"1","Statement":[{"Condition":null}]}"#, "Statement[0].Condition", "is null"),
        (r#"{"Version":"1","Statement":[{"Action":["*",null]}]}"#, "Statement[0].Action[1]", "is null"),
    ];
    for (text, place, problem) in cases {
        let error = Policy::parse(text.as_bytes(), PolicyKind::Identity).unwrap_err();
        assert_eq!(error.place, place, "{text} {error}");
        assert!(error.problem.starts_with(problem), "{error}");
    }
}

/// The same statement with and without a principal, in both kinds.
#[test]
fn principals_are_for_resources() {
    let (named, unnamed) = (with(json!({})), with(json!({"Principal": null})));
    let place = |policy: &Value, kind| parse(policy, kind).err().map(|error| error.place);
    let refused = Some("Statement[0].Principal".to_owned());
    assert_eq!(place(&named, PolicyKind::Resource), None);
    assert_eq!(place(&unnamed, PolicyKind::Identity), None);
    assert_eq!(place(&unnamed, PolicyKind::Resource), refused);
    assert_eq!(place(&named, PolicyKind::Identity), refused);
}

#[test]
fn sizes() {
    let one = r#"{"Effect":"Allow","Action":"*","Resource":"*"}"#;
    let text = |statements: usize, bytes: usize| {
        let list = vec![one; statements].join(",");
        let policy = format!(r#"{{"Version":"1","Statement":[{list}]}}"#);
        format!("{policy:bytes$}")
    };
    let cases = [
        (text(1, 0), None),
        (text(100, 0), None),
        (text(1, 16 * 1024), None),
        (
            text(101, 0),
            Some("Statement: has 101 entries; at most 100 are allowed"),
        ),
        (
            text(1, 16 * 1024 + 1),
            Some("is 16385 bytes of JSON; a policy may have 16384"),
        ),
    ];
    for (text, expected) in cases {
        let got = Policy::parse(text.as_bytes(), PolicyKind::Identity);
        let got = got.err().map(|error| error.to_string());
        assert_eq!(got.as_deref(), expected);
    }
}

/// A policy in a credential is measured without the blanks around its parts, so that what was
/// accepted with some is accepted again as it was stored.
#[test]
fn the_size_of_a_policy_in_a_credential() {
    let credential = |blanks: usize, sid: usize| {
        let (blanks, sid) = (" ".repeat(blanks), "x".repeat(sid));
        let statement =
            format!(r#"{{"Sid":"{sid}","Effect":"Allow","Action":"*","Resource":"*"}}"#);
        let list = vec![statement; 16].join(",");
        let policy = format!(r#"{{{blanks}"Version":"1","Statement":[{list}]}}"#);
        format!(r#"{{"access_key_id":"a","secret_access_key":"12345678","policy":{policy}}}"#)
    };
    let cases = [
        (credential(20_000, 900), None),
        (
            credential(0, 1000),
            Some("policy: is 16925 bytes of JSON; a policy may have 16384"),
        ),
    ];
    for (json, expected) in cases {
        let got = Credential::parse(json.as_bytes());
        let again = got
            .as_ref()
            .map(|it| Credential::parse(&it.stored()).is_ok());
        assert!(again.unwrap_or(true));
        assert_eq!(
            got.err().map(|error| error.to_string()).as_deref(),
            expected
        );
    }
}

#[test]
fn the_error_does_not_repeat_long_texts() {
    let long = with(json!({"Action": format!("oss:{}", "x".repeat(1000))}));
    let error = parse(&long, PolicyKind::Resource).unwrap_err().to_string();
    assert!(error.len() < 250 && error.contains("x...'"), "{error}");
    let control = with(json!({"Principal": "a\nb\u{202e}"}));
    let error = parse(&control, PolicyKind::Resource).unwrap_err();
    assert!(
        error.problem.starts_with("'a\\nb\\u{202e}' must"),
        "{error}"
    );
}
