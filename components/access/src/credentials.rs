//! Credentials. Those of the application's variable are shown and can't be changed here: who set
//! the application up always gets in.

use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::namespace::page::PageQuery;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::query::Query;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_auth::{Credential, CredentialInfo};
use lance_maintenance_guest::{Authority, Reply, credentials, host};
use lance_maintenance_store::access::{Access, CredentialRecord};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;

use crate::Call;

/// Answer of ListCredentials.
#[derive(Serialize)]
struct ListCredentialsResponse {
    credentials: Vec<CredentialInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<String>,
}

/// What changes a credential that exists.
const UPDATE_ACTION: &str = "ram:UpdateAccessKey";

impl Call<'_> {
    /// Creates a credential, or replaces one. A body without a secret keeps the secret that the
    /// credential has, and its session token.
    pub(crate) async fn put_credential(&self) -> Result<Reply, ApiError> {
        let access_key_id = self.access_key_id()?;
        let authority = self.authority().await?;
        self.refuse_fixed(&access_key_id).await?;
        let before = self.access().credential(&access_key_id)?;
        let credential = self.credential(&access_key_id, before.as_ref())?;
        match &before {
            None => authority.check_user(Operation::PutCredential.action(), &credential.user)?,
            Some(record) => {
                let held = credentials::read(record)?;
                authority.check_user(UPDATE_ACTION, &held.user)?;
                authority.check_user(UPDATE_ACTION, &credential.user)?;
            }
        }
        let stored = serde_json::from_slice(&credential.stored()).map_err(|_| not_json())?;
        self.access()
            .put_credential(&access_key_id, stored, before.as_ref(), host::now_micros)?;
        Ok(Reply::json(&credential.info()))
    }

    pub(crate) async fn get_credential(&self) -> Result<Reply, ApiError> {
        let access_key_id = self.access_key_id()?;
        let authority = self.authority().await?;
        let found = credentials::find(self.store, &access_key_id).await?;
        // Whether it exists is told to those who may know.
        let user = found.as_ref().map_or("*", |credential| &credential.user);
        authority.check_user(Operation::GetCredential.action(), user)?;
        match found {
            Some(credential) => Ok(Reply::json(&credential.info())),
            None => Err(no_credential()),
        }
    }

    pub(crate) async fn delete_credential(&self) -> Result<Reply, ApiError> {
        let access_key_id = self.access_key_id()?;
        let authority = self.authority().await?;
        let action = Operation::DeleteCredential.action();
        let Some(record) = self.access().credential(&access_key_id)? else {
            authority.check_user(action, "*")?;
            self.refuse_fixed(&access_key_id).await?;
            return Err(no_credential());
        };
        authority.check_user(action, &credentials::read(&record)?.user)?;
        self.access().delete_credential(&record, host::now_micros)?;
        Ok(Reply::no_content())
    }

    /// Lists credentials, newest first; those of the variable come with the first page.
    pub(crate) async fn list_credentials(&self) -> Result<Reply, ApiError> {
        let authority = self.authority().await?;
        authority.check_user(Operation::ListCredentials.action(), "*")?;
        let marker = Marker::new("account", "credentials");
        let page = PageQuery::parse(&Query::parse(&self.context.query)?, marker)?;
        let found = self.access().credentials(page.from, page.limit)?;
        let mut listed = match page.from {
            None => credentials::fixed().await?,
            Some(_) => Vec::new(),
        };
        for (_, record) in &found.entries {
            listed.push(credentials::read(record)?);
        }
        Ok(Reply::json(&ListCredentialsResponse {
            credentials: listed.iter().map(Credential::info).collect(),
            page_token: found.next.map(|slot| marker.encode(slot)),
        }))
    }

    /// The credential of the request.
    fn credential(
        &self,
        access_key_id: &str,
        before: Option<&CredentialRecord>,
    ) -> Result<Credential, ApiError> {
        let body: Value = serde_json::from_slice(&self.body).map_err(|_| not_json())?;
        let Value::Object(mut fields) = body else {
            return Err(not_json());
        };
        let named = fields
            .entry("access_key_id")
            .or_insert_with(|| access_key_id.into());
        if *named != *access_key_id {
            return Err(ApiError::invalid(
                "'access_key_id' in the body is another one than in the path.",
            ));
        }
        if let Some(before) = before.filter(|_| !fields.contains_key("secret_access_key")) {
            for name in ["secret_access_key", "session_token"] {
                if let Some(value) = before.credential.get(name) {
                    fields.entry(name).or_insert_with(|| value.clone());
                }
            }
        }
        let text = Value::Object(fields).to_string();
        Credential::parse(text.as_bytes()).map_err(|error| {
            ApiError::new(
                ErrorName::MalformedPolicy,
                format!("The credential is not accepted. {error}"),
            )
        })
    }

    fn access_key_id(&self) -> Result<String, ApiError> {
        percent_decode_str(self.context.segment(0)?)
            .decode_utf8()
            .map(|id| id.into_owned())
            .map_err(|_| ApiError::invalid("The access key id is not UTF-8."))
    }

    async fn authority(&self) -> Result<Authority<'_>, ApiError> {
        Authority::of(self.context, self.store).await
    }

    fn access(&self) -> Access<'_, lance_maintenance_guest::SpinStore> {
        Access::new(self.store)
    }

    async fn refuse_fixed(&self, access_key_id: &str) -> Result<(), ApiError> {
        let fixed = credentials::fixed().await?;
        if fixed
            .iter()
            .any(|credential| credential.access_key_id == access_key_id)
        {
            return Err(ApiError::new(
                ErrorName::PermissionDenied,
                "This credential is set by the application's variable and is changed there only.",
            ));
        }
        Ok(())
    }
}

fn no_credential() -> ApiError {
    ApiError::new(
        ErrorName::NoSuchCredential,
        "There is no credential of this access key.",
    )
}

fn not_json() -> ApiError {
    ApiError::invalid("The body must be a JSON object.")
}
