//! The body of a job, as `lance-maintenance-api` takes it. Unlike the bodies of the OSS API it is taken
//! literally: fields and options that are not known are refused. `null` is as absent here, too.

use lance_maintenance_api::params::{CleanupParams, CompactParams, OptimizeIndicesParams};
use serde_json::{Value, json};

use crate::rule::{Rule, object, object_like};

/// Ages of versions beyond this are refused: 10 000 years, in seconds.
const MOST_SECONDS: i64 = 10_000 * 365 * 86_400;

/// The schemas and the names of their components.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![("JobRequest", request())]
}

fn request() -> Value {
    json!({
        "description": "A job that is to be submitted or previewed. What is left out of its options \
                        stays left out: the table's configuration decides when the job runs, else Lance.",
        "oneOf": [
            of("compact", compact()),
            of("optimize_indices", optimize_indices()),
            of("cleanup", cleanup()),
        ],
    })
}

/// A job of one operation.
fn of(operation: &str, mut options: Value) -> Value {
    options["additionalProperties"] = json!(false);
    // Without options there is nothing to run such a job with.
    let are_required = options.get("anyOf").is_some();
    let mut job = object(vec![
        (
            "table",
            Rule::string().about("The table of the path once more; another one is refused."),
        ),
        (
            "operation",
            Rule::word(&[operation])
                .required()
                .with("enum", json!([operation])),
        ),
    ]);
    job["title"] = json!(operation);
    job["additionalProperties"] = json!(false);
    if are_required {
        job["required"] = json!(["operation", "options"]);
    } else {
        options["type"] = json!(["object", "null"]);
    }
    job["properties"]["options"] = options;
    job
}

fn compact() -> Value {
    object_like::<CompactParams>(vec![
        ("target_rows_per_fragment", Rule::integer(1)),
        (
            "max_bytes_per_file",
            Rule::integer(1).about("A soft limit on the size of a file in bytes."),
        ),
        ("materialize_deletions", Rule::boolean()),
        ("materialize_deletions_threshold", Rule::number()),
    ])
}

fn optimize_indices() -> Value {
    object_like::<OptimizeIndicesParams>(vec![
        (
            "index_names",
            Rule::strings(1).about("The indices to bring up to date; if absent or empty, all."),
        ),
        (
            "num_indices_to_merge",
            Rule::integer(0).about(
                "How many of an index's newest segments are merged with the new rows: 0 for none (a \
                 new segment); if absent, what keeps segments few.",
            ),
        ),
        ("retrain", Rule::boolean().default(false)),
    ])
}

fn cleanup() -> Value {
    let mut schema = object_like::<CleanupParams>(vec![
        (
            "older_than_seconds",
            Rule::number()
                .with("minimum", 0)
                .with("maximum", MOST_SECONDS)
                .about("The age from which a version may go; rounded up to whole seconds."),
        ),
        (
            "retain_versions",
            Rule::integer(1)
                .about("How many of the newest versions stay, those with tags counted too."),
        ),
        (
            "error_if_tagged_old_versions",
            Rule::boolean()
                .default(true)
                .about("Whether a version with a tag that would go is an error; else it is kept."),
        ),
    ]);
    schema["description"] =
        json!("One of the first two is needed; a version goes if it meets both.");
    let given = |name: &str, kind: &str| {
        let mut given = json!({"required": [name], "properties": {}});
        given["properties"][name] = json!({"type": kind});
        given
    };
    schema["anyOf"] = json!([
        given("older_than_seconds", "number"),
        given("retain_versions", "integer"),
    ]);
    schema
}
