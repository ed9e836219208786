//! Bodies about versions of tables.

use serde::{Deserialize, Serialize};

use super::Properties;
use super::tables::version;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::query::Query;

/// Body of CreateTableVersion: a manifest that the client has staged becomes a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTableVersionRequest {
    /// The version's number.
    pub version: u64,
    /// The branch; absent for the main one.
    pub branch: Option<String>,
    /// Where the manifest is staged.
    pub manifest_path: String,
    /// The manifest's size in bytes.
    pub manifest_size: Option<u64>,
    /// The staged manifest's ETag.
    pub e_tag: Option<String>,
    /// How Lance names manifests: `V1` or `V2`.
    pub naming_scheme: Option<String>,
}

impl CreateTableVersionRequest {
    /// Parses a request body.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let text = |name| Ok::<_, ApiError>(fields.string(name)?.map(str::to_owned));
        Ok(Self {
            version: version(&fields, "version")?
                .ok_or_else(|| ApiError::invalid("'version' is required."))?,
            branch: fields.non_empty("branch")?,
            manifest_path: fields.required_string("manifest_path")?.to_owned(),
            manifest_size: fields
                .integer_from("manifest_size", 0)?
                .map(i64::unsigned_abs),
            e_tag: text("e_tag")?,
            naming_scheme: text("naming_scheme")?,
        })
    }
}

/// Body of DescribeTableVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribeTableVersionRequest {
    /// The version; absent for the newest.
    pub version: Option<u64>,
    /// The branch; absent for the main one.
    pub branch: Option<String>,
}

impl DescribeTableVersionRequest {
    /// Parses a request body, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        Ok(Self {
            version: version(&fields, "version")?,
            branch: fields.non_empty("branch")?,
        })
    }
}

/// Query of ListTableVersions, besides the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListTableVersionsQuery {
    /// The branch; absent for the main one.
    pub branch: Option<String>,
    /// Newest first.
    pub descending: bool,
}

impl ListTableVersionsQuery {
    /// Parses a query.
    pub fn parse(query: &Query) -> Result<Self, ApiError> {
        Ok(Self {
            branch: query
                .get("branch")
                .filter(|branch| !branch.is_empty())
                .map(str::to_owned),
            descending: query.boolean("descending")?.unwrap_or(false),
        })
    }
}

/// A version of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableVersion {
    /// The version's number.
    pub version: u64,
    /// The path of the manifest in the table's object store.
    pub manifest_path: String,
    /// The manifest's size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_size: Option<u64>,
    /// The manifest's ETag, where the store gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e_tag: Option<String>,
    /// When the version was made, in milliseconds since the Unix epoch. Absent, like `metadata`, in
    /// lists of more than 100 versions, for which manifests are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_millis: Option<i64>,
    /// Lance's summary of the version: numbers of fragments, files and rows, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Properties>,
}

/// Answer of CreateTableVersion and DescribeTableVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableVersionResponse {
    /// The version.
    pub version: TableVersion,
}

/// Answer of ListTableVersions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListTableVersionsResponse {
    /// The versions of this page.
    pub versions: Vec<TableVersion>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        let create = |body: &str| CreateTableVersionRequest::parse(body.as_bytes()).is_ok();
        assert!(create(r#"{"version":2,"manifest_path":"p"}"#));
        for body in [
            "",
            r#"{"version":2}"#,
            r#"{"manifest_path":"p"}"#,
            r#"{"version":0,"manifest_path":"p"}"#,
            r#"{"version":2,"manifest_path":""}"#,
            r#"{"version":2,"manifest_path":"p","manifest_size":-1}"#,
        ] {
            assert!(!create(body), "{body}");
        }
        let newest = DescribeTableVersionRequest::parse(b"").unwrap();
        assert_eq!((newest.version, newest.branch), (None, None));
        assert!(DescribeTableVersionRequest::parse(br#"{"version":-1}"#).is_err());
        let query = |raw| ListTableVersionsQuery::parse(&Query::parse(raw).unwrap());
        assert!(query("descending=true&branch=b").unwrap().descending);
        assert!(query("descending=yes").is_err());
    }
}
