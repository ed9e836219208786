//! Policies as a specification: who may do what, what is refused, and what always holds.

mod decisions;
mod mistakes;
mod properties;

use lance_maintenance_auth::policy::{Policy, PolicyKind, Request};
use serde_json::{Value, json};

/// The account of all buckets, and of most callers.
pub const ACCOUNT: &str = "1234";
/// When most requests come: 2026-07-28T01:02:03Z.
pub const NOW: i64 = 1_785_200_523;

/// The ARN of a bucket or table from its last part.
pub fn arn(relative: &str) -> String {
    format!("acs:osstables:local:{ACCOUNT}:{relative}")
}

/// A policy from a short notation: statements are separated by `;`, their parts by blanks. First
/// come effect, actions and resources, in a resource policy then principals, lists with commas;
/// then conditions as `operator=values`. A resource that starts with `bucket/` or `user/` is the
/// last part of an ARN. Nothing is no policy.
pub fn policy(notation: &str, kind: PolicyKind) -> Option<Policy> {
    let json = policy_json(notation, kind)?;
    let parsed = Policy::parse(json.to_string().as_bytes(), kind);
    Some(parsed.unwrap_or_else(|error| panic!("{notation}: {error}")))
}

pub fn policy_json(notation: &str, kind: PolicyKind) -> Option<Value> {
    let statements: Vec<Value> = notation
        .split(';')
        .filter(|text| !text.trim().is_empty())
        .map(|text| statement(text, kind))
        .collect();
    (!statements.is_empty()).then(|| json!({"Version": "1", "Statement": statements}))
}

fn statement(text: &str, kind: PolicyKind) -> Value {
    let mut parts = text.split_whitespace();
    let mut next = || parts.next().unwrap_or_else(|| panic!("too short: {text}"));
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut statement = json!({
        "Effect": next(),
        "Action": list(next()),
        "Resource": list(next()).into_iter().map(|it| resource(&it)).collect::<Vec<_>>(),
    });
    if kind == PolicyKind::Resource {
        statement["Principal"] = json!(list(next()));
    }
    for condition in parts {
        let (operator, values) = condition.split_once('=').unwrap();
        let key = match operator {
            "IpAddress" | "NotIpAddress" => "acs:SourceIp",
            "Bool" => "acs:SecureTransport",
            _ => "acs:CurrentTime",
        };
        statement["Condition"][operator] = json!({key: list(values)});
    }
    statement
}

fn resource(text: &str) -> String {
    if text.starts_with("bucket/") {
        format!("acs:osstables:*:*:{text}")
    } else if text.starts_with("user/") {
        format!("acs:ram::*:{text}")
    } else {
        text.to_owned()
    }
}

/// A request from a short notation: user, action and the last part of the resource's ARN; then
/// what differs from a request over TLS from 10.0.0.1 at [`NOW`].
pub fn request<R>(notation: &str, then: impl FnOnce(&Request<'_>) -> R) -> R {
    let mut parts = notation.split_whitespace();
    let mut next = || parts.next().unwrap();
    let (user, action, relative) = (next(), next(), next());
    let resource = if relative.starts_with("user/") {
        format!("acs:ram::{ACCOUNT}:{relative}")
    } else {
        arn(relative)
    };
    let mut request = Request {
        account_id: ACCOUNT,
        user,
        action,
        resource: &resource,
        source_address: "10.0.0.1".parse().ok(),
        now_unix_seconds: NOW,
        secure_transport: true,
    };
    for change in parts {
        match change.split_once('=').unwrap() {
            ("account", it) => request.account_id = it,
            ("from", "unknown") => request.source_address = None,
            ("from", it) => request.source_address = Some(it.parse().unwrap()),
            ("later", it) => request.now_unix_seconds += it.parse::<i64>().unwrap(),
            ("tls", "no") => request.secure_transport = false,
            other => panic!("{other:?}"),
        }
    }
    then(&request)
}
