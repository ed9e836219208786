//! SigV4 as a specification: vectors, and what is accepted and refused.

use crate::request::{KEY, NOW, REGION, Request, SECRET};
use lance_maintenance_auth::{AuthError, Scheme};

const JSON: &str = "application/json";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const COMPACT: &str = "/lance/oss/v1/table/prod%24documents/compact";
const TASKS: &str = "/lance/oss/v1/table/prod%24documents/tasks";

fn compact() -> Request {
    Request::new("POST", COMPACT)
        .with("Content-Type", JSON)
        .body("{}")
}

/// The vectors of the API facts, section 11.1.
#[test]
fn vectors() {
    let mut describe = Request::new(
        "GET",
        "/lance/v1/table/my_db%24my_table/describe?delimiter=%24",
    )
    .set(
        "host",
        Some("my-bucket.cn-example-internal.oss-tables.aliyuncs.com"),
    )
    .with("content-type", JSON);
    describe.scheme = Scheme::Https;
    let list = format!("{TASKS}?task_type=lance_compact&max_results=100&delimiter=%24");
    let delete = "/lance/oss/v1/table/prod__documents/tasks/abc?delimiter=__";
    let cases = [
        (
            describe,
            "b590ac09775730aa09059fe89e4b25fb5c412c3f791b6efcce5baa8e7f0ee585",
        ),
        (
            compact(),
            "7f8163ea40649ed8fd4e335badeac19d832f9649d52c949cf94ce84083c6ea34",
        ),
        (
            Request::new("GET", &list),
            "2256a2ef9eb49439255e4ae86f73df0529837802ab433cb2a601bd6bd843af67",
        ),
        (
            Request::new("DELETE", delete),
            "34be6c4f4104baa125c585d645b05d1bf5cfb28ed8192067a4f19ef2dd4dab87",
        ),
    ];
    for (request, signature) in cases {
        let content_type = if request.headers.len() > 1 {
            "content-type;"
        } else {
            ""
        };
        let signed = request.sign();
        assert_eq!(
            signed.header("authorization"),
            format!(
                "AWS4-HMAC-SHA256 Credential=test-ak/20260728/cn-hangzhou/osstables/aws4_request, \
                 SignedHeaders={content_type}host;x-amz-content-sha256;x-amz-date, \
                 Signature={signature}"
            ),
            "{} {}",
            signed.method,
            signed.path
        );
        assert_eq!(signed.header("x-amz-date"), "20260728T010203Z");
        assert_eq!(
            signed.verify().map(|caller| caller.access_key_id),
            Ok(KEY.to_owned())
        );
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn accepts() {
    let mut https = compact().set("host", Some("bucket.example")).sign();
    https.scheme = Scheme::Https;
    let cases = [
        ("empty body", Request::new("DELETE", TASKS).sign()),
        ("root", Request::new("GET", "/").sign()),
        ("no blanks after commas", compact().sign().reauthorize(", ", ",")),
        ("blanks around a value", compact().sign().set("content-type", Some("  application/json "))),
        ("header not signed", compact().sign().with("User-Agent", "x").with("x-amzn-trace-id", "1")),
        ("repeated header not signed", compact().sign().with("Accept", "a").with("Accept", "b")),
        ("content-type not signed", Request::new("POST", COMPACT).body("{}").sign().with("Content-Type", JSON)),
        ("query that is not canonical", Request::new("GET", &format!("{TASKS}?b=1&a=+&status")).sign()),
        ("query in another order", { let mut it = Request::new("GET", &format!("{TASKS}?a=1&b=2")).sign(); it.query = Some("b=2&a=1".into()); it }),
        ("host in upper case", compact().set("host", Some("bucket.example")).sign().set("host", Some("BUCKET.example"))),
        ("port that is no default", compact().set("host", Some("127.0.0.1:3000")).sign()),
        ("default port spelled out", compact().set("host", Some("bucket.example")).sign().set("host", Some("bucket.example:80"))),
        ("default port of https", https.set("host", Some("bucket.example:443"))),
        ("non-ASCII header value", { let mut it = compact(); it.headers.push(("x-amz-meta".into(), vec![0xff, b' ', 0xfe])); it.sign() }),
    ];
    for (what, request) in cases {
        assert!(request.verify().is_ok(), "{what}: {:?}", request.verify());
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn refuses() {
    let digest_of_empty = compact().body("").sign().header("x-amz-content-sha256");
    let unsigned = |name: &str| AuthError::UnsignedHeader(name.to_owned());
    let repeated = |name: &str| AuthError::RepeatedHeader(name.to_owned());
    let target = |target: &str| { let (from, mut it) = (Request::new("POST", target), compact().sign()); (it.path, it.query) = (from.path, from.query); it };
    let cases = [
        // Authorization
        ("AccessDenied", AuthError::NotSigned, compact()),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().with("Authorization", "")),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().with("Authorization", "Bearer abc")),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().sign().reauthorize("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512")),
        ("AccessDenied", AuthError::Malformed("it is not a list of name=value"), compact().with("Authorization", "AWS4-HMAC-SHA256")),
        ("AccessDenied", AuthError::Malformed("it needs Credential, SignedHeaders and Signature"), compact().with("Authorization", "AWS4-HMAC-SHA256 Signature=00")),
        ("AccessDenied", repeated("authorization"), { let it = compact().sign(); let value = it.header("authorization"); it.with("Authorization", &value) }),
        ("AccessDenied", AuthError::UnreadableHeader("authorization".into()), { let mut it = compact(); it.headers.push(("authorization".into(), vec![0xff])); it }),
        // who
        ("InvalidSecurityToken", AuthError::SessionToken, compact().with("x-amz-security-token", "t").sign()),
        ("InvalidAccessKeyId", AuthError::UnknownAccessKey, compact().sign().reauthorize("test-ak", "other-ak")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign_as("other-sk", REGION, NOW)),
        // scope
        ("SignatureDoesNotMatch", AuthError::OtherRegion(REGION.into()), compact().sign_as(SECRET, "cn-beijing", NOW)),
        ("SignatureDoesNotMatch", AuthError::OtherService, compact().sign().reauthorize("/osstables/", "/s3/")),
        ("AccessDenied", AuthError::Malformed("the credential does not end in aws4_request"), compact().sign().reauthorize("aws4_request", "aws5_request")),
        ("SignatureDoesNotMatch", AuthError::OtherDate, compact().sign().reauthorize("/20260728/", "/20260727/")),
        // body
        ("InvalidDigest", AuthError::PayloadDigest, compact().sign().body("{ }")),
        ("InvalidDigest", AuthError::PayloadDigest, compact().sign().set("x-amz-content-sha256", Some(&digest_of_empty))),
        ("InvalidDigest", AuthError::PayloadDigest, compact().sign().set("x-amz-content-sha256", Some(""))),
        ("InvalidDigest", AuthError::PayloadDigest, compact().sign().set("x-amz-content-sha256", Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"))),
        ("InvalidDigest", AuthError::UnsignedPayload, compact().sign().set("x-amz-content-sha256", Some(UNSIGNED))),
        ("AccessDenied", repeated("x-amz-content-sha256"), compact().sign().with("X-Amz-Content-Sha256", &digest_of_empty)),
        // time
        ("AccessDenied", AuthError::UnreadableDate, compact().sign().set("x-amz-date", None)),
        ("AccessDenied", AuthError::UnreadableDate, compact().sign().set("x-amz-date", Some("2026-07-28T01:02:03Z"))),
        ("AccessDenied", repeated("x-amz-date"), compact().sign().with("X-Amz-Date", "20260728T010203Z")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign().set("x-amz-date", Some("20260728T010204Z"))),
        ("RequestTimeTooSkewed", AuthError::TimeTooSkewed(86_400), compact().sign_as(SECRET, REGION, NOW - 86_400)),
        // signed headers
        ("AccessDenied", unsigned("host"), compact().sign().reauthorize("host;", "")),
        ("AccessDenied", unsigned("x-amz-date"), compact().sign().reauthorize(";x-amz-date", "")),
        ("AccessDenied", unsigned("x-amz-content-sha256"), compact().sign().reauthorize("x-amz-content-sha256;", "")),
        ("AccessDenied", unsigned("x-amz-target"), compact().sign().with("X-Amz-Target", "t")),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("host".into()), compact().sign().set("host", None)),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("content-type".into()), compact().sign().set("content-type", None)),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("x-amz-content-sha256".into()), compact().sign().set("x-amz-content-sha256", None)),
        ("AccessDenied", repeated("host"), compact().sign().with("host", "other")),
        ("AccessDenied", repeated("content-type"), compact().sign().with("content-type", JSON)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign().reauthorize("content-type;", "")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign().set("content-type", Some("text/plain"))),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign().set("host", Some("other"))),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().set("host", Some("h")).sign().set("host", Some("h:443"))),
        // the request line
        ("SignatureDoesNotMatch", AuthError::Signature, { let mut it = compact().sign(); it.method = "PUT".into(); it }),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod$documents/compact")),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod%2524documents/compact")),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod%24documents/cleanup")),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod%24documents/compact?delimiter=%24")),
    ];
    for (name, expected, request) in cases {
        let got = request.verify();
        assert_eq!(got.as_ref().err(), Some(&expected), "{:?}", request.headers);
        assert_eq!(expected.name(), name, "{expected}");
        assert!(!expected.to_string().contains(SECRET));
    }
}

#[test]
fn the_clock_may_be_off_by_fifteen_minutes() {
    let request = compact().sign();
    let cases = [
        (0, None),
        (900, None),
        (-900, None),
        (901, Some(901)),
        (-901, Some(901)),
        (i64::MAX - NOW, Some((i64::MAX - NOW) as u64)),
    ];
    for (offset, skewed) in cases {
        let got = request.verify_at(NOW + offset);
        assert_eq!(got.err(), skewed.map(AuthError::TimeTooSkewed), "{offset}");
    }
}

/// The scope's day is the request's, not the verifier's: midnight may lie between them.
#[test]
fn midnight_between_client_and_server() {
    let midnight = 1_785_196_800;
    let request = compact().sign_as(SECRET, REGION, midnight - 1);
    assert!(request.verify_at(midnight + 1).is_ok());
}

#[test]
fn what_can_not_be_signed() {
    let twice = compact().with("host", "other");
    let dated = compact().with("X-Amz-Date", "20260728T010203Z");
    let cases = [
        (
            compact().set("host", None),
            NOW,
            AuthError::MissingHeader("host".into()),
        ),
        (twice, NOW, AuthError::RepeatedHeader("host".into())),
        (dated, NOW, AuthError::RepeatedHeader("x-amz-date".into())),
        (compact(), i64::MAX, AuthError::UnreadableDate),
    ];
    for (request, now, expected) in cases {
        assert_eq!(
            request.try_sign_as(SECRET, REGION, now).err(),
            Some(expected)
        );
    }
}
