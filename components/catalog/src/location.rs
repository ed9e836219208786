//! Where tables may lie.

use lance_maintenance_api::{ApiError, location};

/// How many bytes the URI of a table's folder may have. Object stores end keys there.
const LONGEST: usize = 1024;

/// The location of a new table in the warehouse: named by its UUID, so that no two tables ever
/// share one.
pub fn in_warehouse(warehouse: &str, bucket: &str, table_id: &str) -> String {
    format!(
        "{}/{bucket}/{table_id}.lance",
        warehouse.trim_end_matches('/')
    )
}

/// The location of a table that is to be registered, if it lies under one of the roots.
pub fn under_roots(location: &str, roots: &[String]) -> Result<String, ApiError> {
    let uri = location::normalised(location);
    if uri.len() > LONGEST {
        return Err(ApiError::invalid(format!(
            "The location may have {LONGEST} bytes."
        )));
    }
    let inside = |root: &String| {
        uri.strip_prefix(root.trim_end_matches('/'))
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(is_plain_path)
    };
    if roots.iter().any(inside) {
        return Ok(uri);
    }
    Err(ApiError::invalid(if roots.is_empty() {
        "This service registers no tables: the variable 'register_roots' is not set.".to_owned()
    } else {
        "The location must be a plain path under one of the roots that this service registers \
         tables from."
            .to_owned()
    }))
}

/// Whether a path says where it leads: no way up, no empty steps, nothing encoded or hidden.
fn is_plain_path(path: &str) -> bool {
    path.split('/')
        .all(|step| !step.is_empty() && step != "." && step != "..")
        && !path.contains(['%', '\\', '?', '#'])
        && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_under_a_root() {
        let roots = [
            "file:///data/lance/".to_owned(),
            "s3://bucket/tables".to_owned(),
        ];
        let cases = [
            (
                "file:///data/lance/t.lance",
                Some("file:///data/lance/t.lance"),
            ),
            (
                "/data/lance/a/t.lance/",
                Some("file:///data/lance/a/t.lance"),
            ),
            ("s3://bucket/tables/t", Some("s3://bucket/tables/t")),
            ("s3://bucket/tables", None),
            ("s3://bucket/tables2/t", None),
            ("s3://other/tables/t", None),
            ("gs://bucket/tables/t", None),
            ("file:///data/lance", None),
            ("file:///data/lance/../secret", None),
            ("file:///data/lance/a/../../secret", None),
            ("file:///data/lance/%2e%2e/secret", None),
            ("file:///data/lance/./t", None),
            ("file:///data/lance//t", None),
            ("file:///data/lance/t?x=1", None),
            ("file:///data/lance/t\u{0}", None),
            ("data/lance/t", None),
            ("", None),
        ];
        for (location, expected) in cases {
            assert_eq!(
                under_roots(location, &roots).ok().as_deref(),
                expected,
                "{location}"
            );
        }
        assert!(under_roots("/data/lance/t", &[]).is_err());
        let long = |bytes: usize| format!("s3://bucket/tables/{}", "t".repeat(bytes - 19));
        assert!(under_roots(&long(1024), &roots).is_ok());
        assert!(under_roots(&long(1025), &roots).is_err());
    }

    #[test]
    fn declared_tables_lie_in_the_warehouse() {
        assert_eq!(in_warehouse("s3://w/x/", "b", "U"), "s3://w/x/b/U.lance");
    }
}
