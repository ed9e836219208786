//! A Lance table the way a busy writer leaves it: many small appends, some deletes and updates.
//! The same calls write the same rows.

use std::ops::Range;
use std::sync::Arc;

use anyhow::Context;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{Float32Type, UInt8Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray,
};
use arrow_schema::{Field, Schema};
use lance::Dataset;
use lance::dataset::{UpdateBuilder, WriteMode, WriteParams};

use crate::wine::{BYTES, DIMENSION, FEATURES, wine, wines};

/// How a table comes to be: appends of so many rows, with a delete and an update now and then.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rows that are appended altogether.
    pub rows: i64,
    /// Rows in each append.
    pub rows_per_append: i64,
    /// A delete, then an update, come after so many appends.
    pub appends_per_change: usize,
}

impl Plan {
    /// Every wine, by the dozen or three.
    pub fn every_wine() -> Self {
        Self {
            rows: wines().len() as i64,
            rows_per_append: 36,
            appends_per_change: 12,
        }
    }

    /// As few rows and versions as show the same.
    pub fn small() -> Self {
        Self {
            rows: 400,
            rows_per_append: 50,
            appends_per_change: 4,
        }
    }
}

/// Writes a table. `written` is told after each commit how many rows have been appended so far.
pub async fn write(uri: &str, plan: &Plan, mut written: impl FnMut(i64)) -> anyhow::Result<()> {
    let mut first = 0;
    for number in 1.. {
        if first >= plan.rows {
            break;
        }
        let end = plan.rows.min(first + plan.rows_per_append);
        append(uri, first..end).await?;
        written(end);
        if number % plan.appends_per_change == 0 {
            // Wines that are sold out, and wines that were tasted again.
            delete(uri, &format!("id < {end} AND id % 7 = {}", number % 5)).await?;
            update(uri, &format!("id < {end} AND id % 31 = 3")).await?;
            written(end);
        }
        first = end;
    }
    Ok(())
}

/// Appends the rows with these ids, in one fragment; makes the table if there is none.
pub async fn append(uri: &str, ids: Range<i64>) -> anyhow::Result<()> {
    append_batch(uri, rows(ids)?).await
}

/// Appends a batch, in one fragment; makes the table if there is none.
pub async fn append_batch(uri: &str, batch: RecordBatch) -> anyhow::Result<()> {
    let params = WriteParams {
        mode: WriteMode::Append,
        ..Default::default()
    };
    let schema = batch.schema();
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    Dataset::write(reader, uri, Some(params))
        .await
        .with_context(|| format!("can't append to {uri}"))?;
    Ok(())
}

/// Deletes the rows that fulfil a condition.
pub async fn delete(uri: &str, condition: &str) -> anyhow::Result<()> {
    let mut dataset = Dataset::open(uri).await?;
    dataset.delete(condition).await?;
    Ok(())
}

/// Gives the wines that fulfil a condition a better mark.
pub async fn update(uri: &str, condition: &str) -> anyhow::Result<()> {
    let dataset = Arc::new(Dataset::open(uri).await?);
    UpdateBuilder::new(dataset)
        .update_where(condition)?
        .set("quality", "quality + 1")?
        .build()?
        .execute()
        .await?;
    Ok(())
}

/// The rows with these ids: `id`, `quality`, the measurements, `review` (a text), `tags` (a list of
/// words), `vector` and `bits`.
pub fn rows(ids: Range<i64>) -> anyhow::Result<RecordBatch> {
    let ids: Vec<i64> = ids.collect();
    let wines = || ids.iter().map(|id| wine(*id));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for wine in wines() {
        tags.append_value(wine.tags.iter().map(Some));
    }
    let vector = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        wines().map(|wine| Some(wine.vector.map(Some))),
        DIMENSION as i32,
    );
    let bits = FixedSizeListArray::from_iter_primitive::<UInt8Type, _, _>(
        wines().map(|wine| Some(wine.bits.map(Some))),
        BYTES as i32,
    );
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(ids.clone()))),
        (
            "quality",
            Arc::new(Int32Array::from_iter_values(
                wines().map(|wine| wine.quality),
            )),
        ),
    ];
    for (index, name) in FEATURES.into_iter().enumerate() {
        let values = wines().map(|wine| wine.features[index]);
        columns.push((name, Arc::new(Float64Array::from_iter_values(values))));
    }
    let reviews = StringArray::from_iter_values(wines().map(|wine| &wine.review));
    columns.push(("review", Arc::new(reviews)));
    columns.push(("tags", Arc::new(tags.finish())));
    columns.push(("vector", Arc::new(vector)));
    columns.push(("bits", Arc::new(bits)));

    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
