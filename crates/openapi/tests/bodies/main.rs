//! What the schemas of request bodies accept and refuse, the parsers do.

mod cases;
mod columns;
mod jobs;

use cases::table;
use jsonschema::Validator;
use lance_maintenance_api::identifier::NamespaceName;
use lance_maintenance_api::jobs::JobRequest;
use lance_maintenance_api::namespace::check_body_id;
use lance_maintenance_api::namespace::columns::AddColumnsRequest;
use lance_maintenance_api::namespace::namespaces::{CreateNamespaceRequest, DropNamespaceRequest};
use lance_maintenance_api::namespace::tables::{
    DeclareTableRequest, DescribeTableRequest, RegisterTableRequest, parse_rename,
};
use lance_maintenance_api::namespace::versions::{
    CreateTableVersionRequest, DescribeTableVersionRequest,
};
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::params::{
    BackfillColumnParams, CleanupParams, CompactParams, OptimizeIndicesParams, ScalarIndexParams,
    VectorIndexParams,
};
use lance_maintenance_api::query::Query;
use lance_maintenance_auth::Credential;
use lance_maintenance_auth::policy::{Policy, PolicyKind};
use lance_maintenance_openapi::operations::{Body, entry};
use lance_maintenance_openapi::{access, bodies, columns as column, document, jobs as job};
use serde_json::{Value, json};

/// Whether the parser of a body takes it; `id` is checked apart, as the components do.
fn parses(name: &str, body: &[u8]) -> bool {
    match name {
        "CompactRequest" => CompactParams::parse(body, "reencode").is_ok(),
        "ScalarIndexRequest" => ScalarIndexParams::parse(body).is_ok(),
        "VectorIndexRequest" => VectorIndexParams::parse(body).is_ok(),
        "OptimizeIndicesRequest" => OptimizeIndicesParams::parse(body).is_ok(),
        "CleanupRequest" => CleanupParams::parse(body).is_ok(),
        "JobRequest" => JobRequest::parse(body).is_ok(),
        "CreateNamespaceRequest" => has_id(body) && CreateNamespaceRequest::parse(body).is_ok(),
        "DropNamespaceRequest" => has_id(body) && DropNamespaceRequest::parse(body).is_ok(),
        "IdRequest" => has_id(body),
        "DeclareTableRequest" => has_id(body) && DeclareTableRequest::parse(body).is_ok(),
        "RegisterTableRequest" => has_id(body) && RegisterTableRequest::parse(body).is_ok(),
        "DescribeTableRequest" => {
            has_id(body) && DescribeTableRequest::parse(body, &Query::default()).is_ok()
        }
        "TableVersionRequest" => has_id(body) && DescribeTableVersionRequest::parse(body).is_ok(),
        "RenameTableRequest" => {
            let here = NamespaceName::parse("here").unwrap();
            has_id(body) && parse_rename(body, &here).is_ok()
        }
        "CreateTableVersionRequest" => {
            has_id(body) && CreateTableVersionRequest::parse(body).is_ok()
        }
        "AddColumnsRequest" => has_id(body) && AddColumnsRequest::parse(body).is_ok(),
        "BackfillColumnRequest" => has_id(body) && BackfillColumnParams::parse(body).is_ok(),
        "ResourcePolicy" => Policy::parse(body, PolicyKind::Resource).is_ok(),
        "IdentityPolicy" => Policy::parse(body, PolicyKind::Identity).is_ok(),
        "PutCredentialRequest" => Credential::parse(body).is_ok(),
        _ => panic!("{name} has no parser"),
    }
}

fn has_id(body: &[u8]) -> bool {
    check_body_id(body, &["ns", "t"]).is_ok()
}

/// A schema of the document, which refers to others.
fn validator(name: &str) -> Validator {
    let mut schema = document();
    schema["$ref"] = json!(format!("#/components/schemas/{name}"));
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

#[test]
fn schemas_and_parsers_agree() {
    for (name, cases) in table() {
        let validator = validator(name);
        for (body, accepted) in cases.into_iter().flatten() {
            let value: Value = serde_json::from_str(body).unwrap();
            assert_eq!(parses(name, body.as_bytes()), *accepted, "{name}: {body}");
            assert_eq!(validator.is_valid(&value), *accepted, "{name}: {body}");
        }
    }
}

#[test]
fn every_body_is_tried_and_used() {
    let tried: Vec<&str> = table().into_iter().map(|(name, _)| name).collect();
    let used: Vec<&str> = Operation::ALL
        .iter()
        .filter_map(|operation| match entry(*operation).body {
            Body::Optional(name) | Body::Required(name) => Some(name),
            Body::None | Body::Rows => None,
        })
        .collect();
    for name in &used {
        assert!(tried.contains(name), "{name} is not tried");
    }
    for (name, _) in [bodies::all(), column::all(), job::all()].concat() {
        assert!(used.contains(&name), "{name} is not used");
    }
    let described = access::all();
    for name in tried.iter().filter(|name| !used.contains(name)) {
        assert!(described.iter().any(|(known, _)| known == name), "{name}");
    }
}

/// An empty body is as `{}`, so one that can be left out takes `{}`, and the other way round.
#[test]
fn what_can_be_left_out() {
    for operation in Operation::ALL {
        let (name, optional) = match entry(*operation).body {
            Body::Optional(name) => (name, true),
            // Whether a secret must be there depends on what is stored.
            Body::Required("PutCredentialRequest") | Body::None | Body::Rows => continue,
            Body::Required(name) => (name, false),
        };
        assert_eq!(parses(name, b""), optional, "{name}");
        assert_eq!(validator(name).is_valid(&json!({})), optional, "{name}");
    }
}

/// What stands as a default in a job's options is what the task has that leaves it out.
#[test]
fn defaults_of_jobs_are_the_parsers() {
    let schemas = job::all();
    let (_, schema) = &schemas[0];
    let mut found = 0;
    for kind in schema["oneOf"].as_array().unwrap() {
        let operation = kind["title"].as_str().unwrap();
        let needed = match operation {
            "cleanup" => json!({"retain_versions": 1}),
            _ => json!({}),
        };
        let body = json!({"operation": operation, "options": needed}).to_string();
        let parsed = JobRequest::parse(body.as_bytes()).unwrap();
        let stored = serde_json::to_value(parsed.params).unwrap();
        let options = kind["properties"]["options"]["properties"].as_object();
        for (name, rule) in options.unwrap() {
            if let Some(default) = rule.get("default") {
                assert_eq!(&stored["params"][name], default, "{operation}: {name}");
                found += 1;
            }
        }
    }
    assert_eq!(found, 2);
}

#[test]
fn defaults_are_the_parsers() {
    fn stored(params: impl serde::Serialize) -> Value {
        serde_json::to_value(params).unwrap()
    }
    let scalar = |kind: &str| {
        let body = json!({"column": "c", "index_type": kind}).to_string();
        stored(ScalarIndexParams::parse(body.as_bytes()).unwrap())
    };
    let vector = |kind: &str| {
        let body = json!({"column": "c", "index_type": kind}).to_string();
        stored(VectorIndexParams::parse(body.as_bytes()).unwrap())
    };
    let plain = |body: &str| stored(ScalarIndexParams::parse(body.as_bytes()).unwrap());
    let cases = [
        (
            "CompactRequest",
            vec![stored(CompactParams::parse(b"", "reencode").unwrap())],
        ),
        (
            "ScalarIndexRequest",
            vec![
                plain(r#"{"column":"c"}"#),
                scalar("INVERTED"),
                scalar("ZONEMAP"),
                scalar("BTREE"),
            ],
        ),
        (
            "VectorIndexRequest",
            vec![vector("IVF_PQ"), vector("IVF_HNSW_PQ")],
        ),
        (
            "OptimizeIndicesRequest",
            vec![stored(OptimizeIndicesParams::parse(b"").unwrap())],
        ),
        (
            "CleanupRequest",
            vec![
                stored(CleanupParams::parse(br#"{"retain_versions":1}"#).unwrap()),
                stored(CleanupParams::parse(br#"{"older_than":"1d"}"#).unwrap()),
            ],
        ),
    ];
    let schemas: Vec<(&str, Value)> = bodies::all();
    for (name, stored) in cases {
        let (_, schema) = schemas.iter().find(|(known, _)| *known == name).unwrap();
        for (field, rule) in schema["properties"].as_object().unwrap() {
            let Some(default) = rule.get("default") else {
                continue;
            };
            let agree = stored
                .iter()
                .any(|stored| stored.get(field) == Some(default));
            assert!(agree, "{name}: the default of {field} is not {default}");
        }
    }
}
