//! From policies to a decision.

use std::net::IpAddr;

use super::statement::Effect;
use super::{Policy, PolicyKind};

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The account that the caller belongs to, in digits.
    pub account_id: &'a str,
    /// The name of the user who asks.
    pub user: &'a str,
    /// What they want to do, one of [`ACTIONS`](super::ACTIONS).
    pub action: &'a str,
    /// The ARN of what they want to do it to.
    pub resource: &'a str,
    /// Where the request came from, if that is known for sure.
    pub source_address: Option<IpAddr>,
    /// The time now, in seconds since the Unix epoch.
    pub now_unix_seconds: i64,
    /// Whether the request came over TLS.
    pub secure_transport: bool,
}

/// Whether somebody may do what they want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// They may: a statement allows it and none denies it.
    Allowed,
    /// They may not: a statement denies it.
    Denied,
    /// They may not: no statement says anything about it.
    NotAllowed,
}

/// Decides about a request from the caller's own policy and those of the resource: its bucket's
/// and, for a table, its own. A statement that denies wins over all that allow; without any that
/// allows, the answer is no.
///
/// A policy of the wrong kind is handed over by mistake, and nobody gets access by that: only its
/// statements that deny are looked at.
pub fn decide(
    request: &Request<'_>,
    identity: Option<&Policy>,
    resource_policies: &[&Policy],
) -> Decision {
    let identity = identity.map(|policy| (policy, PolicyKind::Identity));
    let of_resources = resource_policies
        .iter()
        .map(|policy| (*policy, PolicyKind::Resource));
    let mut decision = Decision::NotAllowed;
    for (policy, expected) in identity.into_iter().chain(of_resources) {
        let applying = policy.statements.iter().filter(|it| it.applies(request));
        for statement in applying {
            match statement.effect {
                Effect::Deny => return Decision::Denied,
                Effect::Allow if policy.kind == expected => decision = Decision::Allowed,
                Effect::Allow => {}
            }
        }
    }
    decision
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_the_wrong_kind_gives_no_access() {
        let request = Request {
            account_id: "1234",
            user: "alice",
            action: "oss:GetTable",
            resource: "acs:osstables:local:1234:bucket/b",
            source_address: None,
            now_unix_seconds: 0,
            secure_transport: false,
        };
        let policy = |effect: &str, principal: &str, kind| {
            let json = format!(
                r#"{{"Version":"1","Statement":{{"Effect":"{effect}","Action":"*","Resource":"*"{principal}}}}}"#
            );
            Policy::parse(json.as_bytes(), kind).unwrap()
        };
        for (effect, right, wrong) in [
            ("Allow", Decision::Allowed, Decision::NotAllowed),
            ("Deny", Decision::Denied, Decision::Denied),
        ] {
            let identity = policy(effect, "", PolicyKind::Identity);
            let resource = policy(effect, r#","Principal":"*""#, PolicyKind::Resource);
            assert_eq!(decide(&request, Some(&identity), &[]), right);
            assert_eq!(decide(&request, None, &[&resource]), right);
            assert_eq!(decide(&request, None, &[&identity]), wrong);
            assert_eq!(decide(&request, Some(&resource), &[]), wrong);
        }
    }
}
