//! What is wrong with a piece of SQL, and where, in the words of whoever wrote it.
//!
//! Lance parses an expression as a part of a statement, so what it says of a position, or of what it
//! found at the end, has to be taken back to the expression.

use std::fmt;

use lance::Error;
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

impl Kind {
    /// What Lance puts before it, and after.
    fn statement(self) -> (&'static str, &'static str) {
        match self {
            Self::Expression => ("SELECT ", " FROM t"),
            Self::Condition => ("SELECT 1 FROM t WHERE ", ""),
        }
    }
}

/// The error of SQL that Lance's planner does not take.
pub fn does_not_compile(kind: Kind, text: &str, error: &Error, redactor: &Redactor) -> TaskError {
    let said = error.to_string();
    let (before, after) = kind.statement();
    let detail = match said.split_once(&format!("{before}{text}{after} (")) {
        Some((_, rest)) => parser_error(kind, text, rest),
        None => planner_error(kind, text, &redactor.clean(&said)),
    };
    TaskError::new(ErrorName::InvalidInput, detail)
}

/// The error with the place where the name stands in the text.
pub fn located(mut error: TaskError, name: &str, text: &str) -> TaskError {
    if let Some(place) = find(name, text) {
        error.detail = format!("{} ('{name}' is {place} of '{text}'.)", error.detail);
    }
    error
}

/// `sql parser error: Expected: an expression, found: FROM at Line: 1, Column: 13), ...`
fn parser_error(kind: Kind, text: &str, rest: &str) -> String {
    let (before, _) = kind.statement();
    let rest = rest.rsplit_once(')').map_or(rest, |(said, _)| said);
    let rest = rest.strip_prefix("sql parser error: ").unwrap_or(rest);
    let Some((message, position)) = rest.rsplit_once(" at Line: ") else {
        let at_end = rest.split(", found: EOF").next().unwrap_or(rest);
        return format!("{kind} does not compile: {at_end}, at its end.");
    };
    let numbers = position.split_once(", Column: ");
    let parsed = numbers.and_then(|(line, column)| {
        Some((line.parse::<usize>().ok()?, column.parse::<usize>().ok()?))
    });
    let Some((line, column)) = parsed else {
        return format!("{kind} does not compile: {message}.");
    };
    let column = match line {
        1 => column.saturating_sub(before.len()).max(1),
        _ => column,
    };
    let lines = text.lines().count().max(1);
    let length = text
        .lines()
        .nth(line - 1)
        .map_or(0, |of| of.chars().count());
    if line > lines || (line == lines && column > length) {
        let message = message
            .rsplit_once(", found: ")
            .map_or(message, |(message, _)| message);
        return format!("{kind} does not compile: {message}, at its end.");
    }
    format!("{kind} does not compile: {message}, at line {line}, column {column}.")
}

fn planner_error(kind: Kind, text: &str, said: &str) -> String {
    let said = [
        "Invalid user input: ",
        "LanceError(IO): ",
        "Query Execution error: ",
    ]
    .iter()
    .fold(said, |said, word| said.strip_prefix(word).unwrap_or(said))
    .trim_end_matches(['.', ',', ' ']);
    // What is not known is quoted.
    let place = said
        .split(['\'', '"', '`'])
        .skip(1)
        .step_by(2)
        .find_map(|name| find(name, text));
    match place {
        Some(place) => format!("{kind} does not compile: {said}, {place}."),
        None => format!("{kind} does not compile: {said}."),
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
    fn positions_are_those_of_the_text() {
        use Kind::{Condition, Expression};
        let error = |text: &str| Error::invalid_input(text.to_owned());
        let cases = [
            (
                Expression,
                "id + ",
                "Error parsing statement: SELECT id +  FROM t (sql parser error: Expected: an expression, found: FROM at Line: 1, Column: 14)",
                "The expression does not compile: Expected: an expression, at its end.",
            ),
            (
                Expression,
                "id + ) 1",
                "Error parsing statement: SELECT id + ) 1 FROM t (sql parser error: Expected: an expression, found: ) at Line: 1, Column: 13)",
                "The expression does not compile: Expected: an expression, found: ), at line 1, column 6.",
            ),
            (
                Expression,
                "id +\n )",
                "Error parsing statement: SELECT id +\n ) FROM t (sql parser error: Expected: an expression, found: ) at Line: 2, Column: 2)",
                "The expression does not compile: Expected: an expression, found: ), at line 2, column 2.",
            ),
            (
                Condition,
                "id >",
                "Error parsing statement: SELECT 1 FROM t WHERE id > (sql parser error: Expected: an expression, found: EOF)",
                "The condition does not compile: Expected: an expression, at its end.",
            ),
            (
                Expression,
                "1 + nope(2)",
                "Invalid function 'nope'",
                "The expression does not compile: Invalid function 'nope', at line 1, column 5.",
            ),
        ];
        for (kind, text, said, expected) in cases {
            let detail = does_not_compile(kind, text, &error(said), &Redactor::default()).detail;
            assert_eq!(detail, expected);
        }
    }
}
