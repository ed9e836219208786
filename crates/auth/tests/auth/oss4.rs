//! OSS4 as a specification: vectors, and what is accepted and refused.

use crate::request::{Form, NOW, REALM, Request, SECRET, Signer};
use lance_maintenance_auth::{AuthError, Realm};

const HEADER: Form = Form::Oss4Header;
const JSON: &str = "application/json";
const MD5: &str = "mZFLkyvTelC5g8XnyQrpOw==";
const DIGEST: &str = "x-oss-content-sha256";
const DIGEST_OF_BODY: &str = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
const COMPACT: &str = "/lance/oss/v1/table/prod%24documents/compact";
const TASKS: &str = "/lance/oss/v1/table/prod%24documents/tasks";

fn compact() -> Request {
    Request::new("POST", COMPACT)
        .with("Content-Type", JSON)
        .body("{}")
}

fn signed(additional: &[&str], request: Request) -> Request {
    let signer = Signer {
        additional,
        ..Signer::default()
    };
    request.sign_with(HEADER, &signer)
}

/// The vectors of the API facts, section 11.2.
#[test]
fn vectors() {
    let list = format!("{TASKS}?task_type=lance_compact&max_results=100&delimiter=%24");
    let delete = "/lance/oss/v1/table/prod__documents/tasks/abc?delimiter=__";
    let cases = [
        (
            compact().with("Content-MD5", MD5),
            "eb4347c47e7468eb710d7292a67c0977e3f603c0fdcfea7a6a7e75f0597223be",
        ),
        (
            Request::new("GET", &list),
            "c444cc179d83f79b0cab7a95c25565e78e41553c333e56234d21e9ab715125c2",
        ),
        (
            Request::new("DELETE", delete),
            "2952943f3db0b9ab2c70cfabb0c671f3b184dc7a386bf24a1f478d2f9dda4225",
        ),
    ];
    for (request, signature) in cases {
        let signed = request.sign(HEADER);
        assert_eq!(
            signed.header("authorization"),
            format!(
                "OSS4-HMAC-SHA256 \
                 Credential=test-ak/20260728/cn-hangzhou/osstables/aliyun_v4_request,\
                 Signature={signature}"
            ),
            "{} {}",
            signed.method,
            signed.path
        );
        assert_eq!(signed.header("x-oss-date"), "20260728T010203Z");
        assert_eq!(signed.header(DIGEST), "UNSIGNED-PAYLOAD");
        assert_eq!(signed.verify(), Ok(()));
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn accepts() {
    let with_digest = compact().with(DIGEST, DIGEST_OF_BODY);
    let cases = [
        ("blanks after commas", compact().sign(HEADER).reauthorize(",", ", ")),
        ("blanks after commas of three parts", signed(&["host"], compact()).reauthorize(",", ", ")),
        ("no digest header", { let it = compact().with(DIGEST, "UNSIGNED-PAYLOAD").sign(HEADER); assert_eq!(it.header(DIGEST), "UNSIGNED-PAYLOAD"); it }),
        ("digest of the body", with_digest.clone().sign(HEADER)),
        ("digest of the body in the query form", with_digest.sign(Form::Oss4Query)),
        ("body that is not signed", compact().sign(HEADER).body("{ }")),
        ("host that is not signed", compact().sign(HEADER).set("host", Some("other"))),
        ("header not signed", compact().sign(HEADER).with("User-Agent", "x").with("x-amz-own", "1")),
        ("repeated header not signed", compact().sign(HEADER).with("Accept", "a").with("Accept", "b")),
        ("other names in other case", { let mut it = signed(&["HOST"], compact().with("X-OSS-Own", "1")); for (name, _) in &mut it.headers { *name = name.to_ascii_uppercase(); } it }),
        ("empty value", compact().with("x-oss-own", "").sign(HEADER)),
        ("bytes that are not text", { let mut it = compact(); it.headers.push(("x-oss-own".into(), vec![0xff, b' ', 0xfe])); it.sign(HEADER) }),
        ("additional headers in another order", signed(&["host", "accept"], compact().with("accept", "*/*")).reauthorize("accept;host", "host;accept")),
        ("query in another order", { let mut it = Request::new("GET", &format!("{TASKS}?a=1&b=2")).sign(HEADER); it.query = Some("b=2&a=1".into()); it }),
        ("parameter without a value", { let mut it = Request::new("GET", &format!("{TASKS}?status=")).sign(HEADER); it.query = Some("status".into()); it }),
        ("another spelling of the path", { let mut it = compact().sign(HEADER); it.path = "/lance/oss/v1/%74able/prod$documents/compact".into(); it }),
        ("root", Request::new("GET", "/").sign(HEADER)),
        ("text that is not ASCII", Request::new("GET", "/%E8%A1%A8/tasks").sign(HEADER)),
    ];
    for (what, request) in cases {
        assert_eq!(request.verify(), Ok(()), "{what}");
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn refuses() {
    let malformed = |what: &str| AuthError::Malformed(what.to_owned());
    let repeated = |name: &str| AuthError::RepeatedHeader(name.to_owned());
    let missing = |name: &str| AuthError::MissingHeader(name.to_owned());
    let digest = || AuthError::PayloadDigest(DIGEST);
    let unread = || AuthError::UnreadableDate("x-oss-date");
    let sign_as = |signer| compact().sign_with(HEADER, &signer);
    let elsewhere = Realm { region: "cn-beijing", ..REALM };
    let neighbour = Realm { bucket: "my-bucket2", ..REALM };
    let no_bucket = Realm { account_id: "", bucket: "", ..REALM };
    let target = |target: &str| { let (from, mut it) = (Request::new("POST", target), compact().sign(HEADER)); (it.path, it.query) = (from.path, from.query); it };
    let with_digest = || compact().with(DIGEST, DIGEST_OF_BODY).sign(HEADER);
    let cases = [
        // Authorization
        ("AccessDenied", malformed("the Authorization header is not a list of name=value"), compact().with("Authorization", "OSS4-HMAC-SHA256")),
        ("AccessDenied", malformed("the Authorization header is without Credential"), compact().with("Authorization", "OSS4-HMAC-SHA256 Signature=00")),
        ("AccessDenied", malformed("the Authorization header is of a part that is unknown"), compact().sign(HEADER).reauthorize("Signature", "SignedHeaders=host,Signature")),
        ("AccessDenied", malformed("the credential is not key/date/region/service/aliyun_v4_request"), compact().sign(HEADER).reauthorize("aliyun_v4", "aws4")),
        ("AccessDenied", malformed("the signed headers are not distinct lower-case names"), signed(&["host"], compact()).reauthorize("=host", "=Host")),
        ("AccessDenied", malformed("the signed headers are not distinct lower-case names"), signed(&["host"], compact()).reauthorize("=host", "=")),
        // who
        ("InvalidAccessKeyId", AuthError::UnknownAccessKey, compact().sign(HEADER).reauthorize("test-ak", "other-ak")),
        ("SignatureDoesNotMatch", AuthError::Signature, sign_as(Signer { secret: "other-sk", ..Signer::default() })),
        // where
        ("SignatureDoesNotMatch", AuthError::OtherRegion(REALM.region.into()), sign_as(Signer { realm: elsewhere, ..Signer::default() })),
        ("SignatureDoesNotMatch", AuthError::Signature, sign_as(Signer { realm: neighbour, ..Signer::default() })),
        ("SignatureDoesNotMatch", AuthError::Signature, sign_as(Signer { realm: no_bucket, ..Signer::default() })),
        ("SignatureDoesNotMatch", AuthError::OtherService, compact().sign(HEADER).reauthorize("/osstables/", "/oss/")),
        // when
        ("SignatureDoesNotMatch", AuthError::OtherDate("x-oss-date"), compact().sign(HEADER).reauthorize("/20260728/", "/20260727/")),
        ("AccessDenied", unread(), compact().sign(HEADER).set("x-oss-date", None)),
        ("AccessDenied", unread(), compact().sign(HEADER).set("x-oss-date", Some("Tue, 28 Jul 2026 01:02:03 GMT"))),
        ("AccessDenied", repeated("x-oss-date"), compact().sign(HEADER).with("X-Oss-Date", "20260728T010203Z")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("x-oss-date", Some("20260728T010204Z"))),
        ("RequestTimeTooSkewed", AuthError::TimeTooSkewed(86_400), sign_as(Signer { now: NOW - 86_400, ..Signer::default() })),
        // body
        ("InvalidDigest", digest(), with_digest().body("{ }")),
        ("InvalidDigest", digest(), with_digest().set(DIGEST, Some(""))),
        ("InvalidDigest", digest(), with_digest().set(DIGEST, Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER"))),
        ("InvalidDigest", digest(), with_digest().set(DIGEST, Some("unsigned-payload"))),
        ("SignatureDoesNotMatch", AuthError::Signature, with_digest().set(DIGEST, Some("UNSIGNED-PAYLOAD"))),
        ("SignatureDoesNotMatch", AuthError::Signature, with_digest().set(DIGEST, None)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set(DIGEST, Some(DIGEST_OF_BODY))),
        ("AccessDenied", repeated(DIGEST), with_digest().with(DIGEST, DIGEST_OF_BODY)),
        // signed headers
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("content-type", None)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).set("content-type", Some("text/plain"))),
        ("SignatureDoesNotMatch", AuthError::Signature, Request::new("GET", TASKS).sign(HEADER).with("Content-Type", JSON)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).with("Content-MD5", MD5)),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).with("x-oss-own", "1")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().with("x-oss-own", "a  b").sign(HEADER).set("x-oss-own", Some("a b"))),
        ("AccessDenied", repeated("content-type"), compact().sign(HEADER).with("content-type", JSON)),
        ("AccessDenied", AuthError::UnreadableHeader("x-oss-own".into()), compact().with("x-oss-z", "2").sign(HEADER).set("x-oss-z", None).with("x-oss-own", "1\nx-oss-z:2")),
        ("AccessDenied", AuthError::UnreadableHeader("x-oss-own:a".into()), compact().with("x-oss-own", "a:b").sign(HEADER).set("x-oss-own", None).with("x-oss-own:a", "b")),
        // additional headers
        ("SignatureDoesNotMatch", missing("host"), signed(&["host"], compact()).set("host", None)),
        ("SignatureDoesNotMatch", AuthError::Signature, signed(&["host"], compact()).set("host", Some("other"))),
        ("SignatureDoesNotMatch", AuthError::Signature, signed(&["host"], compact()).reauthorize("AdditionalHeaders=host,", "")),
        ("SignatureDoesNotMatch", AuthError::Signature, compact().sign(HEADER).reauthorize("Signature", "AdditionalHeaders=host,Signature")),
        ("AccessDenied", repeated("accept"), signed(&["accept"], compact().with("accept", "a")).with("Accept", "b")),
        // the request line
        ("SignatureDoesNotMatch", AuthError::Signature, { let mut it = compact().sign(HEADER); it.method = "PUT".into(); it }),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod%24documents/cleanup")),
        ("SignatureDoesNotMatch", AuthError::Signature, target("//lance/oss/v1/table/prod%24documents/compact")),
        ("SignatureDoesNotMatch", AuthError::Signature, target("/lance/oss/v1/table/prod%24documents/compact?delimiter=%24")),
        ("SignatureDoesNotMatch", AuthError::Signature, { let mut it = Request::new("GET", &format!("{TASKS}?a=%2f")).sign(HEADER); it.query = Some("a=/".into()); it }),
        // what the scheme does not bind
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table%2Fprod%24documents/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table%2fprod%24documents/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table/prod%2524documents/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table/prod%00documents/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table/prod%ffdocuments/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("/lance/oss/v1/table/prod%documents/compact")),
        ("AccessDenied", AuthError::AmbiguousPath, target("lance/oss/v1/table/prod%24documents/compact")),
        ("AccessDenied", AuthError::UnencodedQuery, target("/lance/oss/v1/table/prod%24documents/compact?a=\n")),
        ("AccessDenied", AuthError::UnencodedQuery, target("/lance/oss/v1/table/prod%24documents/compact?a=\u{e9}")),
    ];
    for (name, expected, request) in cases {
        let got = request.verify();
        assert_eq!(got.as_ref().err(), Some(&expected), "{} {:?}", request.path, request.headers);
        assert_eq!(expected.name(), name, "{expected}");
        assert!(!expected.to_string().contains(SECRET));
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn what_can_not_be_signed() {
    let twice = compact().with("x-oss-own", "1").with("X-Oss-Own", "2");
    let cases = [
        (compact(), &["accept"][..], NOW, AuthError::MissingHeader("accept".into())),
        (twice, &[], NOW, AuthError::RepeatedHeader("x-oss-own".into())),
        (compact().with(DIGEST, "00"), &[], NOW, AuthError::PayloadDigest(DIGEST)),
        (Request::new("GET", "/a%2Fb"), &[], NOW, AuthError::AmbiguousPath),
        (Request::new("GET", "/a?b=\u{e9}"), &[], NOW, AuthError::UnencodedQuery),
        (compact(), &[], i64::MAX, AuthError::UnreadableDate("x-oss-date")),
    ];
    for form in [Form::Oss4Header, Form::Oss4Query] {
        for (request, additional, now, expected) in &cases {
            let signer = Signer { additional, now: *now, ..Signer::default() };
            let got = request.clone().try_sign(form, &signer).err();
            assert_eq!(got.as_ref(), Some(expected), "{form:?}");
        }
    }
}
