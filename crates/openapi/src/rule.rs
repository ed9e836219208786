//! Rules for the fields of a request body, in the words of JSON Schema and with the meaning that
//! the parser gives them: `null` is as absent, fields that are not known are ignored.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// What a value may be.
#[derive(Clone, Debug)]
pub struct Rule {
    schema: Map<String, Value>,
    required: bool,
}

impl Rule {
    fn new(schema: Value) -> Self {
        Self {
            schema: match schema {
                Value::Object(schema) => schema,
                _ => Map::new(),
            },
            required: false,
        }
    }

    /// A 64-bit integer of at least `min`.
    pub fn integer(min: i64) -> Self {
        Self::new(json!({
            "type": ["integer", "null"],
            "format": "int64",
            "minimum": min,
            "maximum": i64::MAX,
        }))
    }

    /// A number that a 64-bit float holds.
    pub fn number() -> Self {
        Self::new(json!({
            "type": ["number", "null"],
            "format": "double",
            "minimum": f64::MIN,
            "maximum": f64::MAX,
        }))
    }

    /// True or false.
    pub fn boolean() -> Self {
        Self::new(json!({"type": ["boolean", "null"]}))
    }

    /// A flag that is known and can't be set.
    pub fn never() -> Self {
        Self::new(json!({"type": ["boolean", "null"], "enum": [false, null], "default": false}))
    }

    /// A string.
    pub fn string() -> Self {
        Self::new(json!({"type": ["string", "null"]}))
    }

    /// A string that must be there and not be empty.
    pub fn required_string() -> Self {
        Self::new(json!({"type": "string", "minLength": 1})).required()
    }

    /// One of some words, exactly.
    pub fn word(words: &[&str]) -> Self {
        let mut choices: Vec<Value> = words.iter().map(|word| json!(word)).collect();
        choices.push(Value::Null);
        Self::new(json!({"type": ["string", "null"], "enum": choices}))
    }

    /// One of some words, in any case.
    pub fn any_case(words: &[&str]) -> Self {
        Self::new(json!({
            "type": ["string", "null"],
            "anyOf": [{"enum": words}, {"pattern": any_case(words)}],
        }))
    }

    /// A string that matches a pattern.
    pub fn pattern(pattern: &str) -> Self {
        Self::new(json!({"type": ["string", "null"], "pattern": pattern}))
    }

    /// An array of strings of at least `min_length` characters.
    pub fn strings(min_length: u64) -> Self {
        let element = match min_length {
            0 => json!({"type": "string"}),
            _ => json!({"type": "string", "minLength": min_length}),
        };
        Self::new(json!({"type": ["array", "null"], "items": element}))
    }

    /// An object of strings.
    pub fn properties() -> Self {
        Self::new(json!({
            "type": ["object", "null"],
            "additionalProperties": {"type": "string"},
        }))
    }

    /// The same, and it must be there.
    pub fn required(mut self) -> Self {
        if let Some(Value::Array(kinds)) = self.schema.get("type") {
            let kind = kinds.iter().find(|kind| **kind != "null").cloned();
            self.schema.insert("type".to_owned(), json!(kind));
        }
        self.required = true;
        self
    }

    /// What counts if the field is absent.
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// What the field means.
    pub fn about(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Another keyword of JSON Schema.
    pub fn with(mut self, keyword: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(keyword.to_owned(), value.into());
        self
    }
}

/// The schema of an object with these fields.
pub fn object(fields: Vec<(&str, Rule)>) -> Value {
    let required: Vec<&str> = fields
        .iter()
        .filter(|(_, rule)| rule.required)
        .map(|(name, _)| *name)
        .collect();
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, rule)| ((*name).to_owned(), Value::Object(rule.schema.clone())))
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The schema of an object with these fields, which mean what the fields of `T` with the same names
/// do: a request's parameters are stored in a type that says so already.
pub fn object_like<T: JsonSchema>(fields: Vec<(&str, Rule)>) -> Value {
    let documented = SchemaGenerator::default().into_root_schema_for::<T>();
    let described = fields
        .into_iter()
        .map(|(name, rule)| {
            let pointer = format!("/properties/{name}/description");
            let text = documented.pointer(&pointer).and_then(Value::as_str);
            match text {
                Some(text) if !rule.schema.contains_key("description") => (name, rule.about(text)),
                _ => (name, rule),
            }
        })
        .collect();
    object(described)
}

/// A pattern that matches the words in any case. JSON Schema's patterns have no flag for that.
pub fn any_case(words: &[&str]) -> String {
    let word = |word: &&str| -> String {
        word.chars()
            .map(|letter| match letter.is_ascii_alphabetic() {
                true => format!(
                    "[{}{}]",
                    letter.to_ascii_uppercase(),
                    letter.to_ascii_lowercase()
                ),
                false => letter.to_string(),
            })
            .collect()
    };
    let words: Vec<String> = words.iter().map(word).collect();
    format!("^({})$", words.join("|"))
}
