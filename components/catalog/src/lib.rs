//! The Lance REST namespace: namespaces, tables and their versions, by name. The router has found
//! the operation and seen to it that the caller may do it.

mod create;
mod describe;
mod location;
mod namespaces;
mod tables;
mod versions;

use bytes::Bytes;
use lance_maintenance_api::identifier::{
    Delimiter, NamespaceIdentifier, NamespaceName, TableIdentifier,
};
use lance_maintenance_api::namespace::check_body_id;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::query::Query;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_guest::{Reply, RequestContext, SpinStore, context};
use lance_maintenance_store::catalog::Catalog;
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let query = Query::parse(&context.query)?;
        let delimiter = Delimiter::parse(query.get("delimiter"))?;
        let store = SpinStore::open()?;
        let call = Call {
            context,
            body,
            query,
            delimiter,
            store: &store,
            catalog: Catalog::new(&store, &context.bucket),
        };
        call.serve().await
    })
    .await
}

/// One call, with what its operation needs.
struct Call<'a> {
    context: &'a RequestContext,
    body: Bytes,
    query: Query,
    delimiter: Delimiter,
    store: &'a SpinStore,
    catalog: Catalog<'a, SpinStore>,
}

impl Call<'_> {
    async fn serve(&self) -> Result<Reply, ApiError> {
        match self.context.operation {
            Operation::CreateNamespace => self.create_namespace().await,
            Operation::DescribeNamespace => self.describe_namespace(),
            Operation::NamespaceExists => self.namespace_exists(),
            Operation::DropNamespace => self.drop_namespace().await,
            Operation::ListNamespaces => self.list_namespaces(),
            Operation::ListTables => self.list_tables().await,
            Operation::ListAllTables => self.list_all_tables().await,
            Operation::CreateTable => self.create_table().await,
            Operation::DeclareTable => self.declare_table().await,
            Operation::RegisterTable => self.register_table().await,
            Operation::DescribeTable => self.describe_table().await,
            Operation::TableExists => self.table_exists().await,
            Operation::DropTable => self.drop_table().await,
            Operation::DeregisterTable => self.deregister_table(),
            Operation::RenameTable => self.rename_table(),
            Operation::CreateTableVersion => self.create_table_version().await,
            Operation::DescribeTableVersion => self.describe_table_version().await,
            Operation::ListTableVersions => self.list_table_versions().await,
            _ => Err(ApiError::new(
                ErrorName::NoSuchOperation,
                "This is not an operation of the namespace.",
            )),
        }
    }

    /// The namespace in the path, which may be the root.
    fn namespace_or_root(&self) -> Result<NamespaceIdentifier, ApiError> {
        let id = NamespaceIdentifier::parse(self.context.segment(0)?, &self.delimiter)?;
        match &id {
            NamespaceIdentifier::Root => check_body_id(&self.body, &[])?,
            NamespaceIdentifier::Named(name) => check_body_id(&self.body, &[name.as_str()])?,
        }
        Ok(id)
    }

    /// The namespace in the path.
    fn namespace(&self) -> Result<NamespaceName, ApiError> {
        self.namespace_or_root()?.named()
    }

    /// The table's identifier in the path.
    fn table_id(&self) -> Result<TableIdentifier, ApiError> {
        TableIdentifier::parse(self.context.segment(0)?, &self.delimiter)
    }

    /// The same, for operations whose body is JSON and may repeat it.
    fn table_id_of_body(&self) -> Result<TableIdentifier, ApiError> {
        let id = self.table_id()?;
        check_body_id(&self.body, &[id.namespace.as_str(), id.table.as_str()])?;
        Ok(id)
    }
}
