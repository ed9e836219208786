//! Schema and numbers of a version.

use arrow_schema::Schema;
use lance::dataset::refs::{TagContents, check_valid_tag, tag_path};
use lance_maintenance_api::{ApiError, ErrorName};
use lance_maintenance_dispatch::tables::{DescribeTable, TableDescription};
use lance_namespace::schema::arrow_schema_to_json;

use super::place::{Place, never_written, no_such_branch, no_such_version};

/// Describes the version that is asked for.
pub async fn describe(
    place: &Place,
    request: &DescribeTable,
) -> Result<TableDescription, ApiError> {
    let mut chain = place.chain(request.branch.as_deref())?;
    let mut version = request.version;
    if let Some(tag) = &request.tag {
        if version.is_some() {
            return Err(ApiError::invalid("Give a version or a tag, not both."));
        }
        let contents = tag_contents(place, tag).await?;
        let tagged = place.chain(contents.branch.as_deref())?;
        if request.branch.is_some() && tagged != chain {
            return Err(no_such_tag(tag));
        }
        chain = tagged;
        version = Some(contents.version);
    }
    let Some(dataset) = place.open(&chain, version).await? else {
        place.check_branch(&chain).await?;
        return Err(
            match (version, &chain.branch, place.newest(&chain).await?) {
                (Some(version), _, Some(_)) => no_such_version(version),
                (_, Some(branch), None) => no_such_branch(branch),
                _ => never_written(),
            },
        );
    };
    let deleted = dataset
        .count_deleted_rows()
        .await
        .map_err(|error| place.unreadable(version, &error))?;
    let schema = Schema::from(dataset.schema());
    let json = arrow_schema_to_json(&schema).map_err(|error| {
        ApiError::new(
            ErrorName::Unsupported,
            format!(
                "The table's schema can't be described: {}",
                place.error(&error).detail
            ),
        )
    })?;
    let json = serde_json::to_value(&json).map_err(|error| {
        ApiError::new(
            ErrorName::InternalError,
            format!("The schema could not be written as JSON: {error}."),
        )
    })?;
    Ok(TableDescription {
        version: dataset.version_id(),
        schema: json,
        metadata: schema.metadata.into_iter().collect(),
        num_deleted_rows: deleted as u64,
        num_fragments: dataset.count_fragments() as u64,
    })
}

async fn tag_contents(place: &Place, tag: &str) -> Result<TagContents, ApiError> {
    check_valid_tag(tag).map_err(|_| no_such_tag(tag))?;
    let path = tag_path(&place.base, tag);
    match TagContents::from_path(&path, &place.store).await {
        Ok(contents) => Ok(contents),
        Err(error) if error.is_not_found() => match place.newest(&place.chain(None)?).await? {
            Some(_) => Err(no_such_tag(tag)),
            None => Err(never_written()),
        },
        Err(error) => Err(place.unreadable(None, &error)),
    }
}

fn no_such_tag(tag: &str) -> ApiError {
    ApiError::new(
        ErrorName::TableTagNotFound,
        format!("The table has no tag '{tag}', or not on this branch."),
    )
}
