//! Which locations the worker touches.

use lance_maintenance_api::ApiError;
use url::Url;

/// Where tables may lie. Others, such as `memory`, would not outlive the request.
const SCHEMES: [&str; 3] = ["file", "s3", "oss"];

/// Checks that this is the URI of a folder in a store that is served, and not the whole store:
/// anything else is `InvalidInput`.
pub fn check(location: &str) -> Result<(), ApiError> {
    if location.is_empty() {
        return Err(ApiError::invalid("The table's location is missing."));
    }
    let url = match location.starts_with('/') {
        true => Url::parse(&format!("file://{location}")),
        false => Url::parse(location),
    };
    let url = url
        .map_err(|error| ApiError::invalid(format!("The table's location is no URI: {error}.")))?;
    if !SCHEMES.contains(&url.scheme()) {
        return Err(ApiError::invalid(format!(
            "Tables lie in {}; the table's location is in '{}'.",
            SCHEMES.join(", "),
            url.scheme()
        )));
    }
    if url.scheme() != "file" && url.host_str().is_none_or(str::is_empty) {
        return Err(ApiError::invalid("The table's location names no bucket."));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ApiError::invalid(
            "The table's location can't hold credentials.",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ApiError::invalid(
            "The table's location ends with its path; '?' and '#' are written %3F and %23.",
        ));
    }
    // Dots are resolved by now, also where they are written %2e.
    if url.path().split('/').all(str::is_empty) {
        return Err(ApiError::invalid(
            "The table's location is a whole store, not a folder in it.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_location() {
        let good = [
            "file:///w/t.lance",
            "/w/t.lance",
            "file:///w/a b.lance/",
            "s3://bucket/ns%24t",
            "oss://bucket/t",
        ];
        for location in good {
            assert_eq!(check(location), Ok(()), "{location}");
        }
        let bad = [
            ("", "missing"),
            ("t.lance", "no URI"),
            ("memory://t", "in 'memory'"),
            ("http://host/t", "in 'http'"),
            ("s3+ddb://b/t?ddbTableName=x", "in 's3+ddb'"),
            ("s3:///t", "no bucket"),
            ("s3://key:secret@b/t", "credentials"),
            ("s3://b/t?x=1", "ends with its path"),
            ("file:///t#x", "ends with its path"),
            ("/", "whole store"),
            ("file:///", "whole store"),
            ("file:///w/..", "whole store"),
            ("file:///w/%2e%2e/", "whole store"),
            ("s3://bucket", "whole store"),
            ("s3://bucket//", "whole store"),
        ];
        for (location, text) in bad {
            let error = check(location).unwrap_err();
            assert!(error.detail.contains(text), "{location}: {error}");
            assert!(!error.detail.contains("secret"), "{error}");
        }
    }
}
