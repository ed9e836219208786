//! Namespaces and tables by name.

use lance_maintenance_tests::client::Call;
use serde_json::{Value, json};

use crate::support::{
    INVALID_INPUT, Refusal, TABLE_NOT_FOUND, assert_refused, client, declared, service,
};

const NAMESPACE_NOT_FOUND: Refusal = (404, "NamespaceNotFound", 1);
const NAMESPACE_EXISTS: Refusal = (409, "NamespaceAlreadyExists", 2);
const TABLE_EXISTS: Refusal = (409, "TableAlreadyExists", 5);

/// A path, a body, and how it is answered: with fields of a success, or with a refusal.
type Case<'a> = (&'a str, Value, Result<Value, Refusal>);

async fn check(cases: &[Case<'_>]) {
    for (target, body, expected) in cases {
        let call = match body {
            Value::Null => Call::get(*target),
            body => Call::post(*target, body.to_string()),
        };
        let case = format!("{target} {body}");
        let answer = client().call(call).await.unwrap();
        match expected {
            Err(refusal) => assert_refused(&answer, *refusal, &case),
            Ok(fields) => {
                assert_eq!(answer.status, 200, "{case}");
                assert_eq!(
                    answer.header("content-type"),
                    Some("application/json"),
                    "{case}"
                );
                assert!(answer.header("x-oss-request-id").is_some(), "{case}");
                let seen = answer.json().unwrap();
                for (name, value) in fields.as_object().unwrap() {
                    assert_eq!(seen[name], *value, "{case}: {name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn namespaces() {
    let create = "/lance/v1/namespace/catalog/create";
    let describe = "/lance/v1/namespace/catalog/describe";
    let properties = json!({"owner": "me"});
    check(&[
        (describe, json!({}), Err(NAMESPACE_NOT_FOUND)),
        (
            "/lance/v1/namespace/catalog/list",
            Value::Null,
            Err(NAMESPACE_NOT_FOUND),
        ),
        (
            "/lance/v1/namespace/catalog/table/list",
            Value::Null,
            Err(NAMESPACE_NOT_FOUND),
        ),
        (create, json!({"mode": "replace"}), Err(INVALID_INPUT)),
        (create, json!({"mode": 1}), Err(INVALID_INPUT)),
        (create, json!({"properties": {"a": 1}}), Err(INVALID_INPUT)),
        (create, json!([]), Err(INVALID_INPUT)),
        (describe, json!({}), Err(NAMESPACE_NOT_FOUND)),
        (
            create,
            json!({"id": ["catalog"], "properties": properties, "unknown": 1}),
            Ok(json!({"properties": properties})),
        ),
        (create, json!({}), Err(NAMESPACE_EXISTS)),
        (create, json!({"mode": "create"}), Err(NAMESPACE_EXISTS)),
        (
            create,
            json!({"mode": "exist_ok"}),
            Ok(json!({"properties": properties})),
        ),
        (
            create,
            json!({"mode": "ExistOk"}),
            Ok(json!({"properties": properties})),
        ),
        (describe, json!({}), Ok(json!({"properties": properties}))),
        (
            "/lance/v1/namespace/catalog/list",
            Value::Null,
            Ok(json!({"namespaces": []})),
        ),
        (
            "/lance/v1/namespace/catalog/table/list",
            Value::Null,
            Ok(json!({"tables": []})),
        ),
        (
            "/lance/v1/namespace/%24/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/%24/describe",
            json!({}),
            Ok(json!({"properties": {}})),
        ),
        (
            "/lance/v1/namespace/$/table/list",
            Value::Null,
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/a$b/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/a.b/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/A/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/_a/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/aws1/create",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/namespace/x/create?delimiter=-",
            json!({}),
            Err(INVALID_INPUT),
        ),
    ])
    .await;
    for root in [
        "/lance/v1/namespace/%24/list",
        "/lance/v1/namespace/__/list?delimiter=__",
    ] {
        let listed = client().get(root).await.unwrap();
        assert!(
            listed["namespaces"]
                .as_array()
                .unwrap()
                .contains(&json!("catalog")),
            "{root}"
        );
    }
}

#[tokio::test]
async fn tables() {
    client().ensure_namespace("tables").await.unwrap();
    let list = "/lance/v1/namespace/tables/table/list";
    let of = |what: &str| format!("/lance/v1/table/tables$t/{what}");
    let (declare, describe, drop) = (of("declare"), of("describe"), of("drop"));
    check(&[
        (&describe, json!({}), Err(TABLE_NOT_FOUND)),
        (&drop, json!({}), Err(TABLE_NOT_FOUND)),
        (
            "/lance/v1/table/nowhere$t/declare",
            json!({}),
            Err(NAMESPACE_NOT_FOUND),
        ),
        (
            "/lance/v1/table/nowhere$t/describe",
            json!({}),
            Err(TABLE_NOT_FOUND),
        ),
        (
            "/lance/v1/table/tables/declare",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/table/tables$T/declare",
            json!({}),
            Err(INVALID_INPUT),
        ),
        (
            &declare,
            json!({"location": "file:///tmp/x"}),
            Err(INVALID_INPUT),
        ),
        (&declare, json!({"properties": []}), Err(INVALID_INPUT)),
        (
            &declare,
            json!({"id": ["tables", "t"], "properties": {"a": "b"}}),
            Ok(json!({"properties": {"a": "b"}, "managed_versioning": false})),
        ),
        (&declare, json!({}), Err(TABLE_EXISTS)),
        (
            &describe,
            json!({"check_declared": false}),
            Ok(json!({"table": "t", "namespace": ["tables"], "managed_versioning": false})),
        ),
        (list, Value::Null, Ok(json!({"tables": ["t"]}))),
    ])
    .await;

    let location = |described: &Value| described["location"].as_str().unwrap().to_owned();
    let first = client()
        .post(&describe, json!({"with_table_uri": true}))
        .await
        .unwrap();
    let id = first["properties"]["table_id"].as_str().unwrap();
    assert_eq!(first["table_uri"], first["location"]);
    assert_eq!(first["properties"]["a"], "b");
    assert_eq!(
        first["properties"]["table_arn"],
        format!("acs:osstables:local:0:bucket/lance/table/{id}")
    );
    let warehouse = service().folder().canonicalize().unwrap().join("warehouse");
    let under = format!("file://{}/", warehouse.display());
    assert!(location(&first).starts_with(&under), "{first}");

    check(&[
        (
            &drop,
            json!({}),
            Ok(json!({"id": ["tables", "t"], "location": location(&first)})),
        ),
        (&drop, json!({}), Err(TABLE_NOT_FOUND)),
        (&describe, json!({}), Err(TABLE_NOT_FOUND)),
        (list, Value::Null, Ok(json!({"tables": []}))),
        (&declare, json!({}), Ok(json!({}))),
    ])
    .await;
    let second = client().post(&describe, json!({})).await.unwrap();
    assert_ne!(
        second["properties"]["table_id"],
        first["properties"]["table_id"]
    );
    assert_ne!(second["location"], first["location"]);
    assert_eq!(second["table_uri"], Value::Null);
}

#[tokio::test]
async fn registering() {
    client().ensure_namespace("registered").await.unwrap();
    let root = service().folder().canonicalize().unwrap();
    let root = root.display();
    let register = "/lance/v1/table/registered$t/register";
    let mut cases = Vec::new();
    for location in [
        format!("file://{root}"),
        format!("file://{root}/"),
        format!("{root}/../x"),
        format!("file://{root}/a/../../x"),
        format!("file://{root}/%2e%2e/x"),
        format!("file://{root}/./x"),
        format!("file://{root}//x"),
        format!("file://{root}x/t"),
        format!("file://localhost{root}/x"),
        format!("FILE://{root}/x"),
        format!("memory://{root}/x"),
        format!("s3:/{root}/x"),
        format!("{root}/x?y=1"),
        format!("{root}/x#y"),
        format!("{root}/x\u{0}y"),
        format!("{root}/x\\y"),
        "file:///etc".to_owned(),
        "/etc/passwd".to_owned(),
        "s3://bucket/t".to_owned(),
        "x/t".to_owned(),
        "~/t".to_owned(),
        String::new(),
    ] {
        cases.push((register, json!({"location": location}), Err(INVALID_INPUT)));
    }
    cases.extend([
        (register, json!({}), Err(INVALID_INPUT)),
        (register, json!({"location": 1}), Err(INVALID_INPUT)),
        (
            register,
            json!({"location": format!("{root}/tables/t"), "mode": "overwrite"}),
            Err(INVALID_INPUT),
        ),
        (
            "/lance/v1/table/registered$t/describe",
            json!({}),
            Err(TABLE_NOT_FOUND),
        ),
        (
            register,
            json!({"location": format!("{root}/tables/t/")}),
            Ok(json!({"location": format!("file://{root}/tables/t")})),
        ),
        (
            register,
            json!({"location": format!("{root}/tables/t")}),
            Err(TABLE_EXISTS),
        ),
        (
            "/lance/v1/table/nowhere$t/register",
            json!({"location": format!("{root}/tables/t")}),
            Err(NAMESPACE_NOT_FOUND),
        ),
        (
            "/lance/v1/table/registered$u/register",
            json!({"location": format!("file://{root}/tables/u"), "mode": "Create"}),
            Ok(json!({"location": format!("file://{root}/tables/u")})),
        ),
    ]);
    check(&cases).await;
}

#[tokio::test]
async fn pages_of_names() {
    let mut names = Vec::new();
    for number in 0..7 {
        let name = format!("t{number}");
        declared("pages", &name).await;
        names.insert(0, name);
    }
    let page = |query: String| async move {
        let target = format!("/lance/v1/namespace/pages/table/list?{query}");
        client().get(&target).await.unwrap()
    };
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = page(format!("limit=3&page_token={token}")).await;
        seen.extend(page["tables"].as_array().unwrap().clone());
        match page["page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, names);
    for query in ["limit=0", "limit=x", "limit=-1", "page_token=x"] {
        let target = format!("/lance/v1/namespace/pages/table/list?{query}");
        let answer = client().call(Call::get(&target)).await.unwrap();
        assert_refused(&answer, INVALID_INPUT, query);
    }
}

#[tokio::test]
async fn creations_at_the_same_time() {
    client().ensure_namespace("races").await.unwrap();
    let client = client();
    let creations = (0..12).map(|_| client.declare("races", "t"));
    let outcomes = futures::future::join_all(creations).await;
    let created: Vec<_> = outcomes.into_iter().filter_map(Result::ok).collect();
    assert_eq!(created.len(), 1);
    let described = client
        .post("/lance/v1/table/races$t/describe", json!({}))
        .await
        .unwrap();
    assert_eq!(described["location"], created[0].location);
    let listed = client
        .get("/lance/v1/namespace/races/table/list")
        .await
        .unwrap();
    assert_eq!(listed["tables"], json!(["t"]));
}
