//! A commit that only ever makes the first version of a table.
//!
//! Lance's mode `Create` looks for a table before it writes, and again before it commits; a table
//! that it finds the second time is overwritten. Two that create a table at the same time would
//! both succeed, one of them for naught.

use std::sync::Arc;

use async_trait::async_trait;
use lance::Error;
use lance_io::object_store::ObjectStore;
use lance_table::format::{IndexMetadata, Manifest, Transaction};
use lance_table::io::commit::{
    CommitError, CommitHandler, ManifestLocation, ManifestNamingScheme, ManifestWriter,
};
use object_store::path::Path;

/// Sees no table, so that the commit is that of a new one: version 1, if it is not there.
#[derive(Debug)]
pub struct CreateOnly(pub Arc<dyn CommitHandler>);

#[async_trait]
impl CommitHandler for CreateOnly {
    fn is_version_not_found_definitive(&self) -> bool {
        self.0.is_version_not_found_definitive()
    }

    fn propagate_commit_error_after_success(&self) -> bool {
        self.0.propagate_commit_error_after_success()
    }

    async fn resolve_latest_location(
        &self,
        base_path: &Path,
        _: &ObjectStore,
    ) -> Result<ManifestLocation, Error> {
        Err(Error::not_found(base_path.to_string()))
    }

    async fn resolve_version_location(
        &self,
        base_path: &Path,
        version: u64,
        object_store: &dyn object_store::ObjectStore,
    ) -> Result<ManifestLocation, Error> {
        self.0
            .resolve_version_location(base_path, version, object_store)
            .await
    }

    async fn commit(
        &self,
        manifest: &mut Manifest,
        indices: Option<Vec<IndexMetadata>>,
        base_path: &Path,
        object_store: &ObjectStore,
        manifest_writer: ManifestWriter,
        naming_scheme: ManifestNamingScheme,
        transaction: Option<Transaction>,
    ) -> Result<ManifestLocation, CommitError> {
        self.0
            .commit(
                manifest,
                indices,
                base_path,
                object_store,
                manifest_writer,
                naming_scheme,
                transaction,
            )
            .await
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, RecordBatch};
    use lance::Dataset;
    use lance::dataset::{CommitBuilder, InsertBuilder};
    use lance_table::io::commit::commit_handler_from_url;

    use super::*;

    fn rows(count: i64) -> Vec<RecordBatch> {
        let ids = Arc::new(Int64Array::from_iter_values(0..count)) as _;
        vec![RecordBatch::try_from_iter([("id", ids)]).unwrap()]
    }

    #[tokio::test]
    async fn a_table_that_came_in_between_is_not_overwritten() {
        for create_only in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let uri = format!("file://{}/t", folder.path().display());
            let late = InsertBuilder::new(uri.as_str())
                .execute_uncommitted(rows(10))
                .await
                .unwrap();
            let first = InsertBuilder::new(uri.as_str()).execute(rows(3)).await;
            assert_eq!(first.unwrap().version_id(), 1);
            let mut handler = commit_handler_from_url(&uri, &None).await.unwrap();
            if create_only {
                handler = Arc::new(CreateOnly(handler));
            }
            let committed = CommitBuilder::new(uri.as_str())
                .with_commit_handler(handler)
                .execute(late)
                .await;
            let found = Dataset::open(&uri).await.unwrap();
            let found = (found.version_id(), found.count_rows(None).await.unwrap());
            if create_only {
                let error = committed.unwrap_err();
                assert!(
                    matches!(error, Error::DatasetAlreadyExists { .. }),
                    "{error}"
                );
                assert_eq!(found, (1, 3));
            } else {
                // What this is for: Lance alone overwrites.
                assert_eq!(committed.unwrap().version_id(), 2);
                assert_eq!(found, (2, 10));
            }
        }
    }
}
