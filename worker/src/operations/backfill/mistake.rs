//! What is wrong with a piece of SQL, and where, in the words of whoever wrote it.

use std::fmt;

use lance::Error;
use lance::deps::datafusion::common::SchemaError;
use lance::deps::datafusion::error::DataFusionError;
use lance_maintenance_api::{ErrorName, TaskError};

use crate::operations::redact::Redactor;

/// What a piece of SQL is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value of a column.
    Expression,
    /// Which rows are meant.
    Condition,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expression => "The expression",
            Self::Condition => "The condition",
        })
    }
}

/// The error of SQL that can't be compiled.
pub fn does_not_compile(
    kind: Kind,
    text: &str,
    error: &DataFusionError,
    redactor: &Redactor,
) -> TaskError {
    let invalid = |said: String| {
        TaskError::new(
            ErrorName::InvalidInput,
            format!("{kind} does not compile: {said}."),
        )
    };
    match error.find_root() {
        DataFusionError::SQL(error, _) => invalid(syntax(text, &error.to_string())),
        DataFusionError::SchemaError(error, _) => match &**error {
            SchemaError::FieldNotFound { field, .. } => TaskError::new(
                ErrorName::TableColumnNotFound,
                format!(
                    "{kind} names the column '{}', which the table has not{}.",
                    field.name,
                    find(&field.name, text).map_or_else(String::new, |at| format!(", {at}"))
                ),
            ),
            error => invalid(meaning(text, &redactor.clean(&error.to_string()))),
        },
        error => invalid(meaning(text, &redactor.clean(&error.message()))),
    }
}

/// Why a value can't be computed: what the kernel says, without the names of what passed it on.
pub fn reason(error: &Error, redactor: &Redactor) -> String {
    const NAMES: [&str; 6] = [
        "Invalid user input: ",
        "LanceError(Arrow): ",
        "LanceError(IO): ",
        "Query Execution error: ",
        "Execution error: ",
        "Arrow error: ",
    ];
    let mut said = redactor.clean(&error.to_string());
    while let Some(rest) = NAMES.iter().find_map(|name| said.strip_prefix(name)) {
        said = rest.to_owned();
    }
    said
}

/// `sql parser error: Expected: an expression, found: ) at Line: 1, Column: 6`
fn syntax(text: &str, said: &str) -> String {
    let said = said.strip_prefix("sql parser error: ").unwrap_or(said);
    if let Some((message, _)) = said.split_once(", found: EOF") {
        return format!("{message}, at its end");
    }
    let found = said
        .rsplit_once(" at Line: ")
        .and_then(|(message, position)| {
            let (line, column) = position.split_once(", Column: ")?;
            let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
            Some(format!("{message}, at line {line}, column {column}"))
        });
    found.unwrap_or_else(|| meaning(text, said))
}

/// What is not known or does not fit is quoted: where it stands says more.
fn meaning(text: &str, said: &str) -> String {
    let said = said.trim_end_matches(['.', ',', ' ']);
    let mut quoted = said.split(['\'', '"', '`']).skip(1).step_by(2);
    match quoted.find_map(|name| find(name, text)) {
        Some(place) => format!("{said}, {place}"),
        None => said.to_owned(),
    }
}

/// Where a name stands in a text, if it does.
fn find(name: &str, text: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let at = text.to_ascii_lowercase().find(&name.to_ascii_lowercase())?;
    let before = text.get(..at)?;
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    Some(format!("at line {line}, column {column}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_said() {
        let cases = [
            (
                "id + ",
                "sql parser error: Expected: an expression, found: EOF",
                "Expected: an expression, at its end",
            ),
            (
                "id +\n ) 1",
                "sql parser error: Expected: an expression, found: ) at Line: 2, Column: 2",
                "Expected: an expression, found: ), at line 2, column 2",
            ),
            ("x", "sql parser error: strange", "strange"),
        ];
        for (text, said, expected) in cases {
            assert_eq!(syntax(text, said), expected);
        }
        assert_eq!(
            meaning("1 + nope(2)", "Invalid function 'nope'."),
            "Invalid function 'nope', at line 1, column 5"
        );
    }
}
