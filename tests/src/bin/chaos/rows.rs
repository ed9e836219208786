//! The rows of the tables: `id`, `value`, what follows from the id, and `sum`, which backfills compute of
//! both, so that a whole table can be compared with a map from ids to values.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context, ensure};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use futures::TryStreamExt;
use lance::Dataset;

/// Numbers in a vector.
const DIMENSION: usize = 8;
const WORDS: [&str; 8] = [
    "lance", "table", "index", "worker", "commit", "fragment", "version", "vector",
];

/// The computed column.
pub const SUM: &str = "sum";
/// The key in its field's metadata under which its expression is.
const EXPRESSION_KEY: &str = "lance-maintenance.computed-expression";
const EXPRESSION: &str = "value * 3 + id";

/// A table as it should be: the value of each id.
pub type Model = BTreeMap<i64, i64>;

/// The value that a row begins with.
pub fn first_value(id: i64) -> i64 {
    id.wrapping_mul(7) % 101
}

fn text(id: i64) -> String {
    let word = |number: i64| WORDS[(number % WORDS.len() as i64) as usize];
    format!("{} {} {id}", word(id), word(id / 8))
}

fn vector(id: i64) -> [f32; DIMENSION] {
    std::array::from_fn(|number| ((id * 31 + number as i64 * 17) % 97) as f32 / 97.0)
}

/// What it is.
pub fn sum(id: i64, value: i64) -> i64 {
    value * 3 + id
}

/// Rows with these ids and values, not computed yet.
pub fn batch(rows: &Model) -> anyhow::Result<RecordBatch> {
    let ids = || rows.keys().copied();
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        ids().map(|id| Some(vector(id).map(Some))),
        DIMENSION as i32,
    );
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(Int64Array::from_iter_values(ids()))),
        (
            "value",
            Arc::new(Int64Array::from_iter_values(rows.values().copied())),
        ),
        (
            "text",
            Arc::new(StringArray::from_iter_values(ids().map(text))),
        ),
        ("vector", Arc::new(vectors)),
        (SUM, Arc::new(Int64Array::new_null(rows.len()))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| {
            let field = Field::new(*name, array.data_type().clone(), true);
            match *name {
                SUM => field.with_metadata(HashMap::from([(
                    EXPRESSION_KEY.to_owned(),
                    EXPRESSION.to_owned(),
                )])),
                _ => field,
            }
        })
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// Compares the newest version of a table, in which all rows are computed, with what it should be; what
/// is wrong, if anything.
pub async fn differences(uri: &str, model: &Model) -> anyhow::Result<Vec<String>> {
    let dataset = Dataset::open(uri).await?;
    let mut batches = dataset.scan().try_into_stream().await?;
    let mut left = model.clone();
    let (mut twice, mut wrong) = (Vec::new(), Vec::new());
    while let Some(batch) = batches.try_next().await? {
        for row in read(&batch)? {
            match left.remove(&row.id) {
                None => twice.push(row.id),
                Some(value) if row != Row::of(row.id, value) => wrong.push(row.id),
                Some(_) => {}
            }
        }
    }
    let missing: Vec<i64> = left.into_keys().collect();
    let said = [
        ("ids that should not be there, or are there twice", twice),
        ("ids with wrong values", wrong),
        ("ids that are missing", missing),
    ];
    Ok(said
        .into_iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(what, ids)| format!("{} {what}: {:?}...", ids.len(), &ids[..ids.len().min(5)]))
        .collect())
}

#[derive(Debug, PartialEq)]
struct Row {
    id: i64,
    value: i64,
    text: String,
    vector: Vec<f32>,
    sum: Option<i64>,
}

impl Row {
    fn of(id: i64, value: i64) -> Self {
        Self {
            id,
            value,
            text: text(id),
            vector: vector(id).to_vec(),
            sum: Some(sum(id, value)),
        }
    }
}

fn read(batch: &RecordBatch) -> anyhow::Result<Vec<Row>> {
    let column = |name: &str| {
        let column = batch.column_by_name(name);
        column.with_context(|| format!("there is no column {name}"))
    };
    let (id, value) = (column("id")?, column("value")?);
    let (text, vector) = (column("text")?, column("vector")?);
    let sum = column(SUM)?.as_primitive::<Int64Type>();
    for column in [id, value, text, vector] {
        ensure!(column.null_count() == 0, "there are nulls");
    }
    let (id, value) = (
        id.as_primitive::<Int64Type>(),
        value.as_primitive::<Int64Type>(),
    );
    let (text, vector) = (text.as_string::<i32>(), vector.as_fixed_size_list());
    Ok((0..batch.num_rows())
        .map(|row| Row {
            id: id.value(row),
            value: value.value(row),
            text: text.value(row).to_owned(),
            vector: vector
                .value(row)
                .as_primitive::<Float32Type>()
                .values()
                .to_vec(),
            sum: sum.is_valid(row).then(|| sum.value(row)),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use lance::dataset::UpdateBuilder;

    use super::*;

    #[tokio::test]
    async fn finds_every_difference() {
        let folder = tempfile::tempdir().unwrap();
        let uri = folder.path().join("t").display().to_string();
        let rows: Model = (0..50).map(|id| (id, first_value(id))).collect();
        let batch = batch(&rows).unwrap();
        let schema = batch.schema();
        let reader = arrow_array::RecordBatchIterator::new([Ok(batch)], schema);
        let dataset = Dataset::write(reader, &uri, None).await.unwrap();
        let found = differences(&uri, &rows).await.unwrap();
        assert!(
            found[0].starts_with("50 ids with wrong values"),
            "{found:?}"
        );
        UpdateBuilder::new(Arc::new(dataset))
            .set(SUM, EXPRESSION)
            .unwrap()
            .build()
            .unwrap()
            .execute()
            .await
            .unwrap();
        assert!(differences(&uri, &rows).await.unwrap().is_empty());

        let mut other = rows.clone();
        other.remove(&3);
        other.insert(4, 999);
        other.insert(77, 1);
        let found = differences(&uri, &other).await.unwrap();
        let words = ["should not be", "wrong values", "missing"];
        assert_eq!(found.len(), words.len(), "{found:?}");
        for (found, word) in found.iter().zip(words) {
            assert!(found.starts_with("1 ") && found.contains(word), "{found}");
        }
    }
}
