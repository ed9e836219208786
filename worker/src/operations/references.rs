//! What a version of a table refers to.

use std::collections::HashSet;

use lance::index::DatasetIndexExt;
use lance::{Dataset, Error};
use lance_table::format::Fragment;
use lance_table::io::deletion::relative_deletion_file_path;

/// The files and folders that one version refers to.
#[derive(Clone, Debug, Default)]
pub struct References {
    /// Names of data files without what follows the last dot: that is the name of the folder with
    /// their large values, too.
    data: HashSet<String>,
    /// Deletion files, relative to the table's folder.
    deletions: HashSet<String>,
    indices: HashSet<String>,
    transaction: Option<String>,
}

impl References {
    /// Those of the version that the dataset is at.
    pub async fn of(dataset: &Dataset) -> Result<Self, Error> {
        let mut references = Self {
            transaction: dataset.manifest().transaction_file.clone(),
            ..Self::default()
        };
        for fragment in dataset.fragments().iter() {
            references.add(fragment);
        }
        // Those that Lance keeps for itself are among them.
        let indices = dataset.load_indices().await?;
        references.indices = indices.iter().map(|index| index.uuid.to_string()).collect();
        Ok(references)
    }

    fn add(&mut self, fragment: &Fragment) {
        self.data.extend(
            fragment
                .files
                .iter()
                .map(|file| stem(&file.path).to_owned()),
        );
        if let Some(file) = &fragment.deletion_file {
            self.deletions
                .insert(relative_deletion_file_path(fragment.id, file));
        }
    }

    /// Whether the version needs the file or folder of this name, relative to the table's. What is
    /// not known here is needed.
    pub fn contain(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split('/').collect();
        match parts[..] {
            ["data", file] => self.data.contains(stem(file)),
            ["data", folder, _] => self.data.contains(folder),
            ["_indices", uuid] => self.indices.contains(uuid),
            ["_transactions", file] => self.transaction.as_deref() == Some(file),
            ["_deletions", _] => self.deletions.contains(name),
            _ => true,
        }
    }
}

/// Those of the files and folders that any version after this one refers to. A version before can't
/// refer to what was written when it was there already.
pub async fn needed(
    dataset: &Dataset,
    after: u64,
    mut names: Vec<String>,
) -> Result<HashSet<String>, Error> {
    let mut needed = HashSet::new();
    let mut versions = dataset.version_refs().await?;
    versions.retain(|found| found.version > after);
    // The newest refers to most of it.
    for version in versions.iter().rev() {
        if names.is_empty() {
            break;
        }
        let dataset = match dataset.checkout_version(version.version).await {
            Ok(dataset) => dataset,
            // Somebody cleans up at the same time.
            Err(Error::DatasetNotFound { .. } | Error::NotFound { .. }) => continue,
            Err(error) => return Err(error),
        };
        let references = References::of(&dataset).await?;
        let (found, others) = names.into_iter().partition(|name| references.contain(name));
        needed.extend::<Vec<String>>(found);
        names = others;
    }
    Ok(needed)
}

fn stem(file: &str) -> &str {
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed() {
        let references = References {
            data: HashSet::from(["a".to_owned(), "b".to_owned()]),
            deletions: HashSet::from(["_deletions/3-7-99.arrow".to_owned()]),
            indices: HashSet::from(["u".to_owned()]),
            transaction: Some("6-x.txn".to_owned()),
        };
        let cases = [
            ("data/a.lance", true),
            ("data/c.lance", false),
            ("data/b/1.blob", true),
            ("data/c/1.blob", false),
            ("_indices/u", true),
            ("_indices/v", false),
            ("_transactions/6-x.txn", true),
            ("_transactions/5-x.txn", false),
            ("_deletions/3-7-99.arrow", true),
            ("_deletions/3-8-99.bin", false),
            // Not known: not ours to remove.
            ("_new/thing", true),
            ("data/a/b/c", true),
        ];
        for (name, needed) in cases {
            assert_eq!(references.contain(name), needed, "{name}");
        }
    }
}
