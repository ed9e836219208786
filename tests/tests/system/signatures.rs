//! Who is believed.

use std::time::{SystemTime, UNIX_EPOCH};

use lance_maintenance_tests::client::{Call, Client, Credentials, Table};
use reqwest::Method;

use crate::support::{Refusal, assert_refused, client, declared};

const ACCESS_DENIED: Refusal = (403, "AccessDenied", 15);
const DOES_NOT_MATCH: Refusal = (403, "SignatureDoesNotMatch", 16);
const UNKNOWN_KEY: Refusal = (403, "InvalidAccessKeyId", 16);
const SKEWED: Refusal = (403, "RequestTimeTooSkewed", 16);
const INVALID_DIGEST: Refusal = (400, "InvalidDigest", 13);

fn submit(table: &Table) -> Call {
    Call::post(table.path("compact"), "{}")
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs() as i64
}

/// The value of a header of a signed call.
fn header<'a>(call: &'a mut Call, name: &str) -> &'a mut String {
    let found = call.headers.iter_mut().find(|(key, _)| key == name);
    &mut found.unwrap().1
}

#[tokio::test]
async fn what_was_changed_after_it_was_signed() {
    type Change = fn(&mut Call);
    let table = declared("signatures", "changed").await;
    let cases: [(&str, Change, Refusal); 13] = [
        (
            "a byte of the body",
            |call| call.body = b"[]".to_vec(),
            INVALID_DIGEST,
        ),
        (
            "the body and its digest",
            |call| {
                call.body.clear();
                *header(call, "x-amz-content-sha256") =
                    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".to_owned();
            },
            DOES_NOT_MATCH,
        ),
        (
            "the digest to none",
            |call| *header(call, "x-amz-content-sha256") = "UNSIGNED-PAYLOAD".to_owned(),
            INVALID_DIGEST,
        ),
        (
            "the path",
            |call| call.target = call.target.replace("compact", "cleanup"),
            DOES_NOT_MATCH,
        ),
        (
            "the query",
            |call| call.target.push_str("?delimiter=%24"),
            DOES_NOT_MATCH,
        ),
        (
            "the method",
            |call| {
                call.method = Method::GET;
                call.target = call.target.replace("compact", "tasks");
            },
            DOES_NOT_MATCH,
        ),
        (
            "the host",
            |call| *header(call, "host") = "lance.oss-tables.localhost".to_owned(),
            DOES_NOT_MATCH,
        ),
        (
            "the content type",
            |call| *header(call, "content-type") = "text/plain".to_owned(),
            DOES_NOT_MATCH,
        ),
        (
            "the signature",
            |call| {
                let value = header(call, "authorization");
                let last = if value.ends_with('0') { '1' } else { '0' };
                value.pop();
                value.push(last);
            },
            DOES_NOT_MATCH,
        ),
        (
            "the time",
            |call| {
                let value = header(call, "x-amz-date");
                let second = if value.ends_with("0Z") { "1Z" } else { "0Z" };
                value.replace_range(14.., second);
            },
            DOES_NOT_MATCH,
        ),
        (
            "a header that may not be unsigned",
            |call| *call = call.clone().header("x-amz-meta", "x"),
            ACCESS_DENIED,
        ),
        (
            "a session token",
            |call| *call = call.clone().header("x-amz-security-token", "x"),
            ACCESS_DENIED,
        ),
        (
            "the time's header, left out",
            |call| call.headers.retain(|(name, _)| name != "x-amz-date"),
            ACCESS_DENIED,
        ),
    ];
    for (case, change, refusal) in cases {
        let mut call = client().sign(submit(&table)).unwrap();
        change(&mut call);
        let answer = client().send(call).await.unwrap();
        assert_refused(&answer, refusal, case);
    }
    assert!(table.tasks("lance_compact", 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn who_signed_and_when() {
    let table = declared("signatures", "who").await;
    let own = client().credentials().clone();
    let changed = |change: fn(&mut Credentials)| {
        let mut credentials = own.clone();
        change(&mut credentials);
        client().as_caller(credentials)
    };
    let minutes = 60;
    let cases: [(&str, Client, i64, Option<Refusal>); 9] = [
        ("as it should be", client(), 0, None),
        ("14 minutes ago", client(), -14 * minutes, None),
        ("in 14 minutes", client(), 14 * minutes, None),
        ("16 minutes ago", client(), -16 * minutes, Some(SKEWED)),
        ("in 16 minutes", client(), 16 * minutes, Some(SKEWED)),
        (
            "another secret",
            changed(|who| who.secret_access_key.push('x')),
            0,
            Some(DOES_NOT_MATCH),
        ),
        (
            "an unknown key",
            changed(|who| who.access_key_id.push('x')),
            0,
            Some(UNKNOWN_KEY),
        ),
        (
            "another region",
            changed(|who| who.region = "elsewhere".to_owned()),
            0,
            Some(DOES_NOT_MATCH),
        ),
        (
            "no region",
            changed(|who| who.region.clear()),
            0,
            Some(ACCESS_DENIED),
        ),
    ];
    for (case, caller, seconds, refusal) in cases {
        let call = caller.sign_at(submit(&table), now() + seconds).unwrap();
        let answer = caller.send(call).await.unwrap();
        match refusal {
            None => assert_eq!(answer.status, 200, "{case}"),
            Some(refusal) => assert_refused(&answer, refusal, case),
        }
    }
    assert_eq!(table.tasks("lance_compact", 10).await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_not_signed_at_all() {
    let table = declared("signatures", "unsigned").await;
    for authorization in [
        None,
        Some(""),
        Some("Bearer abc"),
        Some("Basic YTpi"),
        Some("AWS4-HMAC-SHA256"),
        Some("AWS4-HMAC-SHA256 nonsense"),
        Some("AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=00"),
        Some(
            "OSS4-HMAC-SHA256 Credential=a/20260101/local/osstables/aliyun_v4_request,Signature=00",
        ),
    ] {
        let calls = [
            submit(&table),
            Call::get(table.path("tasks?task_type=lance_compact")),
            // Whether a table is there is nobody's business.
            Call::post("/lance/oss/v1/table/no$table/compact", "{}"),
            Call::post("/lance/oss/v1/table/not-an-id/compact", "{}"),
            Call::post("/lance/v1/table/no$table/describe", "{}"),
        ];
        for mut call in calls {
            let case = format!("{authorization:?} {}", call.target);
            if let Some(value) = authorization {
                call = call.header("authorization", value);
            }
            let answer = client().send(call).await.unwrap();
            assert_refused(&answer, ACCESS_DENIED, &case);
        }
    }
    assert!(table.tasks("lance_compact", 10).await.unwrap().is_empty());
}
