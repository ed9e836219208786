//! What holds for every request, in every form.

use crate::request::{EXPIRES, Form, NOW, REALM, Request, Signer, credential};
use lance_maintenance_auth::{AuthError, Credential, Scheme, Secret, check_content_md5};
use proptest::prelude::*;
use proptest::sample::Index;

fn forms(of: &[Form]) -> impl Strategy<Value = Form> + use<> {
    proptest::sample::select(of.to_vec())
}

fn is_oss4(form: Form) -> bool {
    matches!(form, Form::Oss4Header | Form::Oss4Query)
}

prop_compose! {
    /// A request as a client may send it, not signed yet, with a header of its own that every
    /// scheme signs. In its path are no escapes but good ones.
    fn requests(of: &[Form])(
        form in forms(of),
        method in "[A-Z]{1,7}",
        path in "(/([!-\"$&->@-~]|%[346][0-9A-Fa-f]|%C3%[89AB][0-9a-f]){0,8}){0,4}",
        query in proptest::option::of("[!-\"$-~]{0,40}"),
        host in "[a-zA-Z0-9.-]{1,20}(:[0-9]{1,5})?",
        content_type in proptest::option::of("[ -~]{0,20}"),
        own in proptest::collection::vec(any::<u8>(), 0..20),
        body in proptest::collection::vec(any::<u8>(), 0..100),
        https in any::<bool>(),
    ) -> (Form, Request) {
        let mut request = Request::new(&method, &path).set("Host", Some(&host));
        request.query = query;
        request.body = body;
        let name = if is_oss4(form) { "X-Oss-Own" } else { "X-Amz-Own" };
        let own = own.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
        request.headers.push((name.to_owned(), own));
        request.scheme = if https { Scheme::Https } else { Scheme::Http };
        let request = match content_type {
            Some(value) => request.with("Content-Type", &value),
            None => request,
        };
        (form, request)
    }
}

prop_compose! {
    /// The same, signed with a token and, where that is to be said, with the digest of the body.
    fn signed_in(of: &[Form])((form, request) in requests(of), token in "[!-~]{1,30}") -> (Form, Request, Credential) {
        let digest = sha256_hex(&request.body);
        let request = match form {
            Form::Oss4Header | Form::Oss4Query => request.with("x-oss-content-sha256", &digest),
            Form::Aws4Header | Form::Aws4Query => request,
        };
        let signer = Signer { token: Some(&token), additional: &["Host"], ..Signer::default() };
        let credential = Credential { session_token: Some(Secret::new(&*token)), ..credential() };
        (form, request.sign_with(form, &signer), credential)
    }
}

fn signed() -> impl Strategy<Value = (Form, Request, Credential)> {
    signed_in(&Form::ALL)
}

/// The digest, as the AWS4 signer writes it.
fn sha256_hex(body: &[u8]) -> String {
    let mut request = Request::new("GET", "/");
    request.body = body.to_vec();
    request
        .sign(Form::Aws4Header)
        .header("x-amz-content-sha256")
}

fn verify(request: &Request, credential: &Credential) -> Result<(), AuthError> {
    request.verify_for(Some(credential), &REALM, NOW)
}

/// Puts another visible character in one place of a text.
fn change(text: &str, at: Index, to: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if let Some(place) = (!bytes.is_empty()).then(|| at.index(bytes.len())) {
        bytes[place] = to;
    }
    String::from_utf8(bytes).unwrap()
}

fn decode(path: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(path).collect()
}

/// What a path means: its segments, decoded.
fn segments(path: &str) -> Vec<Vec<u8>> {
    path.split('/').map(decode).collect()
}

/// What a query means: its pairs, in no order. A signature is in hexadecimal digits of either case.
fn meaning(query: Option<&str>) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
        .map(|(name, value)| match name.as_str() {
            "X-Amz-Signature" | "x-oss-signature" => (name, value.to_ascii_lowercase()),
            _ => (name, value),
        })
        .collect();
    pairs.sort();
    pairs
}

fn words(value: &[u8]) -> Vec<&[u8]> {
    value
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn what_is_signed_verifies((_, request, credential) in signed()) {
        prop_assert_eq!(verify(&request, &credential), Ok(()));
    }

    #[test]
    fn another_secret_is_refused((_, request, credential) in signed(), secret in "[!-~]{1,20}") {
        let other = Credential { secret_access_key: Secret::new(secret), ..credential };
        prop_assert_eq!(verify(&request, &other), Err(AuthError::Signature));
    }

    #[test]
    fn another_token_is_refused((_, request, credential) in signed(), token in "|[!-~]{0,30}\u{e9}") {
        let other = Credential { session_token: Some(Secret::new(token)), ..credential };
        prop_assert_eq!(verify(&request, &other), Err(AuthError::OtherToken));
    }

    #[test]
    fn any_change_of_the_method_is_refused(
        (_, mut request, credential) in signed(), at: Index, to in b'A'..=b'Z',
    ) {
        let changed = change(&request.method, at, to);
        prop_assume!(changed != request.method);
        request.method = changed;
        prop_assert_eq!(verify(&request, &credential), Err(AuthError::Signature));
    }

    #[test]
    fn any_change_of_the_body_is_refused(
        (form, mut request, credential) in signed(), at: Index, flip in 1..=255u8,
    ) {
        match request.body.len() {
            0 => request.body.push(flip),
            length => request.body[at.index(length)] ^= flip,
        }
        let expected = match form {
            Form::Aws4Header => AuthError::PayloadDigest("x-amz-content-sha256"),
            Form::Aws4Query => AuthError::Signature,
            _ => AuthError::PayloadDigest("x-oss-content-sha256"),
        };
        prop_assert_eq!(verify(&request, &credential), Err(expected));
    }

    /// Under OSS4 two spellings of one path have one signature, see the next.
    #[test]
    fn any_change_of_the_path_is_refused(
        (form, mut request, credential) in signed(), at: Index, to in b'!'..=b'~',
    ) {
        let changed = match request.path.as_str() {
            "" => format!("/{}", char::from(to)),
            path => change(path, at, to),
        };
        prop_assume!(changed != request.path);
        prop_assume!(!is_oss4(form) || decode(&changed) != decode(&request.path));
        request.path = changed;
        let got = verify(&request, &credential);
        match got {
            Err(AuthError::AmbiguousPath) => prop_assert!(is_oss4(form)),
            _ => prop_assert_eq!(got, Err(AuthError::Signature)),
        }
    }

    /// A signature is not good for a request that means something else: not where a client signed
    /// the path as it sent it, not where it signed the path decoded.
    #[test]
    fn a_signature_is_good_for_one_meaning(
        (_, request, credential) in signed(), which in any::<u64>(), lower: bool, unreserved: bool,
    ) {
        let mut replayed = request.clone();
        let escape = |(at, byte): (usize, u8)| match byte {
            b'-' | b'.' | b'_' | b'~' if !unreserved => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() && !unreserved => char::from(byte).to_string(),
            _ if which >> (at % 64) & 1 == 1 => char::from(byte).to_string(),
            _ if lower => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        };
        replayed.path = request.path.bytes().enumerate().map(escape).collect();
        let mut decoded = request.clone();
        decoded.path = String::from_utf8_lossy(&decode(&request.path)).into_owned();
        for replayed in [replayed, decoded] {
            if verify(&replayed, &credential).is_ok() {
                let empty_is_root = |path: &str| if path.is_empty() { "/".into() } else { path.to_owned() };
                prop_assert_eq!(
                    segments(&empty_is_root(&replayed.path)),
                    segments(&empty_is_root(&request.path))
                );
            }
        }
    }

    #[test]
    fn any_change_of_what_the_query_means_is_refused(
        (form, request) in requests(&Form::ALL), at: Index, to in b'!'..=b'~',
    ) {
        let own = request.query.clone().filter(|query| !query.is_empty());
        let own = own.unwrap_or_else(|| "delimiter=%24".to_owned());
        let mut request = Request { query: Some(own), ..request }.sign(form);
        let before = request.query.clone().unwrap();
        let changed = Some(change(&before, at, to));
        prop_assume!(meaning(changed.as_deref()) != meaning(Some(&before)));
        request.query = changed;
        prop_assert!(request.verify().is_err());
    }

    #[test]
    fn any_change_of_a_signed_header_is_refused(
        (form, mut request, credential) in signed(), at: Index, flip in 1..=255u8,
    ) {
        let own = request.headers.iter_mut().find(|(name, _)| name.ends_with("-Own")).unwrap();
        let before = own.1.clone();
        match before.len() {
            0 => own.1.push(flip),
            length => own.1[at.index(length)] ^= flip,
        }
        let same = match is_oss4(form) {
            true => before.trim_ascii() == own.1.trim_ascii(),
            false => words(&before) == words(&own.1),
        };
        prop_assume!(!same);
        let broken = is_oss4(form) && own.1.trim_ascii().contains(&b'\n');
        let expected = match broken {
            true => AuthError::UnreadableHeader("x-oss-own".to_owned()),
            false => AuthError::Signature,
        };
        prop_assert_eq!(verify(&request, &credential), Err(expected));
    }

    #[test]
    fn another_host_is_refused((_, request, credential) in signed()) {
        let host = format!("x{}", request.header("host"));
        let request = request.set("host", Some(&host));
        prop_assert_eq!(verify(&request, &credential), Err(AuthError::Signature));
    }

    #[test]
    fn any_change_of_an_authorization_is_refused(
        (_, request, credential) in signed_in(&Form::IN_HEADER), at: Index, to in b'!'..=b'~',
    ) {
        let before = request.header("authorization");
        let changed = change(&before, at, to);
        // Hexadecimal digits have two cases.
        prop_assume!(!changed.eq_ignore_ascii_case(&before));
        let request = request.set("authorization", Some(&changed));
        prop_assert!(verify(&request, &credential).is_err());
    }

    #[test]
    fn presigned_requests_are_good_until_they_expire(
        (_, request, credential) in signed_in(&Form::IN_QUERY), at in -2000..2 * i64::from(EXPIRES),
    ) {
        let got = request.verify_for(Some(&credential), &REALM, NOW + at);
        prop_assert_eq!(got.is_ok(), (-900..=i64::from(EXPIRES)).contains(&at));
    }

    #[test]
    fn arbitrary_text_is_refused(
        parts in proptest::array::uniform3(any::<String>()),
        query in proptest::option::of(any::<String>()),
        headers in proptest::collection::vec(
            (
                prop_oneof![
                    Just("authorization".to_owned()), Just("x-amz-date".to_owned()),
                    Just("x-oss-date".to_owned()), Just("x-oss-content-sha256".to_owned()),
                    Just("x-amz-content-sha256".to_owned()), Just("host".to_owned()), any::<String>(),
                ],
                proptest::collection::vec(any::<u8>(), 0..60),
            ),
            0..6,
        ),
        scheme in prop_oneof![Just(""), Just("AWS4-HMAC-SHA256 "), Just("OSS4-HMAC-SHA256 ")],
        now: i64,
    ) {
        let [method, path, parameters] = parts;
        let mut request = Request::new(&method, &path);
        request.query = query;
        request.headers = headers;
        prop_assert!(request.verify_at(now).is_err());
        request.headers.retain(|(name, _)| name != "authorization");
        let value = format!("{scheme}{parameters}");
        prop_assert!(request.with("authorization", &value).verify_at(now).is_err());
    }

    /// A well-formed signature in front of arbitrary text everywhere else.
    #[test]
    fn arbitrary_text_does_not_panic_beyond_the_signature(
        form in forms(&Form::ALL),
        parts in proptest::array::uniform3(any::<String>()),
        query in any::<String>(),
        own in proptest::collection::vec(any::<u8>(), 0..60),
        date in prop_oneof![any::<String>(), "[0-9]{8}T[0-9]{6}Z"],
        now: i64,
    ) {
        let [method, path, host] = parts;
        let signer = Signer { additional: &["host"], ..Signer::default() };
        let signed = Request::new("GET", "/").sign_with(form, &signer);
        let mut request = signed.set("host", Some(&host));
        match form {
            Form::Aws4Header | Form::Oss4Header => {
                request = request.set(form.date(), Some(&date));
                request.query = Some(query);
            }
            Form::Aws4Query | Form::Oss4Query => {
                request = request.requery("20260728T010203Z", &date);
                request.query = request.query.map(|own| format!("{own}&{query}"));
            }
        }
        request.headers.push(("x-oss-own".to_owned(), own));
        (request.method, request.path) = (method, path);
        prop_assert!(request.verify_at(now).is_err());
        prop_assert!(request.verify().is_err());
    }

    /// Signature parameters with arbitrary values.
    #[test]
    fn arbitrary_values_of_parameters_are_refused(
        form in forms(&Form::IN_QUERY),
        which: Index,
        value in any::<String>(),
    ) {
        let mut request = Request::new("GET", "/").sign(form);
        let query = request.query.unwrap();
        let mut pairs: Vec<String> = query.split('&').map(str::to_owned).collect();
        let place = which.index(pairs.len());
        let name = pairs[place].split('=').next().unwrap().to_owned();
        let encoded = form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>();
        pairs[place] = format!("{name}={encoded}");
        prop_assume!(meaning(Some(&pairs.join("&"))) != meaning(Some(&query)));
        request.query = Some(pairs.join("&"));
        prop_assert!(request.verify().is_err());
    }

    #[test]
    fn content_md5_of_arbitrary_bytes(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        prop_assert!(check_content_md5(&value, b"body").is_err());
    }
}
