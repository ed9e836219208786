//! Lists versions. The listing of the manifests says most; manifests are read only for the times
//! of a page.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use lance::dataset::Version;
use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::tables::{ListVersions, TableVersion, Versions};
use lance_table::format::{Manifest, is_detached_version};
use lance_table::io::commit::ManifestLocation;
use lance_table::io::manifest::read_manifest;
use object_store::ObjectStoreExt;

use super::CONCURRENT_READS;
use super::place::{Chain, Place, no_such_version};

/// How long a list may be for its manifests to be read.
const READ_AT_MOST: usize = 100;

/// The versions that are asked for. A table that was never written has none.
pub async fn list(place: &Place, request: &ListVersions) -> Result<Versions, ApiError> {
    let chain = place.chain(request.branch.as_deref())?;
    let (locations, more) = match request.version {
        Some(version) => (vec![find(place, &chain, version).await?], false),
        None => page(place, &chain, request).await?,
    };
    // A branch gets its first version before it gets its name: only without one is it not there.
    if locations.is_empty() {
        place.check_branch(&chain).await?;
    }
    let read = locations.len() <= READ_AT_MOST;
    let versions = stream::iter(locations)
        .map(|location| async move {
            // What can't be read is still a version.
            let manifest = match read {
                true => read_manifest(&place.store, &location.path, location.size)
                    .await
                    .ok(),
                false => None,
            };
            describe(&location, manifest.as_ref())
        })
        .buffered(CONCURRENT_READS)
        .collect()
        .await;
    Ok(Versions { versions, more })
}

/// A version as it is answered; without its manifest it has no time.
pub fn describe(location: &ManifestLocation, manifest: Option<&Manifest>) -> TableVersion {
    let noted: Option<BTreeMap<String, String>> =
        manifest.map(|manifest| Version::from(manifest).metadata);
    TableVersion {
        version: location.version,
        manifest_path: location.path.to_string(),
        manifest_size: location.size,
        e_tag: location.e_tag.clone(),
        timestamp_millis: manifest.map(|manifest| manifest.timestamp().timestamp_millis()),
        metadata: noted,
    }
}

async fn find(place: &Place, chain: &Chain, version: u64) -> Result<ManifestLocation, ApiError> {
    let missing = || no_such_version(version);
    if is_detached_version(version) {
        return Err(missing());
    }
    let found = place
        .handler
        .resolve_version_location(&chain.base, version, &place.store.inner)
        .await;
    let mut location = match found {
        Ok(location) => location,
        Err(error) if error.is_not_found() => return Err(missing()),
        Err(error) => return Err(place.error(&error)),
    };
    // Without a size nobody has looked whether it is there.
    if location.size.is_none() {
        match place.store.inner.head(&location.path).await {
            Ok(meta) => {
                location.size = Some(meta.size);
                location.e_tag = meta.e_tag;
            }
            Err(object_store::Error::NotFound { .. }) => return Err(missing()),
            Err(error) => return Err(place.error(&error.into())),
        }
    }
    Ok(location)
}

/// The page that is asked for, and whether there is more after it.
async fn page(
    place: &Place,
    chain: &Chain,
    request: &ListVersions,
) -> Result<(Vec<ManifestLocation>, bool), ApiError> {
    let limit = request.limit.unwrap_or(usize::MAX);
    let mut newest_first = place
        .handler
        .list_manifest_locations(&chain.base, &place.store, true);
    let mut page = Vec::new();
    loop {
        let location = match newest_first.try_next().await {
            Ok(Some(location)) => location,
            Ok(None) => break,
            Err(error) if error.is_not_found() => break,
            Err(error) => return Err(place.error(&error)),
        };
        match request.after {
            Some(after) if request.descending && location.version >= after => {}
            Some(after) if !request.descending && location.version <= after => break,
            _ => page.push(location),
        }
        // One more than is asked for says that there is more. In the other direction the page is
        // at the end of what comes.
        if request.descending && page.len() > limit {
            break;
        }
    }
    if !request.descending {
        page.reverse();
    }
    let more = page.len() > limit;
    page.truncate(limit);
    Ok((page, more))
}
