//! The bodies about columns, as `lance-maintenance-api` takes them.
//!
//! Two things JSON Schema can't say: that no column is added twice, and that the least size of a checkpoint
//! is not above the most.

use lance_maintenance_api::params::BackfillColumnParams;
use serde_json::{Value, json};

use crate::bodies::id;
use crate::rule::{Rule, object, object_like};

/// Columns that are added at once, at the most.
const MOST_COLUMNS: u64 = 100;

/// The schemas and the names of their components.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("AddColumnsRequest", add_columns()),
        ("BackfillColumnRequest", backfill_column()),
    ]
}

fn add_columns() -> Value {
    object(vec![
        ("id", id()),
        (
            "branch",
            Rule::string().about("The branch; if absent, the main one."),
        ),
        (
            "new_columns",
            Rule::strings(1)
                .with("items", column())
                .with("minItems", 1)
                .with("maxItems", MOST_COLUMNS)
                .required()
                .about("The columns: all with `expression`, or all with `computed`."),
        ),
    ])
}

fn column() -> Value {
    let mut column = object(vec![
        (
            "name",
            Rule::required_string().about("The column's name, which is new and has no dot."),
        ),
        (
            "expression",
            Rule::string().about(
                "SQL over the table's columns: the column gets its values, in the rows that are there.",
            ),
        ),
        (
            "computed",
            Rule::string().about(
                "SQL over the table's columns: the column is null until backfills give it the values.",
            ),
        ),
        (
            "virtual_column",
            Rule::string()
                .with("type", "null")
                .about("Functions of users are not run here: nothing may be given (406)."),
        ),
    ]);
    let given = |name: &str| {
        let mut given = json!({"required": [name], "properties": {}});
        given["properties"][name] = json!({"type": "string", "minLength": 1});
        given
    };
    column["description"] =
        json!("A column that is to be added: it has one of the two expressions.");
    column["oneOf"] = json!([given("expression"), given("computed")]);
    column
}

fn backfill_column() -> Value {
    let nothing = |why: &str| Rule::string().with("maxLength", 0).about(why);
    object_like::<BackfillColumnParams>(vec![
        ("id", id()),
        ("column", Rule::required_string()),
        ("where", Rule::string()),
        ("read_version", Rule::integer(1)),
        ("num_frags", Rule::integer(1)),
        ("concurrency", Rule::integer(1)),
        ("intra_applier_concurrency", Rule::integer(1)),
        ("task_size", Rule::integer(1)),
        ("checkpoint_size", Rule::integer(1)),
        ("min_checkpoint_size", Rule::integer(1)),
        ("max_checkpoint_size", Rule::integer(1)),
        (
            "batch_checkpoint_flush_interval_seconds",
            Rule::number()
                .with("minimum", 0.001)
                .with("maximum", 86_400),
        ),
        ("commit_granularity", Rule::integer(1)),
        (
            "branch",
            Rule::word(&["", "main"]).about("Columns of other branches are not filled."),
        ),
        (
            "cluster",
            nothing("Tasks run on the workers of this service: nothing may be given."),
        ),
        (
            "manifest",
            nothing("There are no environments for functions of users: nothing may be given."),
        ),
    ])
}
