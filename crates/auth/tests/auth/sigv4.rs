//! AWS4 in the header as a specification: vectors, and what is accepted and refused.

use crate::request::{Form, NOW, REALM, Request, SECRET, Signer};
use lance_maintenance_auth::{AuthError, Realm, Scheme};

const HEADER: Form = Form::Aws4Header;
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
        let signed = request.sign(HEADER);
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
        assert_eq!(signed.verify(), Ok(()));
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn accepts() {
    let mut https = compact().set("host", Some("bucket.example")).sign(HEADER);
    https.scheme = Scheme::Https;
    let cases = [
        ("empty body", Request::new("DELETE", TASKS).sign(HEADER)),
        ("root", Request::new("GET", "/").sign(HEADER)),
        ("no blanks after commas", compact().sign(HEADER).reauthorize(", ", ",")),
        ("blanks around a value", compact().sign(HEADER).set("content-type", Some("  application/json "))),
        ("header not signed", compact().sign(HEADER).with("User-Agent", "x").with("x-amzn-trace-id", "1")),
        ("repeated header not signed", compact().sign(HEADER).with("Accept", "a").with("Accept", "b")),
        ("content-type not signed", Request::new("POST", COMPACT).body("{}").sign(HEADER).with("Content-Type", JSON)),
        ("query that is not canonical", Request::new("GET", &format!("{TASKS}?b=1&a=+&status")).sign(HEADER)),
        ("query in another order", { let mut it = Request::new("GET", &format!("{TASKS}?a=1&b=2")).sign(HEADER); it.query = Some("b=2&a=1".into()); it }),
        ("host in upper case", compact().set("host", Some("bucket.example")).sign(HEADER).set("host", Some("BUCKET.example"))),
        ("port that is no default", compact().set("host", Some("127.0.0.1:3000")).sign(HEADER)),
        ("default port spelled out", compact().set("host", Some("bucket.example")).sign(HEADER).set("host", Some("bucket.example:80"))),
        ("default port of https", https.set("host", Some("bucket.example:443"))),
        ("non-ASCII header value", { let mut it = compact(); it.headers.push(("x-amz-meta".into(), vec![0xff, b' ', 0xfe])); it.sign(HEADER) }),
    ];
    for (what, request) in cases {
        assert!(request.verify().is_ok(), "{what}: {:?}", request.verify());
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn refuses() {
    let digest_of_empty = compact().body("").sign(HEADER).header("x-amz-content-sha256");
    let unsigned = |name: &str| AuthError::UnsignedHeader(name.to_owned());
    let malformed = |what: &str| AuthError::Malformed(what.to_owned());
    let unread = AuthError::UnreadableDate("x-amz-date");
    let digest = AuthError::PayloadDigest("x-amz-content-sha256");
    let elsewhere = Signer { realm: Realm { region: "cn-beijing", ..REALM }, ..Signer::default() };
    let yesterday = Signer { now: NOW - 86_400, ..Signer::default() };
    let other = Signer { secret: "other-sk", ..Signer::default() };
    let repeated = |name: &str| AuthError::RepeatedHeader(name.to_owned());
    let target = |target: &str| { let (from, mut it) = (Request::new("POST", target), compact().sign(HEADER)); (it.path, it.query) = (from.path, from.query); it };
    let cases = [
        // Authorization
        ("AccessDenied", AuthError::NotSigned, compact()),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().with("Authorization", "")),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().with("Authorization", "Bearer abc")),
        ("AccessDenied", AuthError::UnsupportedScheme, compact().sign(HEADER).reauthorize("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512")),
        ("AccessDenied", malformed("the Authorization header is not a list of name=value"), compact().with("Authorization", "AWS4-HMAC-SHA256")),
        ("AccessDenied", malformed("the Authorization header is without SignedHeaders"), compact().with("Authorization", "AWS4-HMAC-SHA256 Signature=00")),
        ("AccessDenied", repeated("authorization"), { let it = compact().sign(HEADER); let value = it.header("authorization"); it.with("Authorization", &value) }),
        ("AccessDenied", AuthError::UnreadableHeader("authorization".into()), { let mut it = compact(); it.headers.push(("authorization".into(), vec![0xff])); it }),
        // who
        ("InvalidAccessKeyId", AuthError::UnknownAccessKey, compact().sign(HEADER).reauthorize("test-ak", "other-ak")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign_with(HEADER, &other)),
        // scope
        ("SignatureDoesNotMatch", AuthError::OtherRegion(REALM.region.into()), compact().sign_with(HEADER, &elsewhere)),
        ("SignatureDoesNotMatch", AuthError::OtherService, compact().sign(HEADER).reauthorize("/osstables/", "/s3/")),
        ("AccessDenied", malformed("the credential is not key/date/region/service/aws4_request"), compact().sign(HEADER).reauthorize("aws4_request", "aws5_request")),
        ("SignatureDoesNotMatch", AuthError::OtherDate("x-amz-date"), compact().sign(HEADER).reauthorize("/20260728/", "/20260727/")),
        // body
        ("InvalidDigest", digest.clone(), compact().sign(HEADER).body("{ }")),
        ("InvalidDigest", digest.clone(), compact().sign(HEADER).set("x-amz-content-sha256", Some(&digest_of_empty))),
        ("InvalidDigest", digest.clone(), compact().sign(HEADER).set("x-amz-content-sha256", Some(""))),
        ("InvalidDigest", digest.clone(), compact().sign(HEADER).set("x-amz-content-sha256", Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD"))),
        ("InvalidDigest", AuthError::UnsignedPayload, compact().sign(HEADER).set("x-amz-content-sha256", Some(UNSIGNED))),
        ("AccessDenied", repeated("x-amz-content-sha256"), compact().sign(HEADER).with("X-Amz-Content-Sha256", &digest_of_empty)),
        // time
        ("AccessDenied", unread.clone(), compact().sign(HEADER).set("x-amz-date", None)),
        ("AccessDenied", unread.clone(), compact().sign(HEADER).set("x-amz-date", Some("2026-07-28T01:02:03Z"))),
        ("AccessDenied", repeated("x-amz-date"), compact().sign(HEADER).with("X-Amz-Date", "20260728T010203Z")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("x-amz-date", Some("20260728T010204Z"))),
        ("RequestTimeTooSkewed", AuthError::TimeTooSkewed(86_400), compact().sign_with(HEADER, &yesterday)),
        // signed headers
        ("AccessDenied", unsigned("host"), compact().sign(HEADER).reauthorize("host;", "")),
        ("AccessDenied", unsigned("x-amz-date"), compact().sign(HEADER).reauthorize(";x-amz-date", "")),
        ("AccessDenied", unsigned("x-amz-content-sha256"), compact().sign(HEADER).reauthorize("x-amz-content-sha256;", "")),
        ("AccessDenied", unsigned("x-amz-target"), compact().sign(HEADER).with("X-Amz-Target", "t")),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("host".into()), compact().sign(HEADER).set("host", None)),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("content-type".into()), compact().sign(HEADER).set("content-type", None)),
        ("SignatureDoesNotMatch", AuthError::MissingHeader("x-amz-content-sha256".into()), compact().sign(HEADER).set("x-amz-content-sha256", None)),
        ("AccessDenied", repeated("host"), compact().sign(HEADER).with("host", "other")),
        ("AccessDenied", repeated("content-type"), compact().sign(HEADER).with("content-type", JSON)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).reauthorize("content-type;", "")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("content-type", Some("text/plain"))),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("host", Some("other"))),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().set("host", Some("h")).sign(HEADER).set("host", Some("h:443"))),
        // the request line
        ("SignatureDoesNotMatch", AuthError::Signature, { let mut it = compact().sign(HEADER); it.method = "PUT".into(); it }),
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
        (compact(), i64::MAX, AuthError::UnreadableDate("x-amz-date")),
    ];
    for (request, now, expected) in cases {
        let signer = Signer {
            now,
            ..Signer::default()
        };
        assert_eq!(request.try_sign(HEADER, &signer).err(), Some(expected));
    }
}
