//! Bodies about namespaces.

use serde::{Deserialize, Serialize};

use super::Properties;
use crate::error::ApiError;
use crate::fields::{Fields, choose};

/// What happens if a namespace that is to be created exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateMode {
    /// It is an error.
    Create,
    /// It stays as it is.
    ExistOk,
    /// It is dropped, which it can be if it is empty, and created anew.
    Overwrite,
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
                    ("overwrite", CreateMode::Overwrite),
                ],
                str::eq_ignore_ascii_case,
            )?,
            properties: fields.properties()?,
        })
    }
}

/// What happens if a namespace that is to be dropped does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropMode {
    /// It is an error.
    Fail,
    /// Nothing.
    Skip,
}

/// What happens to the tables of a namespace that is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropBehavior {
    /// They keep it from being dropped.
    Restrict,
    /// They are dropped with it, data and all.
    Cascade,
}

/// Body of DropNamespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropNamespaceRequest {
    /// What to do if it does not exist.
    pub mode: DropMode,
    /// What to do with its tables.
    pub behavior: DropBehavior,
}

impl DropNamespaceRequest {
    /// Parses a request body, which may be empty: then nothing but an empty namespace is dropped.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        Ok(Self {
            mode: choose(
                "mode",
                fields.string("mode")?.unwrap_or("fail"),
                &[("fail", DropMode::Fail), ("skip", DropMode::Skip)],
                str::eq_ignore_ascii_case,
            )?,
            behavior: choose(
                "behavior",
                fields.string("behavior")?.unwrap_or("restrict"),
                &[
                    ("restrict", DropBehavior::Restrict),
                    ("cascade", DropBehavior::Cascade),
                ],
                str::eq_ignore_ascii_case,
            )?,
        })
    }
}

/// Answer of CreateNamespace, DescribeNamespace and DropNamespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamespaceResponse {
    /// The namespace's properties.
    pub properties: Properties,
}

/// Answer of ListNamespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListNamespacesResponse {
    /// Names of namespaces.
    pub namespaces: Vec<String>,
    /// Where the next page starts; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies() {
        let mode = |body: &str| {
            CreateNamespaceRequest::parse(body.as_bytes())
                .ok()
                .map(|request| request.mode)
        };
        let cases = [
            ("", Some(CreateMode::Create)),
            (r#"{"mode":null}"#, Some(CreateMode::Create)),
            (
                r#"{"id":["a"],"mode":"exist_ok"}"#,
                Some(CreateMode::ExistOk),
            ),
            (r#"{"mode":"ExistOk"}"#, Some(CreateMode::ExistOk)),
            (r#"{"mode":"OVERWRITE"}"#, Some(CreateMode::Overwrite)),
            (r#"{"mode":"replace"}"#, None),
            (r#"{"mode":1}"#, None),
            (r#"{"properties":{"a":1}}"#, None),
            (r#"{"properties":[]}"#, None),
        ];
        for (body, expected) in cases {
            assert_eq!(mode(body), expected, "{body}");
        }
    }

    #[test]
    fn a_drop_takes_an_empty_namespace_only_unless_told_to() {
        let parse = |body: &str| {
            DropNamespaceRequest::parse(body.as_bytes())
                .ok()
                .map(|request| (request.mode, request.behavior))
        };
        let cases = [
            ("", Some((DropMode::Fail, DropBehavior::Restrict))),
            (
                r#"{"behavior":"Cascade"}"#,
                Some((DropMode::Fail, DropBehavior::Cascade)),
            ),
            (
                r#"{"mode":"SKIP","behavior":"restrict"}"#,
                Some((DropMode::Skip, DropBehavior::Restrict)),
            ),
            (r#"{"behavior":"all"}"#, None),
            (r#"{"mode":""}"#, None),
        ];
        for (body, expected) in cases {
            assert_eq!(parse(body), expected, "{body}");
        }
    }
}
