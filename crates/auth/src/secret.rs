//! Secret access keys in memory.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

/// A secret access key. `Debug` prints nothing of it, it can't be serialised, and its memory is
/// overwritten when it is dropped.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes charge of a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(SecretString::from(key.into()))
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// From a string. `secrecy` has the same behind a feature that turns on another of `serde`; then
/// Lance would be compiled once for the crates that link this one and once for the others.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn prints_nothing_of_itself() {
        let read: Secret = serde_json::from_str("\"hunter2\"").unwrap();
        assert_eq!(read.expose(), "hunter2");
        for secret in [read, Secret::new("hunter2")] {
            assert!(!format!("{secret:?} {secret:#?}").contains("hunter2"));
        }
    }
}
