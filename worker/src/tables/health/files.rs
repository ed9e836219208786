//! How much the table takes, and which of its files are not there: of one listing of its folder,
//! files that Lance does not write left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::{TryStreamExt, join};
use lance::index::DatasetIndexExt;
use lance::{Dataset, Error};
use lance_index::is_system_index;
use lance_maintenance_api::health::{Bytes, Missing};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_table::format::{IndexMetadata, is_detached_version};
use lance_table::io::commit::{ManifestLocation, VERSIONS_DIR};
use lance_table::io::deletion::relative_deletion_file_path;
use object_store::ObjectMeta;
use tokio::time::Instant;

use super::elsewhere::{self, Elsewhere};
use super::history::Held;
use super::{SECTION, until};
use crate::operations::journal;
use crate::operations::references::References;
use crate::tables::place::Place;
use crate::tables::purge::is_lance;

/// How many versions that something holds are looked at for what they need.
const HELD: usize = 32;
/// How many names of missing files are said, of each kind.
const NAMED: usize = 100;
/// The folder of the indices.
const INDICES: &str = "_indices";
/// The folder of what was committed.
const TRANSACTIONS: &str = "_transactions/";

/// What the files tell.
#[derive(Debug)]
pub struct Files {
    /// How much the table takes, and what is not exact about it.
    pub bytes: Result<(Bytes, Option<String>), ApiError>,
    /// What is not there, if it was asked for.
    pub missing: Option<Result<Missing, ApiError>>,
}

/// Looks at the files of the version that the dataset is at, and at those beside.
pub async fn look(
    place: &Place,
    dataset: &Dataset,
    held: Result<Held, ApiError>,
    check_files: bool,
) -> Files {
    let end = Instant::now() + SECTION;
    let listed = until(end, async {
        let needed = needed(dataset, check_files).await;
        let needed = needed.map_err(|error| place.error(&error))?;
        list(place, dataset, needed).await
    });
    let (found, wanted) = match listed.await {
        Ok(listed) => listed,
        Err(error) => {
            return Files {
                bytes: Err(error.clone()),
                missing: check_files.then_some(Err(error)),
            };
        }
    };
    let Wanted { here, elsewhere } = wanted;
    let (bytes, missing) = join!(
        until(end, bytes(place, dataset, held, found)),
        until(end, missing(place, dataset, here, elsewhere))
    );
    Files {
        bytes,
        missing: check_files.then_some(missing),
    }
}

/// What the newest version needs, by name.
struct Needed {
    references: References,
    wanted: Wanted,
}

/// Files and index folders that have to be there.
#[derive(Default)]
struct Wanted {
    /// In the table's folder, relative to it.
    here: HashSet<String>,
    elsewhere: Vec<Elsewhere>,
}

async fn needed(dataset: &Dataset, check_files: bool) -> Result<Needed, Error> {
    let mut wanted = Wanted::default();
    if check_files {
        for fragment in dataset.fragments().iter() {
            for file in &fragment.files {
                wanted.add(file.base_id, Elsewhere::data(file));
            }
            if let Some(file) = &fragment.deletion_file {
                let name = relative_deletion_file_path(fragment.id, file);
                wanted.add(file.base_id, Elsewhere::deletion(file, name));
            }
        }
        for index in dataset.load_indices().await?.iter() {
            if has_files(index) {
                wanted.add(index.base_id, Elsewhere::index(index));
            }
        }
    }
    Ok(Needed {
        references: References::of(dataset).await?,
        wanted,
    })
}

impl Wanted {
    fn add(&mut self, base_id: Option<u32>, file: Elsewhere) {
        match base_id {
            None => {
                self.here.insert(file.name);
            }
            Some(_) => self.elsewhere.push(file),
        }
    }
}

/// Whether there must be files of the index segment. What Lance keeps for itself may be in the manifest.
fn has_files(index: &IndexMetadata) -> bool {
    match &index.files {
        Some(files) => !files.is_empty(),
        None => !is_system_index(index),
    }
}

/// What lies in the table's folder.
#[derive(Debug, Default)]
struct Found {
    total: u64,
    live: u64,
    /// Bytes of the files and index folders that the newest version does not need.
    left: HashMap<String, u64>,
    /// Bytes of the manifests of other versions.
    manifests: BTreeMap<u64, u64>,
}

impl Found {
    /// Counts a file of which the path relative to the table has these parts.
    fn add(&mut self, parts: &[&str], file: ObjectMeta, newest: u64, references: &References) {
        let size = file.size;
        self.total += size;
        if let [VERSIONS_DIR, _] = parts {
            match ManifestLocation::try_from(file) {
                Ok(location) if is_left(location.version, newest) => {
                    *self.manifests.entry(location.version).or_default() += size;
                }
                _ => self.live += size,
            }
            return;
        }
        let name = match parts {
            [INDICES, uuid, ..] => format!("{INDICES}/{uuid}"),
            parts => parts.join("/"),
        };
        match references.contain(&name) {
            true => self.live += size,
            false => *self.left.entry(name).or_default() += size,
        }
    }
}

/// Detached versions are nobody's successors, and no cleanup removes them.
fn is_left(version: u64, newest: u64) -> bool {
    version != newest && !is_detached_version(version)
}

/// Lists the folder; of what is wanted that stays which was not found.
async fn list(
    place: &Place,
    dataset: &Dataset,
    Needed {
        references,
        mut wanted,
    }: Needed,
) -> Result<(Found, Wanted), ApiError> {
    let mut found = Found::default();
    let mut files = place.store.inner.list(Some(&place.base));
    loop {
        let file = match files.try_next().await {
            Ok(Some(file)) => file,
            Ok(None) => return Ok((found, wanted)),
            // Somebody cleans up at the same time, or there is no folder.
            Err(object_store::Error::NotFound { .. }) => continue,
            Err(error) => return Err(place.error(&error.into())),
        };
        let Some(parts) = file.location.prefix_match(&place.base) else {
            continue;
        };
        let parts: Vec<String> = parts.map(|part| part.as_ref().to_owned()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            [INDICES, uuid, _, ..] => wanted.here.remove(&format!("{INDICES}/{uuid}")),
            _ => wanted.here.remove(&parts.join("/")),
        };
        if is_lance(&parts) && parts.first() != Some(&journal::FOLDER) {
            found.add(&parts, file, dataset.version_id(), &references);
        }
    }
}

/// How much that is, and what is not exact about it.
async fn bytes(
    place: &Place,
    dataset: &Dataset,
    held: Result<Held, ApiError>,
    found: Found,
) -> Result<(Bytes, Option<String>), ApiError> {
    let Found {
        total,
        live,
        mut left,
        mut manifests,
    } = found;
    let held = held?;
    let mut versions: Vec<u64> = held.tagged.union(&held.branched).copied().collect();
    versions.retain(|version| *version != dataset.version_id());
    for version in &versions {
        manifests.remove(version);
    }
    for version in versions.iter().rev().take(HELD) {
        if left.is_empty() {
            break;
        }
        // One that is not there holds nothing.
        let Some(references) = open(place, dataset, *version).await? else {
            continue;
        };
        // A branch needs the files of a version alone.
        let is_tagged = held.tagged.contains(version);
        left.retain(|name, _| {
            let is_transaction = name.starts_with(TRANSACTIONS);
            !references.contain(name) || (is_transaction && !is_tagged)
        });
    }
    let warning = (versions.len() > HELD).then(|| {
        format!(
            "Tags and branches hold {} older versions, of which {HELD} were looked at: less may be \
             reclaimable than is said.",
            versions.len()
        )
    });
    let reclaimable = left.values().chain(manifests.values()).sum();
    let bytes = Bytes {
        total,
        live,
        reclaimable,
    };
    Ok((bytes, warning))
}

/// What the version needs; nothing if it is not there.
async fn open(
    place: &Place,
    dataset: &Dataset,
    version: u64,
) -> Result<Option<References>, ApiError> {
    match dataset.checkout_version(version).await {
        Ok(dataset) => {
            let references = References::of(&dataset).await;
            references.map(Some).map_err(|error| place.error(&error))
        }
        Err(Error::DatasetNotFound { .. } | Error::VersionNotFound { .. }) => Ok(None),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(place.error(&error)),
    }
}

/// What is not there: of these in the table's folder nothing is.
async fn missing(
    place: &Place,
    dataset: &Dataset,
    here: HashSet<String>,
    elsewhere: Vec<Elsewhere>,
) -> Result<Missing, ApiError> {
    let mut gone: Vec<String> = here.into_iter().collect();
    let is_index = |name: &String| name.starts_with(INDICES);
    let (mut index_folders, mut data_files): (Vec<_>, Vec<_>) = gone.drain(..).partition(is_index);
    for (file, name) in elsewhere::missing(place, dataset, elsewhere).await? {
        match is_index(&file.name) {
            true => index_folders.push(name),
            false => data_files.push(name),
        }
    }
    let num_files = data_files.len() + index_folders.len();
    if num_files > 0 && has_changed(place, dataset).await? {
        return Err(ApiError::new(
            ErrorName::ConcurrentModification,
            "The table was changed while its files were looked for. Check again.",
        ));
    }
    for names in [&mut data_files, &mut index_folders] {
        names.sort_unstable();
        names.truncate(NAMED);
    }
    Ok(Missing {
        num_files: num_files as u64,
        data_files,
        index_folders,
    })
}

/// Whether there is a newer version, with which files may be gone that this one needed.
async fn has_changed(place: &Place, dataset: &Dataset) -> Result<bool, ApiError> {
    let newest = place.newest(&place.chain(None)?).await?;
    Ok(newest.is_none_or(|newest| newest.version != dataset.version_id()))
}
