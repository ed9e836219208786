//! A location with its store, and errors as they are answered.

use std::sync::Arc;

use lance::dataset::builder::DatasetBuilder;
use lance::dataset::refs::{branch_contents_path, check_valid_branch};
use lance::session::Session;
use lance::{Dataset, Error};
use lance_io::object_store::{ObjectStore, ObjectStoreParams, ObjectStoreRegistry};
use lance_maintenance_api::{ApiError, ErrorName, TaskError};
use lance_table::io::commit::{CommitHandler, ManifestLocation, commit_handler_from_url};
use object_store::path::Path;
use uuid::Uuid;

use super::location;
use crate::operations::OperationContext;
use crate::operations::errors::to_task_error;
use crate::operations::redact::Redactor;
use crate::storage::StorageOptions;

/// Where Lance puts branches, each of which looks like a table.
pub const BRANCHES: &str = "tree";
/// How much one request caches, in bytes: hardly anything is read twice.
const CACHE: usize = 64 * 1024 * 1024;
/// How the branch is called that has no name.
const MAIN: &str = "main";

/// A location with its store. Whether a table is there, nobody knows yet.
pub struct Place {
    /// The location as an operation knows it. Its task is this request.
    pub ctx: OperationContext,
    /// The store.
    pub store: Arc<ObjectStore>,
    /// The folder in the store.
    pub base: Path,
    /// How versions are made in the store.
    pub handler: Arc<dyn CommitHandler>,
    /// What the store is opened with.
    pub params: ObjectStoreParams,
    /// Caches of this request alone, and the stores that are open.
    pub session: Arc<Session>,
}

/// A line of versions: the main one, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The branch's name, if it is not the main one.
    pub branch: Option<String>,
    /// The folder in the store.
    pub base: Path,
    /// The folder's URI.
    pub uri: String,
}

impl Place {
    /// The place with this location.
    pub async fn new(
        location: &str,
        storage: &StorageOptions,
        registry: Arc<ObjectStoreRegistry>,
    ) -> Result<Self, ApiError> {
        location::check(location)?;
        let ctx = OperationContext::unsupervised(
            Uuid::new_v4().simple().to_string(),
            location.trim_end_matches('/').to_owned(),
            storage.for_location(location),
        );
        let params = ctx.store_params();
        let opened = async {
            let registry = Arc::clone(&registry);
            let store = ObjectStore::from_uri_and_params(registry, &ctx.location, &params).await?;
            let handler = commit_handler_from_url(&ctx.location, &Some(params.clone())).await?;
            Ok::<_, Error>((store, handler))
        };
        let ((store, base), handler) = opened.await.map_err(|error| answer(&ctx, &error))?;
        Ok(Self {
            ctx,
            store,
            base,
            handler,
            params,
            session: Arc::new(Session::new(CACHE, CACHE, registry)),
        })
    }

    /// The main line of versions, or that of a branch; a name that no branch can have is
    /// `TableBranchNotFound`.
    pub fn chain(&self, branch: Option<&str>) -> Result<Chain, ApiError> {
        let Some(branch) = branch.filter(|branch| *branch != MAIN) else {
            return Ok(Chain {
                branch: None,
                base: self.base.clone(),
                uri: self.ctx.location.clone(),
            });
        };
        check_valid_branch(branch).map_err(|_| no_such_branch(branch))?;
        let base = branch
            .split('/')
            .fold(self.base.clone().join(BRANCHES), |base, part| {
                base.join(part)
            });
        Ok(Chain {
            branch: Some(branch.to_owned()),
            base,
            uri: format!("{}/{BRANCHES}/{branch}", self.ctx.location),
        })
    }

    /// Checks that the chain's branch is one that the table knows: else `TableBranchNotFound`.
    pub async fn check_branch(&self, chain: &Chain) -> Result<(), ApiError> {
        let Some(branch) = &chain.branch else {
            return Ok(());
        };
        let path = branch_contents_path(&self.base, branch);
        match self.store.exists(&path).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(no_such_branch(branch)),
            Err(error) => Err(self.error(&error)),
        }
    }

    /// Where the newest version's manifest is; none if nothing has been written.
    pub async fn newest(&self, chain: &Chain) -> Result<Option<ManifestLocation>, ApiError> {
        let found = self
            .handler
            .resolve_latest_location(&chain.base, &self.store);
        match found.await {
            Ok(location) => Ok(Some(location)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.unreadable(None, &error)),
        }
    }

    /// Opens a version, or the newest; none if it is not there.
    pub async fn open(
        &self,
        chain: &Chain,
        version: Option<u64>,
    ) -> Result<Option<Dataset>, ApiError> {
        let mut builder = DatasetBuilder::from_uri(&chain.uri)
            .with_store_params(self.params.clone())
            .with_session(Arc::clone(&self.session));
        if let Some(version) = version {
            builder = builder.with_version(version);
        }
        match builder.load().await {
            // Lance takes a manifest full of zeros for version 0 of an empty table.
            Ok(dataset) if dataset.version_id() != dataset.manifest_location().version => {
                Err(ApiError::new(
                    ErrorName::InvalidTableState,
                    format!(
                        "The manifest of version {} says that it is of version {}.",
                        dataset.manifest_location().version,
                        dataset.version_id()
                    ),
                ))
            }
            Ok(dataset) => Ok(Some(dataset)),
            Err(Error::DatasetNotFound { .. } | Error::VersionNotFound { .. }) => Ok(None),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.unreadable(version, &error)),
        }
    }

    /// The answer to a request that failed with `error`.
    pub fn error(&self, error: &Error) -> ApiError {
        answer(&self.ctx, error)
    }

    /// The answer to a request for which a version could not be read.
    pub fn unreadable(&self, version: Option<u64>, error: &Error) -> ApiError {
        let error = self.error(error);
        match error.name {
            // The store says no; the version may be sound.
            ErrorName::PermissionDenied | ErrorName::ServiceUnavailable => error,
            _ => {
                let version = match version {
                    Some(version) => format!("version {version}"),
                    None => "newest version".to_owned(),
                };
                let detail = format!("The table's {version} can't be read: {}", error.detail);
                ApiError::new(ErrorName::InvalidTableState, detail)
            }
        }
    }
}

fn answer(ctx: &OperationContext, error: &Error) -> ApiError {
    let TaskError { error, detail, .. } = to_task_error(error, &Redactor::new(ctx));
    ApiError::new(error, detail)
}

/// The table has no such branch.
pub fn no_such_branch(branch: &str) -> ApiError {
    ApiError::new(
        ErrorName::TableBranchNotFound,
        format!("The table has no branch '{branch}'."),
    )
}

/// The table, or its branch, has no such version.
pub fn no_such_version(version: u64) -> ApiError {
    ApiError::new(
        ErrorName::TableVersionNotFound,
        format!("The table has no version {version}, or no longer."),
    )
}

/// Nothing has been written to the table.
pub fn never_written() -> ApiError {
    ApiError::new(
        ErrorName::InvalidTableState,
        "The table is declared, and nothing has been written to it yet: it has no version.",
    )
}
