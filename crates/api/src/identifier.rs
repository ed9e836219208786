//! Identifiers: the name pair `namespace<delimiter>table` in a path, and the names it is made of
//! (API facts, section 2.2).

use percent_encoding::percent_decode_str;

use crate::error::ApiError;

/// The string that separates namespace and table in an identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter(String);

impl Delimiter {
    /// What stands between the names if the request does not say otherwise.
    pub const DEFAULT: &'static str = "$";

    /// The delimiter of a request: absent and empty both mean `$`; `/`, `:` and `-` can't be part
    /// of one.
    pub fn parse(value: Option<&str>) -> Result<Self, ApiError> {
        match value {
            None | Some("") => Ok(Self::default()),
            Some(text) if text.contains(['/', ':', '-']) => Err(ApiError::invalid(
                "The delimiter can't contain '/', ':' or '-'.",
            )),
            Some(text) => Ok(Self(text.to_owned())),
        }
    }

    /// The delimiter's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Delimiter {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Checks a name against the rules of its kind.
            pub fn parse(text: &str) -> Result<Self, ApiError> {
                $rule(text)
                    .map(|()| Self(text.to_owned()))
                    .map_err(|rule| ApiError::invalid(format!(concat!($what, " {}."), rule)))
            }

            /// The name's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of a namespace: 1 to 255 of `a-z`, `0-9` and `_`, not starting or ending with `_`
    /// and not starting with a reserved word. One level only.
    NamespaceName, "A namespace name", namespace_rule
);
name_type!(
    /// The name of a table: 1 to 255 of `a-z`, `0-9` and `_`, not starting or ending with `_`.
    TableName, "A table name", table_rule
);

/// How a namespace's name can't start, since the vendor keeps these for itself.
const RESERVED_PREFIXES: [&str; 5] = ["oss", "acs", "aliyun", "alibaba", "aws"];

fn table_rule(text: &str) -> Result<(), &'static str> {
    if !(1..=255).contains(&text.len()) {
        return Err("has 1 to 255 characters");
    }
    if !text
        .bytes()
        .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    {
        return Err("is made of a-z, 0-9 and _");
    }
    if text.starts_with('_') || text.ends_with('_') {
        return Err("can't start or end with _");
    }
    Ok(())
}

fn namespace_rule(text: &str) -> Result<(), &'static str> {
    table_rule(text)?;
    if RESERVED_PREFIXES
        .iter()
        .any(|prefix| text.starts_with(prefix))
    {
        return Err("can't start with oss, acs, aliyun, alibaba or aws");
    }
    Ok(())
}

/// A table as requests name it: never the table's UUID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableIdentifier {
    /// The namespace, one level.
    pub namespace: NamespaceName,
    /// The table's name in it.
    pub table: TableName,
}

impl TableIdentifier {
    /// Parses a path segment: URL-decoded once, then split at the delimiter into exactly two
    /// non-empty names.
    pub fn parse(segment: &str, delimiter: &Delimiter) -> Result<Self, ApiError> {
        let id = decode(segment)?;
        let names: Vec<&str> = id.split(delimiter.as_str()).collect();
        match names.as_slice() {
            [namespace, table] if !namespace.is_empty() && !table.is_empty() => Ok(Self {
                namespace: NamespaceName::parse(namespace)?,
                table: TableName::parse(table)?,
            }),
            _ => Err(ApiError::invalid(format!(
                "The table id must be namespace{0}table: two names with the delimiter '{0}' \
                 between them.",
                delimiter.as_str()
            ))),
        }
    }
}

/// A namespace as requests name it; the root is the delimiter alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamespaceIdentifier {
    /// The root, which holds the bucket's namespaces.
    Root,
    /// A namespace in the root.
    Named(NamespaceName),
}

impl NamespaceIdentifier {
    /// Parses a path segment: URL-decoded once; the delimiter alone is the root.
    pub fn parse(segment: &str, delimiter: &Delimiter) -> Result<Self, ApiError> {
        let id = decode(segment)?;
        if id == delimiter.as_str() {
            return Ok(Self::Root);
        }
        if id.contains(delimiter.as_str()) {
            return Err(ApiError::invalid(
                "A namespace has one level: its id is one name.",
            ));
        }
        NamespaceName::parse(&id).map(Self::Named)
    }

    /// The namespace's name; the root has none, so what needs one is refused.
    pub fn named(self) -> Result<NamespaceName, ApiError> {
        match self {
            Self::Named(name) => Ok(name),
            Self::Root => Err(ApiError::invalid("This needs a namespace, not the root.")),
        }
    }
}

fn decode(segment: &str) -> Result<String, ApiError> {
    percent_decode_str(segment)
        .decode_utf8()
        .map(|id| id.into_owned())
        .map_err(|_| ApiError::invalid("The id is not UTF-8."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(segment: &str, delimiter: Option<&str>) -> Result<String, ApiError> {
        let id = TableIdentifier::parse(segment, &Delimiter::parse(delimiter)?)?;
        Ok(format!("{} {}", id.namespace, id.table))
    }

    #[test]
    fn the_documented_examples() {
        let long = "a".repeat(256);
        let cases: &[(&str, Option<&str>, Option<&str>)] = &[
            ("prod$documents", None, Some("prod documents")),
            ("prod%24documents", None, Some("prod documents")),
            ("prod%24documents", Some(""), Some("prod documents")),
            ("prod__documents", Some("__"), Some("prod documents")),
            ("prod__documents", Some(""), None),
            ("prod%2524documents", None, None),
            ("documents", None, None),
            ("$documents", None, None),
            ("prod$", None, None),
            ("a$b$c", None, None),
            ("a.b$t", None, None),
            ("Prod$t", None, None),
            ("_a$t", None, None),
            ("aws1$t", None, None),
            ("p$_t", None, None),
            ("p%00$t", None, None),
            ("%ff$t", None, None),
            (&format!("p${long}"), None, None),
            ("a$b", Some("-"), None),
            ("a:b", Some(":"), None),
            ("a/b", Some("/"), None),
            ("aa-bb", Some("a-b"), None),
        ];
        for (segment, delimiter, expected) in cases {
            let parsed = table(segment, *delimiter);
            assert_eq!(parsed.as_deref().ok(), *expected, "{segment} {delimiter:?}");
            if let Err(error) = parsed {
                assert_eq!(error.name, crate::ErrorName::InvalidInput, "{segment}");
            }
        }
    }

    #[test]
    fn the_root_is_the_delimiter_alone() {
        let dollar = Delimiter::default();
        assert_eq!(
            NamespaceIdentifier::parse("%24", &dollar),
            Ok(NamespaceIdentifier::Root)
        );
        assert!(
            NamespaceIdentifier::parse("%24", &dollar)
                .unwrap()
                .named()
                .is_err()
        );
        assert!(NamespaceIdentifier::parse("a$b", &dollar).is_err());
        assert_eq!(
            NamespaceIdentifier::parse("ns", &dollar)
                .unwrap()
                .named()
                .unwrap()
                .as_str(),
            "ns"
        );
    }

    proptest! {
        #[test]
        fn any_pair_of_names_survives_any_delimiter_outside_their_alphabet(
            namespace in "[b-n][a-z0-9]{0,20}", name in "[a-z0-9]{1,20}", delimiter in "[$.~!|]{1,4}",
        ) {
            let id = format!("{namespace}{delimiter}{name}");
            let segment: String = percent_encoding::utf8_percent_encode(
                &id, percent_encoding::NON_ALPHANUMERIC).to_string();
            let expected = format!("{namespace} {name}");
            prop_assert_eq!(table(&segment, Some(&delimiter)).unwrap(), expected);
        }

        #[test]
        fn any_text_parses_or_fails(segment in ".*", delimiter in ".*") {
            let _ = table(&segment, Some(&delimiter));
        }
    }
}
