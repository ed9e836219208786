//! Which files lie in a table's folder, and why.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context;
use lance::Dataset;

use crate::observer::{Names, Seen, is_gone};
use crate::recorder::Recorder;

/// Where the worker keeps its own book about files that it has not yet committed.
const BOOK: &str = "_maintenance/";
/// What Lance keeps beside the manifests, and writes anew with each version.
const HINT: &str = "_versions/latest_version_hint.json";

/// The files of one table, or of several.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Files that a version names, and the versions' own.
    pub named: usize,
    /// Files that our own writers left, by folder.
    pub writers: BTreeMap<String, usize>,
    /// Files of the worker's book.
    pub book: usize,
    /// Files that no version names and that stand in the worker's book.
    pub in_book: usize,
    /// Files that no version names any more: what a cleanup left. By folder.
    pub left_by_cleanup: BTreeMap<String, Vec<Left>>,
    /// Files that no version ever named, and that nobody accounts for. By folder.
    pub orphans: BTreeMap<String, Vec<Left>>,
}

/// A file that should not be there.
#[derive(Clone, Debug)]
pub struct Left {
    /// Its path.
    pub path: String,
    /// When it was written last.
    pub written: SystemTime,
}

impl Files {
    /// Looks at a table's folder.
    pub async fn of(location: &str, seen: &Seen, recorder: &Recorder) -> anyhow::Result<Self> {
        let folder = Path::new(location.strip_prefix("file://").context("not a folder")?);
        let (versions, now) = present(location).await?;
        let mut paths = Vec::new();
        walk(folder, folder, &mut paths)?;
        let book = read_book(folder, &paths)?;
        let mut files = Self::default();
        for path in paths {
            let absolute = folder.join(&path).display().to_string();
            let is_writers = recorder.wrote(absolute.trim_start_matches('/'));
            let kind = path.split('/').next().unwrap_or_default().to_owned();
            if path.starts_with(BOOK) {
                files.book += 1;
            } else if path == HINT || now.contains(&path) || is_manifest_of(&path, &versions) {
                files.named += 1;
            } else if book.contains(key(&path)) {
                files.in_book += 1;
            } else if seen.named.contains(&path) {
                let left = Left::at(absolute)?;
                files.left_by_cleanup.entry(kind).or_default().push(left);
            } else if is_writers {
                *files.writers.entry(kind).or_default() += 1;
            } else {
                let left = Left::at(absolute)?;
                files.orphans.entry(kind).or_default().push(left);
            }
        }
        Ok(files)
    }

    /// Adds another table's.
    pub fn add(&mut self, other: Self) {
        self.named += other.named;
        self.book += other.book;
        self.in_book += other.in_book;
        for (kind, count) in other.writers {
            *self.writers.entry(kind).or_default() += count;
        }
        for (kind, paths) in other.left_by_cleanup {
            self.left_by_cleanup.entry(kind).or_default().extend(paths);
        }
        for (kind, paths) in other.orphans {
            self.orphans.entry(kind).or_default().extend(paths);
        }
    }
}

impl Left {
    fn at(path: String) -> anyhow::Result<Self> {
        let written = fs::metadata(&path)?.modified()?;
        Ok(Self { path, written })
    }
}

/// The versions that are there, and the files that they name.
async fn present(location: &str) -> anyhow::Result<(Vec<u64>, Names)> {
    let dataset = Dataset::open(location).await?;
    let mut names = Names::default();
    let mut versions = Vec::new();
    for version in dataset.version_refs().await? {
        match dataset.checkout_version(version.version).await {
            Ok(dataset) => {
                names.add(&dataset).await?;
                versions.push(version.version);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((versions, names))
}

/// Whether a file is the manifest of one of the versions: `_versions/{2^64 - 1 - version}.manifest`,
/// or with the version itself in older tables.
fn is_manifest_of(path: &str, versions: &[u64]) -> bool {
    let number = path
        .strip_prefix("_versions/")
        .and_then(|name| name.strip_suffix(".manifest"))
        .and_then(|number| number.parse::<u64>().ok());
    number.is_some_and(|number| versions.contains(&number) || versions.contains(&!number))
}

/// All that the worker's book says, as text.
fn read_book(folder: &Path, paths: &[String]) -> anyhow::Result<String> {
    let mut text = String::new();
    for path in paths.iter().filter(|path| path.starts_with(BOOK)) {
        text += &String::from_utf8_lossy(&fs::read(folder.join(path))?);
        // An entry may be named after what it is about.
        text += path;
        text.push('\n');
    }
    Ok(text)
}

/// By what a file stands in the book: its name, or the id of the index that it belongs to.
fn key(path: &str) -> &str {
    match path.strip_prefix("_indices/") {
        Some(rest) => rest.split('/').next().unwrap_or(rest),
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

fn walk(root: &Path, folder: &Path, paths: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, paths)?;
        } else {
            let path = path.strip_prefix(root)?;
            paths.push(path.to_str().context("a path is no text")?.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_of_versions() {
        for (path, expected) in [
            ("_versions/3.manifest", true),
            ("_versions/18446744073709551612.manifest", true),
            ("_versions/18446744073709551611.manifest", false),
            ("_versions/.tmp_3.manifest_0", false),
            ("_versions/3.manifest#1", false),
            ("data/3.manifest", false),
        ] {
            assert_eq!(is_manifest_of(path, &[3, 7]), expected, "{path}");
        }
    }

    #[test]
    fn names_in_the_book() {
        assert_eq!(key("_indices/1f/page.lance"), "1f");
        assert_eq!(key("data/1f.lance"), "1f.lance");
    }
}
