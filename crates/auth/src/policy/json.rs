//! JSON that means one thing: without keys that are there twice, and without `null`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::error::{Place, PolicyError};

/// Reads JSON. If it is not JSON, the error's place is the line and column.
pub(crate) fn read(json: &[u8]) -> Result<Value, PolicyError> {
    let node: Node = serde_json::from_slice(json).map_err(|error| PolicyError {
        place: format!("line {} column {}", error.line(), error.column()),
        problem: format!("is not JSON: {}", reason(&error)),
    })?;
    value(node, &Place::Root)
}

/// The parser's reason without its place. It never repeats any of the JSON's text.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// JSON as it was written. `Value` would drop all but the last of the keys of one name.
enum Node {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

fn value(node: Node, place: &Place<'_>) -> Result<Value, PolicyError> {
    Ok(match node {
        Node::Null => return Err(place.error("is null: leave it out or give it a value")),
        Node::Bool(it) => Value::Bool(it),
        Node::Number(it) => Value::Number(it),
        Node::String(it) => Value::String(it),
        Node::Array(list) => list
            .into_iter()
            .enumerate()
            .map(|(index, node)| value(node, &Place::Index(place, index)))
            .collect::<Result<_, _>>()?,
        Node::Object(entries) => {
            let mut map = Map::new();
            for (key, node) in entries {
                let at = Place::Key(place, &key);
                if map.contains_key(&key) {
                    return Err(at.error("is there twice"));
                }
                let it = value(node, &at)?;
                map.insert(key, it);
            }
            Value::Object(map)
        }
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsWritten)
    }
}

struct AsWritten;

impl<'de> Visitor<'de> for AsWritten {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Node, E> {
        Ok(Node::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Node, E> {
        Ok(Node::Number(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Node, E> {
        Ok(Node::Number(it.into()))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Node, E> {
        Ok(Number::from_f64(it).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, it: &str) -> Result<Node, E> {
        Ok(Node::String(it.to_owned()))
    }

    fn visit_string<E>(self, it: String) -> Result<Node, E> {
        Ok(Node::String(it))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Node::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            list.push(entry);
        }
        Ok(Node::Object(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_usual_parser_reads() {
        for json in [
            "{}",
            "[]",
            " [1, -1, 1.5, 18446744073709551615, true, \"\\u00e9\\n\"] ",
            "{\"a\": {\"a\": [{\"a\": false}]}, \"b\": \"\"}",
        ] {
            let expected: Value = serde_json::from_str(json).unwrap();
            assert_eq!(read(json.as_bytes()), Ok(expected), "{json}");
        }
    }

    #[test]
    fn refuses() {
        let deep = "[".repeat(1000);
        let cases: [(&[u8], &str, &str); 13] = [
            (
                b"",
                "line 1 column 0",
                "is not JSON: EOF while parsing a value",
            ),
            (
                b"{\"a\": 1",
                "line 1 column 7",
                "is not JSON: EOF while parsing an object",
            ),
            (
                b"{\n  \"a\" 1}",
                "line 2 column 7",
                "is not JSON: expected `:`",
            ),
            (
                b"{} {}",
                "line 1 column 4",
                "is not JSON: trailing characters",
            ),
            (b"[1,]", "line 1 column 4", "is not JSON: trailing comma"),
            (
                b"[hunter2]",
                "line 1 column 2",
                "is not JSON: expected value",
            ),
            (
                b"\"\xff\"",
                "line 1 column 2",
                "is not JSON: invalid unicode code point",
            ),
            (
                b"1e999",
                "line 1 column 5",
                "is not JSON: number out of range",
            ),
            (
                deep.as_bytes(),
                "line 1 column 128",
                "is not JSON: recursion limit exceeded",
            ),
            (b"null", "", "is null: leave it out or give it a value"),
            (
                b"{\"a\": [1, null]}",
                "a[1]",
                "is null: leave it out or give it a value",
            ),
            (b"{\"a\": 1, \"b\": 2, \"a\": 1}", "a", "is there twice"),
            (
                b"[{\"b\": {\"a\": 1, \"\\u0061\": 2}}]",
                "[0].b.a",
                "is there twice",
            ),
        ];
        for (json, place, problem) in cases {
            let error = read(json).unwrap_err();
            let what = String::from_utf8_lossy(json);
            assert_eq!(
                (error.place.as_str(), error.problem.as_str()),
                (place, problem),
                "{what}"
            );
        }
    }
}
