//! Bucket policies and table policies. What is put is checked first; a mistake is refused with its
//! place.

use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::policy::{Policy, PolicyKind};
use lance_maintenance_guest::{Reply, host};
use lance_maintenance_store::access::Access;
use lance_maintenance_store::catalog::Catalog;
use serde_json::Value;

use crate::Call;

impl Call<'_> {
    pub(crate) fn put_bucket_policy(&self) -> Result<Reply, ApiError> {
        let policy = self.policy()?;
        Access::new(self.store).put_bucket_policy(&self.context.bucket, &policy)?;
        Ok(Reply::no_content())
    }

    pub(crate) fn get_bucket_policy(&self) -> Result<Reply, ApiError> {
        match Access::new(self.store).bucket_policy(&self.context.bucket)? {
            Some(policy) => Ok(Reply::json(&policy)),
            None => Err(no_policy("table bucket")),
        }
    }

    pub(crate) fn delete_bucket_policy(&self) -> Result<Reply, ApiError> {
        Access::new(self.store).delete_bucket_policy(&self.context.bucket)?;
        Ok(Reply::no_content())
    }

    pub(crate) fn put_table_policy(&self) -> Result<Reply, ApiError> {
        self.set_table_policy(Some(self.policy()?))
    }

    pub(crate) fn get_table_policy(&self) -> Result<Reply, ApiError> {
        match self
            .catalog()
            .table(&self.context.table_identifier()?)?
            .policy
        {
            Some(policy) => Ok(Reply::json(&policy)),
            None => Err(no_policy("table")),
        }
    }

    pub(crate) fn delete_table_policy(&self) -> Result<Reply, ApiError> {
        self.set_table_policy(None)
    }

    fn set_table_policy(&self, policy: Option<Value>) -> Result<Reply, ApiError> {
        let id = self.context.table_identifier()?;
        let table_id = &self.context.table()?.id;
        self.catalog()
            .set_table_policy(&id, table_id, policy, host::now_micros)?;
        Ok(Reply::no_content())
    }

    fn catalog(&self) -> Catalog<'_, lance_maintenance_guest::SpinStore> {
        Catalog::new(self.store, &self.context.bucket)
    }

    /// The policy of the request.
    fn policy(&self) -> Result<Value, ApiError> {
        match Policy::parse(&self.body, PolicyKind::Resource) {
            Ok(policy) => Ok(policy.as_json().clone()),
            Err(error) => Err(ApiError::new(
                ErrorName::MalformedPolicy,
                format!("The policy is not accepted. {error}"),
            )),
        }
    }
}

fn no_policy(of: &str) -> ApiError {
    ApiError::new(ErrorName::NoSuchPolicy, format!("The {of} has no policy."))
}
