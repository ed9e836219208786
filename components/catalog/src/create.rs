//! Creating a table from the rows in a request: the worker writes them, then the name stands for
//! the table.

use lance_maintenance_api::identifier::TableIdentifier;
use lance_maintenance_api::namespace::Properties;
use lance_maintenance_api::namespace::tables::{
    CreateTableMode, CreateTableRequest, CreateTableResponse,
};
use lance_maintenance_api::operation::Operation;
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{Purge, WRITE_PATH, WriteMode, WriteTable, Written};
use lance_maintenance_guest::{Authority, Reply, host, worker};
use lance_maintenance_store::catalog::{Origin, Purges, TableRecord, table_exists};

use crate::Call;

/// How long a table's data may lie without a name, in microseconds: longer than a worker may write.
const NAMELESS_MICROS: i64 = 15 * 60 * 1_000_000;
/// What lets rows be written to a table that exists.
const WRITE_ACTION: &str = "oss:PutTableData";

impl Call<'_> {
    pub(crate) async fn create_table(&self) -> Result<Reply, ApiError> {
        let id = self.table_id()?;
        let request = CreateTableRequest::parse(&self.query)?;
        self.catalog.namespace(&id.namespace)?;
        match self.catalog.table(&id) {
            Ok(table) => self.create_over(&id, table, request.mode).await,
            Err(error) if error.name == ErrorName::TableNotFound => {
                self.create_new(&id, request.properties).await
            }
            Err(error) => Err(error),
        }
    }

    async fn create_over(
        &self,
        id: &TableIdentifier,
        table: TableRecord,
        mode: CreateTableMode,
    ) -> Result<Reply, ApiError> {
        let authority = Authority::of(self.context, self.store).await?;
        let check = |action| authority.check_table(action, &table.id, table.policy.as_ref());
        let version = match mode {
            CreateTableMode::Create => return Err(table_exists(id)),
            CreateTableMode::ExistOk => {
                check(Operation::DescribeTable.action())?;
                None
            }
            CreateTableMode::Overwrite => {
                check(WRITE_ACTION)?;
                Some(self.write(&table.location, WriteMode::Overwrite).await?)
            }
        };
        Ok(Reply::json(&CreateTableResponse {
            location: table.location,
            version,
            properties: table.properties,
        }))
    }

    async fn create_new(
        &self,
        id: &TableIdentifier,
        properties: Properties,
    ) -> Result<Reply, ApiError> {
        let (table_id, location) = self.new_place().await?;
        let purges = Purges::new(self.store);
        let data = Purge {
            table_id: table_id.clone(),
            location: location.clone(),
        };
        // Should this end halfway, the data is not left lying about.
        purges.plan(&data, host::now_micros() + NAMELESS_MICROS)?;
        let written = self.write(&location, WriteMode::Create).await;
        let created = match written {
            Ok(version) => {
                purges.cancel(&table_id)?;
                let record = TableRecord::new(id, table_id, location, Origin::Declared, properties);
                self.catalog
                    .create_table(id, &record, host::now_micros)
                    .map(|()| (record, version))
            }
            Err(error) => Err(error),
        };
        match created {
            Ok((record, version)) => Ok(Reply::json(&CreateTableResponse {
                location: record.location,
                version: Some(version),
                properties: record.properties,
            })),
            Err(error) => {
                purges.plan(&data, host::now_micros())?;
                self.purge_waiting().await;
                Err(error)
            }
        }
    }

    /// Has the worker write the rows of the request.
    async fn write(&self, location: &str, mode: WriteMode) -> Result<u64, ApiError> {
        let target = WriteTable {
            location: location.to_owned(),
            mode,
        };
        let target = format!("{WRITE_PATH}?{}", target.query());
        let stream = "application/vnd.apache.arrow.stream";
        let answer = worker::post(&target, stream, self.body.clone(), worker::WRITE_NANOS).await?;
        Ok(answer.json::<Written>()?.version)
    }
}
