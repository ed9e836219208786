//! Which locations hold a table.

use futures::{StreamExt, TryStreamExt, stream};
use lance_maintenance_api::ApiError;
use lance_maintenance_dispatch::tables::{Existing, TablesExist};
use lance_table::io::commit::{ManifestLocation, VERSIONS_DIR};

use super::place::Place;
use super::{CONCURRENT_READS, Tables};

/// Looks at every location. One that can't be looked at fails the request: who asks must not take
/// "not known" for "no".
pub async fn exist(tables: &Tables, request: TablesExist) -> Result<Existing, ApiError> {
    let exist = stream::iter(request.locations)
        .map(|location| async move { has_version(&tables.place(&location).await?).await })
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await?;
    Ok(Existing { exist })
}

/// Whether there is any manifest: one page of a listing, of which nothing is read.
async fn has_version(place: &Place) -> Result<bool, ApiError> {
    let folder = place.base.clone().join(VERSIONS_DIR);
    let mut files = place.store.list(Some(folder));
    loop {
        match files.try_next().await {
            Ok(Some(file)) => {
                if ManifestLocation::try_from(file).is_ok() {
                    return Ok(true);
                }
            }
            Ok(None) => return Ok(false),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(place.error(&error)),
        }
    }
}
