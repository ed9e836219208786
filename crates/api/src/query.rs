//! Query strings, parsed once.

use std::collections::BTreeMap;

use crate::error::ApiError;

/// The decoded parameters of a query string.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the raw query (what follows `?`): `+` is a space, `%XX` is decoded, a bare `name`
    /// has the empty value. A parameter that is given twice is refused: the signature covers the
    /// parameters sorted, so that it does not protect the order of two values.
    pub fn parse(raw: &str) -> Result<Self, ApiError> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
            if parameters
                .insert(name.clone().into_owned(), value.into_owned())
                .is_some()
            {
                return Err(ApiError::invalid(format!(
                    "'{name}' is given more than once."
                )));
            }
        }
        Ok(Self(parameters))
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter that is true or false; without a value it is as absent.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(ApiError::invalid(format!(
                "'{name}' must be true or false."
            ))),
        }
    }

    /// Whether a parameter is present, be it without a value.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn true_or_false() {
        let query = Query::parse("a=true&b=false&c=&d=1&e=True").unwrap();
        let cases = [
            ("a", Ok(Some(true))),
            ("b", Ok(Some(false))),
            ("c", Ok(None)),
            ("x", Ok(None)),
            ("d", Err(())),
            ("e", Err(())),
        ];
        for (name, expected) in cases {
            assert_eq!(query.boolean(name).map_err(drop), expected, "{name}");
        }
    }

    #[test]
    fn parses_what_clients_send() {
        let query = Query::parse("delimiter=%24&task_type=lance_compact&status&b=x+y").unwrap();
        let cases = [
            ("delimiter", Some("$")),
            ("task_type", Some("lance_compact")),
            ("status", Some("")),
            ("b", Some("x y")),
            ("mode", None),
        ];
        for (name, value) in cases {
            assert_eq!(query.get(name), value, "{name}");
        }
        assert!(Query::parse("delimiter=a&delimiter=b").is_err());
        assert!(Query::parse("a&%61").is_err());
        assert_eq!(Query::parse(""), Ok(Query::default()));
    }
}
