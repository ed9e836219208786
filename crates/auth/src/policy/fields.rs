//! Objects, lists and texts in JSON.

use serde_json::{Map, Value};

use super::error::{Place, PolicyError};

/// How many entries a list may have.
const MAX_ENTRIES: usize = 100;
/// How many bytes a text may have.
const MAX_TEXT_BYTES: usize = 1024;

/// An object all of whose keys are known.
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    place: &'a Place<'a>,
}

impl<'a> Fields<'a> {
    /// Reads an object that may have these keys.
    pub(crate) fn read(
        value: &'a Value,
        place: &'a Place<'a>,
        known: &[&str],
    ) -> Result<Self, PolicyError> {
        let map = object(value, place)?;
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(unknown) => Err(Place::Key(place, unknown)
                .error(format!("is not known here; known: {}", known.join(", ")))),
            None => Ok(Self { map, place }),
        }
    }

    /// The value of a key and its place, if the key is there.
    pub(crate) fn optional(&self, key: &'a str) -> Option<(&'a Value, Place<'a>)> {
        self.map
            .get(key)
            .map(|value| (value, Place::Key(self.place, key)))
    }

    /// The value of a key and its place.
    pub(crate) fn required(&self, key: &'a str) -> Result<(&'a Value, Place<'a>), PolicyError> {
        self.optional(key)
            .ok_or_else(|| Place::Key(self.place, key).error("is missing"))
    }
}

/// Reads an object.
pub(crate) fn object<'a>(
    value: &'a Value,
    place: &Place<'_>,
) -> Result<&'a Map<String, Value>, PolicyError> {
    value
        .as_object()
        .ok_or_else(|| place.error("must be an object"))
}

/// Reads the elements of a list that has at least one and at most so many.
pub(crate) fn list<T>(
    elements: &[Value],
    place: &Place<'_>,
    most: usize,
    read: impl Fn(&Value, &Place<'_>) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    if elements.is_empty() {
        return Err(place.error("is empty: leave it out or put something in"));
    }
    if elements.len() > most {
        let count = elements.len();
        return Err(place.error(format!("has {count} entries; at most {most} are allowed")));
    }
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| read(element, &Place::Index(place, index)))
        .collect()
}

/// Reads a value or a list of some.
pub(crate) fn one_or_many<T>(
    value: &Value,
    place: &Place<'_>,
    read: impl Fn(&Value, &Place<'_>) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    match value {
        Value::Array(elements) => list(elements, place, MAX_ENTRIES, read),
        one => Ok(vec![read(one, place)?]),
    }
}

/// Reads a text.
pub(crate) fn text<'a>(value: &'a Value, place: &Place<'_>) -> Result<&'a str, PolicyError> {
    let text = value
        .as_str()
        .ok_or_else(|| place.error("must be a string"))?;
    if text.len() > MAX_TEXT_BYTES {
        let bytes = text.len();
        return Err(place.error(format!(
            "is {bytes} bytes long; at most {MAX_TEXT_BYTES} are allowed"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits() {
        let read = |value: Value| {
            let texts = one_or_many(&value, &Place::Root, |value, place| {
                text(value, place).map(str::to_owned)
            });
            texts
                .map(|texts| texts.len())
                .map_err(|error| error.to_string())
        };
        let refused = |text: &str| Err(text.to_owned());
        let cases = [
            (json!("a"), Ok(1)),
            (json!(["a"]), Ok(1)),
            (json!(vec!["a"; 100]), Ok(100)),
            (
                json!(vec!["a"; 101]),
                refused("has 101 entries; at most 100 are allowed"),
            ),
            (
                json!([]),
                refused("is empty: leave it out or put something in"),
            ),
            (json!("a".repeat(1024)), Ok(1)),
            (
                json!(["a", "\u{e9}".repeat(513)]),
                refused("[1]: is 1026 bytes long; at most 1024 are allowed"),
            ),
            (json!(1), refused("must be a string")),
            (json!([["a"]]), refused("[0]: must be a string")),
        ];
        for (value, expected) in cases {
            assert_eq!(read(value), expected);
        }
    }

    #[test]
    fn keys() {
        let (place, value) = (Place::Root, json!({"a": 1, "b": 2}));
        let fields = Fields::read(&value, &place, &["a", "b", "c"]).unwrap();
        assert_eq!(fields.required("a").unwrap().0, 1);
        assert!(fields.optional("c").is_none());
        let missing = fields.required("c").err().unwrap();
        assert_eq!(missing.to_string(), "c: is missing");
        let unknown = Fields::read(&value, &place, &["b", "c"]).err().unwrap();
        assert_eq!(unknown.to_string(), "a: is not known here; known: b, c");
        let list = json!([]);
        let other = Fields::read(&list, &place, &[]).err().unwrap();
        assert_eq!(other.to_string(), "must be an object");
    }
}
