//! The URIs of tables' folders, in the one spelling in which they are kept.

/// A location as it is kept: a local path may be given without its scheme, and any with a slash at its
/// end.
pub fn normalised(location: &str) -> String {
    let uri = match location.starts_with('/') {
        true => format!("file://{location}"),
        false => location.to_owned(),
    };
    uri.trim_end_matches('/').to_owned()
}

/// Whether the name of a table is the URI of its folder rather than an identifier: no identifier has a
/// slash.
pub fn is_location(name: &str) -> bool {
    name.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for (given, kept) in [
            ("/w/t.lance", "file:///w/t.lance"),
            ("file:///w/t.lance/", "file:///w/t.lance"),
            ("s3://b/t", "s3://b/t"),
        ] {
            assert_eq!(normalised(given), kept);
            assert!(is_location(given));
        }
        assert!(!is_location("ns$t"));
    }
}
