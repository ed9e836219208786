//! Answers: the schemas of what succeeds, and an error answer for each status and its names.

use std::collections::BTreeMap;

use lance_maintenance_api::ErrorName;
use lance_maintenance_api::error::ErrorBody;
use lance_maintenance_api::health::HealthReport;
use lance_maintenance_api::jobs::JobStatus;
use lance_maintenance_api::jobs::listing::ListJobsResponse;
use lance_maintenance_api::listing::ListTasksResponse;
use lance_maintenance_api::namespace::columns::{AddColumnsResponse, BackfillColumnResponse};
use lance_maintenance_api::namespace::namespaces::{ListNamespacesResponse, NamespaceResponse};
use lance_maintenance_api::namespace::tables::{
    CreateTableResponse, DeclareTableResponse, DescribeTableResponse, DropTableResponse,
    ListTablesResponse, RenameTableResponse,
};
use lance_maintenance_api::namespace::versions::{ListTableVersionsResponse, TableVersionResponse};
use lance_maintenance_api::preview::Preview;
use lance_maintenance_api::result::{
    BackfillColumnResult, CleanupResult, CompactResult, IndexResult, OptimizeIndicesResult,
};
use lance_maintenance_api::task::{GetTaskResponse, SubmitResponse, TaskType};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::operations::COMMON;

/// The schemas of everything that is answered, by the names of their types.
pub fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut generator = settings.into_generator();
    add::<ErrorBody>(&mut generator);
    add::<SubmitResponse>(&mut generator);
    add::<GetTaskResponse>(&mut generator);
    add::<ListTasksResponse>(&mut generator);
    add::<CompactResult>(&mut generator);
    add::<CleanupResult>(&mut generator);
    add::<IndexResult>(&mut generator);
    add::<OptimizeIndicesResult>(&mut generator);
    add::<BackfillColumnResult>(&mut generator);
    add::<HealthReport>(&mut generator);
    add::<Preview>(&mut generator);
    add::<JobStatus>(&mut generator);
    add::<ListJobsResponse>(&mut generator);
    add::<NamespaceResponse>(&mut generator);
    add::<ListNamespacesResponse>(&mut generator);
    add::<ListTablesResponse>(&mut generator);
    add::<CreateTableResponse>(&mut generator);
    add::<DeclareTableResponse>(&mut generator);
    add::<DescribeTableResponse>(&mut generator);
    add::<DropTableResponse>(&mut generator);
    add::<RenameTableResponse>(&mut generator);
    add::<AddColumnsResponse>(&mut generator);
    add::<BackfillColumnResponse>(&mut generator);
    add::<TableVersionResponse>(&mut generator);
    add::<ListTableVersionsResponse>(&mut generator);
    let mut schemas = generator.take_definitions(true);
    schemas.insert(
        "Empty".to_owned(),
        json!({"type": "object", "description": "Yes, and nothing more.", "maxProperties": 0}),
    );
    if let Some(info) = schemas.get_mut("TaskInfo") {
        add_results(info);
    }
    let results = job_results(&schemas);
    if let Some(status) = schemas.get_mut("JobStatus") {
        status["properties"]["result"] = results;
    }
    schemas.values_mut().for_each(without_sources);
    schemas
}

/// Comments say where a rule comes from: of no use to who reads the document.
fn without_sources(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description")
                && let Some((before, source)) = text.split_once(" (API facts")
                && let Some((_, after)) = source.split_once(')')
            {
                *text = format!("{before}{after}");
            }
            fields.values_mut().for_each(without_sources);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_sources),
        _ => {}
    }
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}

/// Says of each type of task what its result holds, which is empty until it is completed.
fn add_results(info: &mut Value) {
    let Some(kinds) = info.get_mut("oneOf").and_then(Value::as_array_mut) else {
        return;
    };
    for kind in kinds {
        let name = kind
            .pointer("/properties/task_type/const")
            .and_then(Value::as_str)
            .and_then(TaskType::parse)
            .map(result_name);
        if let Some(name) = name {
            kind["properties"]["result"] = json!({
                "anyOf": [{"maxProperties": 0}, {"$ref": schema_path(name)}],
            });
        }
    }
}

fn result_name(task_type: TaskType) -> &'static str {
    match task_type {
        TaskType::Compact => "CompactResult",
        TaskType::ScalarIndex | TaskType::VectorIndex => "IndexResult",
        TaskType::OptimizeIndices => "OptimizeIndicesResult",
        TaskType::Cleanup => "CleanupResult",
        TaskType::BackfillColumn => "BackfillColumnResult",
    }
}

/// What the result of a job that succeeded holds: that of its task, but for the version, which stands
/// beside it, and for failed deletions, which are always counted.
fn job_results(schemas: &Map<String, Value>) -> Value {
    let names = [
        "CompactResult",
        "OptimizeIndicesResult",
        "CleanupResult",
        "IndexResult",
        "BackfillColumnResult",
    ];
    let results = names.iter().filter_map(|name| {
        let mut result = schemas.get(*name)?.clone();
        let fields = result.get_mut("properties")?.as_object_mut()?;
        fields.remove("version");
        if let Some(deletes) = fields.get_mut("failed_deletes") {
            deletes["description"] =
                json!("Files that could not be removed: the next cleanup finds them again.");
        }
        let all: Vec<&String> = fields.keys().collect();
        result["required"] = json!(all);
        Some(result)
    });
    json!({
        "description": "What it did; absent unless it succeeded.",
        "type": "object",
        "anyOf": results.collect::<Vec<_>>(),
    })
}

/// The reference to a schema.
pub fn schema_path(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// Error answers of many operations, each described once.
#[derive(Debug, Default)]
pub struct ErrorAnswers {
    described: Map<String, Value>,
}

impl ErrorAnswers {
    /// The answers of an operation that can fail with these errors, by status.
    pub fn add(&mut self, errors: &[ErrorName]) -> Map<String, Value> {
        let mut by_status: BTreeMap<u16, Vec<ErrorName>> = BTreeMap::new();
        // In the order of the API's table, and each once.
        for name in ErrorName::ALL.iter().filter(|name| errors.contains(name)) {
            by_status.entry(name.status()).or_default().push(*name);
        }
        by_status
            .into_iter()
            .map(|(status, names)| {
                let key = component_name(status, &names);
                let path = format!("#/components/responses/{key}");
                self.described
                    .entry(key)
                    .or_insert_with(|| described(&names));
                (status.to_string(), json!({"$ref": path}))
            })
            .collect()
    }

    /// The descriptions, by name.
    pub fn into_components(self) -> Map<String, Value> {
        self.described
    }
}

fn component_name(status: u16, names: &[ErrorName]) -> String {
    let own: String = names
        .iter()
        .filter(|name| !COMMON.contains(name))
        .map(|name| format!("_{name}"))
        .collect();
    format!("Error{status}{own}")
}

fn described(names: &[ErrorName]) -> Value {
    let words: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let mut codes: Vec<i64> = names.iter().map(|name| name.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    json!({
        "description": format!("{}.", words.join(", ")),
        "headers": {"x-oss-request-id": {"$ref": "#/components/headers/RequestId"}},
        "content": {"application/json": {"schema": {
            "allOf": [{"$ref": schema_path("ErrorBody")}],
            "properties": {
                "error": {"enum": names.iter().map(|name| name.as_str()).collect::<Vec<_>>()},
                "code": {"enum": codes},
            },
        }}},
    })
}
