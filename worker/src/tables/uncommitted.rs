//! What a write has written, before any version refers to it.

use lance_table::format::Fragment;
use object_store::path::Path;
use tracing::warn;

use super::place::Place;

/// Data files, and the folders with their large values.
#[derive(Debug, Default)]
pub struct Uncommitted {
    files: Vec<Path>,
    folders: Vec<Path>,
}

impl Uncommitted {
    /// The files of these fragments.
    pub fn of(place: &Place, fragments: &[Fragment]) -> Self {
        let data = place.base.clone().join("data");
        let mut uncommitted = Self::default();
        for file in fragments.iter().flat_map(|fragment| &fragment.files) {
            // A write goes into the table's own folder only.
            if file.base_id.is_some() {
                continue;
            }
            uncommitted
                .files
                .push(data.clone().join(file.path.as_str()));
            // Large values lie beside a data file, in a folder of its name.
            if let Some((stem, _)) = file.path.rsplit_once('.') {
                uncommitted.folders.push(data.clone().join(stem));
            }
        }
        uncommitted
    }

    /// Removes them: no version refers to them, nor will. What can't be removed is left to a cleanup,
    /// which is a waste and no fault.
    pub async fn remove(self, place: &Place) {
        for file in &self.files {
            if let Err(error) = place.store.delete(file).await
                && !error.is_not_found()
            {
                warn!(path = %file, %error, "an uncommitted file could not be removed");
            }
        }
        for folder in self.folders {
            if let Err(error) = place.store.remove_dir_all(folder.clone()).await
                && !error.is_not_found()
            {
                warn!(path = %folder, %error, "an uncommitted folder could not be removed");
            }
        }
    }
}
