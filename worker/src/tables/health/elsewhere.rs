//! Files of a version that lie outside of the table's folder: a clone refers to those of the table it
//! was made of.

use futures::{StreamExt, TryStreamExt, stream};
use lance::{Dataset, Error};
use lance_maintenance_api::ApiError;
use lance_table::format::{DataFile, DeletionFile, IndexMetadata};

use crate::operations::redact::Redactor;
use crate::tables::CONCURRENT_READS;
use crate::tables::place::Place;

/// A file, or the folder of an index segment, and where it is.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The place, as the manifest numbers them; the table's own folder has none.
    base_id: Option<u32>,
    /// The name relative to a table's folder.
    pub name: String,
    is_folder: bool,
}

impl Elsewhere {
    /// A data file.
    pub fn data(file: &DataFile) -> Self {
        Self {
            base_id: file.base_id,
            name: format!("data/{}", file.path),
            is_folder: false,
        }
    }

    /// A deletion file of this name.
    pub fn deletion(file: &DeletionFile, name: String) -> Self {
        Self {
            base_id: file.base_id,
            name,
            is_folder: false,
        }
    }

    /// The folder of an index segment.
    pub fn index(index: &IndexMetadata) -> Self {
        Self {
            base_id: index.base_id,
            name: format!("_indices/{}", index.uuid),
            is_folder: true,
        }
    }
}

/// Those that are not there, and how they are called.
pub async fn missing(
    place: &Place,
    dataset: &Dataset,
    files: Vec<Elsewhere>,
) -> Result<Vec<(Elsewhere, String)>, ApiError> {
    let redactor = Redactor::new(&place.ctx);
    let missing: Result<Vec<_>, Error> = stream::iter(files)
        .map(|file| async move {
            let shown = look_for(dataset, &file).await?;
            Ok::<_, Error>(shown.map(|shown| (file, shown)))
        })
        .buffer_unordered(CONCURRENT_READS)
        .try_filter_map(|missing| async move { Ok(missing) })
        .map_ok(|(file, shown)| (file, redactor.clean(&shown)))
        .try_collect()
        .await;
    missing.map_err(|error| place.error(&error))
}

/// The URI of the file if it is not there.
async fn look_for(dataset: &Dataset, file: &Elsewhere) -> Result<Option<String>, Error> {
    let bases = &dataset.manifest().base_paths;
    let Some(base) = file.base_id.and_then(|id| bases.get(&id)) else {
        return Ok(Some(file.name.clone()));
    };
    let store = dataset.object_store(file.base_id).await?;
    let folder = base.extract_path(dataset.session().store_registry())?;
    // A place that is no table has files of one kind alone, without the folder of their kind.
    let name = match base.is_dataset_root {
        true => file.name.as_str(),
        false => file
            .name
            .split_once('/')
            .map_or(file.name.as_str(), |(_, name)| name),
    };
    let path = name.split('/').fold(folder, |path, part| path.join(part));
    let is_there = match file.is_folder {
        true => store.list(Some(path)).try_next().await?.is_some(),
        false => store.exists(&path).await?,
    };
    let uri = format!("{}/{name}", base.path.trim_end_matches('/'));
    Ok((!is_there).then_some(uri))
}
