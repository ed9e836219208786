//! Creation of an index on values or texts.

use arrow_schema::DataType;
use lance::Dataset;
use lance_core::datatypes::Field;
use lance_index::scalar::inverted::tokenizer::InvertedIndexParams;
use lance_index::scalar::{BuiltinIndexType, ScalarIndexParams as LanceParams};
use lance_index::{IndexParams, IndexType};
use lance_maintenance_api::params::{ScalarIndexParams, ScalarIndexType};
use lance_maintenance_api::{ErrorName, TaskError};
use serde_json::{Value, json};

use super::index::{IndexSpec, create};
use super::redact::Redactor;
use super::table::{Column, Table};
use super::{Operation, OperationContext, memory, to_result};

impl Operation for ScalarIndexParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        to_result(&create(self, table, ctx).await?)
    }
}

impl IndexSpec for ScalarIndexParams {
    fn column(&self) -> &str {
        &self.column
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn replace(&self) -> bool {
        self.replace
    }

    fn type_name(&self) -> &'static str {
        self.index_type.as_str()
    }

    fn memory(&self, _column: &Column, rows: u64) -> u64 {
        memory::scalar_index(rows)
    }

    fn indexes_parts(&self) -> bool {
        self.index_type == ScalarIndexType::Inverted
    }

    async fn prepare(
        &self,
        _dataset: &Dataset,
        column: &Column,
    ) -> Result<(IndexType, Box<dyn IndexParams>), TaskError> {
        check_type(self.index_type, &column.field)?;
        let plain = |kind: BuiltinIndexType| Box::new(LanceParams::for_builtin(kind));
        Ok(match self.index_type {
            ScalarIndexType::Btree => (
                IndexType::BTree,
                Box::new(
                    LanceParams::for_builtin(BuiltinIndexType::BTree)
                        .with_params(&json!({ "zone_size": self.zone_size })),
                ),
            ),
            ScalarIndexType::Zonemap => {
                let params = match self.rows_per_zone {
                    Some(rows) => json!({ "rows_per_zone": rows }),
                    None => json!({}),
                };
                let kind = LanceParams::for_builtin(BuiltinIndexType::ZoneMap);
                (IndexType::ZoneMap, Box::new(kind.with_params(&params)))
            }
            ScalarIndexType::Inverted => (IndexType::Inverted, Box::new(text_params(self)?)),
            ScalarIndexType::Bitmap => (IndexType::Bitmap, plain(BuiltinIndexType::Bitmap)),
            ScalarIndexType::LabelList => {
                (IndexType::LabelList, plain(BuiltinIndexType::LabelList))
            }
            ScalarIndexType::Ngram => (IndexType::NGram, plain(BuiltinIndexType::NGram)),
            ScalarIndexType::Bloomfilter => {
                (IndexType::BloomFilter, plain(BuiltinIndexType::BloomFilter))
            }
        })
    }
}

fn text_params(task: &ScalarIndexParams) -> Result<InvertedIndexParams, TaskError> {
    let mut params = InvertedIndexParams::default();
    if let Some(tokenizer) = &task.base_tokenizer {
        params = params.base_tokenizer(tokenizer.clone());
    }
    if let Some(language) = &task.language {
        params = params.language(language).map_err(|error| {
            let text = Redactor::default().clean(&error.to_string());
            TaskError::new(
                ErrorName::InvalidInput,
                format!("'language' can't be '{language}': {text}"),
            )
        })?;
    }
    // 0 is for no limit: with a length of 0 every text would be without tokens.
    if let Some(length) = task.max_token_length {
        params = params.max_token_length(usize::try_from(length).ok().filter(|n| *n > 0));
    }
    if let Some(value) = task.with_position {
        params = params.with_position(value);
    }
    if let Some(value) = task.lower_case {
        params = params.lower_case(value);
    }
    if let Some(value) = task.stem {
        params = params.stem(value);
    }
    if let Some(value) = task.remove_stop_words {
        params = params.remove_stop_words(value);
    }
    if let Some(value) = task.ascii_folding {
        params = params.ascii_folding(value);
    }
    Ok(params)
}

/// Which columns each type of index is for (API facts, section 7.1).
fn check_type(index_type: ScalarIndexType, field: &Field) -> Result<(), TaskError> {
    let data_type = field.data_type();
    let (fits, needs) = match index_type {
        ScalarIndexType::Btree | ScalarIndexType::Bitmap | ScalarIndexType::Zonemap => (
            is_value(&data_type) && !field.is_blob() && !is_json(field),
            "a column of numbers, booleans, strings, binary values, dates or times",
        ),
        ScalarIndexType::Bloomfilter => (
            has_bloom_filter(&data_type) && !field.is_blob() && !is_json(field),
            "a column of integers, floats, strings, binary values, dates, times or timestamps",
        ),
        ScalarIndexType::LabelList => (
            matches!(
                &data_type,
                DataType::List(item) | DataType::LargeList(item) if !item.data_type().is_nested()
            ),
            "a column of lists of plain values",
        ),
        ScalarIndexType::Ngram => (is_string(&data_type), "a column of strings"),
        ScalarIndexType::Inverted => (
            is_string(&data_type) || is_json(field) || is_list_of_strings(&data_type),
            "a column of strings, lists of strings or JSON",
        ),
    };
    if fits {
        return Ok(());
    }
    Err(TaskError::new(
        ErrorName::InvalidInput,
        format!(
            "A {} index needs {needs}; column '{}' is of type {data_type}.",
            index_type.as_str(),
            field.name,
        ),
    ))
}

fn is_value(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_value(value),
        DataType::Null => false,
        other => !other.is_nested(),
    }
}

fn has_bloom_filter(data_type: &DataType) -> bool {
    use DataType::*;
    data_type.is_integer()
        || is_string(data_type)
        || matches!(
            data_type,
            Float32
                | Float64
                | Binary
                | LargeBinary
                | Date32
                | Date64
                | Time32(_)
                | Time64(_)
                | Timestamp(_, _)
        )
}

fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8)
}

fn is_list_of_strings(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(item) | DataType::LargeList(item) if is_string(item.data_type())
    )
}

/// JSON is kept as binary, and told from it by the name of its extension type.
fn is_json(field: &Field) -> bool {
    field
        .metadata
        .get("ARROW:extension:name")
        .is_some_and(|name| name == "lance.json" || name == "arrow.json")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field as ArrowField, Fields, TimeUnit};

    use super::*;

    #[test]
    fn which_columns_each_type_is_for() {
        use DataType::*;
        use ScalarIndexType as T;
        let list = |item| List(Arc::new(ArrowField::new("item", item, true)));
        let point = Struct(Fields::from(vec![ArrowField::new("x", Int32, true)]));
        let cases = [
            (T::Btree, Int64, true),
            (T::Btree, Utf8, true),
            (T::Btree, Decimal128(10, 2), true),
            (T::Btree, Timestamp(TimeUnit::Microsecond, None), true),
            (T::Btree, list(Int64), false),
            (T::Btree, point.clone(), false),
            (T::Bitmap, Boolean, true),
            (T::Bitmap, list(Utf8), false),
            (T::Zonemap, Float64, true),
            (T::Zonemap, point, false),
            (T::Bloomfilter, Utf8, true),
            (T::Bloomfilter, Boolean, false),
            (T::LabelList, list(Utf8), true),
            (T::LabelList, Utf8, false),
            (T::LabelList, list(list(Utf8)), false),
            (T::Ngram, LargeUtf8, true),
            (T::Ngram, Int64, false),
            (T::Inverted, Utf8, true),
            (T::Inverted, list(LargeUtf8), true),
            (T::Inverted, Int32, false),
        ];
        for (index_type, data_type, fits) in cases {
            let arrow = ArrowField::new("c", data_type.clone(), true);
            let field = Field::try_from(&arrow).unwrap();
            let outcome = check_type(index_type, &field);
            assert_eq!(outcome.is_ok(), fits, "{index_type:?} on {data_type}");
            if let Err(error) = outcome {
                assert_eq!(error.error, ErrorName::InvalidInput);
                assert!(error.detail.contains("'c'"), "{}", error.detail);
            }
        }
    }
}
