//! Versions of tables. The catalog does not manage them: they are what the table's folder holds.

use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::namespace::page::PageQuery;
use lance_maintenance_api::namespace::versions::{
    CreateTableVersionRequest, DescribeTableVersionRequest, ListTableVersionsQuery,
    ListTableVersionsResponse, TableVersion, TableVersionResponse,
};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{
    COMMIT_PATH, CommitVersion, ListVersions, VERSIONS_PATH, Versions,
};
use lance_maintenance_guest::{Reply, worker};

use crate::Call;

impl Call<'_> {
    pub(crate) async fn create_table_version(&self) -> Result<Reply, ApiError> {
        self.table_id_of_body()?;
        let request = CreateTableVersionRequest::parse(&self.body)?;
        let commit = CommitVersion {
            location: self.context.table()?.location.clone(),
            branch: request.branch,
            version: request.version,
            manifest_path: request.manifest_path,
            manifest_size: request.manifest_size,
            e_tag: request.e_tag,
            naming_scheme: request.naming_scheme,
        };
        let version = worker::ask(COMMIT_PATH, &commit).await?;
        Ok(Reply::json(&TableVersionResponse { version }))
    }

    pub(crate) async fn describe_table_version(&self) -> Result<Reply, ApiError> {
        self.table_id_of_body()?;
        let request = DescribeTableVersionRequest::parse(&self.body)?;
        let version = self.version(&request).await?;
        Ok(Reply::json(&TableVersionResponse { version }))
    }

    /// The version that a request names, or the newest.
    pub(crate) async fn version(
        &self,
        request: &DescribeTableVersionRequest,
    ) -> Result<TableVersion, ApiError> {
        let question = ListVersions {
            location: self.context.table()?.location.clone(),
            branch: request.branch.clone(),
            version: request.version,
            descending: true,
            after: None,
            limit: Some(1),
        };
        let found: Versions = worker::ask(VERSIONS_PATH, &question).await?;
        found.versions.into_iter().next().ok_or_else(|| {
            ApiError::new(
                ErrorName::TableVersionNotFound,
                "The table has no version yet.",
            )
        })
    }

    pub(crate) async fn list_table_versions(&self) -> Result<Reply, ApiError> {
        self.table_id()?;
        let request = ListTableVersionsQuery::parse(&self.query)?;
        let table = self.context.table()?;
        let kind = format!(
            "versions {} {}",
            request.descending,
            request.branch.as_deref().unwrap_or_default()
        );
        let marker = Marker::new(&table.id, &kind);
        let page = PageQuery::parse(&self.query, marker)?;
        let question = ListVersions {
            location: table.location.clone(),
            branch: request.branch,
            version: None,
            descending: request.descending,
            after: page.from,
            limit: Some(page.limit),
        };
        let found: Versions = worker::ask(VERSIONS_PATH, &question).await?;
        let last = found.versions.last().map(|version| version.version);
        Ok(Reply::json(&ListTableVersionsResponse {
            page_token: last
                .filter(|_| found.more)
                .map(|version| marker.encode(version)),
            versions: found.versions,
        }))
    }
}
