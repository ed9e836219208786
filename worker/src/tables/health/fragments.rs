//! Rows, fragments and their sizes.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt, stream};
use lance::{Dataset, Error};
use lance_maintenance_api::health::{ColumnFiles, DEFAULT_TARGET_ROWS, FragmentSizes};
use lance_table::format::Fragment;

use crate::operations::meter::Work;
use crate::tables::CONCURRENT_READS;

/// Where the table says how many rows a fragment should have.
const TARGET_ROWS: &str = "lance.compaction.target_rows_per_fragment";
/// Rows from which fragments are counted apart.
const SIZES: [u64; 6] = [0, 1, 1000, 10_000, 100_000, DEFAULT_TARGET_ROWS];

/// What the fragments amount to.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Fragments.
    pub fragments: u64,
    /// Rows in them that are deleted.
    pub deleted_rows: u64,
    /// Rows below which a fragment is small.
    pub small_below: u64,
    /// Fragments that are small.
    pub small: u64,
}

/// Counts fragments and what is deleted in them.
pub async fn numbers(dataset: &Dataset) -> Result<Numbers, Error> {
    let small_below = small_below(dataset.config())?;
    let deleted_rows = dataset.count_deleted_rows().await? as u64;
    let rows = usize::try_from(small_below).unwrap_or(usize::MAX);
    Ok(Numbers {
        fragments: dataset.count_fragments() as u64,
        deleted_rows,
        small_below,
        small: dataset.num_small_files(rows).await as u64,
    })
}

fn small_below(config: &HashMap<String, String>) -> Result<u64, Error> {
    match config.get(TARGET_ROWS).map(|value| (value, value.parse())) {
        None | Some((_, Ok(0))) => Ok(DEFAULT_TARGET_ROWS),
        Some((_, Ok(rows))) => Ok(rows),
        Some((value, Err(_))) => Err(Error::invalid_input(format!(
            "The table's configuration says '{value}' for {TARGET_ROWS}, which is not a number of rows."
        ))),
    }
}

/// The fragments by their rows.
pub async fn sizes(dataset: &Dataset) -> Result<Vec<FragmentSizes>, Error> {
    let mut sizes: Vec<FragmentSizes> = SIZES
        .iter()
        .enumerate()
        .map(|(n, from_rows)| FragmentSizes {
            from_rows: *from_rows,
            below_rows: SIZES.get(n + 1).copied(),
            ..FragmentSizes::default()
        })
        .collect();
    let mut fragments = stream::iter(dataset.get_fragments())
        .map(|fragment| async move {
            let rows = fragment.physical_rows().await? as u64;
            let bytes = Work::of([fragment.metadata()]).bytes;
            Ok::<_, Error>((rows, bytes))
        })
        .buffered(CONCURRENT_READS);
    while let Some((rows, bytes)) = fragments.try_next().await? {
        let of_size = sizes.iter_mut().rev().find(|size| size.from_rows <= rows);
        if let Some(size) = of_size {
            size.num_fragments += 1;
            size.num_rows += rows;
            size.bytes += bytes;
        }
    }
    sizes.retain(|size| size.num_fragments > 0);
    Ok(sizes)
}

/// Data files per fragment.
pub fn column_files(dataset: &Dataset) -> ColumnFiles {
    let mut found = ColumnFiles::default();
    for fragment in dataset.fragments().iter() {
        let files = fragment.files.len() as u64;
        found.num_files += files;
        found.most_per_fragment = found.most_per_fragment.max(files);
        found.num_fragments_with_several += u64::from(files > 1);
    }
    found
}

/// Bytes of a row in the data files, if the table notes the sizes of all and has any rows.
pub fn average_row_bytes(dataset: &Dataset) -> Option<u64> {
    let fragments = dataset.fragments();
    let is_noted = |fragment: &Fragment| {
        let mut files = fragment.files.iter();
        fragment.physical_rows.is_some() && files.all(|file| file.file_size_bytes.get().is_some())
    };
    if !fragments.iter().all(is_noted) {
        return None;
    }
    let work = Work::of(fragments.iter());
    work.bytes.checked_div(work.rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small() {
        for (value, rows) in [
            (None, Some(1_048_576)),
            (Some("0"), Some(1_048_576)),
            (Some("500"), Some(500)),
            (Some("x"), None),
            (Some("-1"), None),
            (Some(""), None),
        ] {
            let config = value.map(|value| (TARGET_ROWS.to_owned(), value.to_owned()));
            let found = small_below(&HashMap::from_iter(config));
            assert_eq!(found.ok(), rows, "{value:?}");
        }
    }
}
