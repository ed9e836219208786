//! Who may call, from the start: the generated credential, which may do everything, and what
//! `access.json` adds.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::data::Credentials;

/// What `access.json` holds (docs/access.md). The application reads what is in it, and says where a
/// mistake is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoreAccess {
    /// Credentials besides the generated one.
    #[serde(default)]
    credentials: Vec<Value>,
    /// Bucket policies, by bucket.
    #[serde(default)]
    bucket_policies: Map<String, Value>,
}

/// The application's variables about access.
pub struct Access(MoreAccess);

impl Access {
    /// The generated credential, and what else there is.
    pub fn of(generated: &Credentials, more: Option<MoreAccess>) -> Self {
        let mut all = more.unwrap_or_default();
        // Last, so that the application counts the others as they are counted in the file.
        all.credentials.push(json!({
            "access_key_id": generated.access_key_id,
            "secret_access_key": generated.secret_access_key,
            "user": "admin",
            "policy": {
                "Version": "1",
                "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
            },
        }));
        Self(all)
    }

    /// The variable `credentials`.
    pub fn credentials(&self) -> String {
        Value::from(self.0.credentials.clone()).to_string()
    }

    /// The variable `bucket_policies`.
    pub fn bucket_policies(&self) -> String {
        Value::from(self.0.bucket_policies.clone()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_adds() {
        let generated = Credentials {
            access_key_id: "AK".to_owned(),
            secret_access_key: "SK".to_owned(),
            region: "local".to_owned(),
        };
        let alone = Access::of(&generated, None);
        assert_eq!(alone.bucket_policies(), "{}");
        let more = r#"{"credentials": [{"access_key_id": "B"}], "bucket_policies": {"lance": {}}}"#;
        let both = Access::of(&generated, Some(serde_json::from_str(more).unwrap()));
        let list: Value = serde_json::from_str(&both.credentials()).unwrap();
        assert_eq!(list[0]["access_key_id"], "B");
        assert_eq!(list[1]["access_key_id"], "AK");
        assert_eq!(both.bucket_policies(), r#"{"lance":{}}"#);
        assert!(serde_json::from_str::<MoreAccess>(r#"{"credential": []}"#).is_err());
    }
}
