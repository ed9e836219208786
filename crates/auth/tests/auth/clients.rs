//! Requests of clients that others wrote, captured byte for byte from the wire, all signed with
//! `test-ak` / `test-sk` for `cn-hangzhou`. They differ in what they sign: curl 7.88 path and query
//! as sent, 8.5 the path as sent, 8.23 and botocore the canonical ones; none of them adds
//! `x-amz-content-sha256` by itself for this service.

use crate::request::{KEY, Request};
use lance_maintenance_auth::AuthError;

/// 20261129T170157Z and later: all were captured within a quarter of an hour.
const CAPTURED: i64 = 1_795_971_717;

const REQUESTS: [(&str, &[u8]); 10] = [
    (
        "curl 7.88 list",
        include_bytes!("captured/curl-7.88-list.http"),
    ),
    (
        "curl 7.88 delete",
        include_bytes!("captured/curl-7.88-delete-raw-dollar.http"),
    ),
    (
        "curl 7.88 form type",
        include_bytes!("captured/curl-7.88-compact-form-type.http"),
    ),
    (
        "curl 7.88 digest",
        include_bytes!("captured/curl-7.88-compact-with-digest.http"),
    ),
    (
        "curl 8.5 list",
        include_bytes!("captured/curl-8.5-list.http"),
    ),
    (
        "curl 8.5 compact",
        include_bytes!("captured/curl-8.5-compact-raw-dollar.http"),
    ),
    (
        "curl 8.23 list",
        include_bytes!("captured/curl-8.23-list.http"),
    ),
    (
        "curl 8.23 compact",
        include_bytes!("captured/curl-8.23-compact-raw-dollar.http"),
    ),
    (
        "botocore list",
        include_bytes!("captured/botocore-1.44-list.http"),
    ),
    (
        "botocore compact",
        include_bytes!("captured/botocore-1.44-compact.http"),
    ),
];

fn read(wire: &[u8]) -> Request {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Request::new(&mut headers);
    let length = head.parse(wire).unwrap().unwrap();
    let mut request = Request::new(head.method.unwrap(), head.path.unwrap());
    request.headers = head
        .headers
        .iter()
        .map(|it| (it.name.to_owned(), it.value.to_vec()))
        .collect();
    request.body = wire[length..].to_vec();
    request
}

#[test]
fn clients_are_understood() {
    for (client, wire) in REQUESTS {
        let request = read(wire);
        assert_eq!(request.access_key_id().as_deref(), Ok(KEY), "{client}");
        assert_eq!(request.verify_at(CAPTURED), Ok(()), "{client}");
    }
}

#[test]
fn without_a_digest_header_the_signature_still_binds_the_body() {
    for (client, wire) in REQUESTS {
        let mut request = read(wire);
        let expected = match request
            .headers
            .iter()
            .any(|(name, _)| name == "x-amz-content-sha256")
        {
            true => AuthError::PayloadDigest("x-amz-content-sha256"),
            false => AuthError::Signature,
        };
        request.body.push(b' ');
        assert_eq!(request.verify_at(CAPTURED), Err(expected), "{client}");
    }
}

#[test]
fn a_captured_request_can_not_be_sent_to_another_table() {
    for (client, wire) in REQUESTS {
        let mut request = read(wire);
        request.path = request.path.replace("documents", "document2");
        assert_eq!(
            request.verify_at(CAPTURED),
            Err(AuthError::Signature),
            "{client}"
        );
    }
}
