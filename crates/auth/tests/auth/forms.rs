//! What the forms of a signature have in common: where it may be, and when it is good.

use crate::request::{EXPIRES, Form, NOW, REALM, Request, Signer, credential};
use lance_maintenance_auth::{AuthError, MAX_EXPIRES_SECONDS, Realm};

const TASKS: &str = "/lance/oss/v1/table/prod%24documents/tasks?delimiter=%24";

fn tasks() -> Request {
    Request::new("GET", TASKS)
}

#[test]
fn what_is_signed_verifies() {
    for form in Form::ALL {
        for request in [
            tasks(),
            Request::new("DELETE", "/a/b"),
            Request::new("GET", "/"),
        ] {
            assert_eq!(request.sign(form).verify(), Ok(()), "{form:?}");
        }
    }
}

#[test]
fn a_request_is_signed_once() {
    let query_of = |form| tasks().sign(form).query.unwrap();
    for form in Form::IN_HEADER {
        for other in Form::IN_QUERY {
            let mut request = tasks().sign(form);
            request.query = Some(query_of(other));
            assert_eq!(
                request.verify(),
                Err(AuthError::SignedTwice),
                "{form:?} {other:?}"
            );
        }
        let twice = tasks().sign(form).with("Authorization", "Bearer abc");
        let repeated = AuthError::RepeatedHeader("authorization".to_owned());
        assert_eq!(twice.verify(), Err(repeated), "{form:?}");
    }
    for form in Form::IN_QUERY {
        let other_scheme = tasks().sign(form).with("Authorization", "Bearer abc");
        assert_eq!(
            other_scheme.verify(),
            Err(AuthError::SignedTwice),
            "{form:?}"
        );
    }
    for form in Form::ALL {
        for other in Form::ALL {
            let got = tasks().sign(form).try_sign(other, &Signer::default());
            assert_eq!(
                got.err(),
                Some(AuthError::SignedTwice),
                "{form:?} {other:?}"
            );
        }
    }
    let mut both = tasks();
    both.query = Some([query_of(Form::Aws4Query), query_of(Form::Oss4Query)].join("&"));
    assert_eq!(both.verify(), Err(AuthError::SignedTwice));
}

/// A presigned URL does not become a signature in a header, which would not expire with it.
#[test]
fn a_signature_stays_in_its_form() {
    let cases = [
        (
            Form::Aws4Query,
            "X-Amz-Signature=",
            "SignedHeaders=host;x-amz-date, ",
        ),
        (Form::Oss4Query, "x-oss-signature=", ""),
    ];
    for (form, name, listed) in cases {
        let mut request = tasks().sign(form);
        let query = request.query.take().unwrap();
        let (rest, signature) = query.split_once(&format!("&{name}")).unwrap();
        let scheme = match form {
            Form::Aws4Query => {
                "AWS4-HMAC-SHA256 Credential=test-ak/20260728/cn-hangzhou/osstables/aws4_request"
            }
            _ => {
                "OSS4-HMAC-SHA256 Credential=test-ak/20260728/cn-hangzhou/osstables/aliyun_v4_request"
            }
        };
        let date = form.date().to_ascii_lowercase();
        let moved = request
            .with(
                "Authorization",
                &format!("{scheme}, {listed}Signature={signature}"),
            )
            .with(&date, "20260728T010203Z");
        for (query, expected) in [
            (rest, AuthError::SignedTwice),
            ("delimiter=%24", AuthError::Signature),
        ] {
            let mut moved = moved.clone();
            moved.query = Some(query.to_owned());
            assert_eq!(moved.verify(), Err(expected), "{form:?}");
        }
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn parameters_of_a_query() {
    let cases = |form: Form| {
        let malformed = |what: &str| AuthError::Malformed(what.to_owned());
        let [algorithm, credential, expires, signature, terminator] = match form {
            Form::Aws4Query => ["X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Expires", "X-Amz-Signature", "aws4_request"],
            _ => ["x-oss-signature-version", "x-oss-credential", "x-oss-expires", "x-oss-signature", "aliyun_v4_request"],
        };
        let date = form.date();
        let missing = |name: &str| malformed(&format!("the query is without {name}"));
        let misnamed = |name: &str| (format!("&{name}="), format!("&own-{name}="));
        let change = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let twice = |name: &str| (format!("&{name}="), format!("&{name}=&{name}="));
        vec![
            (misnamed(algorithm), missing(algorithm)),
            (misnamed(credential), missing(credential)),
            (misnamed(expires), missing(expires)),
            (misnamed(signature), missing(signature)),
            (misnamed(date), AuthError::UnreadableDate(date)),
            (change("C-SHA256", "C-SHA512"), AuthError::UnsupportedScheme),
            (change("=3600", "=0"), AuthError::UnreadableExpiry(expires)),
            (change("=3600", "=604801"), AuthError::UnreadableExpiry(expires)),
            (change("=3600", "=%2B3600"), AuthError::UnreadableExpiry(expires)),
            (change("=3600", "="), AuthError::UnreadableExpiry(expires)),
            (change("=3600", "=3601"), AuthError::Signature),
            (change("T010203Z", "T010203"), AuthError::UnreadableDate(date)),
            (change("T010203Z", "T010204Z"), AuthError::Signature),
            (change("=20260728T", "=20260729T"), AuthError::OtherDate(date)),
            (change("%2F20260728%2F", "%2F2026072%2F"), AuthError::OtherDate(date)),
            (change("_request", "_response"), malformed(&format!("the credential is not key/date/region/service/{terminator}"))),
            (change("cn-hangzhou", "cn-beijing"), AuthError::OtherRegion("cn-hangzhou".to_owned())),
            (change("osstables", "oss"), AuthError::OtherService),
            (change("test-ak", "other-ak"), AuthError::UnknownAccessKey),
            (change(&format!("{signature}="), &format!("{signature}=0")), malformed("the signature is not 64 hexadecimal digits")),
            (twice(algorithm), AuthError::RepeatedParameter(algorithm)),
            (twice(credential), AuthError::RepeatedParameter(credential)),
            (twice(date), AuthError::RepeatedParameter(date)),
            (twice(expires), AuthError::RepeatedParameter(expires)),
            (twice(signature), AuthError::RepeatedParameter(signature)),
            (change("delimiter=%24", "delimiter=."), AuthError::Signature),
            (change("delimiter=%24&", ""), AuthError::Signature),
            (change("delimiter=%24", "delimiter=%24&x=y"), AuthError::Signature),
        ]
    };
    for form in Form::IN_QUERY {
        for ((from, to), expected) in cases(form) {
            let got = tasks().sign(form).requery(&from, &to).verify();
            assert_eq!(got, Err(expected), "{form:?} {from} {to}");
        }
    }
}

#[test]
#[rustfmt::skip] // a line is a case
fn presigned_aws4() {
    let form = Form::Aws4Query;
    let json = |request: Request| request.with("Content-Type", "application/json").body("{}");
    let compact = || json(Request::new("POST", "/lance/oss/v1/table/prod%24documents/compact"));
    let unsigned = |name: &str| AuthError::UnsignedHeader(name.to_owned());
    let malformed = |what: &str| AuthError::Malformed(what.to_owned());
    let signed = |name, value| compact().with(name, value).sign(form);
    let cases = [
        (compact().sign(form), Ok(())),
        (compact().sign(form).with("User-Agent", "x"), Ok(())),
        (signed("x-amz-own", "a  b").set("x-amz-own", Some(" a b ")), Ok(())),
        (signed("x-amz-content-sha256", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"), Ok(())),
        (compact().sign(form).requery("X-Amz-Date", "X%2DAmz-Date"), Ok(())),
        (compact().sign(form).body("{ }"), Err(AuthError::Signature)),
        (compact().sign(form).set("content-type", Some("text/plain")), Err(AuthError::Signature)),
        (compact().sign(form).set("content-type", None), Err(AuthError::MissingHeader("content-type".into()))),
        (compact().sign(form).set("host", Some("other")), Err(AuthError::Signature)),
        (compact().sign(form).requery("host&", "user-agent&"), Err(unsigned("host"))),
        (compact().sign(form).with("x-amz-own", "1"), Err(unsigned("x-amz-own"))),
        (compact().sign(form).requery("&X-Amz-SignedHeaders=", "&own="), Err(malformed("the query is without X-Amz-SignedHeaders"))),
        (compact().sign(form).requery("SignedHeaders=", "SignedHeaders=Host;"), Err(malformed("the signed headers are not distinct lower-case names"))),
        (compact().sign(form).with("x-amz-content-sha256", "UNSIGNED-PAYLOAD"), Err(unsigned("x-amz-content-sha256"))),
        (signed("x-amz-own", "1").set("x-amz-own", None), Err(AuthError::MissingHeader("x-amz-own".into()))),
        // names are exact
        (compact().sign(form).requery("X-Amz-Date", "x-amz-date"), Err(AuthError::UnreadableDate("X-Amz-Date"))),
    ];
    for (request, expected) in cases {
        assert_eq!(request.verify(), expected, "{:?}", request.query);
    }
    for (digest, expected) in [
        ("UNSIGNED-PAYLOAD", AuthError::UnsignedPayload),
        ("00", AuthError::PayloadDigest("x-amz-content-sha256")),
    ] {
        let request = compact().with("x-amz-content-sha256", digest);
        assert_eq!(request.try_sign(form, &Signer::default()).err(), Some(expected));
    }
    let mut lower = tasks();
    lower.query = tasks().sign(form).query.map(|query| query.to_ascii_lowercase());
    assert_eq!(lower.verify(), Err(AuthError::NotSigned));
}

#[test]
fn windows() {
    let (window, expires) = (900, i64::from(EXPIRES));
    for form in Form::ALL {
        let request = tasks().sign(form);
        let in_query = Form::IN_QUERY.contains(&form);
        let late = match in_query {
            true => (expires + 1, Err(AuthError::Expired(1))),
            false => (window + 1, Err(AuthError::TimeTooSkewed(901))),
        };
        let cases = [
            (0, Ok(())),
            (-window, Ok(())),
            (-window - 1, Err(AuthError::TimeTooSkewed(901))),
            (if in_query { expires } else { window }, Ok(())),
            late,
        ];
        for (offset, expected) in cases {
            assert_eq!(
                request.verify_at(NOW + offset),
                expected,
                "{form:?} {offset}"
            );
        }
        for now in [i64::MIN, i64::MAX] {
            assert!(request.verify_at(now).is_err(), "{form:?}");
        }
    }
    assert_eq!(AuthError::Expired(1).name(), "AccessDenied");
    assert_eq!(AuthError::TimeTooSkewed(901).name(), "RequestTimeTooSkewed");
}

/// The scope's day is the request's, not the verifier's: midnight may lie between them.
#[test]
fn midnight_between_client_and_server() {
    let midnight = 1_785_196_800;
    for form in Form::ALL {
        let signer = Signer {
            now: midnight - 1,
            ..Signer::default()
        };
        let request = tasks().sign_with(form, &signer);
        assert_eq!(request.verify_at(midnight + 1), Ok(()), "{form:?}");
    }
}

#[test]
fn for_how_long_can_be_signed() {
    for form in Form::IN_QUERY {
        for (expires, accepted) in [
            (0, false),
            (1, true),
            (MAX_EXPIRES_SECONDS, true),
            (MAX_EXPIRES_SECONDS + 1, false),
        ] {
            let signer = Signer {
                expires,
                ..Signer::default()
            };
            let got = tasks().try_sign(form, &signer);
            assert_eq!(got.is_ok(), accepted, "{form:?} {expires}");
        }
    }
}

#[test]
fn a_signature_is_for_one_realm() {
    let other_region = Realm {
        region: "cn-beijing",
        ..REALM
    };
    let other_account = Realm {
        account_id: "1234567891",
        ..REALM
    };
    let other_bucket = Realm {
        bucket: "my-bucket2",
        ..REALM
    };
    for form in Form::ALL {
        let request = tasks().sign(form);
        let verify = |realm| request.verify_for(Some(&credential()), realm, NOW).err();
        let region = AuthError::OtherRegion("cn-beijing".to_owned());
        assert_eq!(verify(&other_region), Some(region), "{form:?}");
        // AWS4 signs the host instead, by which the caller finds the bucket.
        let expected = match form {
            Form::Aws4Header | Form::Aws4Query => None,
            Form::Oss4Header | Form::Oss4Query => Some(AuthError::Signature),
        };
        assert_eq!(verify(&other_account), expected, "{form:?}");
        assert_eq!(verify(&other_bucket), expected, "{form:?}");
    }
}
