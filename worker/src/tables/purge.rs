//! Removes a dropped table's files, those that Lance writes and no others.
//!
//! Manifests go first, those of the branches too, since a table without any can't be opened. As long
//! as one is left, all that it refers to is still there: whoever opens the table meanwhile, or after
//! a worker that died at it, finds a whole version or none. What is left then is found by its names,
//! for which no manifest is needed, so a purge that is said again completes one that broke off.

use std::path::Path as FilePath;

use futures::{StreamExt, TryStreamExt, future};
use lance_maintenance_api::ApiError;
use lance_table::io::commit::VERSIONS_DIR;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::place::{BRANCHES, Place};
use crate::local_folders::{local_path, remove_empty};
use crate::operations::journal;

/// Folders that are Lance's alone, and ours.
const FOLDERS: [&str; 9] = [
    VERSIONS_DIR,
    "_transactions",
    "_deletions",
    "_indices",
    "_refs",
    "_blobs",
    "_mem_wal",
    "_fri",
    journal::FOLDER,
];
/// The folder of the data files, whose name is anybody's.
const DATA: &str = "data";
/// The newest manifest, as the first versions of Lance kept it.
const OLD_MANIFEST: &str = "_latest.manifest";
/// Files beside the folders: what a directory namespace notes about a table.
const FILES: [&str; 2] = [".lance-reserved", ".lance-deregistered"];

/// Removes the files, then the folders that are empty by then; how many files there were. Nothing
/// there is no error.
pub async fn purge(place: &Place) -> Result<u64, ApiError> {
    // Checked by name already; this is what the store makes of it.
    if place.base.parts().next().is_none() {
        return Err(ApiError::invalid(
            "The table's location is a whole store, not a folder in it.",
        ));
    }
    let mut removed = 0;
    for folder in [VERSIONS_DIR, BRANCHES] {
        removed += remove(place, &place.base.clone().join(folder), is_manifest).await?;
    }
    let oldest = place.base.clone().join(OLD_MANIFEST);
    match place.store.inner.delete(&oldest).await {
        Err(error) if !is_gone(&error) => return Err(place.error(&error.into())),
        _ => {}
    }
    removed += remove(place, &place.base, is_lance).await?;
    if place.store.has_direct_local_paths() {
        let folder = local_path(&place.base);
        // What can't be removed is not empty, or nobody's concern.
        let _ = tokio::task::spawn_blocking(move || remove_folders(&folder)).await;
    }
    Ok(removed)
}

async fn remove(place: &Place, folder: &Path, which: fn(&[&str]) -> bool) -> Result<u64, ApiError> {
    let base = place.base.clone();
    let found = place
        .store
        .inner
        .list(Some(folder))
        .map_ok(|file| file.location)
        .try_filter(move |path| future::ready(is_below(path, &base, which)))
        // A folder that is not there can't be listed on some stores.
        .filter(|found| future::ready(!matches!(found, Err(error) if is_gone(error))))
        .boxed();
    let mut removed = 0;
    let mut removing = place.store.inner.delete_stream(found);
    loop {
        match removing.try_next().await {
            Ok(Some(_)) => removed += 1,
            Ok(None) => return Ok(removed),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(place.error(&error.into())),
        }
    }
}

fn is_gone(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotFound { .. })
}

fn is_below(path: &Path, base: &Path, which: fn(&[&str]) -> bool) -> bool {
    let Some(parts) = path.prefix_match(base) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    which(&parts)
}

/// Whether a table can be opened by this file.
fn is_manifest(parts: &[&str]) -> bool {
    of_chain(parts, |parts| {
        matches!(parts, [VERSIONS_DIR, _, ..] | [OLD_MANIFEST])
    })
}

/// Whether Lance writes a file of this path.
pub(super) fn is_lance(parts: &[&str]) -> bool {
    of_chain(parts, |parts| match parts {
        [DATA, file] => has_extension(file, "lance"),
        // Large values lie in a folder of their data file's name.
        [DATA, _, file] => has_extension(file, "blob"),
        [file] => *file == OLD_MANIFEST || FILES.contains(file),
        [folder, ..] => FOLDERS.contains(folder),
        [] => false,
    })
}

/// Whether it is so for the table's own parts, or for those of one of its branches. A branch's name
/// may have several parts.
fn of_chain(parts: &[&str], which: fn(&[&str]) -> bool) -> bool {
    match parts {
        [BRANCHES, branch @ ..] => {
            (1..branch.len()).any(|end| branch.get(end..).is_some_and(which))
        }
        parts => which(parts),
    }
}

fn has_extension(file: &str, extension: &str) -> bool {
    file.rsplit_once('.')
        .is_some_and(|(stem, found)| !stem.is_empty() && found == extension)
}

/// Removes the folders of a table that are empty, and the table's own if it is.
fn remove_folders(folder: &FilePath) {
    for name in FOLDERS.iter().chain([&DATA, &BRANCHES]) {
        remove_empty(&folder.join(name));
    }
    // Fails where anything is left.
    let _ = std::fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_files_are_whose() {
        let cases = [
            ("_versions/18446744073709551614.manifest", true, true),
            ("_versions/.tmp_1.manifest_x", true, true),
            ("_latest.manifest", true, true),
            ("tree/b/_versions/1.manifest", true, true),
            ("tree/team/b/_versions/1.manifest", true, true),
            ("data/1.lance", false, true),
            ("data/1/000.blob", false, true),
            ("tree/team/b/data/1.lance", false, true),
            ("_transactions/0-x.txn", false, true),
            ("_deletions/0-1-2.arrow", false, true),
            ("_indices/u/page.idx", false, true),
            ("_refs/tags/t.json", false, true),
            ("_mem_wal/u/wal/1.arrow", false, true),
            ("_maintenance/t/k/1-4/data/1.lance", false, true),
            (".lance-reserved", false, true),
            // Others'.
            ("notes.txt", false, false),
            ("1.lance", false, false),
            ("data/readme.md", false, false),
            ("data/.lance", false, false),
            ("data/t/1.lance", false, false),
            ("data/a/b/1.blob", false, false),
            ("tree/1.lance", false, false),
            ("tree/b/notes.txt", false, false),
            ("versions/1.manifest", false, false),
            ("my/_versions/1.manifest", false, false),
            ("other.lance/data/1.lance", false, false),
        ];
        for (path, manifest, lance) in cases {
            let parts: Vec<&str> = path.split('/').collect();
            assert_eq!(
                (is_manifest(&parts), is_lance(&parts)),
                (manifest, lance),
                "{path}"
            );
        }
    }
}
