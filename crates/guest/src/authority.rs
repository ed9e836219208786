//! What the caller of a request may do: identity policy, bucket policy and table policy together.

use std::collections::BTreeMap;

use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::policy::{Decision, Policy, PolicyKind, Request, decide};
use lance_maintenance_store::KeyValue;
use lance_maintenance_store::access::Access;
use serde_json::Value;

use crate::context::RequestContext;
use crate::{host, log, settings};

/// The caller of a request, and the policies that say what the caller may do in its bucket.
pub struct Authority<'a> {
    context: &'a RequestContext,
    region: String,
    account_id: String,
    identity: Option<Policy>,
    bucket: Vec<Policy>,
}

impl<'a> Authority<'a> {
    /// Reads what applies to a request's caller and bucket.
    pub async fn of(context: &'a RequestContext, store: &impl KeyValue) -> Result<Self, ApiError> {
        let identity = context
            .caller
            .policy
            .as_ref()
            .map(|policy| read(policy, PolicyKind::Identity))
            .transpose()?;
        Self::with_identity(context, identity, store).await
    }

    /// The same, for who has read the caller's policy already.
    pub async fn with_identity(
        context: &'a RequestContext,
        identity: Option<Policy>,
        store: &impl KeyValue,
    ) -> Result<Self, ApiError> {
        let mut bucket = Vec::new();
        if let Some(policy) = bucket_policies().await?.remove(&context.bucket) {
            bucket.push(read(&policy, PolicyKind::Resource)?);
        }
        if let Some(policy) = Access::new(store).bucket_policy(&context.bucket)? {
            bucket.push(read(&policy, PolicyKind::Resource)?);
        }
        Ok(Self {
            context,
            region: settings::setting("region").await?,
            account_id: settings::setting("account_id").await?,
            identity,
            bucket,
        })
    }

    /// The ARN of the request's bucket (API facts, section 2.4).
    pub fn bucket_arn(&self) -> String {
        format!(
            "acs:osstables:{}:{}:bucket/{}",
            self.region, self.account_id, self.context.bucket
        )
    }

    /// The ARN of a table in it.
    pub fn table_arn(&self, table_id: &str) -> String {
        format!("{}/table/{table_id}", self.bucket_arn())
    }

    /// The ARN of a user of the account.
    pub fn user_arn(&self, user: &str) -> String {
        format!("acs:ram::{}:user/{user}", self.account_id)
    }

    /// Fails unless the caller may do this with the bucket, or with what is in it by name.
    pub fn check_bucket(&self, action: &str) -> Result<(), ApiError> {
        self.check(
            action,
            &self.bucket_arn(),
            &self.bucket.iter().collect::<Vec<_>>(),
        )
    }

    /// Fails unless the caller may do this with a table of the bucket that has this policy.
    pub fn check_table(
        &self,
        action: &str,
        table_id: &str,
        policy: Option<&Value>,
    ) -> Result<(), ApiError> {
        let policy = policy
            .map(|policy| read(policy, PolicyKind::Resource))
            .transpose()?;
        let policies: Vec<&Policy> = self.bucket.iter().chain(&policy).collect();
        self.check(action, &self.table_arn(table_id), &policies)
    }

    /// Fails unless the caller may do this with a user's access keys. Bucket policies have no say.
    pub fn check_user(&self, action: &str, user: &str) -> Result<(), ApiError> {
        self.check(action, &self.user_arn(user), &[])
    }

    fn check(&self, action: &str, resource: &str, policies: &[&Policy]) -> Result<(), ApiError> {
        let request = Request {
            account_id: &self.account_id,
            user: &self.context.caller.user,
            action,
            resource,
            source_address: self.context.source_address,
            now_unix_seconds: i64::try_from(host::now_seconds()).unwrap_or(i64::MAX),
            secure_transport: self.context.secure_transport,
        };
        let why = match decide(&request, self.identity.as_ref(), policies) {
            Decision::Allowed => return Ok(()),
            Decision::Denied => "a policy denies it",
            Decision::NotAllowed => "no policy allows it",
        };
        Err(ApiError::new(
            ErrorName::PermissionDenied,
            format!(
                "The user '{}' may not do {action} on {resource}: {why}.",
                self.context.caller.user
            ),
        ))
    }
}

/// Fails unless the bucket policies of the variable can be read.
pub async fn check_settings() -> Result<(), ApiError> {
    for policy in bucket_policies().await?.values() {
        read(policy, PolicyKind::Resource)?;
    }
    Ok(())
}

/// The bucket policies of the variable `bucket_policies`, by bucket.
async fn bucket_policies() -> Result<BTreeMap<String, Value>, ApiError> {
    let text = settings::setting("bucket_policies").await?;
    serde_json::from_str(&text).map_err(|error| {
        log::warn(format_args!(
            "the variable 'bucket_policies' is not a JSON object by bucket: {error}"
        ));
        settings::misconfigured()
    })
}

/// A policy that was checked when it was put. One that can't be read any more allows nothing.
fn read(policy: &Value, kind: PolicyKind) -> Result<Policy, ApiError> {
    Policy::parse(policy.to_string().as_bytes(), kind).map_err(|error| {
        log::warn(format_args!("a policy can't be read: {error}"));
        settings::misconfigured()
    })
}
