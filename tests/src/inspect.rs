//! What can be seen of a table, by whoever opens it with the `lance` crate.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::{ArrayRef, Float32Array, UInt8Array};
use arrow_row::{RowConverter, SortField};
use futures::TryStreamExt;
use lance::Dataset;
use lance::index::DatasetIndexExt;
use lance_index::is_system_index;
use lance_index::scalar::FullTextSearchQuery;
use serde::Deserialize;

use crate::wine::Wine;

/// A table at its newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// The version's number.
    pub version: u64,
    /// Fragments.
    pub fragments: usize,
    /// Rows that are deleted and still stored.
    pub deleted_rows: usize,
    /// Versions that can be read, oldest first.
    pub versions: Vec<u64>,
    /// Bytes of all files under the table's folder; 0 for a table that is not a local folder.
    pub bytes: u64,
    /// Rows that a reader sees.
    pub rows: usize,
    /// The same for the same rows, in whatever order and files they lie.
    pub content_hash: u128,
    /// The indices, by name.
    pub indices: Vec<IndexState>,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexState {
    /// Its name.
    pub name: String,
    /// Its type, in Lance's words.
    pub index_type: String,
    /// Rows that it covers.
    pub indexed: u64,
    /// Rows that it does not.
    pub unindexed: u64,
    /// Segments that it consists of.
    pub segments: usize,
}

impl TableState {
    /// Looks at a table.
    pub async fn of(uri: &str) -> anyhow::Result<Self> {
        let dataset = Dataset::open(uri)
            .await
            .with_context(|| format!("can't open {uri}"))?;
        let mut versions: Vec<u64> = dataset
            .versions()
            .await?
            .into_iter()
            .map(|version| version.version)
            .collect();
        versions.sort_unstable();
        let (rows, content_hash) = content(&dataset).await?;
        Ok(Self {
            version: dataset.version_id(),
            fragments: dataset.count_fragments(),
            deleted_rows: dataset.count_deleted_rows().await?,
            versions,
            bytes: uri
                .strip_prefix("file://")
                .map_or(Ok(0), |path| bytes_under(Path::new(path)))?,
            rows,
            content_hash,
            indices: indices(&dataset).await?,
        })
    }

    /// The index of this name.
    pub fn index(&self, name: &str) -> anyhow::Result<&IndexState> {
        self.indices
            .iter()
            .find(|index| index.name == name)
            .with_context(|| format!("there is no index '{name}' among {:?}", self.indices))
    }

    /// Rows that the indices cover, and rows that they do not, over all of them.
    pub fn coverage(&self) -> (u64, u64) {
        let sum = |count: fn(&IndexState) -> u64| self.indices.iter().map(count).sum();
        (sum(|index| index.indexed), sum(|index| index.unindexed))
    }
}

/// How many rows there are, and a hash of them that does not depend on their order: the sum of the
/// rows' own hashes.
async fn content(dataset: &Dataset) -> anyhow::Result<(usize, u128)> {
    let mut batches = dataset.scan().try_into_stream().await?;
    let (mut rows, mut hash) = (0, 0_u128);
    while let Some(batch) = batches.try_next().await? {
        let mut columns: Vec<(&str, &ArrayRef)> = batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .zip(batch.columns())
            .collect();
        columns.sort_unstable_by_key(|(name, _)| *name);
        let arrays: Vec<ArrayRef> = columns.iter().map(|(_, array)| (*array).clone()).collect();
        let fields = arrays
            .iter()
            .map(|array| SortField::new(array.data_type().clone()))
            .collect();
        let encoded = RowConverter::new(fields)?.convert_columns(&arrays)?;
        for row in &encoded {
            hash = hash.wrapping_add(hash_of(row.as_ref()));
        }
        rows += batch.num_rows();
    }
    Ok((rows, hash))
}

fn hash_of(bytes: &[u8]) -> u128 {
    let half = |seed: u8| {
        // With fixed keys, unlike a map's.
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(seed);
        hasher.write(bytes);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

/// What `index_statistics` says, as far as it is looked at.
#[derive(Deserialize)]
struct Statistics {
    index_type: String,
    num_indexed_rows: u64,
    num_unindexed_rows: u64,
    num_indices: usize,
}

async fn indices(dataset: &Dataset) -> anyhow::Result<Vec<IndexState>> {
    let mut names: Vec<String> = dataset
        .load_indices()
        .await?
        .iter()
        .filter(|index| !is_system_index(index))
        .map(|index| index.name.clone())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut indices = Vec::new();
    for name in names {
        let text = dataset.index_statistics(&name).await?;
        let statistics: Statistics = serde_json::from_str(&text)?;
        indices.push(IndexState {
            name,
            index_type: statistics.index_type,
            indexed: statistics.num_indexed_rows,
            unindexed: statistics.num_unindexed_rows,
            segments: statistics.num_indices,
        });
    }
    Ok(indices)
}

fn bytes_under(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in folder.read_dir()? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => bytes_under(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}

/// The plan of a query with a filter.
pub async fn filter_plan(uri: &str, filter: &str) -> anyhow::Result<String> {
    let dataset = Dataset::open(uri).await?;
    let mut scanner = dataset.scan();
    scanner.project(&["id"])?.filter(filter)?;
    Ok(scanner.explain_plan(true).await?)
}

/// The plan of a search for words in texts, and how many rows it finds.
pub async fn text_search(uri: &str, words: &str) -> anyhow::Result<(String, usize)> {
    let dataset = Dataset::open(uri).await?;
    let mut scanner = dataset.scan();
    scanner.full_text_search(FullTextSearchQuery::new(words.to_owned()))?;
    let plan = scanner.explain_plan(true).await?;
    Ok((plan, scanner.try_into_batch().await?.num_rows()))
}

/// The plan of a search for the five wines nearest to one, by the column `vector` or `bits`.
pub async fn nearest_plan(uri: &str, column: &str, wine: &Wine) -> anyhow::Result<String> {
    let dataset = Dataset::open(uri).await?;
    let key: ArrayRef = match column {
        "bits" => Arc::new(UInt8Array::from_iter_values(wine.bits)),
        _ => Arc::new(Float32Array::from_iter_values(wine.vector)),
    };
    let mut scanner = dataset.scan();
    scanner.project(&["id"])?.nearest(column, key.as_ref(), 5)?;
    Ok(scanner.explain_plan(true).await?)
}
