//! The API as an OpenAPI 3.1 document, written from the API's own types.
//!
//! The operations, their methods and paths, the error names with their numbers and statuses, and the
//! answers come from `lance-maintenance-api`; what a request may hold is said here a second time, in
//! the words of JSON Schema, and tested against the parsers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`operations`] | what is said of each operation: the one table to edit for a new one |
//! | [`bodies`] | schemas of the JSON bodies of requests |
//! | [`jobs`] | the schema of a job |
//! | [`access`] | schemas of policies and credentials |
//! | [`parameters`] | parameters in paths, queries and headers |
//! | [`answers`] | schemas of answers, and the error answers |
//! | [`rule`] | what these schemas are made of |

pub mod access;
pub mod answers;
pub mod bodies;
pub mod columns;
pub mod jobs;
pub mod operations;
pub mod parameters;
pub mod rule;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::operation::{Operation, Subject};
use serde_json::{Map, Value, json};

use answers::{ErrorAnswers, schema_path};
use operations::{Body, COMMON, Entry, OF_JOBS, OF_TABLES, TAGS};

/// The document.
pub fn document() -> Value {
    let mut errors = ErrorAnswers::default();
    let mut paths = Map::new();
    for operation in Operation::ALL {
        let method = operation.method().to_ascii_lowercase();
        let path = paths
            .entry(operation.path())
            .or_insert_with(|| Value::Object(Map::new()));
        path[method] = described(*operation, &mut errors);
    }
    paths.insert("/healthz".to_owned(), json!({"get": health(&mut errors)}));
    let mut schemas = answers::schemas();
    let others = [bodies::all(), columns::all(), jobs::all(), access::all()].concat();
    schemas.extend(
        others
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema)),
    );
    let tags: Vec<Value> = TAGS
        .iter()
        .map(|(name, about)| json!({"name": name, "description": about}))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lance table maintenance",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": ABOUT,
        },
        "servers": [{
            "url": "http://{host}",
            "description": "The host names the table bucket: {bucket}.{domain} or \
                            {bucket}-{account}.{domain}.",
            "variables": {"host": {"default": "lance.oss-tables.localhost:3000"}},
        }],
        "tags": tags,
        "security": [{"awsSigV4": []}, {"ossV4": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": errors.into_components(),
            "headers": headers(),
            "securitySchemes": security_schemes(),
        },
    })
}

/// The document as it is stored: pretty, its keys sorted, and a line end.
pub fn text() -> String {
    let mut document = document();
    document.sort_all_objects();
    format!("{document:#}\n")
}

const ABOUT: &str = "\
Submits, records and reports maintenance tasks of Lance tables, and serves the catalog that the \
tables are in.\n\
\n\
Every request is signed. The table bucket is named by the host alone. Every error has the body \
`ErrorBody`; its `code` follows from its `error`. A path that takes other methods answers 405 \
`MethodNotAllowed`, an operation of the Lance namespace specification that is not listed here 406 \
`Unsupported`, any other path 404 `NoSuchOperation`. An empty body is as `{}`; in JSON bodies \
`null` is as absent and fields that are not known are ignored, but for policies and credentials, \
where both are refused, and jobs, where unknown fields and options are. Bodies are at most 1 MiB, rows at most 32 MiB.";

fn described(operation: Operation, errors: &mut ErrorAnswers) -> Value {
    let entry = operations::entry(operation);
    let mut responses = errors.add(&failures(operation, &entry));
    let status = if entry.answer.is_some() { "200" } else { "204" };
    responses.insert(status.to_owned(), success(operation, entry.answer));
    let resource = match operation.subject() {
        Subject::Bucket => "the table bucket",
        Subject::Table | Subject::TableOrUri => "the table",
        Subject::Job => "the job's table",
        Subject::Credentials => "the user who holds the key",
    };
    let mut described = json!({
        "operationId": operation.name(),
        "tags": [entry.tag],
        "summary": entry.summary,
        "description": format!("Needs `{}` on {resource}.", operation.action()),
        "parameters": parameters::of(operation, entry.parameters),
        "responses": responses,
    });
    let (required, kind, schema) = match entry.body {
        Body::None => return described,
        Body::Optional(name) => (
            false,
            "application/json",
            json!({"$ref": schema_path(name)}),
        ),
        Body::Required(name) => (true, "application/json", json!({"$ref": schema_path(name)})),
        Body::Rows => (true, "application/vnd.apache.arrow.stream", json!({})),
    };
    let mut content = Map::new();
    content.insert(kind.to_owned(), json!({"schema": schema}));
    described["requestBody"] = json!({"required": required, "content": content});
    described
}

/// How an operation can fail.
fn failures(operation: Operation, entry: &Entry) -> Vec<ErrorName> {
    let of_subject: &[ErrorName] = match operation.subject() {
        Subject::Table | Subject::TableOrUri => OF_TABLES,
        Subject::Job => OF_JOBS,
        Subject::Bucket | Subject::Credentials => &[],
    };
    [COMMON, of_subject, entry.errors].concat()
}

fn success(operation: Operation, answer: Option<&str>) -> Value {
    let mut headers = json!({"x-oss-request-id": {"$ref": "#/components/headers/RequestId"}});
    if is_about_a_table(operation) {
        headers["x-oss-table-id"] = json!({"$ref": "#/components/headers/TableId"});
    }
    let mut success = json!({"description": "Done.", "headers": headers});
    if let Some(name) = answer {
        success["content"] = json!({"application/json": {"schema": {"$ref": schema_path(name)}}});
    }
    success
}

/// Whether the answer says which table it is about.
fn is_about_a_table(operation: Operation) -> bool {
    match operation.subject() {
        Subject::Table | Subject::TableOrUri | Subject::Job => true,
        Subject::Bucket | Subject::Credentials => false,
    }
}

fn health(errors: &mut ErrorAnswers) -> Value {
    let mut responses = errors.add(&[ErrorName::InternalError, ErrorName::ServiceUnavailable]);
    let schema = json!({
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "string", "const": "ok"}},
    });
    responses.insert(
        "200".to_owned(),
        json!({
            "description": "The service is set up, works and reaches its store.",
            "headers": {"x-oss-request-id": {"$ref": "#/components/headers/RequestId"}},
            "content": {"application/json": {"schema": schema}},
        }),
    );
    json!({
        "operationId": "Health",
        "tags": ["Health"],
        "summary": "Say whether the service works",
        "security": [],
        "responses": responses,
    })
}

fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "The request's id; the `instance` of an error.",
            "required": true,
            "schema": {"type": "string"},
        },
        "TableId": {
            "description": "The table's own id, which no renaming changes.",
            "required": true,
            "schema": {"type": "string"},
        },
    })
}

fn security_schemes() -> Value {
    json!({
        "awsSigV4": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "x-amazon-apigateway-authtype": "awsSigv4",
            "description": "AWS Signature Version 4 with the service name `osstables`, in the \
                            header or in the query: `AWS4-HMAC-SHA256 Credential=..., \
                            SignedHeaders=..., Signature=...`.",
        },
        "ossV4": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "OSS Signature Version 4 with the service name `osstables`, in the \
                            header or in the query: `OSS4-HMAC-SHA256 Credential=..., \
                            Signature=...`. The bucket's ARN stands before the path that is signed.",
        },
    })
}
