//! Bodies of the Lance REST namespace (`/lance/v1`), as far as they are served. Names are the
//! namespace specification's; unknown fields are ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::{Fields, choose};
use crate::listing::Marker;
use crate::query::Query;

/// Free-form properties of a namespace or a table.
pub type Properties = BTreeMap<String, String>;

/// What happens if a namespace that is to be created exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// It is an error.
    Create,
    /// It stays as it is.
    ExistOk,
}

/// Body of CreateNamespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateNamespaceRequest {
    /// What to do with a namespace that exists.
    pub mode: CreateMode,
    /// Properties to keep with it.
    pub properties: Properties,
}

impl CreateNamespaceRequest {
    /// Parses a request body, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        Ok(Self {
            mode: choose(
                "mode",
                fields.string("mode")?.unwrap_or("create"),
                &[
                    ("create", CreateMode::Create),
                    ("exist_ok", CreateMode::ExistOk),
                    ("existok", CreateMode::ExistOk),
                ],
                str::eq_ignore_ascii_case,
            )?,
            properties: fields.properties()?,
        })
    }
}

/// Answer of CreateNamespace and DescribeNamespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceResponse {
    /// The namespace's properties.
    pub properties: Properties,
}

/// Answer of ListNamespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListNamespacesResponse {
    /// Names of namespaces.
    pub namespaces: Vec<String>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// Answer of ListTables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTablesResponse {
    /// Names of tables, without their namespace.
    pub tables: Vec<String>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A page of a listing of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Names on the page at the most.
    pub limit: usize,
    /// Only slots below this one; absent on the first page.
    pub below: Option<u64>,
}

impl PageQuery {
    /// Parses `limit` (1 to 1000, by default 1000) and `page_token` of a listing whose tokens are
    /// those of `marker`.
    pub fn parse(query: &Query, marker: Marker<'_>) -> Result<Self, ApiError> {
        let limit = match query.get("limit") {
            None | Some("") => 1000,
            Some(text) => text
                .parse()
                .ok()
                .filter(|count| *count >= 1)
                .map(|count: usize| count.min(1000))
                .ok_or_else(|| ApiError::invalid("'limit' must be a number of at least 1."))?,
        };
        let below = match query.get("page_token") {
            None | Some("") => None,
            Some(token) => Some(marker.decode(token).ok_or_else(|| {
                ApiError::invalid("'page_token' must be one that the same listing returned.")
            })?),
        };
        Ok(Self { limit, below })
    }
}

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
    /// Parses a request body. Of the specification's modes only `create` is served.
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
pub struct CreateTableResponse {
    /// The URI of the table's folder.
    pub location: String,
    /// The table's properties.
    pub properties: Properties,
    /// Whether versions are managed by the catalog: they are not.
    pub managed_versioning: bool,
}

/// Answer of DescribeTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeTableResponse {
    /// The table's name.
    pub table: String,
    /// The namespace it is in.
    pub namespace: Vec<String>,
    /// The URI of the table's folder.
    pub location: String,
    /// The same URI, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_uri: Option<String>,
    /// The table's properties. `table_id` and `table_arn` are the service's own.
    pub properties: Properties,
    /// Whether versions are managed by the catalog: they are not.
    pub managed_versioning: bool,
}

/// Body of DescribeTable, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescribeTableRequest {
    /// Whether the answer holds `table_uri`.
    pub with_table_uri: bool,
}

impl DescribeTableRequest {
    /// Parses a request body, which may be empty; `with_table_uri` may also come in the query, as
    /// the specification's own clients send it.
    pub fn parse(body: &[u8], query: &Query) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        Ok(Self {
            with_table_uri: fields.boolean("with_table_uri")?.unwrap_or(false)
                || query.get("with_table_uri") == Some("true"),
        })
    }
}

/// Answer of DropTable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropTableResponse {
    /// The table's identifier.
    pub id: Vec<String>,
    /// The URI of the folder where it lay.
    pub location: String,
    /// The properties it had.
    pub properties: Properties,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        assert_eq!(
            CreateNamespaceRequest::parse(b"").unwrap().mode,
            CreateMode::Create
        );
        assert_eq!(
            CreateNamespaceRequest::parse(br#"{"id":["a"],"mode":"exist_ok"}"#)
                .unwrap()
                .mode,
            CreateMode::ExistOk
        );
        for body in [
            &br#"{"mode":"overwrite"}"#[..],
            br#"{"mode":1}"#,
            br#"{"properties":{"a":1}}"#,
            br#"{"properties":[]}"#,
        ] {
            assert!(CreateNamespaceRequest::parse(body).is_err());
        }
        assert!(DeclareTableRequest::parse(br#"{"location":"file:///x"}"#).is_err());
        assert!(DeclareTableRequest::parse(br#"{"location":null}"#).is_ok());
        assert!(RegisterTableRequest::parse(b"{}").is_err());
        assert!(RegisterTableRequest::parse(br#"{"location":"/x","mode":"overwrite"}"#).is_err());
        assert!(RegisterTableRequest::parse(br#"{"location":"/x"}"#).is_ok());
    }

    #[test]
    fn pages() {
        let marker = Marker::new("bucket", "namespaces");
        let cases = [
            ("", Some((1000, None))),
            ("limit=5", Some((5, None))),
            ("limit=5000", Some((1000, None))),
            (
                &format!("page_token={}", marker.encode(9)),
                Some((1000, Some(9))),
            ),
            ("limit=0", None),
            ("limit=x", None),
            ("page_token=x", None),
        ];
        for (raw, expected) in cases {
            let page = PageQuery::parse(&Query::parse(raw).unwrap(), marker);
            assert_eq!(
                page.ok().map(|page| (page.limit, page.below)),
                expected,
                "{raw}"
            );
        }
    }
}
