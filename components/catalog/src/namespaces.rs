//! Namespaces.

use lance_maintenance_api::identifier::{NamespaceIdentifier, NamespaceName};
use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::namespace::namespaces::{
    CreateMode, CreateNamespaceRequest, DropBehavior, DropMode, DropNamespaceRequest,
    ListNamespacesResponse, NamespaceResponse,
};
use lance_maintenance_api::namespace::page::PageQuery;
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_guest::{Authority, Reply, host};
use lance_maintenance_store::catalog::{MayDrop, NamespaceRecord, TableRecord};

use crate::Call;

impl Call<'_> {
    pub(crate) async fn create_namespace(&self) -> Result<Reply, ApiError> {
        let name = self.namespace()?;
        let request = CreateNamespaceRequest::parse(&self.body)?;
        let record = NamespaceRecord {
            id: host::uuid(),
            name: name.as_str().to_owned(),
            properties: request.properties,
            ..NamespaceRecord::default()
        };
        let create = || self.catalog.create_namespace(&record, host::now_micros);
        let created = create()?
            || match request.mode {
                CreateMode::ExistOk => return self.described(&name),
                CreateMode::Create => false,
                CreateMode::Overwrite => {
                    let authority = Authority::of(self.context, self.store).await?;
                    authority.check_bucket(Operation::DropNamespace.action())?;
                    self.drop(&name, None)?;
                    create()?
                }
            };
        if !created {
            return Err(ApiError::new(
                ErrorName::NamespaceAlreadyExists,
                format!("There is a namespace '{name}' already."),
            ));
        }
        Ok(Reply::json(&NamespaceResponse {
            properties: record.properties,
        }))
    }

    pub(crate) fn describe_namespace(&self) -> Result<Reply, ApiError> {
        match self.namespace_or_root()? {
            NamespaceIdentifier::Root => Ok(Reply::json(&NamespaceResponse::default())),
            NamespaceIdentifier::Named(name) => self.described(&name),
        }
    }

    fn described(&self, name: &NamespaceName) -> Result<Reply, ApiError> {
        let properties = self.catalog.namespace(name)?.properties;
        Ok(Reply::json(&NamespaceResponse { properties }))
    }

    pub(crate) fn namespace_exists(&self) -> Result<Reply, ApiError> {
        if let NamespaceIdentifier::Named(name) = self.namespace_or_root()? {
            self.catalog.namespace(&name)?;
        }
        Ok(Reply::empty_object())
    }

    pub(crate) async fn drop_namespace(&self) -> Result<Reply, ApiError> {
        let name = self.namespace()?;
        let request = DropNamespaceRequest::parse(&self.body)?;
        let authority = Authority::of(self.context, self.store).await?;
        let may_drop = |table: &TableRecord| {
            let action = Operation::DropTable.action();
            authority.check_table(action, &table.id, table.policy.as_ref())
        };
        let cascade: Option<MayDrop<'_>> = match request.behavior {
            DropBehavior::Restrict => None,
            DropBehavior::Cascade => Some(&may_drop),
        };
        match self.drop(&name, cascade) {
            Ok(held) => {
                if cascade.is_some() {
                    self.purge_waiting().await;
                }
                Ok(Reply::json(&NamespaceResponse {
                    properties: held.properties,
                }))
            }
            Err(error)
                if error.name == ErrorName::NamespaceNotFound && request.mode == DropMode::Skip =>
            {
                Ok(Reply::json(&NamespaceResponse::default()))
            }
            Err(error) => Err(error),
        }
    }

    fn drop(
        &self,
        name: &NamespaceName,
        may_drop: Option<MayDrop<'_>>,
    ) -> Result<NamespaceRecord, ApiError> {
        let by = &self.context.request_id;
        self.catalog
            .drop_namespace(name, by, host::now_micros, may_drop)
    }

    pub(crate) fn list_namespaces(&self) -> Result<Reply, ApiError> {
        let parent = self.namespace_or_root()?;
        let marker = Marker::new(&self.context.bucket, "namespaces");
        let page = PageQuery::parse(&self.query, marker)?;
        if let NamespaceIdentifier::Named(name) = parent {
            // Namespaces have one level: one that exists holds none.
            self.catalog.namespace(&name)?;
            return Ok(Reply::json(&ListNamespacesResponse::default()));
        }
        let found = self.catalog.namespaces(page.from, page.limit)?;
        Ok(Reply::json(&ListNamespacesResponse {
            namespaces: found.entries.into_iter().map(|(_, name)| name).collect(),
            page_token: found.next.map(|slot| marker.encode(slot)),
        }))
    }
}
