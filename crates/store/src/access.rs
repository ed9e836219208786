//! Credentials and bucket policies, as the administrators keep them. What they say is the business
//! of whoever reads them; here they are bytes.

use lance_maintenance_api::{ApiError, ErrorName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::key_value::{KeyValue, StoreError, get_json, set_json};
use crate::keys;
use crate::log::{self, Page};
use crate::names::{self, Change, read};

/// A credential, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CredentialRecord {
    /// The access key.
    pub access_key_id: String,
    /// The credential. It holds the secret.
    pub credential: Value,
    /// The slot of its entry in the log of credentials.
    #[serde(default)]
    pub slot: u64,
}

/// Credentials and bucket policies.
pub struct Access<'a, S> {
    store: &'a S,
}

impl<'a, S: KeyValue> Access<'a, S> {
    /// What a store holds of them.
    pub fn new(store: &'a S) -> Self {
        Self { store }
    }

    /// The credential of an access key, if there is one.
    pub fn credential(&self, access_key_id: &str) -> Result<Option<CredentialRecord>, StoreError> {
        read(self.store, &keys::credential(access_key_id))
    }

    /// Puts a credential in the place of `before`, or of none. Somebody else's change in between is
    /// not overwritten: it is `ConcurrentModification`. `now` is in microseconds.
    pub fn put_credential(
        &self,
        access_key_id: &str,
        credential: Value,
        before: Option<&CredentialRecord>,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let change = names::change(
            self.store,
            &keys::credential(access_key_id),
            now,
            None,
            |held: Option<&CredentialRecord>| Ok(held == before),
            |store, held| {
                let slot = match held {
                    Some(held) => held.slot,
                    None => {
                        let slot = log::take_slot(store, keys::CREDENTIALS)?;
                        log::write(store, keys::CREDENTIALS, slot, &access_key_id)?;
                        slot
                    }
                };
                Ok(Some(CredentialRecord {
                    access_key_id: access_key_id.to_owned(),
                    credential,
                    slot,
                }))
            },
        )?;
        done(change)?;
        Ok(())
    }

    /// Removes the credential `before`. `now` is in microseconds.
    pub fn delete_credential(
        &self,
        before: &CredentialRecord,
        now: impl Fn() -> i64,
    ) -> Result<(), ApiError> {
        let change = names::change(
            self.store,
            &keys::credential(&before.access_key_id),
            now,
            None,
            |held: Option<&CredentialRecord>| Ok(held == Some(before)),
            |_, _| Ok(None),
        )?;
        done(change)?;
        let entry = keys::log_entry(keys::CREDENTIALS, before.slot);
        self.store.delete_many(&[entry])?;
        Ok(())
    }

    /// Credentials, the newest key first.
    pub fn credentials(
        &self,
        below: Option<u64>,
        limit: usize,
    ) -> Result<Page<CredentialRecord>, StoreError> {
        let page = log::records::<String>(self.store, keys::CREDENTIALS, below, limit)?;
        let heads: Vec<String> = page
            .entries
            .iter()
            .map(|(_, access_key_id)| keys::credential(access_key_id))
            .collect();
        let held = names::read_many::<CredentialRecord>(self.store, &heads)?;
        let entries = page
            .entries
            .into_iter()
            .zip(held)
            .filter_map(|((slot, _), held)| {
                held.filter(|held| held.slot == slot)
                    .map(|held| (slot, held))
            })
            .collect();
        Ok(Page {
            entries,
            next: page.next,
        })
    }

    /// The policy of a bucket, if there is one.
    pub fn bucket_policy(&self, bucket: &str) -> Result<Option<Value>, StoreError> {
        get_json(self.store, &keys::bucket_policy(bucket))
    }

    /// Puts the policy of a bucket; of two at once one stays.
    pub fn put_bucket_policy(&self, bucket: &str, policy: &Value) -> Result<(), StoreError> {
        set_json(self.store, &keys::bucket_policy(bucket), policy)
    }

    /// Removes the policy of a bucket.
    pub fn delete_bucket_policy(&self, bucket: &str) -> Result<(), StoreError> {
        self.store.delete_many(&[keys::bucket_policy(bucket)])
    }
}

fn done<T>(change: Change<T>) -> Result<(), ApiError> {
    match change {
        Change::Done(_) => Ok(()),
        Change::Refused(_) | Change::Busy => Err(ApiError::new(
            ErrorName::ConcurrentModification,
            "Somebody else has changed this credential meanwhile; look at it and try again.",
        )),
    }
}
