//! Which file it was that could not be read. Lance's own error often names none.

use futures::TryStreamExt;
use lance::{Dataset, Error};
use lance_maintenance_api::TaskError;
use lance_table::format::{DataFile, Fragment};

use super::errors::{corrupt_file, may_be_unreadable_data, missing_file, to_task_error};
use super::redact::Redactor;

/// Every file of the current and the legacy format ends with these bytes.
const MAGIC: &[u8] = b"LANC";

/// The task's error for `error`, which happened while `fragments` were read; of the columns, only
/// `column` if one is given. If one of their data files can't be read, the error names it.
pub async fn explain(
    dataset: &Dataset,
    fragments: &[Fragment],
    column: Option<&str>,
    error: &Error,
    redactor: &Redactor,
) -> TaskError {
    if may_be_unreadable_data(error)
        && let Some(found) = find(dataset, fragments, column, redactor).await
    {
        return found;
    }
    to_task_error(error, redactor)
}

async fn find(
    dataset: &Dataset,
    fragments: &[Fragment],
    column: Option<&str>,
    redactor: &Redactor,
) -> Option<TaskError> {
    // Whether all are there and whole is a matter of two small reads per file.
    for file in fragments.iter().flat_map(|fragment| &fragment.files) {
        if let Some(found) = look_at(dataset, file).await {
            return Some(found);
        }
    }
    for fragment in fragments {
        if let Err(error) = read(dataset, fragment, column).await
            && may_be_unreadable_data(&error)
        {
            let files: Vec<String> = fragment.files.iter().map(shown).collect();
            return Some(corrupt_file(
                &files.join("', '"),
                &redactor.clean(&error.to_string()),
            ));
        }
    }
    None
}

async fn look_at(dataset: &Dataset, file: &DataFile) -> Option<TaskError> {
    // Files outside of the table's own folder belong to another table's store.
    if file.base_id.is_some() {
        return None;
    }
    let store = dataset.object_store(None).await.ok()?;
    let path = dataset.data_dir().join(file.path.as_str());
    let size = match store.size(&path).await {
        Ok(size) => size,
        Err(error) if error.is_not_found() => return Some(missing_file(&shown(file))),
        Err(_) => return None,
    };
    if let Some(expected) = file.file_size_bytes.get()
        && expected.get() != size
    {
        let reason = format!("it has {size} bytes and should have {expected}.");
        return Some(corrupt_file(&shown(file), &reason));
    }
    let end = usize::try_from(size).ok()?;
    let tail = end.saturating_sub(MAGIC.len())..end;
    let tail = store.read_one_range(&path, tail).await.ok()?;
    (tail != MAGIC).then(|| corrupt_file(&shown(file), "it does not end as a Lance file does."))
}

fn shown(file: &DataFile) -> String {
    format!("data/{}", file.path)
}

async fn read(dataset: &Dataset, fragment: &Fragment, column: Option<&str>) -> Result<(), Error> {
    let mut scanner = dataset.scan();
    scanner.with_fragments(vec![fragment.clone()]);
    if let Some(column) = column {
        scanner.project(&[column])?;
    }
    let mut batches = scanner.try_into_stream().await?;
    while batches.try_next().await?.is_some() {}
    Ok(())
}
