//! Tables: declare, register, drop, rename, list.

use lance_maintenance_api::ApiError;
use lance_maintenance_api::identifier::TableIdentifier;
use lance_maintenance_api::listing::Marker;
use lance_maintenance_api::namespace::Properties;
use lance_maintenance_api::namespace::page::PageQuery;
use lance_maintenance_api::namespace::tables::{
    DeclareTableRequest, DeclareTableResponse, DropTableResponse, ListTablesResponse,
    RegisterTableRequest, RenameTableResponse, include_declared, parse_rename,
};
use lance_maintenance_dispatch::tables::{EXIST_PATH, Existing, PURGE_PATH, Purge, TablesExist};
use lance_maintenance_guest::{Reply, host, log, settings, worker};
use lance_maintenance_store::catalog::{Origin, Purges, TableRecord};

use crate::{Call, location};

impl Call<'_> {
    pub(crate) async fn declare_table(&self) -> Result<Reply, ApiError> {
        let id = self.table_id_of_body()?;
        let request = DeclareTableRequest::parse(&self.body)?;
        let (table_id, location) = self.new_place().await?;
        self.enter(id, table_id, location, Origin::Declared, request.properties)
    }

    /// The id and the location of a new table.
    pub(crate) async fn new_place(&self) -> Result<(String, String), ApiError> {
        let warehouse = settings::required("warehouse").await?;
        let table_id = host::uuid();
        let location = location::in_warehouse(&warehouse, &self.context.bucket, &table_id);
        Ok((table_id, location))
    }

    pub(crate) async fn register_table(&self) -> Result<Reply, ApiError> {
        let id = self.table_id_of_body()?;
        let request = RegisterTableRequest::parse(&self.body)?;
        let roots = settings::list("register_roots").await?;
        let location = location::under_roots(&request.location, &roots)?;
        self.enter(
            id,
            host::uuid(),
            location,
            Origin::Registered,
            request.properties,
        )
    }

    fn enter(
        &self,
        id: TableIdentifier,
        table_id: String,
        location: String,
        origin: Origin,
        properties: Properties,
    ) -> Result<Reply, ApiError> {
        let record = TableRecord::new(&id, table_id, location, origin, properties);
        self.catalog.create_table(&id, &record, host::now_micros)?;
        Ok(Reply::json(&DeclareTableResponse {
            location: record.location,
            properties: record.properties,
            managed_versioning: false,
        }))
    }

    pub(crate) async fn drop_table(&self) -> Result<Reply, ApiError> {
        let table = self.take_out(true)?;
        let purge = Purge {
            table_id: table.id.clone(),
            location: table.location.clone(),
        };
        tell_to_purge(&[purge]).await;
        Ok(dropped(table))
    }

    pub(crate) fn deregister_table(&self) -> Result<Reply, ApiError> {
        self.take_out(false).map(dropped)
    }

    fn take_out(&self, purge: bool) -> Result<TableRecord, ApiError> {
        let id = self.table_id_of_body()?;
        // The one that the caller was found to be allowed to drop, not one of the same name.
        let table_id = &self.context.table()?.id;
        self.catalog
            .drop_table(&id, table_id, purge, host::now_micros)
    }

    /// Tells the worker of all data that waits to be removed.
    pub(crate) async fn purge_waiting(&self) {
        match Purges::new(self.store).waiting(host::now_micros()) {
            Ok(waiting) => tell_to_purge(&waiting).await,
            Err(error) => log::warn(format_args!("dropped data waits for a heartbeat: {error}")),
        }
    }

    pub(crate) fn rename_table(&self) -> Result<Reply, ApiError> {
        let id = self.table_id_of_body()?;
        let to = parse_rename(&self.body, &id.namespace)?;
        let table_id = &self.context.table()?.id;
        self.catalog
            .rename_table(&id, table_id, &to, host::now_micros)?;
        Ok(Reply::json(&RenameTableResponse {}))
    }

    pub(crate) async fn list_tables(&self) -> Result<Reply, ApiError> {
        let namespace = self.namespace()?;
        let owner = format!("{}/{namespace}", self.context.bucket);
        let marker = Marker::new(&owner, "tables");
        let page = PageQuery::parse(&self.query, marker)?;
        let found = self.catalog.tables(&namespace, page.from, page.limit)?;
        let tables = found.entries.into_iter().map(|(_, table)| table).collect();
        Ok(Reply::json(&ListTablesResponse {
            tables: self
                .wanted(tables)
                .await?
                .into_iter()
                .map(|table| table.name)
                .collect(),
            page_token: found.next.map(|slot| marker.encode(slot)),
        }))
    }

    pub(crate) async fn list_all_tables(&self) -> Result<Reply, ApiError> {
        let marker = Marker::new(&self.context.bucket, "all tables");
        let (limit, from) = PageQuery::parse_nested(&self.query, marker)?;
        let (tables, next) = self.catalog.all_tables(from, limit)?;
        let name = |table: TableRecord| {
            [
                table.namespace.as_str(),
                self.delimiter.as_str(),
                &table.name,
            ]
            .concat()
        };
        Ok(Reply::json(&ListTablesResponse {
            tables: self.wanted(tables).await?.into_iter().map(name).collect(),
            page_token: next.map(|place| marker.encode_pair(place)),
        }))
    }

    /// The tables that a listing is to show: without those that were declared only, if the request
    /// says so.
    async fn wanted(&self, tables: Vec<TableRecord>) -> Result<Vec<TableRecord>, ApiError> {
        if include_declared(&self.query)? || tables.is_empty() {
            return Ok(tables);
        }
        let question = TablesExist {
            locations: tables.iter().map(|table| table.location.clone()).collect(),
        };
        let existing: Existing = worker::ask(EXIST_PATH, &question).await?;
        Ok(tables
            .into_iter()
            .zip(existing.exist)
            .filter_map(|(table, exists)| exists.then_some(table))
            .collect())
    }
}

fn dropped(table: TableRecord) -> Reply {
    Reply::json(&DropTableResponse {
        id: vec![table.namespace, table.name],
        location: table.location,
        properties: table.properties,
    })
}

/// Tells the worker of data that is to be removed. What it does not hear now it hears in the answer
/// to a heartbeat.
async fn tell_to_purge(purges: &[Purge]) {
    for purge in purges {
        let Ok(body) = serde_json::to_vec(purge) else {
            return;
        };
        let body = body.into();
        let told = worker::post(PURGE_PATH, "application/json", body, worker::QUEUE_NANOS).await;
        if let Err(error) = told {
            return log::warn(format_args!("dropped data waits for a heartbeat: {error}"));
        }
    }
}
