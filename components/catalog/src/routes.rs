//! Which operation of the Lance REST namespace a method and path name.

use lance_maintenance_api::{ApiError, ErrorName};

/// The operations that are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    CreateNamespace,
    DescribeNamespace,
    ListNamespaces,
    ListTables,
    DeclareTable,
    RegisterTable,
    DescribeTable,
    DropTable,
}

/// Method, what kind of thing the id names, what follows the id, and the operation.
const OPERATIONS: [(&str, &str, &str, Operation); 8] = [
    ("POST", "namespace", "create", Operation::CreateNamespace),
    (
        "POST",
        "namespace",
        "describe",
        Operation::DescribeNamespace,
    ),
    ("GET", "namespace", "list", Operation::ListNamespaces),
    ("GET", "namespace", "table/list", Operation::ListTables),
    ("POST", "table", "declare", Operation::DeclareTable),
    ("POST", "table", "register", Operation::RegisterTable),
    ("POST", "table", "describe", Operation::DescribeTable),
    ("POST", "table", "drop", Operation::DropTable),
];

/// Finds the operation of a request, and the id in its raw path.
pub fn find<'a>(method: &str, path: &'a str) -> Result<(Operation, &'a str), ApiError> {
    let mut parts = path.trim_start_matches("/lance/v1/").splitn(3, '/');
    let (kind, id, rest) = (parts.next(), parts.next(), parts.next());
    let (Some(kind), Some(id), Some(rest)) = (kind, id, rest) else {
        return Err(unsupported());
    };
    let (verb, _, _, operation) = OPERATIONS
        .iter()
        .find(|(_, of_kind, after, _)| *of_kind == kind && *after == rest)
        .ok_or_else(unsupported)?;
    if *verb != method {
        return Err(ApiError::new(
            ErrorName::MethodNotAllowed,
            format!("This path takes {verb}."),
        ));
    }
    Ok((*operation, id))
}

fn unsupported() -> ApiError {
    ApiError::new(
        ErrorName::Unsupported,
        "This operation of the Lance REST namespace is not served here.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_served() {
        let cases = [
            (
                "POST",
                "/lance/v1/namespace/ns/create",
                Ok((Operation::CreateNamespace, "ns")),
            ),
            (
                "GET",
                "/lance/v1/namespace/%24/list",
                Ok((Operation::ListNamespaces, "%24")),
            ),
            (
                "GET",
                "/lance/v1/namespace/ns/table/list",
                Ok((Operation::ListTables, "ns")),
            ),
            (
                "POST",
                "/lance/v1/table/ns%24t/declare",
                Ok((Operation::DeclareTable, "ns%24t")),
            ),
            (
                "GET",
                "/lance/v1/table/ns%24t/declare",
                Err(ErrorName::MethodNotAllowed),
            ),
            (
                "POST",
                "/lance/v1/table/ns%24t/query",
                Err(ErrorName::Unsupported),
            ),
            ("GET", "/lance/v1/table", Err(ErrorName::Unsupported)),
            ("GET", "/lance/v1/", Err(ErrorName::Unsupported)),
        ];
        for (method, path, expected) in cases {
            let found = find(method, path).map_err(|error| error.name);
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}
