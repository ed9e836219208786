//! The table bucket of a request, which its host names.

use lance_maintenance_tests::client::{Call, Client};
use lance_maintenance_tests::harness::Server;

use crate::support::{Refusal, TABLE_NOT_FOUND, assert_refused, client, declared, service};

const NO_BUCKET_NAMED: Refusal = (400, "LanceThirdLevelDomainRequired", 13);
const NO_SUCH_BUCKET: Refusal = (404, "NoSuchTableBucket", 1);

/// What a listing under this host says of the namespace `hosts`, which is in the bucket `lance`.
async fn check(client: &Client, host: &str, refusal: Option<Refusal>) {
    let call = Call::get("/lance/oss/v1/table/hosts$t/tasks?task_type=lance_compact");
    let answer = client.call(call.header("host", host)).await.unwrap();
    match refusal {
        None => assert_eq!(answer.status, 200, "{host}"),
        Some(refusal) => assert_refused(&answer, refusal, host),
    }
}

#[tokio::test]
async fn hosts() {
    declared("hosts", "t").await;
    let endpoint = service().facts().unwrap().endpoint;
    let bare = endpoint.strip_prefix("http://").unwrap();
    let port = bare.rsplit_once(':').unwrap().1;
    let with_port = format!("lance.oss-tables.localhost:{port}");
    for (host, refusal) in [
        (bare, None),
        ("localhost", None),
        ("anything.example", None),
        (&with_port, None),
        ("lance.oss-tables.localhost", None),
        ("LANCE.OSS-Tables.LocalHost", None),
        ("lance-0.oss-tables.localhost", None),
        // Another bucket, with tables of its own.
        ("other.oss-tables.localhost", Some(TABLE_NOT_FOUND)),
        ("oss-tables.localhost", Some(NO_BUCKET_NAMED)),
        ("nope.oss-tables.localhost", Some(NO_SUCH_BUCKET)),
        ("lance-1.oss-tables.localhost", Some(NO_SUCH_BUCKET)),
        ("a.lance.oss-tables.localhost", Some(NO_SUCH_BUCKET)),
    ] {
        check(&client(), host, refusal).await;
    }
}

#[tokio::test]
async fn buckets_have_namespaces_of_their_own() {
    let client = client();
    client.ensure_namespace("of_lance").await.unwrap();
    let create = Call::post("/lance/v1/namespace/of_other/create", "{}");
    let in_other = |call: Call| call.header("host", "other.oss-tables.localhost");
    client
        .call(in_other(create))
        .await
        .unwrap()
        .success()
        .unwrap();
    let list = || Call::get("/lance/v1/namespace/$/list");
    let of_other = client
        .call(in_other(list()))
        .await
        .unwrap()
        .success()
        .unwrap();
    assert_eq!(of_other["namespaces"], serde_json::json!(["of_other"]));
    let of_lance = client.call(list()).await.unwrap().success().unwrap();
    let names = of_lance["namespaces"].as_array().unwrap();
    assert!(names.contains(&"of_lance".into()) && !names.contains(&"of_other".into()));
}

#[tokio::test]
async fn a_service_without_a_default_bucket_and_roots() {
    let variables = [
        ("default_bucket", ""),
        ("account_id", "1234567890"),
        ("table_bucket_domain", "cn-hangzhou.oss-tables.aliyuncs.com"),
        ("register_roots", ""),
    ];
    let server = Server::start(&variables).unwrap();
    let client = server.client().unwrap();
    let found = Some(TABLE_NOT_FOUND);
    for (host, refusal) in [
        ("localhost", Some(NO_BUCKET_NAMED)),
        ("cn-hangzhou.oss-tables.aliyuncs.com", Some(NO_BUCKET_NAMED)),
        (
            "lance-1234567890.cn-hangzhou.oss-tables.aliyuncs.com",
            found,
        ),
        ("lance.cn-hangzhou.oss-tables.aliyuncs.com", found),
        (
            "lance-0.cn-hangzhou.oss-tables.aliyuncs.com",
            Some(NO_SUCH_BUCKET),
        ),
        ("lance.oss-tables.localhost", Some(NO_BUCKET_NAMED)),
    ] {
        check(&client, host, refusal).await;
    }

    let call = |target: &str, body: &str| {
        Call::post(target, body).header("host", "lance.cn-hangzhou.oss-tables.aliyuncs.com")
    };
    let create = call("/lance/v1/namespace/n/create", "{}");
    assert_eq!(client.call(create).await.unwrap().status, 200);
    let body = format!(r#"{{"location":"{}/t.lance"}}"#, server.folder().display());
    let register = call("/lance/v1/table/n$t/register", &body);
    let answer = client.call(register).await.unwrap();
    assert_refused(&answer, (400, "InvalidInput", 13), "no roots");
    let declare = call("/lance/v1/table/n$t/declare", "{}");
    assert_eq!(client.call(declare).await.unwrap().status, 200);
    let describe = call("/lance/v1/table/n$t/describe", "{}");
    let table = client.call(describe).await.unwrap().success().unwrap();
    let properties = &table["properties"];
    let id = properties["table_id"].as_str().unwrap();
    assert_eq!(
        properties["table_arn"],
        format!("acs:osstables:local:1234567890:bucket/lance/table/{id}")
    );
}
