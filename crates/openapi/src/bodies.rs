//! The JSON bodies of requests, as the parsers of `lance-maintenance-api` take them. That both
//! agree is tested body by body (`tests/bodies`).
//!
//! Two things JSON Schema can't say: an integer that is written `5.0` is refused, and `id` must hold
//! the names in the path.

use lance_maintenance_api::params::{
    CleanupParams, CompactParams, OptimizeIndicesParams, ScalarIndexParams, VectorIndexParams,
};
use serde_json::{Value, json};

use crate::rule::{Rule, object, object_like};

const TOKENIZERS: &str = "^(?:(?:simple|whitespace|raw|ngram|icu|icu/split)$|lindera/|jieba/)";
const SCALAR_TYPES: [&str; 8] = [
    "BTREE",
    "BITMAP",
    "LABEL_LIST",
    "INVERTED",
    "FTS",
    "NGRAM",
    "ZONEMAP",
    "BLOOMFILTER",
];
const VECTOR_TYPES: [&str; 7] = [
    "IVF_FLAT",
    "IVF_PQ",
    "IVF_SQ",
    "IVF_RQ",
    "IVF_HNSW_FLAT",
    "IVF_HNSW_PQ",
    "IVF_HNSW_SQ",
];
const METRICS: [&str; 5] = ["l2", "cosine", "dot", "hamming", "euclidean"];
/// What happens to what exists, for namespaces and tables.
pub const CREATE_MODES: [&str; 4] = ["create", "exist_ok", "existok", "overwrite"];

/// The schemas of the bodies and the names of their components.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("CompactRequest", compact()),
        ("ScalarIndexRequest", scalar_index()),
        ("VectorIndexRequest", vector_index()),
        ("OptimizeIndicesRequest", optimize_indices()),
        ("CleanupRequest", cleanup()),
        ("CreateNamespaceRequest", create_namespace()),
        ("DropNamespaceRequest", drop_namespace()),
        ("IdRequest", object(vec![("id", id())])),
        ("DeclareTableRequest", declare_table()),
        ("RegisterTableRequest", register_table()),
        ("DescribeTableRequest", describe_table()),
        ("TableVersionRequest", table_version()),
        ("RenameTableRequest", rename_table()),
        ("CreateTableVersionRequest", create_table_version()),
    ]
}

fn compact() -> Value {
    object_like::<CompactParams>(vec![
        (
            "target_rows_per_fragment",
            Rule::integer(1).default(1024 * 1024),
        ),
        ("materialize_deletions", Rule::boolean().default(true)),
        (
            "materialize_deletions_threshold",
            Rule::number().default(0.1).about(
                "The share of deleted rows above which a fragment is rewritten: negative for \
                 every fragment, 1 or more for none, 0 for the default.",
            ),
        ),
        ("max_rows_per_group", Rule::integer(1).default(1024)),
        ("max_bytes_per_file", Rule::integer(0).default(0)),
        (
            "compaction_mode",
            Rule::word(&["reencode", "try_binary_copy", "force_binary_copy"]).about(
                "How data is carried over; if absent, as the service is set up: `reencode`, if \
                 nothing else was chosen.",
            ),
        ),
    ])
}

fn scalar_index() -> Value {
    let flag = |default: bool| Rule::boolean().default(default);
    object_like::<ScalarIndexParams>(vec![
        ("column", Rule::required_string()),
        (
            "index_type",
            Rule::any_case(&SCALAR_TYPES)
                .default("BTREE")
                .about("The kind of index, in any case; FTS is INVERTED."),
        ),
        ("name", Rule::string().default("")),
        ("index_name", alias("name")),
        ("replace", flag(true)),
        ("with_position", flag(false)),
        (
            "base_tokenizer",
            Rule::pattern(TOKENIZERS).default("simple"),
        ),
        ("language", Rule::string().default("English")),
        ("max_token_length", Rule::integer(0).default(40)),
        ("lower_case", flag(true)),
        (
            "stem",
            Rule::boolean().about(
                "INVERTED: whether words are reduced to their stem; if absent, they are unless \
                 the tokenizer is `ngram`.",
            ),
        ),
        (
            "remove_stop_words",
            Rule::boolean().about(
                "INVERTED: whether stop words are left out; if absent, they are unless the \
                 tokenizer is `ngram`.",
            ),
        ),
        ("ascii_folding", flag(true)),
        ("rows_per_zone", Rule::integer(1).default(8192)),
        ("zone_size", Rule::integer(1).default(4096)),
    ])
}

fn vector_index() -> Value {
    let metric = || Rule::any_case(&METRICS);
    object_like::<VectorIndexParams>(vec![
        ("column", Rule::required_string()),
        (
            "index_type",
            Rule::any_case(&VECTOR_TYPES)
                .default("IVF_PQ")
                .about("The kind of index, in any case."),
        ),
        ("name", Rule::string().default("")),
        ("index_name", alias("name")),
        (
            "metric_type",
            metric()
                .default("l2")
                .about("The distance, in any case; euclidean is l2."),
        ),
        (
            "distance_type",
            metric().about("The same, if `metric_type` is absent."),
        ),
        (
            "metric",
            metric().about("The same, if `metric_type` and `distance_type` are absent."),
        ),
        ("replace", Rule::boolean().default(false)),
        ("num_partitions", Rule::integer(0).default(0)),
        ("target_partition_size", Rule::integer(0).default(0)),
        ("num_sub_vectors", Rule::integer(1).default(16)),
        (
            "num_bits",
            Rule::integer(1)
                .about("Quantisation: bits per value; if absent, 5 for IVF_RQ and 8 for others."),
        ),
        ("sample_rate", Rule::integer(1).default(256)),
        ("max_iterations", Rule::integer(1).default(50)),
        ("m", Rule::integer(1).default(20)),
        ("ef_construction", Rule::integer(1).default(150)),
        ("max_level", Rule::integer(1).default(7)),
    ])
}

fn optimize_indices() -> Value {
    object_like::<OptimizeIndicesParams>(vec![
        ("index_names", Rule::strings(1).default(json!([]))),
        (
            "num_indices_to_merge",
            Rule::integer(0).default(Value::Null),
        ),
        ("retrain", Rule::boolean().default(false)),
    ])
}

fn cleanup() -> Value {
    let mut schema = object_like::<CleanupParams>(vec![
        ("older_than", Rule::string().default("")),
        ("retain_versions", Rule::integer(0).default(0)),
        ("delete_unverified", Rule::never()),
        ("error_if_tagged_old_versions", Rule::never()),
    ]);
    schema["anyOf"] = json!([
        {
            "required": ["older_than"],
            "properties": {"older_than": {"type": "string", "minLength": 1}},
        },
        {
            "required": ["retain_versions"],
            "properties": {"retain_versions": {"type": "integer", "minimum": 1}},
        },
    ]);
    schema
}

fn create_namespace() -> Value {
    object(vec![
        ("id", id()),
        (
            "mode",
            Rule::any_case(&CREATE_MODES).default("create").about(
                "What to do with a namespace that exists: fail, leave it as it is, or drop it, \
                 if it is empty, and make it anew.",
            ),
        ),
        ("properties", kept_with("the namespace")),
    ])
}

fn drop_namespace() -> Value {
    object(vec![
        ("id", id()),
        (
            "mode",
            Rule::any_case(&["fail", "skip"])
                .default("fail")
                .about("Whether it is an error that the namespace does not exist."),
        ),
        (
            "behavior",
            Rule::any_case(&["restrict", "cascade"])
                .default("restrict")
                .about("Whether tables keep the namespace from being dropped or go with it."),
        ),
    ])
}

fn declare_table() -> Value {
    object(vec![
        ("id", id()),
        (
            "location",
            Rule::string()
                .with("maxLength", 0)
                .about("The service chooses where the table lies: nothing may be given."),
        ),
        ("properties", kept_with("the table")),
    ])
}

fn register_table() -> Value {
    object(vec![
        ("id", id()),
        (
            "location",
            Rule::required_string().about(
                "The URI of the table's folder, under one of the roots that the service takes \
                 tables from.",
            ),
        ),
        ("mode", Rule::any_case(&["create"]).default("create")),
        ("properties", kept_with("the table")),
    ])
}

fn describe_table() -> Value {
    let flag = |text| Rule::boolean().default(false).about(text);
    let mut schema = object(vec![
        ("id", id()),
        ("version", version()),
        (
            "tag",
            Rule::string().about("The tag whose version to describe; not beside `version`."),
        ),
        ("branch", branch()),
        (
            "with_table_uri",
            flag("Whether the answer has `table_uri`."),
        ),
        (
            "load_detailed_metadata",
            flag("Whether the answer has the schema, its metadata and statistics."),
        ),
        (
            "check_declared",
            flag("Whether the answer says if the table was declared only."),
        ),
    ]);
    let given = |name: &str, kind: &str| {
        let mut schema = json!({"required": [name], "properties": {}});
        schema["properties"][name] = json!({"type": kind});
        schema
    };
    schema["not"] = json!({"allOf": [given("version", "integer"), given("tag", "string")]});
    schema
}

fn table_version() -> Value {
    object(vec![
        ("id", id()),
        ("version", version()),
        ("branch", branch()),
    ])
}

fn rename_table() -> Value {
    object(vec![
        ("id", id()),
        (
            "new_table_name",
            Rule::required_string()
                .with("pattern", TABLE_NAME)
                .with("maxLength", 255)
                .about("The name that the table gets."),
        ),
        (
            "new_namespace_id",
            Rule::strings(1)
                .with("minItems", 1)
                .with("maxItems", 1)
                .with(
                    "items",
                    json!({"type": "string", "pattern": NAMESPACE_NAME, "maxLength": 255}),
                )
                .about("The namespace that it moves to; if absent, it stays where it is."),
        ),
    ])
}

fn create_table_version() -> Value {
    object(vec![
        ("id", id()),
        (
            "version",
            Rule::integer(1)
                .required()
                .about("The number of the version that the manifest becomes."),
        ),
        ("branch", branch()),
        (
            "manifest_path",
            Rule::required_string()
                .about("Where the manifest is staged, in the table's object store."),
        ),
        (
            "manifest_size",
            Rule::integer(0).about("The staged manifest's size in bytes."),
        ),
        ("e_tag", Rule::string().about("The staged manifest's ETag.")),
        (
            "naming_scheme",
            Rule::string()
                .with("examples", json!(["V1", "V2"]))
                .about("How Lance names manifests."),
        ),
    ])
}

/// The names of tables: `a-z`, `0-9` and `_`, which is not the first or the last.
pub const TABLE_NAME: &str = "^[a-z0-9]([a-z0-9_]*[a-z0-9])?$";
/// The names of namespaces: the same, but for what the vendor keeps for itself.
pub const NAMESPACE_NAME: &str = "^(?!oss|acs|aliyun|alibaba|aws)[a-z0-9]([a-z0-9_]*[a-z0-9])?$";

/// The identifier in a body.
pub fn id() -> Rule {
    Rule::strings(0).about("The names in the path once more; other names are refused.")
}

fn alias(of: &str) -> Rule {
    Rule::string().about(&format!("The same, if `{of}` is absent."))
}

fn kept_with(what: &str) -> Rule {
    Rule::properties().about(&format!("Properties to keep with {what}."))
}

fn version() -> Rule {
    Rule::integer(1).about("The number of a version; if absent, the newest.")
}

fn branch() -> Rule {
    Rule::string().about("The branch; if absent, the main one.")
}
