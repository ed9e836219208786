//! What holds for every request.

use crate::request::{KEY, NOW, REGION, Request, SECRET};
use lance_maintenance_auth::{AuthError, Scheme, check_content_md5};
use proptest::prelude::*;
use proptest::sample::Index;

prop_compose! {
    /// A request as a client may send it, not signed yet, with a header of its own.
    fn requests()(
        method in "[A-Z]{1,7}",
        path in "(/[!-\"$->@-~]{0,12}){0,4}",
        query in proptest::option::of("[!-\"$-~]{0,40}"),
        host in "[a-zA-Z0-9.-]{1,20}(:[0-9]{1,5})?",
        content_type in proptest::option::of("[ -~]{0,20}"),
        own in proptest::collection::vec(any::<u8>(), 0..20),
        body in proptest::collection::vec(any::<u8>(), 0..100),
        https in any::<bool>(),
    ) -> Request {
        let mut request = Request::new(&method, &path).set("Host", Some(&host));
        request.query = query;
        request.body = body;
        request.headers.push(("X-Amz-Own".to_owned(), own));
        request.scheme = if https { Scheme::Https } else { Scheme::Http };
        match content_type {
            Some(value) => request.with("Content-Type", &value),
            None => request,
        }
    }
}

/// Puts another visible character in one place of a text.
fn change(text: &str, at: Index, to: u8) -> String {
    let mut bytes = text.as_bytes().to_vec();
    if let Some(place) = (!bytes.is_empty()).then(|| at.index(bytes.len())) {
        bytes[place] = to;
    }
    String::from_utf8(bytes).unwrap()
}

/// What a query means: its pairs, in no order.
fn meaning(query: Option<&str>) -> Vec<(String, String)> {
    let mut pairs: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
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
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_signed_verifies(request in requests()) {
        let caller = request.sign().verify().unwrap();
        prop_assert_eq!(caller.access_key_id, KEY);
    }

    #[test]
    fn any_change_of_the_body_is_refused(request in requests(), at: Index, flip in 1..=255u8) {
        let mut request = request.sign();
        match request.body.len() {
            0 => request.body.push(flip),
            length => request.body[at.index(length)] ^= flip,
        }
        prop_assert_eq!(request.verify(), Err(AuthError::PayloadDigest));
    }

    #[test]
    fn any_change_of_the_path_is_refused(request in requests(), at: Index, to in b'!'..=b'~') {
        let mut request = request.sign();
        let changed = change(&request.path, at, to);
        prop_assume!(changed != request.path);
        request.path = changed;
        prop_assert_eq!(request.verify(), Err(AuthError::Signature));
    }

    #[test]
    fn any_change_of_what_the_query_means_is_refused(
        request in requests(), at: Index, to in b'!'..=b'~',
    ) {
        let query = request.query.clone().filter(|query| !query.is_empty());
        let query = query.unwrap_or_else(|| "delimiter=%24".to_owned());
        let request = Request { query: Some(query.clone()), ..request };
        let mut request = request.sign();
        let changed = Some(change(&query, at, to));
        prop_assume!(meaning(changed.as_deref()) != meaning(request.query.as_deref()));
        request.query = changed;
        prop_assert_eq!(request.verify(), Err(AuthError::Signature));
    }

    #[test]
    fn any_change_of_a_signed_header_is_refused(
        request in requests(), at: Index, flip in 1..=255u8,
    ) {
        let mut request = request.sign();
        let own = request.headers.iter_mut().find(|(name, _)| name == "X-Amz-Own").unwrap();
        let before = own.1.clone();
        match before.len() {
            0 => own.1.push(flip),
            length => own.1[at.index(length)] ^= flip,
        }
        prop_assume!(words(&before) != words(&own.1));
        prop_assert_eq!(request.verify(), Err(AuthError::Signature));
    }

    /// Some clients sign the path as they send it, others encode it first. A signature of the one
    /// kind must not be good for a request of the other kind that means something else.
    #[test]
    fn a_signature_is_good_for_one_meaning(request in requests()) {
        let signed = request.sign();
        let mut replayed = signed.clone();
        replayed.path = signed.path.bytes().map(|byte| match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        }).collect();
        if replayed.verify().is_ok() {
            let decode = |path: &str| percent_encoding::percent_decode_str(path).collect::<Vec<_>>();
            prop_assert_eq!(decode(&replayed.path), decode(&signed.path));
        }
    }

    #[test]
    fn arbitrary_text_is_refused(
        parts in proptest::array::uniform3(any::<String>()),
        query in proptest::option::of(any::<String>()),
        headers in proptest::collection::vec(
            (
                prop_oneof![
                    Just("authorization".to_owned()), Just("x-amz-date".to_owned()),
                    Just("x-amz-content-sha256".to_owned()), Just("host".to_owned()), any::<String>(),
                ],
                proptest::collection::vec(any::<u8>(), 0..60),
            ),
            0..6,
        ),
        scheme in prop_oneof![Just(""), Just("AWS4-HMAC-SHA256 ")],
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

    /// A well-formed `Authorization` in front of arbitrary text everywhere else.
    #[test]
    fn arbitrary_text_does_not_panic_beyond_the_header(
        parts in proptest::array::uniform3(any::<String>()),
        query in proptest::option::of(any::<String>()),
        own in proptest::collection::vec(any::<u8>(), 0..60),
        date in prop_oneof![any::<String>(), "[0-9]{8}T[0-9]{6}Z"],
        now: i64,
    ) {
        let [method, path, host] = parts;
        let mut request = Request::new("GET", "/").sign_as(SECRET, REGION, NOW)
            .set("host", Some(&host))
            .set("x-amz-date", Some(&date))
            .reauthorize("SignedHeaders=", "SignedHeaders=x-amz-own;");
        request.headers.push(("x-amz-own".to_owned(), own));
        (request.method, request.path, request.query) = (method, path, query);
        prop_assert!(request.verify_at(now).is_err());
        prop_assert!(request.verify().is_err());
    }

    #[test]
    fn content_md5_of_arbitrary_bytes(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        prop_assert!(check_content_md5(&value, b"body").is_err());
    }
}
