//! Makes a manifest that a client has staged a version. Clients do so for tables whose versions
//! the catalog manages: they write all files of a version, and leave the one step that decides
//! between two writers to whoever answers here.

use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{CommitVersion, TableVersion};
use lance_table::io::commit::{
    ManifestLocation, ManifestNamingScheme, VERSIONS_DIR, write_version_hint,
};
use lance_table::io::manifest::read_manifest;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt, PutPayload};

use super::place::{Chain, Place};
use super::versions;

/// Makes the staged manifest the version.
pub async fn commit(place: &Place, request: &CommitVersion) -> Result<TableVersion, ApiError> {
    let chain = place.chain(request.branch.as_deref())?;
    let staged = staged_path(&chain, &request.manifest_path)?;
    let version = request.version;
    let naming = next_naming(place, &chain, request).await?;
    let meta = match place.store.inner.head(&staged).await {
        Ok(meta) => meta,
        Err(object_store::Error::NotFound { .. }) => {
            return Err(ApiError::invalid("There is no manifest at manifest_path."));
        }
        Err(error) => return Err(place.error(&error.into())),
    };
    check_same(&meta, request)?;
    // A version that can't be read would make the table unreadable.
    let manifest = read_manifest(&place.store, &staged, Some(meta.size))
        .await
        .map_err(|error| {
            let error = place.error(&error);
            match error.name {
                ErrorName::PermissionDenied | ErrorName::ServiceUnavailable => error,
                _ => ApiError::invalid(format!(
                    "What lies at manifest_path can't be read as a manifest: {}",
                    error.detail
                )),
            }
        })?;
    if manifest.version != version {
        return Err(ApiError::invalid(format!(
            "The manifest at manifest_path is of version {}, not {version}.",
            manifest.version
        )));
    }
    let read = async { place.store.inner.get(&staged).await?.bytes().await };
    let bytes = read.await.map_err(|error| place.error(&error.into()))?;
    let path = naming.manifest_path(&chain.base, version);
    let put = place
        .store
        .put_if_absent(&path, PutPayload::from_bytes(bytes));
    match put.await {
        Ok(()) => {}
        Err(
            object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. },
        ) => return Err(taken(version)),
        Err(error) => return Err(place.error(&error.into())),
    }
    // The version is there: nothing from here on takes it back.
    write_version_hint(&place.store, &chain.base, version).await;
    if let Err(error) = place.store.delete(&staged).await {
        tracing::warn!(version, error = %place.error(&error), "a staged manifest stays");
    }
    let made = place.store.inner.head(&path).await.ok();
    let location = ManifestLocation {
        version,
        path,
        size: Some(meta.size),
        naming_scheme: naming,
        e_tag: made.and_then(|meta| meta.e_tag),
        identity: None,
    };
    Ok(versions::describe(&location, Some(&manifest)))
}

/// The staged path, checked: in this chain's folder of versions, and not a version already.
fn staged_path(chain: &Chain, path: &str) -> Result<Path, ApiError> {
    let folder = chain.base.clone().join(VERSIONS_DIR);
    let elsewhere = || {
        ApiError::invalid(
            "manifest_path has to lie in the _versions folder of the table, or of its branch.",
        )
    };
    // Refuses what is no plain path: dots, empty parts.
    let path = Path::parse(path.trim_start_matches('/')).map_err(|_| elsewhere())?;
    let mut below = path.prefix_match(&folder).ok_or_else(elsewhere)?;
    let (Some(name), None) = (below.next(), below.next()) else {
        return Err(elsewhere());
    };
    if ManifestNamingScheme::detect_scheme(name.as_ref()).is_some() {
        return Err(ApiError::invalid(
            "manifest_path has the name of a version; stage the manifest under another name.",
        ));
    }
    drop(below);
    Ok(path)
}

/// How the manifest is to be named, if the version is the next one.
async fn next_naming(
    place: &Place,
    chain: &Chain,
    request: &CommitVersion,
) -> Result<ManifestNamingScheme, ApiError> {
    let asked = match request.naming_scheme.as_deref() {
        None => None,
        Some("V1") => Some(ManifestNamingScheme::V1),
        Some("V2") => Some(ManifestNamingScheme::V2),
        Some(_) => return Err(ApiError::invalid("naming_scheme is V1 or V2.")),
    };
    let Some(newest) = place.newest(chain).await? else {
        // A branch begins at the version that it leaves its parent from.
        if chain.branch.is_none() && request.version != 1 {
            return Err(ApiError::new(
                ErrorName::ConcurrentModification,
                format!(
                    "The table has no versions: its first one is 1, not {}.",
                    request.version
                ),
            ));
        }
        return Ok(asked.unwrap_or(ManifestNamingScheme::V2));
    };
    if request.version <= newest.version {
        return Err(taken(request.version));
    }
    if request.version - newest.version != 1 {
        return Err(ApiError::new(
            ErrorName::ConcurrentModification,
            format!(
                "The table's newest version is {}; {} can't be the next one.",
                newest.version, request.version
            ),
        ));
    }
    // Lance can't read a table that mixes both.
    match asked {
        Some(asked) if asked != newest.naming_scheme => Err(ApiError::invalid(format!(
            "The table names its manifests by {:?}, not by {asked:?}.",
            newest.naming_scheme
        ))),
        _ => Ok(newest.naming_scheme),
    }
}

fn check_same(meta: &ObjectMeta, request: &CommitVersion) -> Result<(), ApiError> {
    if let Some(size) = request.manifest_size
        && size != meta.size
    {
        return Err(ApiError::invalid(format!(
            "The manifest at manifest_path has {} bytes, not {size}.",
            meta.size
        )));
    }
    // Lance's own writer leaves out the quotes.
    let plain = |tag: &str| tag.trim_matches('"').to_owned();
    if let (Some(asked), Some(found)) = (&request.e_tag, &meta.e_tag)
        && plain(asked) != plain(found)
    {
        return Err(ApiError::invalid(
            "The manifest at manifest_path has another ETag: it was written again since.",
        ));
    }
    Ok(())
}

fn taken(version: u64) -> ApiError {
    ApiError::new(
        ErrorName::ConcurrentModification,
        format!("Another writer has made version {version}; read the newest one and try again."),
    )
}
