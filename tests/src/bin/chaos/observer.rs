//! What happens to a table: every version that is ever made, who made it, and the files it names.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lance::dataset::transaction::Operation;
use lance::{Dataset, Error};
use lance_index::is_system_index;
use lance_table::io::deletion::relative_deletion_file_path;
use lance_table::io::manifest::read_manifest_indexes;
use tokio::time::sleep;

/// The transaction property that holds the id of the task that made a commit.
const TASK_ID: &str = "lance-maintenance.task-id";
const PAUSE: Duration = Duration::from_millis(500);

/// A commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// What it did, in Lance's words.
    pub operation: String,
    /// The task that it says it belongs to.
    pub task_id: Option<String>,
    /// The names of the indices that it made.
    pub indices: Vec<String>,
}

/// What was seen of a table.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every commit, by the version that it made.
    pub commits: BTreeMap<u64, Commit>,
    /// Versions that were gone before anybody looked.
    pub unseen: Vec<u64>,
    /// Every file that any of them named.
    pub named: Names,
}

/// Files of a table, relative to its folder.
#[derive(Clone, Debug, Default)]
pub struct Names {
    files: HashSet<String>,
    indices: HashSet<String>,
}

impl Names {
    /// The files that a version names.
    pub async fn add(&mut self, dataset: &Dataset) -> Result<(), Error> {
        let manifest = dataset.manifest();
        for fragment in manifest.fragments.iter() {
            for file in fragment.referenced_lance_files() {
                self.files.insert(format!("data/{}", file.path));
            }
            if let Some(file) = &fragment.deletion_file {
                self.files
                    .insert(relative_deletion_file_path(fragment.id, file));
            }
        }
        if let Some(file) = &manifest.transaction_file {
            self.files.insert(format!("_transactions/{file}"));
        }
        let store = dataset.object_store(None).await?;
        let location = dataset.manifest_location();
        for index in read_manifest_indexes(&store, location, manifest).await? {
            self.indices.insert(index.uuid.to_string());
        }
        Ok(())
    }

    /// Whether a file is among them.
    pub fn contains(&self, path: &str) -> bool {
        if let Some(rest) = path.strip_prefix("_indices/") {
            let index = rest.split('/').next().unwrap_or_default();
            return self.indices.contains(index);
        }
        self.files.contains(path)
    }
}

/// Watches a table until it is told to stop, and looks once more then.
pub async fn watch(uri: &str, stop: &AtomicBool) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    let mut dataset = Dataset::open(uri).await?;
    let mut last = 0;
    loop {
        // Before looking, so that nothing is missed that happened until then.
        let is_last = stop.load(Ordering::Relaxed);
        dataset.checkout_latest().await?;
        for version in last + 1..=dataset.version_id() {
            match look(&dataset, version, &mut seen.named).await {
                Ok(commit) => {
                    seen.commits.insert(version, commit);
                }
                Err(error) if is_gone(&error) => seen.unseen.push(version),
                Err(error) => return Err(error),
            }
        }
        last = dataset.version_id();
        if is_last {
            return Ok(seen);
        }
        sleep(PAUSE).await;
    }
}

async fn look(dataset: &Dataset, version: u64, named: &mut Names) -> Result<Commit, Error> {
    let dataset = dataset.checkout_version(version).await?;
    let transaction = dataset.read_transaction().await?;
    named.add(&dataset).await?;
    let Some(transaction) = transaction else {
        return Ok(Commit::default());
    };
    let properties = transaction.transaction_properties.as_ref();
    Ok(Commit {
        operation: transaction.operation.name().to_owned(),
        task_id: properties.and_then(|properties| properties.get(TASK_ID).cloned()),
        indices: match &transaction.operation {
            Operation::CreateIndex { new_indices, .. } => new_indices
                .iter()
                .filter(|index| !is_system_index(index))
                .map(|index| index.name.clone())
                .collect(),
            _ => Vec::new(),
        },
    })
}

/// Whether a version is not there, or not any more.
pub fn is_gone(error: &Error) -> bool {
    matches!(
        error,
        Error::DatasetNotFound { .. } | Error::NotFound { .. } | Error::VersionNotFound { .. }
    )
}
