//! Bodies about tables.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Properties;
use crate::error::ApiError;
use crate::fields::{Fields, choose};
use crate::identifier::{NamespaceName, TableIdentifier, TableName};
use crate::query::Query;

/// Body of DeclareTable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclareTableRequest {
    /// Properties to keep with the table.
    pub properties: Properties,
}

impl DeclareTableRequest {
    /// Parses a request body, which may be empty. The server chooses the location, so a request
    /// that names one is refused.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        if fields
            .string("location")?
            .is_some_and(|location| !location.is_empty())
        {
            return Err(ApiError::invalid(
                "The server chooses where a declared table lies; to bring in a table that exists, \
                 register its location.",
            ));
        }
        Ok(Self {
            properties: fields.properties()?,
        })
    }
}

/// Body of RegisterTable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterTableRequest {
    /// The URI of the table's folder.
    pub location: String,
    /// Properties to keep with the table.
    pub properties: Properties,
}

impl RegisterTableRequest {
    /// Parses a request body. Of the specification's modes only `create` is served: `overwrite`
    /// would let go of a table that is registered, unasked.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        choose(
            "mode",
            fields.string("mode")?.unwrap_or("create"),
            &[("create", ())],
            str::eq_ignore_ascii_case,
        )?;
        Ok(Self {
            location: fields.required_string("location")?.to_owned(),
            properties: fields.properties()?,
        })
    }
}

/// Answer of DeclareTable and RegisterTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeclareTableResponse {
    /// The URI of the table's folder.
    pub location: String,
    /// The table's properties.
    pub properties: Properties,
    /// Whether versions are managed by the catalog: they are not.
    pub managed_versioning: bool,
}

/// What happens if a table that is to be created exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateTableMode {
    /// It is an error.
    Create,
    /// It stays as it is.
    ExistOk,
    /// It gets a new version with the rows of the request.
    Overwrite,
}

/// The query of CreateTable, whose body holds the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTableRequest {
    /// What to do with a table that exists.
    pub mode: CreateTableMode,
    /// Properties to keep with the table.
    pub properties: Properties,
}

impl CreateTableRequest {
    /// Parses a query. `storage_options` are refused: the worker that writes has its own.
    pub fn parse(query: &Query) -> Result<Self, ApiError> {
        let given = |name| query.get(name).filter(|text: &&str| !text.is_empty());
        if given("storage_options").is_some_and(|text| text != "{}") {
            return Err(ApiError::invalid(
                "'storage_options' are not taken: the service writes with its own.",
            ));
        }
        let properties = given("properties").map_or(Ok(Properties::new()), |text| {
            serde_json::from_str(text)
                .map_err(|_| ApiError::invalid("'properties' must be a JSON object of strings."))
        })?;
        Ok(Self {
            mode: choose(
                "mode",
                given("mode").unwrap_or("create"),
                &[
                    ("create", CreateTableMode::Create),
                    ("exist_ok", CreateTableMode::ExistOk),
                    ("existok", CreateTableMode::ExistOk),
                    ("overwrite", CreateTableMode::Overwrite),
                ],
                str::eq_ignore_ascii_case,
            )?,
            properties,
        })
    }
}

/// Answer of CreateTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreateTableResponse {
    /// The URI of the table's folder.
    pub location: String,
    /// The version that was made; absent if the table stayed as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The table's properties.
    pub properties: Properties,
}

/// Body of DescribeTable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeTableRequest {
    /// The version to describe.
    pub version: Option<u64>,
    /// The tag whose version to describe.
    pub tag: Option<String>,
    /// The branch to describe.
    pub branch: Option<String>,
    /// Whether the answer holds `table_uri`.
    pub with_table_uri: bool,
    /// Whether the answer holds version, schema, statistics and metadata.
    pub load_detailed_metadata: bool,
    /// Whether the answer says if the table was declared only.
    pub check_declared: bool,
}

impl DescribeTableRequest {
    /// Parses a request body, which may be empty; the flags may also come in the query, as the
    /// specification's own clients send them.
    pub fn parse(body: &[u8], query: &Query) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let flag = |name| -> Result<bool, ApiError> {
            let in_query = query.boolean(name)?.unwrap_or(false);
            Ok(fields.boolean(name)?.unwrap_or(false) || in_query)
        };
        let request = Self {
            version: version(&fields, "version")?,
            tag: fields.non_empty("tag")?,
            branch: fields.non_empty("branch")?,
            with_table_uri: flag("with_table_uri")?,
            load_detailed_metadata: flag("load_detailed_metadata")?,
            check_declared: flag("check_declared")?,
        };
        if request.version.is_some() && request.tag.is_some() {
            return Err(ApiError::invalid(
                "Give 'version' or 'tag': each of them names a version.",
            ));
        }
        Ok(request)
    }

    /// Whether the answer needs a look at the table itself.
    pub fn looks_inside(&self) -> bool {
        self.load_detailed_metadata
            || self.version.is_some()
            || self.tag.is_some()
            || self.branch.is_some()
    }
}

/// A field that holds a version's number, from 1.
pub(super) fn version(fields: &Fields, name: &str) -> Result<Option<u64>, ApiError> {
    Ok(fields.integer_from(name, 1)?.map(i64::unsigned_abs))
}

/// Statistics of a table's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableBasicStats {
    /// Rows that are deleted and still stored.
    pub num_deleted_rows: u64,
    /// Fragments.
    pub num_fragments: u64,
}

/// Answer of DescribeTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescribeTableResponse {
    /// The table's name.
    pub table: String,
    /// The namespace it is in.
    pub namespace: Vec<String>,
    /// The version that is described, if the table itself was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The URI of the table's folder.
    pub location: String,
    /// The same URI, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_uri: Option<String>,
    /// The schema, as the specification's JsonArrowSchema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// Statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<TableBasicStats>,
    /// The schema's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Properties>,
    /// The table's properties. `table_id` and `table_arn` are the service's own.
    pub properties: Properties,
    /// Whether versions are managed by the catalog: they are not.
    pub managed_versioning: bool,
    /// Whether the table was declared and never written, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_only_declared: Option<bool>,
}

/// Answer of DropTable and DeregisterTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DropTableResponse {
    /// The table's identifier.
    pub id: Vec<String>,
    /// The URI of the folder where it lay.
    pub location: String,
    /// The properties it had.
    pub properties: Properties,
}

/// Parses the body of RenameTable: the identifier that the table gets. Without `new_namespace_id`
/// it stays in its namespace.
pub fn parse_rename(body: &[u8], namespace: &NamespaceName) -> Result<TableIdentifier, ApiError> {
    let fields = Fields::parse(body)?;
    let table = TableName::parse(fields.required_string("new_table_name")?)?;
    let namespace = match fields.strings("new_namespace_id")?.as_deref() {
        None => namespace.clone(),
        Some([name]) => NamespaceName::parse(name)?,
        Some(_) => {
            return Err(ApiError::invalid(
                "'new_namespace_id' must hold one name: namespaces have one level.",
            ));
        }
    };
    Ok(TableIdentifier { namespace, table })
}

/// Answer of RenameTable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenameTableResponse {}

/// Parses `include_declared` of ListTables: whether tables that were never written are listed.
pub fn include_declared(query: &Query) -> Result<bool, ApiError> {
    Ok(query.boolean("include_declared")?.unwrap_or(true))
}

/// Answer of ListTables, with names, and of ListAllTables, with identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListTablesResponse {
    /// Names of tables, without their namespace; of ListAllTables, with it.
    pub tables: Vec<String>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        assert!(DeclareTableRequest::parse(br#"{"location":"file:///x"}"#).is_err());
        assert!(DeclareTableRequest::parse(br#"{"location":null}"#).is_ok());
        assert!(RegisterTableRequest::parse(b"{}").is_err());
        assert!(RegisterTableRequest::parse(br#"{"location":"/x","mode":"overwrite"}"#).is_err());
        assert!(RegisterTableRequest::parse(br#"{"location":"/x"}"#).is_ok());
    }

    #[test]
    fn what_creates_a_table() {
        use CreateTableMode::{Create, ExistOk, Overwrite};
        let cases = [
            ("", Some((Create, 0))),
            ("mode=&properties=&storage_options=", Some((Create, 0))),
            ("mode=ExistOk", Some((ExistOk, 0))),
            ("mode=exist_ok", Some((ExistOk, 0))),
            (
                "mode=Overwrite&properties=%7B%22a%22%3A%22b%22%7D",
                Some((Overwrite, 1)),
            ),
            ("mode=append", None),
            ("properties=%5B%5D", None),
            ("properties=%7B%22a%22%3A1%7D", None),
            ("storage_options=%7B%22k%22%3A%22v%22%7D", None),
        ];
        for (raw, expected) in cases {
            let parsed = CreateTableRequest::parse(&Query::parse(raw).unwrap());
            let seen = parsed.ok().map(|it| (it.mode, it.properties.len()));
            assert_eq!(seen, expected, "{raw}");
        }
    }

    #[test]
    fn what_describes_a_table() {
        let parse = |body: &str, query: &str| {
            DescribeTableRequest::parse(body.as_bytes(), &Query::parse(query).unwrap())
        };
        let inside = [
            (r#"{"version":3}"#, ""),
            (r#"{"tag":"t"}"#, ""),
            (r#"{"branch":"b","version":1}"#, ""),
            (r#"{"load_detailed_metadata":true}"#, ""),
            ("", "load_detailed_metadata=true"),
        ];
        for (body, query) in inside {
            assert!(parse(body, query).unwrap().looks_inside(), "{body} {query}");
        }
        let asked = parse(r#"{"with_table_uri":true}"#, "check_declared=true").unwrap();
        assert!(asked.with_table_uri && asked.check_declared && !asked.looks_inside());
        for (body, query) in [
            (r#"{"version":0}"#, ""),
            (r#"{"version":"1"}"#, ""),
            (r#"{"version":1,"tag":"t"}"#, ""),
            ("", "check_declared=1"),
            (r#"{"check_declared":"true"}"#, ""),
        ] {
            assert!(parse(body, query).is_err(), "{body} {query}");
        }
    }

    #[test]
    fn where_a_table_is_renamed_to() {
        let here = NamespaceName::parse("here").unwrap();
        let cases = [
            (r#"{"new_table_name":"t"}"#, Some("here t")),
            (
                r#"{"new_table_name":"t","new_namespace_id":["there"]}"#,
                Some("there t"),
            ),
            (
                r#"{"new_table_name":"t","new_namespace_id":null}"#,
                Some("here t"),
            ),
            ("{}", None),
            (r#"{"new_table_name":""}"#, None),
            (r#"{"new_table_name":"T"}"#, None),
            (r#"{"new_table_name":"t","new_namespace_id":[]}"#, None),
            (
                r#"{"new_table_name":"t","new_namespace_id":["a","b"]}"#,
                None,
            ),
            (r#"{"new_table_name":"t","new_namespace_id":"a"}"#, None),
        ];
        for (body, expected) in cases {
            let parsed = parse_rename(body.as_bytes(), &here);
            let seen = parsed
                .ok()
                .map(|id| format!("{} {}", id.namespace, id.table));
            assert_eq!(seen.as_deref(), expected, "{body}");
        }
    }
}
