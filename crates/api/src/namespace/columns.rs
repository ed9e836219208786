//! Bodies about columns.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{ApiError, ErrorName};
use crate::fields::Fields;

/// Columns that are added at once, at the most.
const MOST: usize = 100;

/// A column that is to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewColumn {
    /// Its name: one of a top-level column.
    pub name: String,
    /// What is in it.
    #[serde(flatten)]
    pub content: NewContent,
}

/// What is in a new column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewContent {
    /// The value of a SQL expression, computed once over the rows there are.
    Expression(String),
    /// Null, until it is filled with the value of a SQL expression by backfills.
    Computed(String),
}

/// Body of AlterTableAddColumns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddColumnsRequest {
    /// The branch; absent for the main one.
    pub branch: Option<String>,
    /// The columns, at least one.
    pub columns: Vec<NewColumn>,
}

impl AddColumnsRequest {
    /// Parses a request body. Virtual columns are `Unsupported`.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let entries = fields.objects("new_columns")?.unwrap_or_default();
        if entries.is_empty() || entries.len() > MOST {
            return Err(ApiError::invalid(format!(
                "'new_columns' must hold 1 to {MOST} columns."
            )));
        }
        let columns: Vec<NewColumn> = entries.into_iter().map(column).collect::<Result<_, _>>()?;
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].iter().any(|other| other.name == column.name) {
                return Err(ApiError::invalid(format!(
                    "'new_columns' holds the column '{}' twice.",
                    column.name
                )));
            }
        }
        Ok(Self {
            branch: fields
                .non_empty("branch")?
                .filter(|branch| branch != "main"),
            columns,
        })
    }
}

fn column(entry: Map<String, Value>) -> Result<NewColumn, ApiError> {
    let is_virtual = entry
        .get("virtual_column")
        .is_some_and(|value| !value.is_null());
    let fields = Fields::of(entry);
    let name = fields.required_string("name")?.to_owned();
    if is_virtual {
        return Err(ApiError::new(
            ErrorName::Unsupported,
            format!(
                "The column '{name}' is virtual, computed by a function of a user: that is not served \
                 here. Give its value as a SQL expression, with 'computed' or 'expression'."
            ),
        ));
    }
    let expression = fields.non_empty("expression")?;
    let computed = fields.non_empty("computed")?;
    let content = match (expression, computed) {
        (Some(expression), None) => NewContent::Expression(expression),
        (None, Some(expression)) => NewContent::Computed(expression),
        _ => {
            return Err(ApiError::invalid(format!(
                "The column '{name}' needs either 'expression' or 'computed'."
            )));
        }
    };
    Ok(NewColumn { name, content })
}

/// Answer of AlterTableAddColumns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddColumnsResponse {
    /// The table's version afterwards.
    pub version: u64,
}

/// Answer of AlterTableBackfillColumns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackfillColumnResponse {
    /// The job's id, as all jobs have.
    pub job_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_and_refused() {
        use ErrorName::{InvalidInput, Unsupported};
        let cases = [
            (
                r#"{"new_columns":[{"name":"a","expression":"id + 1"}]}"#,
                Ok(1),
            ),
            (
                r#"{"new_columns":[{"name":"a","computed":"id + 1","expression":null},{"name":"b","expression":"1","computed":""}],"branch":"main"}"#,
                Ok(2),
            ),
            ("", Err(InvalidInput)),
            (r#"{"new_columns":[]}"#, Err(InvalidInput)),
            (r#"{"new_columns":{}}"#, Err(InvalidInput)),
            (r#"{"new_columns":["a"]}"#, Err(InvalidInput)),
            (r#"{"new_columns":[{"name":"a"}]}"#, Err(InvalidInput)),
            (r#"{"new_columns":[{"expression":"1"}]}"#, Err(InvalidInput)),
            (
                r#"{"new_columns":[{"name":"a","expression":"1","computed":"1"}]}"#,
                Err(InvalidInput),
            ),
            (
                r#"{"new_columns":[{"name":"a","expression":"1"},{"name":"a","expression":"2"}]}"#,
                Err(InvalidInput),
            ),
            (
                r#"{"new_columns":[{"name":"a","virtual_column":{"udf":"x"}}]}"#,
                Err(Unsupported),
            ),
        ];
        for (body, expected) in cases {
            let parsed = AddColumnsRequest::parse(body.as_bytes());
            let seen = parsed
                .map(|request| request.columns.len())
                .map_err(|error| error.name);
            assert_eq!(seen, expected, "{body}");
        }
    }
}
