//! Versions, and what holds them: tags and branches.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Utc;
use futures::TryStreamExt;
use lance::dataset::refs::{BranchContents, BranchIdentifier, TagContents};
use lance::{Dataset, Error};
use lance_maintenance_api::ApiError;
use lance_maintenance_api::health::VersionAge;
use lance_maintenance_api::time::format_micros;
use lance_table::io::commit::ManifestLocation;
use lance_table::io::manifest::read_manifest;

use crate::tables::place::Place;

/// Where the versions' manifests are, oldest first.
pub async fn versions(place: &Place) -> Result<Vec<ManifestLocation>, Error> {
    let found = place
        .handler
        .list_manifest_locations(&place.base, &place.store, false);
    let mut versions: Vec<_> = found.try_collect().await?;
    versions.sort_unstable_by_key(|location| location.version);
    Ok(versions)
}

/// The tags, those of branches too.
pub async fn tags(dataset: &Dataset) -> Result<BTreeMap<String, TagContents>, Error> {
    Ok(dataset.tags().list().await?.into_iter().collect())
}

/// The branches.
pub async fn branches(dataset: &Dataset) -> Result<BTreeMap<String, BranchContents>, Error> {
    Ok(dataset.list_branches().await?.into_iter().collect())
}

/// The oldest of the versions, and how old it is.
pub async fn oldest(
    place: &Place,
    dataset: &Dataset,
    versions: &Result<Vec<ManifestLocation>, ApiError>,
) -> Result<Option<VersionAge>, ApiError> {
    let Some(oldest) = versions.as_ref().map_err(ApiError::clone)?.first() else {
        return Ok(None);
    };
    let created = if oldest.version == dataset.version_id() {
        dataset.manifest().timestamp()
    } else {
        let manifest = read_manifest(&place.store, &oldest.path, oldest.size).await;
        manifest.map_err(|error| place.error(&error))?.timestamp()
    };
    let age = (Utc::now() - created).num_seconds();
    Ok(Some(VersionAge {
        version: oldest.version,
        created_at: format_micros(created.timestamp_micros()),
        age_seconds: u64::try_from(age).unwrap_or(0),
    }))
}

/// Versions that are held beside the newest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Those that have a tag.
    pub tagged: BTreeSet<u64>,
    /// Those that branches began with, and branches of branches.
    pub branched: BTreeSet<u64>,
}

/// What these tags and branches hold of the main line of versions.
pub fn held(
    tags: &Result<BTreeMap<String, TagContents>, ApiError>,
    branches: &Result<BTreeMap<String, BranchContents>, ApiError>,
) -> Result<Held, ApiError> {
    let tags = tags.as_ref().map_err(ApiError::clone)?.values();
    let branches = branches.as_ref().map_err(ApiError::clone)?;
    let by_name = branches.clone().into_iter().collect();
    let descended = BranchIdentifier::main().collect_referenced_versions(&by_name);
    // Old branches do not note all that they descend from.
    let direct = branches
        .values()
        .filter(|branch| branch.parent_branch.is_none())
        .map(|branch| branch.parent_version);
    Ok(Held {
        tagged: tags
            .filter(|tag| tag.branch.is_none())
            .map(|tag| tag.version)
            .collect(),
        branched: descended
            .into_iter()
            .map(|(_, version)| version)
            .chain(direct)
            .collect(),
    })
}
