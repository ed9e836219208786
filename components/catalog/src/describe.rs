//! Describing a table: from the catalog, and from the table itself where the request asks for it.

use lance_maintenance_api::namespace::tables::{
    DescribeTableRequest, DescribeTableResponse, TableBasicStats,
};
use lance_maintenance_api::namespace::versions::DescribeTableVersionRequest;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{
    DESCRIBE_PATH, DescribeTable, EXIST_PATH, Existing, TableDescription, TablesExist,
};
use lance_maintenance_guest::{Reply, worker};
use lance_maintenance_store::catalog::TableRecord;

use crate::Call;

impl Call<'_> {
    pub(crate) async fn describe_table(&self) -> Result<Reply, ApiError> {
        let id = self.table_id_of_body()?;
        let request = DescribeTableRequest::parse(&self.body, &self.query)?;
        let table = self.catalog.table(&id)?;
        let inside = match request.looks_inside() {
            true => self.look_inside(&table, &request).await?,
            false => None,
        };
        let is_only_declared = match request.check_declared {
            true => Some(inside.is_none() && !self.holds_data(&table).await?),
            false => None,
        };
        let mut properties = table.properties;
        let arn = self.context.table()?.arn.clone();
        properties.insert("table_arn".to_owned(), arn);
        properties.insert("table_id".to_owned(), table.id);
        let mut response = DescribeTableResponse {
            table: table.name,
            namespace: vec![table.namespace],
            table_uri: request.with_table_uri.then(|| table.location.clone()),
            location: table.location,
            properties,
            is_only_declared,
            ..DescribeTableResponse::default()
        };
        if let Some(inside) = inside {
            response.version = Some(inside.version);
            if request.load_detailed_metadata {
                response.schema = Some(inside.schema);
                response.metadata = Some(inside.metadata);
                response.stats = Some(TableBasicStats {
                    num_deleted_rows: inside.num_deleted_rows,
                    num_fragments: inside.num_fragments,
                });
            }
        }
        Ok(Reply::json(&response))
    }

    /// What the table holds; nothing if it was never written, and no version of it was asked for.
    async fn look_inside(
        &self,
        table: &TableRecord,
        request: &DescribeTableRequest,
    ) -> Result<Option<TableDescription>, ApiError> {
        let question = DescribeTable {
            location: table.location.clone(),
            version: request.version,
            tag: request.tag.clone(),
            branch: request.branch.clone(),
        };
        match worker::ask(DESCRIBE_PATH, &question).await {
            Ok(description) => Ok(Some(description)),
            Err(error) if error.name == ErrorName::InvalidTableState => {
                if self.holds_data(table).await? {
                    return Err(error);
                }
                match (&request.branch, &request.tag, request.version) {
                    (None, None, None) => Ok(None),
                    _ => Err(ApiError::new(
                        ErrorName::TableVersionNotFound,
                        "The table was declared and has no version yet.",
                    )),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn holds_data(&self, table: &TableRecord) -> Result<bool, ApiError> {
        let question = TablesExist {
            locations: vec![table.location.clone()],
        };
        let existing: Existing = worker::ask(EXIST_PATH, &question).await?;
        Ok(existing.exist.first().copied().unwrap_or(false))
    }

    /// The router has found the table; a version is looked for in the table itself.
    pub(crate) async fn table_exists(&self) -> Result<Reply, ApiError> {
        self.table_id_of_body()?;
        let request = DescribeTableVersionRequest::parse(&self.body)?;
        if request.version.is_some() {
            self.version(&request).await?;
        }
        Ok(Reply::empty_object())
    }
}
