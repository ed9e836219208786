//! Administration: bucket policies, table policies, and credentials. Secrets go in and never come
//! out.

mod credentials;
mod policies;

use bytes::Bytes;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_guest::{Reply, RequestContext, SpinStore, context};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let store = SpinStore::open()?;
        let call = Call {
            context,
            body,
            store: &store,
        };
        call.serve().await
    })
    .await
}

/// One call, with what its operation needs.
struct Call<'a> {
    context: &'a RequestContext,
    body: Bytes,
    store: &'a SpinStore,
}

impl Call<'_> {
    async fn serve(&self) -> Result<Reply, ApiError> {
        match self.context.operation {
            Operation::PutTableBucketPolicy => self.put_bucket_policy(),
            Operation::GetTableBucketPolicy => self.get_bucket_policy(),
            Operation::DeleteTableBucketPolicy => self.delete_bucket_policy(),
            Operation::PutTablePolicy => self.put_table_policy(),
            Operation::GetTablePolicy => self.get_table_policy(),
            Operation::DeleteTablePolicy => self.delete_table_policy(),
            Operation::PutCredential => self.put_credential().await,
            Operation::GetCredential => self.get_credential().await,
            Operation::DeleteCredential => self.delete_credential().await,
            Operation::ListCredentials => self.list_credentials().await,
            _ => Err(ApiError::new(
                ErrorName::NoSuchOperation,
                "This is not an operation of the administration.",
            )),
        }
    }
}
