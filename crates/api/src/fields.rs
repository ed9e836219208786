//! Reading the known fields of a JSON object with the API's rules: unknown fields are ignored,
//! `null` is as absent, a value of another type is refused by name, of duplicate keys the last wins
//! (API facts, section 4, "Body parsing").

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::namespace::Properties;

/// The fields of a request body.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Parses a body whose top level must be an object; an empty body is an empty object.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self(Map::new()));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(ApiError::invalid("The body must be a JSON object.")),
            Err(error) => Err(ApiError::invalid(format!("The body is not JSON: {error}."))),
        }
    }

    /// The fields of an object that is part of a body.
    pub(crate) fn of(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// Refuses fields of other names than these. `what` says what they are.
    pub(crate) fn refuse_others(&self, what: &str, names: &[&str]) -> Result<(), ApiError> {
        match self.0.keys().find(|name| !names.contains(&name.as_str())) {
            Some(other) => Err(ApiError::invalid(format!(
                "There is no {what} '{other}'; there are {}.",
                names.join(", ")
            ))),
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn typed<'a, T>(
        &'a self,
        name: &str,
        kind: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        self.get(name)
            .map(|value| {
                read(value).ok_or_else(|| ApiError::invalid(format!("'{name}' must be {kind}.")))
            })
            .transpose()
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        self.typed(name, "a 64-bit integer", Value::as_i64)
    }

    /// An integer of at least `min`.
    pub(crate) fn integer_from(&self, name: &str, min: i64) -> Result<Option<i64>, ApiError> {
        match self.integer(name)? {
            Some(value) if value < min => Err(ApiError::invalid(format!(
                "'{name}' must be at least {min}."
            ))),
            value => Ok(value),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, ApiError> {
        self.typed(name, "a number", |value| {
            value.as_f64().filter(|number| number.is_finite())
        })
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.typed(name, "true or false", Value::as_bool)
    }

    pub(crate) fn string(&self, name: &str) -> Result<Option<&str>, ApiError> {
        self.typed(name, "a string", Value::as_str)
    }

    /// A string that is as absent if it is empty.
    pub(crate) fn non_empty(&self, name: &str) -> Result<Option<String>, ApiError> {
        let text = self.string(name)?.filter(|text| !text.is_empty());
        Ok(text.map(str::to_owned))
    }

    /// A string under any of several names; if several are there, the first of `names`.
    pub(crate) fn string_of(&self, names: &[&str]) -> Result<Option<&str>, ApiError> {
        let mut found = None;
        for name in names {
            let value = self.string(name)?;
            found = found.or(value);
        }
        Ok(found)
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        self.typed(name, "an object", |value| value.as_object().cloned())
    }

    pub(crate) fn objects(&self, name: &str) -> Result<Option<Vec<Map<String, Value>>>, ApiError> {
        self.typed(name, "an array of objects", |value| {
            let elements = value.as_array()?.iter();
            elements
                .map(|element| element.as_object().cloned())
                .collect()
        })
    }

    pub(crate) fn strings(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        self.typed(name, "an array of strings", |value| {
            value
                .as_array()?
                .iter()
                .map(|element| element.as_str().map(str::to_owned))
                .collect()
        })
    }

    /// The field `properties`: an object of strings.
    pub(crate) fn properties(&self) -> Result<Properties, ApiError> {
        let read = |value: &Value| {
            value
                .as_object()?
                .iter()
                .map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect()
        };
        Ok(self
            .typed("properties", "an object of strings", read)?
            .unwrap_or_default())
    }

    /// A string that must be there and not be empty.
    pub(crate) fn required_string(&self, name: &str) -> Result<&str, ApiError> {
        match self.string(name)? {
            Some(value) if !value.is_empty() => Ok(value),
            _ => Err(ApiError::invalid(format!("'{name}' is required."))),
        }
    }
}

/// Finds the word among `choices` that equals `text` by `same`, or says which words there are.
pub(crate) fn choose<T: Copy>(
    name: &str,
    text: &str,
    choices: &[(&str, T)],
    same: impl Fn(&str, &str) -> bool,
) -> Result<T, ApiError> {
    choices
        .iter()
        .find(|(word, _)| same(word, text))
        .map(|(_, value)| *value)
        .ok_or_else(|| {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            ApiError::invalid(format!("'{name}' must be one of {}.", words.join(", ")))
        })
}
