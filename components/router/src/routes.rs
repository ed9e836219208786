//! Which component serves which method and path. A new operation is one line in [`SUBMITS`] or
//! [`QUERIES`].

use lance_maintenance_api::{ApiError, ErrorName};

/// The task submissions: the word at the end of `/lance/oss/v1/table/{id}/...`, and the component.
const SUBMITS: [(&str, &str); 5] = [
    ("compact", "compact"),
    ("create_scalar_index", "scalar-index"),
    ("create_vector_index", "vector-index"),
    ("optimize_indices", "optimize-indices"),
    ("cleanup", "cleanup"),
];

/// The task queries: method, whether a task id follows `/tasks`, and the component.
const QUERIES: [(&str, bool, &str); 3] = [
    ("GET", false, "list-tasks"),
    ("GET", true, "get-task"),
    ("DELETE", true, "delete-task"),
];

/// What a request is for.
#[derive(Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// The application's own health.
    Health,
    /// The Lance REST namespace.
    Catalog,
    /// Maintenance of a table.
    Maintenance {
        /// The component that serves it.
        component: &'static str,
        /// The table's identifier, as it stands in the path.
        table: &'a str,
        /// The task's id, as it stands in the path.
        task_id: Option<&'a str>,
    },
}

/// Finds the route of a request by its method and raw path.
pub fn find<'a>(method: &str, path: &'a str) -> Result<Route<'a>, ApiError> {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match segments.as_slice() {
        ["healthz"] => only("GET", method, Route::Health),
        ["lance", "v1", ..] => Ok(Route::Catalog),
        ["lance", "oss", "v1", "table", table, "tasks", rest @ ..] => {
            let task_id = match rest {
                [] => None,
                [task_id] if !task_id.is_empty() => Some(*task_id),
                [_] => return Err(ApiError::invalid("The task id is missing.")),
                _ => return Err(nothing_here()),
            };
            let with_id = task_id.is_some();
            QUERIES
                .iter()
                .find(|(verb, takes_id, _)| *verb == method && *takes_id == with_id)
                .map(|(_, _, component)| Route::Maintenance {
                    component,
                    table,
                    task_id,
                })
                .ok_or_else(|| wrong_method(if with_id { "GET and DELETE" } else { "GET" }))
        }
        ["lance", "oss", "v1", "table", table, action] => {
            let (_, component) = SUBMITS
                .iter()
                .find(|(word, _)| word == action)
                .ok_or_else(nothing_here)?;
            only(
                "POST",
                method,
                Route::Maintenance {
                    component,
                    table,
                    task_id: None,
                },
            )
        }
        _ => Err(nothing_here()),
    }
}

fn only<'a>(expected: &str, method: &str, route: Route<'a>) -> Result<Route<'a>, ApiError> {
    if method == expected {
        Ok(route)
    } else {
        Err(wrong_method(expected))
    }
}

fn wrong_method(methods: &str) -> ApiError {
    ApiError::new(
        ErrorName::MethodNotAllowed,
        format!("This path takes {methods}."),
    )
}

fn nothing_here() -> ApiError {
    ApiError::new(
        ErrorName::NoSuchOperation,
        "There is no operation under this path.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_component() {
        let id = "prod%24documents";
        let cases = [
            ("POST", "compact", "compact", None),
            ("POST", "create_scalar_index", "scalar-index", None),
            ("POST", "create_vector_index", "vector-index", None),
            ("POST", "optimize_indices", "optimize-indices", None),
            ("POST", "cleanup", "cleanup", None),
            ("GET", "tasks", "list-tasks", None),
            ("GET", "tasks/abc", "get-task", Some("abc")),
            ("DELETE", "tasks/abc", "delete-task", Some("abc")),
        ];
        for (method, rest, component, task_id) in cases {
            let path = format!("/lance/oss/v1/table/{id}/{rest}");
            let expected = Route::Maintenance {
                component,
                table: id,
                task_id,
            };
            assert_eq!(find(method, &path), Ok(expected), "{method} {path}");
        }
        assert_eq!(find("GET", "/healthz"), Ok(Route::Health));
        assert_eq!(
            find("POST", "/lance/v1/table/a/describe"),
            Ok(Route::Catalog)
        );
    }

    #[test]
    fn what_is_not_served() {
        let cases = [
            ("GET", "/", ErrorName::NoSuchOperation),
            ("GET", "/lance/oss/v1/table/a", ErrorName::NoSuchOperation),
            (
                "POST",
                "/lance/oss/v1/table/a/lance_compact",
                ErrorName::NoSuchOperation,
            ),
            (
                "GET",
                "/lance/oss/v1/table/a/tasks/b/c",
                ErrorName::NoSuchOperation,
            ),
            (
                "GET",
                "/lance/oss/v1/table/a/tasks/",
                ErrorName::InvalidInput,
            ),
            (
                "GET",
                "/lance/oss/v1/table/a/compact",
                ErrorName::MethodNotAllowed,
            ),
            (
                "PUT",
                "/lance/oss/v1/table/a/tasks/b",
                ErrorName::MethodNotAllowed,
            ),
            (
                "DELETE",
                "/lance/oss/v1/table/a/tasks",
                ErrorName::MethodNotAllowed,
            ),
            ("POST", "/healthz", ErrorName::MethodNotAllowed),
        ];
        for (method, path, name) in cases {
            assert_eq!(
                find(method, path).unwrap_err().name,
                name,
                "{method} {path}"
            );
        }
    }
}
