//! Paths, methods, sizes and digests.

use lance_maintenance_dispatch::{
    CLAIM_PATH, FINISH_PATH, HEARTBEAT_PATH, PROGRESS_PATH, signature,
};
use lance_maintenance_tests::client::Call;
use reqwest::Method;

use crate::support::{Refusal, assert_accepted, assert_refused, client, declared};

const NO_SUCH_OPERATION: Refusal = (404, "NoSuchOperation", 0);
const METHOD_NOT_ALLOWED: Refusal = (405, "MethodNotAllowed", 0);
const UNSUPPORTED: Refusal = (406, "Unsupported", 0);
const ACCESS_DENIED: Refusal = (403, "AccessDenied", 15);
const INVALID_DIGEST: Refusal = (400, "InvalidDigest", 13);
const TOO_LARGE: Refusal = (413, "RequestTooLarge", 13);

const LIMIT: usize = 1024 * 1024;

#[tokio::test]
async fn paths_and_methods() {
    let id = "requests$t";
    declared("requests", "t").await;
    let cases = [
        ("GET", "/".to_owned(), NO_SUCH_OPERATION),
        ("GET", "/lance".to_owned(), NO_SUCH_OPERATION),
        ("GET", "/lance/oss/v1/table".to_owned(), NO_SUCH_OPERATION),
        (
            "GET",
            format!("/lance/oss/v1/table/{id}"),
            NO_SUCH_OPERATION,
        ),
        (
            "POST",
            format!("/lance/oss/v1/table/{id}/lance_compact"),
            NO_SUCH_OPERATION,
        ),
        (
            "POST",
            format!("/lance/oss/v1/table/{id}/Compact"),
            NO_SUCH_OPERATION,
        ),
        (
            "POST",
            format!("/lance/oss/v1/table/{id}/compact/"),
            NO_SUCH_OPERATION,
        ),
        (
            "POST",
            format!("/lance/oss/v2/table/{id}/compact"),
            NO_SUCH_OPERATION,
        ),
        (
            "GET",
            format!("/lance/oss/v1/table/{id}/tasks/a/b"),
            NO_SUCH_OPERATION,
        ),
        (
            "POST",
            format!("/oss/v1/table/{id}/compact"),
            NO_SUCH_OPERATION,
        ),
        // The components behind the router have no paths of their own.
        ("POST", "/compact".to_owned(), NO_SUCH_OPERATION),
        ("POST", "/catalog".to_owned(), NO_SUCH_OPERATION),
        (
            "GET",
            format!("/lance/oss/v1/table/{id}/compact"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "PUT",
            format!("/lance/oss/v1/table/{id}/cleanup"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "POST",
            format!("/lance/oss/v1/table/{id}/tasks"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "DELETE",
            format!("/lance/oss/v1/table/{id}/tasks"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "POST",
            format!("/lance/oss/v1/table/{id}/tasks/abc"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "PATCH",
            format!("/lance/oss/v1/table/{id}/tasks/abc"),
            METHOD_NOT_ALLOWED,
        ),
        ("POST", "/healthz".to_owned(), METHOD_NOT_ALLOWED),
        (
            "GET",
            format!("/lance/v1/table/{id}/declare"),
            METHOD_NOT_ALLOWED,
        ),
        (
            "POST",
            "/lance/v1/namespace/requests/list".to_owned(),
            METHOD_NOT_ALLOWED,
        ),
        ("POST", format!("/lance/v1/table/{id}/query"), UNSUPPORTED),
        ("GET", "/lance/v1/nothing".to_owned(), UNSUPPORTED),
    ];
    for (method, target, refusal) in cases {
        let call = Call::new(method.parse().unwrap(), &target);
        let answer = client().call(call).await.unwrap();
        assert_refused(&answer, refusal, &format!("{method} {target}"));
    }
}

#[tokio::test]
async fn health_is_public() {
    let answer = client().send(Call::get("/healthz")).await.unwrap();
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn workers_only() {
    let unsigned = [
        CLAIM_PATH,
        PROGRESS_PATH,
        FINISH_PATH,
        HEARTBEAT_PATH,
        "/worker/v1/x",
    ];
    for path in unsigned {
        let body = r#"{"worker_id":"w","starting":true,"in_hand":[],"room":1}"#;
        let answer = client().send(Call::post(path, body)).await.unwrap();
        assert_refused(&answer, ACCESS_DENIED, path);
        // A client's signature is none of a worker's.
        let answer = client().call(Call::post(path, body)).await.unwrap();
        assert_refused(&answer, ACCESS_DENIED, path);
        let forged = signature::sign("guess", "POST", path, 0, body.as_bytes());
        let call = Call::post(path, body)
            .header(signature::SIGNATURE_HEADER, forged)
            .header(signature::TIMESTAMP_HEADER, "0");
        let answer = client().send(call).await.unwrap();
        assert_refused(&answer, ACCESS_DENIED, path);
    }
}

#[tokio::test]
async fn content_md5() {
    let table = declared("requests", "content_md5").await;
    let table_id = table.uuid().await.unwrap();
    let cases = [
        ("{}", "mZFLkyvTelC5g8XnyQrpOw==", true),
        ("", "1B2M2Y8AsgTpgAmY7PhCfg==", true),
        ("{}", "1B2M2Y8AsgTpgAmY7PhCfg==", false),
        ("{}", "mZFLkyvTelC5g8XnyQrpOw", false),
        ("{}", "99914b932bd37a50b983c5e7c90ae93b", false),
        ("{}", "", false),
    ];
    for (body, digest, right) in cases {
        let call = Call::post(table.path("compact"), body).header("content-md5", digest);
        let answer = client().call(call).await.unwrap();
        match right {
            true => assert_accepted(&answer, &table_id, digest),
            false => assert_refused(&answer, INVALID_DIGEST, digest),
        }
    }
    assert_eq!(table.tasks("lance_compact", 10).await.unwrap().len(), 2);

    // Of the wrong digest and the body that is no JSON, the digest comes first.
    let call = Call::post(table.path("compact"), "x").header("content-md5", "x");
    let answer = client().call(call).await.unwrap();
    assert_refused(&answer, INVALID_DIGEST, "digest before body");
}

#[tokio::test]
async fn bodies_are_taken_up_to_a_limit() {
    let table = declared("requests", "sizes").await;
    let table_id = table.uuid().await.unwrap();
    let body = |size: usize| format!("{{{}}}", " ".repeat(size - 2));
    let call = Call::post(table.path("compact"), body(LIMIT));
    let answer = client().call(call).await.unwrap();
    assert_accepted(&answer, &table_id, "as large as allowed");
    for target in [
        table.path("compact"),
        "/lance/v1/namespace/x/create".to_owned(),
    ] {
        let call = Call::post(&target, body(LIMIT + 1));
        let answer = client().call(call).await.unwrap();
        assert_refused(&answer, TOO_LARGE, &target);
    }
    assert_eq!(table.tasks("lance_compact", 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_body_where_none_is_asked_for() {
    let table = declared("requests", "bodies").await;
    let table_id = table.uuid().await.unwrap();
    let mut call = Call::post(table.path("tasks?task_type=lance_compact"), "ignored");
    call.method = Method::GET;
    let answer = client().call(call).await.unwrap();
    assert_accepted(&answer, &table_id, "a listing with a body");
}
