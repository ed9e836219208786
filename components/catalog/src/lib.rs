//! The Lance REST namespace, as far as it is served: namespaces and tables by name.

mod location;
mod routes;

use bytes::Bytes;
use lance_maintenance_api::identifier::{
    Delimiter, NamespaceIdentifier, NamespaceName, TableIdentifier,
};
use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::namespace::{
    CreateMode, CreateNamespaceRequest, CreateTableResponse, DeclareTableRequest,
    DescribeTableRequest, DescribeTableResponse, DropTableResponse, ListNamespacesResponse,
    ListTablesResponse, NamespaceResponse, PageQuery, Properties, RegisterTableRequest,
};
use lance_maintenance_api::query::Query;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_guest::{Reply, RequestContext, SpinStore, context, host, settings};
use lance_maintenance_store::catalog::{
    Catalog, LANCE_FORMAT, NamespaceRecord, Origin, TableRecord,
};
use spin_sdk::http::{IntoResponse, Request};
use spin_sdk::http_service;

use crate::routes::Operation;

#[http_service]
async fn handle(request: Request) -> impl IntoResponse {
    context::serve(request, async |context, body| {
        let (operation, id) = routes::find(&context.method, &context.path)?;
        let query = Query::parse(&context.query)?;
        let delimiter = Delimiter::parse(query.get("delimiter"))?;
        let store = SpinStore::open()?;
        let call = Call {
            context,
            body,
            query,
            catalog: Catalog::new(&store, &context.bucket),
        };
        match operation {
            Operation::CreateNamespace => call.create_namespace(namespace(id, &delimiter)?),
            Operation::DescribeNamespace => call.describe_namespace(&namespace(id, &delimiter)?),
            Operation::ListNamespaces => {
                call.list_namespaces(NamespaceIdentifier::parse(id, &delimiter)?)
            }
            Operation::ListTables => call.list_tables(&namespace(id, &delimiter)?),
            Operation::DeclareTable => call.declare(TableIdentifier::parse(id, &delimiter)?).await,
            Operation::RegisterTable => {
                call.register(TableIdentifier::parse(id, &delimiter)?).await
            }
            Operation::DescribeTable => {
                call.describe(TableIdentifier::parse(id, &delimiter)?).await
            }
            Operation::DropTable => call.drop(TableIdentifier::parse(id, &delimiter)?),
        }
    })
    .await
}

fn namespace(segment: &str, delimiter: &Delimiter) -> Result<NamespaceName, ApiError> {
    NamespaceIdentifier::parse(segment, delimiter)?.named()
}

/// One call, with what its operation needs.
struct Call<'a> {
    context: &'a RequestContext,
    body: Bytes,
    query: Query,
    catalog: Catalog<'a, SpinStore>,
}

impl Call<'_> {
    fn create_namespace(&self, name: NamespaceName) -> Result<Reply, ApiError> {
        let request = CreateNamespaceRequest::parse(&self.body)?;
        let record = NamespaceRecord {
            name: name.as_str().to_owned(),
            properties: request.properties,
        };
        if self.catalog.create_namespace(&record, host::now_micros)? {
            return Ok(Reply::json(&NamespaceResponse {
                properties: record.properties,
            }));
        }
        match request.mode {
            CreateMode::ExistOk => self.describe_namespace(&name),
            CreateMode::Create => Err(ApiError::new(
                ErrorName::NamespaceAlreadyExists,
                format!("There is a namespace '{name}' already."),
            )),
        }
    }

    fn describe_namespace(&self, name: &NamespaceName) -> Result<Reply, ApiError> {
        let properties = self.catalog.namespace(name)?.properties;
        Ok(Reply::json(&NamespaceResponse { properties }))
    }

    fn list_namespaces(&self, parent: NamespaceIdentifier) -> Result<Reply, ApiError> {
        if let NamespaceIdentifier::Named(name) = parent {
            // Namespaces have one level: one that exists holds none.
            self.catalog.namespace(&name)?;
            return Ok(Reply::json(&ListNamespacesResponse::default()));
        }
        let marker = Marker::new(&self.context.bucket, "namespaces");
        let page = PageQuery::parse(&self.query, marker)?;
        let found = self.catalog.namespaces(page.below, page.limit)?;
        Ok(Reply::json(&ListNamespacesResponse {
            namespaces: found.entries.into_iter().map(|(_, name)| name).collect(),
            page_token: found.next.map(|slot| marker.encode(slot)),
        }))
    }

    fn list_tables(&self, namespace: &NamespaceName) -> Result<Reply, ApiError> {
        let owner = format!("{}/{namespace}", self.context.bucket);
        let marker = Marker::new(&owner, "tables");
        let page = PageQuery::parse(&self.query, marker)?;
        let found = self.catalog.tables(namespace, page.below, page.limit)?;
        Ok(Reply::json(&ListTablesResponse {
            tables: found.entries.into_iter().map(|(_, name)| name).collect(),
            page_token: found.next.map(|slot| marker.encode(slot)),
        }))
    }

    async fn declare(&self, id: TableIdentifier) -> Result<Reply, ApiError> {
        let request = DeclareTableRequest::parse(&self.body)?;
        let warehouse = settings::required("warehouse").await?;
        let table_id = host::uuid();
        let location = location::in_warehouse(&warehouse, &self.context.bucket, &table_id);
        self.create(id, table_id, location, Origin::Declared, request.properties)
    }

    async fn register(&self, id: TableIdentifier) -> Result<Reply, ApiError> {
        let request = RegisterTableRequest::parse(&self.body)?;
        let roots = settings::list("register_roots").await?;
        let location = location::under_roots(&request.location, &roots)?;
        self.create(
            id,
            host::uuid(),
            location,
            Origin::Registered,
            request.properties,
        )
    }

    fn create(
        &self,
        id: TableIdentifier,
        table_id: String,
        location: String,
        origin: Origin,
        properties: Properties,
    ) -> Result<Reply, ApiError> {
        let record = TableRecord {
            id: table_id,
            namespace: id.namespace.as_str().to_owned(),
            name: id.table.as_str().to_owned(),
            location,
            origin,
            format: LANCE_FORMAT.to_owned(),
            properties,
            slot: 0,
        };
        self.catalog
            .create_table(&id.namespace, &record, host::now_micros)?;
        Ok(Reply::json(&CreateTableResponse {
            location: record.location,
            properties: record.properties,
            managed_versioning: false,
        }))
    }

    async fn describe(&self, id: TableIdentifier) -> Result<Reply, ApiError> {
        let request = DescribeTableRequest::parse(&self.body, &self.query)?;
        let table = self.catalog.table(&id)?;
        let mut properties = table.properties;
        properties.insert(
            "table_arn".to_owned(),
            context::arn(&self.context.bucket, &table.id).await?,
        );
        properties.insert("table_id".to_owned(), table.id);
        Ok(Reply::json(&DescribeTableResponse {
            table: table.name,
            namespace: vec![table.namespace],
            table_uri: request.with_table_uri.then(|| table.location.clone()),
            location: table.location,
            properties,
            managed_versioning: false,
        }))
    }

    /// Takes the table out of the catalog. Its data stays where it lies.
    fn drop(&self, id: TableIdentifier) -> Result<Reply, ApiError> {
        let table = self.catalog.table(&id)?;
        self.catalog.drop_table(&id, &table.id, host::now_micros)?;
        Ok(Reply::json(&DropTableResponse {
            id: vec![table.namespace, table.name],
            location: table.location,
            properties: table.properties,
        }))
    }
}
