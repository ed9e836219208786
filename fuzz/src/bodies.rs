//! Bodies of requests: what parses is stored, and read back as it was.

use std::fmt::Debug;

use arbitrary::Arbitrary;
use lance_maintenance_api::ApiError;
use lance_maintenance_api::error::ErrorName;
use lance_maintenance_api::identifier::{NamespaceName, TableIdentifier};
use lance_maintenance_api::namespace::check_body_id;
use lance_maintenance_api::namespace::namespaces::{CreateNamespaceRequest, DropNamespaceRequest};
use lance_maintenance_api::namespace::tables::{
    CreateTableRequest, DeclareTableRequest, DescribeTableRequest, RegisterTableRequest,
    include_declared, parse_rename,
};
use lance_maintenance_api::namespace::versions::{
    CreateTableVersionRequest, DescribeTableVersionRequest, ListTableVersionsQuery,
};
use lance_maintenance_api::params::{
    CleanupParams, CompactParams, OptimizeIndicesParams, ScalarIndexParams, TaskParams,
    VectorIndexParams,
};
use lance_maintenance_api::query::Query;
use lance_maintenance_api::task::{GetTaskResponse, TaskInfo};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Wire;

#[derive(Arbitrary, Debug)]
pub struct Input<'a> {
    /// Which of the server's default compaction modes; one is none.
    mode: u8,
    /// A query in the first line, and a body.
    text: Wire<'a>,
}

/// Says whether there was an object in the body, and fails if parameters change when they are stored, or an error is not the caller's.
pub fn check(input: &Input<'_>) -> bool {
    let modes = [
        "reencode",
        "try_binary_copy",
        "force_binary_copy",
        "no_mode",
    ];
    let mode = modes[usize::from(input.mode) % modes.len()];
    let end = input.text.0.iter().position(|byte| *byte == b'\n');
    let (query, body) = input.text.0.split_at(end.unwrap_or_default());
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    params(body, mode);
    let query = str::from_utf8(query).unwrap_or_default();
    namespace(body, &Query::parse(query).unwrap_or_default());
    stored(body);
    check_body_id(body, &[]).is_ok()
}

fn params(body: &[u8], mode: &str) {
    let compact = CompactParams::parse(body, mode);
    if !matches!(&compact, Err(error) if error.name == ErrorName::InternalError && mode == "no_mode")
    {
        same(
            compact,
            |body| CompactParams::parse(body, mode),
            TaskParams::Compact,
        );
    }
    same(
        ScalarIndexParams::parse(body),
        ScalarIndexParams::parse,
        TaskParams::ScalarIndex,
    );
    same(
        VectorIndexParams::parse(body),
        VectorIndexParams::parse,
        TaskParams::VectorIndex,
    );
    same(
        OptimizeIndicesParams::parse(body),
        OptimizeIndicesParams::parse,
        TaskParams::OptimizeIndices,
    );
    same(
        CleanupParams::parse(body),
        CleanupParams::parse,
        TaskParams::Cleanup,
    );
}

/// What is stored of parameters is read back as they were, and would be accepted as they are shown.
fn same<T>(
    parsed: Result<T, ApiError>,
    parse: impl Fn(&[u8]) -> Result<T, ApiError>,
    wrap: fn(T) -> TaskParams,
) where
    T: Clone + Debug + PartialEq + Serialize + DeserializeOwned,
{
    let Some(params) = good(parsed) else { return };
    let text = serde_json::to_vec(&params).unwrap();
    assert_eq!(parse(&text).as_ref(), Ok(&params));
    assert_eq!(serde_json::from_slice::<T>(&text).unwrap(), params);
    let task = wrap(params);
    let text = serde_json::to_vec(&task).unwrap();
    assert_eq!(serde_json::from_slice::<TaskParams>(&text).unwrap(), task);
}

/// An error says that it is the caller's, in a sentence.
fn good<T>(parsed: Result<T, ApiError>) -> Option<T> {
    parsed
        .map_err(|error| {
            assert_eq!(error.name, ErrorName::InvalidInput, "{error}");
            assert!(error.detail.ends_with('.'), "{error}");
        })
        .ok()
}

fn namespace(body: &[u8], query: &Query) {
    good(CreateNamespaceRequest::parse(body));
    good(DropNamespaceRequest::parse(body));
    good(DeclareTableRequest::parse(body));
    good(RegisterTableRequest::parse(body)).inspect(|it| assert!(!it.location.is_empty()));
    good(CreateTableRequest::parse(query));
    good(include_declared(query));
    good(DescribeTableRequest::parse(body, query)).inspect(|it| {
        assert!(it.version != Some(0));
        assert!(it.version.is_none() || it.tag.is_none() && it.looks_inside());
    });
    good(CreateTableVersionRequest::parse(body)).inspect(|it| assert!(it.version > 0));
    good(DescribeTableVersionRequest::parse(body));
    good(ListTableVersionsQuery::parse(query));
    let here = NamespaceName::parse("here").unwrap();
    if let Some(TableIdentifier { namespace, table }) = good(parse_rename(body, &here)) {
        let again = format!(r#"{{"new_table_name":"{table}","new_namespace_id":["{namespace}"]}}"#);
        let again = parse_rename(again.as_bytes(), &here).unwrap();
        assert_eq!((again.namespace, again.table), (namespace, table));
    }
    good(check_body_id(body, &["prod", "documents"]));
}

/// What the service has stored: it may be of another version, and must not panic.
fn stored(text: &[u8]) {
    if let Ok(info) = serde_json::from_slice::<TaskInfo>(text) {
        let response = GetTaskResponse { task_info: info };
        let text = serde_json::to_vec(&response).unwrap();
        let again: GetTaskResponse = serde_json::from_slice(&text).unwrap();
        assert_eq!(serde_json::to_vec(&again).unwrap().len(), text.len());
    }
}
