//! What must be true of a column, its vectors and the parameters for an index to be built: checked
//! beforehand, since Lance would only notice after minutes of training, or say so in words of its own.

use arrow_schema::DataType;
use lance_maintenance_api::params::{MetricType, VectorIndexParams, VectorIndexType};
use lance_maintenance_api::{ErrorName, TaskError};

use super::table::Column;

/// What kind of vectors a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorShape {
    /// Length of a vector.
    pub dimension: usize,
    /// Whether an element is a byte of eight bits, and not a float.
    pub binary: bool,
    /// Whether a row holds a list of vectors.
    pub several: bool,
}

impl VectorShape {
    /// What this column holds, if it holds vectors.
    pub fn of(column: &Column) -> Result<Self, TaskError> {
        let data_type = column.field.data_type();
        let (vector, several) = match &data_type {
            DataType::List(item) => (item.data_type().clone(), true),
            other => (other.clone(), false),
        };
        let found = match &vector {
            DataType::FixedSizeList(item, dimension) => match item.data_type() {
                DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                    Some((*dimension, false))
                }
                DataType::UInt8 => Some((*dimension, true)),
                _ => None,
            },
            _ => None,
        };
        match found.map(|(dimension, binary)| (usize::try_from(dimension), binary)) {
            Some((Ok(dimension @ 1..), binary)) => Ok(Self {
                dimension,
                binary,
                several,
            }),
            _ => Err(invalid(format!(
                "A vector index needs a column of fixed-size lists of floats or of uint8 (or of \
                 lists of those); column '{}' is of type {data_type}.",
                column.path
            ))),
        }
    }
}

pub(super) fn invalid(detail: String) -> TaskError {
    TaskError::new(ErrorName::InvalidInput, detail)
}

/// Checks that type, metric and numbers fit together and fit the vectors.
pub fn check(params: &VectorIndexParams, shape: &VectorShape) -> Result<(), TaskError> {
    let kind = params.index_type;
    let name = kind.as_str();
    let flat = matches!(
        kind,
        VectorIndexType::IvfFlat | VectorIndexType::IvfHnswFlat
    );
    let hamming = params.metric_type == MetricType::Hamming;
    if hamming && !shape.binary {
        return Err(invalid(
            "'metric_type' hamming counts the differing bits of uint8 vectors; for floats use l2, \
             cosine or dot."
                .to_owned(),
        ));
    }
    if shape.binary && !hamming {
        return Err(invalid(
            "uint8 vectors are compared bit by bit: set 'metric_type' to hamming.".to_owned(),
        ));
    }
    if shape.binary && !flat {
        return Err(invalid(format!(
            "{name} compresses floats; for uint8 vectors use IVF_FLAT or IVF_HNSW_FLAT."
        )));
    }
    if shape.several && params.metric_type != MetricType::Cosine {
        return Err(invalid(
            "A column of lists of vectors can only be indexed with 'metric_type' cosine."
                .to_owned(),
        ));
    }
    let bits = params.num_bits.unwrap_or_default();
    match kind {
        VectorIndexType::IvfPq | VectorIndexType::IvfHnswPq => check_parts(params, shape, bits)?,
        VectorIndexType::IvfSq | VectorIndexType::IvfHnswSq if bits != 8 => {
            return Err(invalid(format!(
                "'num_bits' of {name} can only be 8, not {bits}."
            )));
        }
        VectorIndexType::IvfRq if !(1..=9).contains(&bits) => {
            return Err(invalid(format!(
                "'num_bits' of IVF_RQ must be from 1 to 9, not {bits}."
            )));
        }
        VectorIndexType::IvfRq if !shape.dimension.is_multiple_of(8) => {
            return Err(invalid(format!(
                "IVF_RQ needs vectors whose dimension is a multiple of 8; these have {}.",
                shape.dimension
            )));
        }
        _ => {}
    }
    if let Some(m) = params.m.filter(|m| *m < 4) {
        return Err(invalid(format!("'m' must be at least 4, not {m}.")));
    }
    if let Some(level) = params
        .max_level
        .filter(|level| u16::try_from(*level).is_err())
    {
        return Err(invalid(format!(
            "'max_level' must be at most {}, not {level}.",
            u16::MAX
        )));
    }
    Ok(())
}

/// Product quantisation cuts a vector into parts of the same length.
fn check_parts(
    params: &VectorIndexParams,
    shape: &VectorShape,
    bits: i64,
) -> Result<(), TaskError> {
    if bits != 4 && bits != 8 {
        return Err(invalid(format!(
            "'num_bits' of {} must be 4 or 8, not {bits}.",
            params.index_type.as_str()
        )));
    }
    let parts = params.num_sub_vectors.unwrap_or_default();
    // Two codes of four bits share a byte.
    let works = |parts: usize| {
        parts > 0 && shape.dimension.is_multiple_of(parts) && (bits == 8 || parts.is_multiple_of(2))
    };
    if usize::try_from(parts).is_ok_and(works) {
        return Ok(());
    }
    let choices: Vec<String> = (1..=shape.dimension)
        .filter(|parts| works(*parts))
        .map(|parts| parts.to_string())
        .collect();
    let advice = match choices.is_empty() {
        true => "no number does with 'num_bits' 4; use 8".to_owned(),
        false => format!("these do: {}", choices.join(", ")),
    };
    Err(invalid(format!(
        "'num_sub_vectors' is {parts}, which does not divide the vectors' dimension {} {}; {advice}.",
        shape.dimension,
        if bits == 4 {
            "into an even number of parts"
        } else {
            "evenly"
        },
    )))
}

/// There must be something to train on, and for product quantisation a vector for every code.
pub fn check_enough(
    params: &VectorIndexParams,
    column: &Column,
    vectors: usize,
) -> Result<(), TaskError> {
    let bits = params.num_bits.and_then(|bits| u32::try_from(bits).ok());
    let needed = match bits {
        Some(bits) if params.index_type.has_sub_vectors() => 1_usize.checked_shl(bits),
        _ => Some(1),
    };
    match needed {
        Some(needed) if vectors >= needed => Ok(()),
        _ if vectors == 0 => Err(invalid(format!(
            "All vectors of column '{}' are null: there is nothing to index.",
            column.path
        ))),
        needed => {
            let needed = needed.unwrap_or(usize::MAX);
            Err(invalid(format!(
                "Cannot train {needed} centroids on {vectors} vectors: {} with 'num_bits' {} needs \
                 at least {needed} vectors in column '{}'. Use IVF_FLAT, fewer bits, or more rows.",
                params.index_type.as_str(),
                bits.unwrap_or_default(),
                column.path,
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &str) -> VectorIndexParams {
        VectorIndexParams::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn what_fits_together() {
        let floats = |dimension| VectorShape {
            dimension,
            binary: false,
            several: false,
        };
        let bytes = VectorShape {
            dimension: 8,
            binary: true,
            several: false,
        };
        let lists = VectorShape {
            dimension: 16,
            binary: false,
            several: true,
        };
        let cases = [
            (r#"{"column":"v"}"#, floats(64), None),
            (
                r#"{"column":"v"}"#,
                floats(12),
                Some("these do: 1, 2, 3, 4, 6, 12"),
            ),
            (
                r#"{"column":"v","num_bits":4,"num_sub_vectors":3}"#,
                floats(12),
                Some("these do: 2, 4, 6, 12"),
            ),
            (
                r#"{"column":"v","num_bits":4,"num_sub_vectors":3}"#,
                floats(9),
                Some("use 8"),
            ),
            (r#"{"column":"v","num_bits":5}"#, floats(64), Some("4 or 8")),
            (r#"{"column":"v","index_type":"IVF_SQ"}"#, floats(7), None),
            (
                r#"{"column":"v","index_type":"IVF_SQ","num_bits":4}"#,
                floats(7),
                Some("only be 8"),
            ),
            (r#"{"column":"v","index_type":"IVF_RQ"}"#, floats(16), None),
            (
                r#"{"column":"v","index_type":"IVF_RQ"}"#,
                floats(12),
                Some("multiple of 8"),
            ),
            (
                r#"{"column":"v","index_type":"IVF_RQ","num_bits":10}"#,
                floats(16),
                Some("1 to 9"),
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","m":3}"#,
                floats(16),
                Some("at least 4"),
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","max_level":70000}"#,
                floats(16),
                Some("65535"),
            ),
            (
                r#"{"column":"v","metric_type":"hamming"}"#,
                floats(16),
                Some("uint8 vectors"),
            ),
            (
                r#"{"column":"v","index_type":"IVF_FLAT"}"#,
                bytes.clone(),
                Some("hamming"),
            ),
            (
                r#"{"column":"v","index_type":"IVF_FLAT","metric_type":"hamming"}"#,
                bytes.clone(),
                None,
            ),
            (
                r#"{"column":"v","metric_type":"hamming"}"#,
                bytes,
                Some("IVF_FLAT"),
            ),
            (r#"{"column":"v"}"#, lists.clone(), Some("cosine")),
            (r#"{"column":"v","metric_type":"cosine"}"#, lists, None),
        ];
        for (json, shape, problem) in cases {
            let outcome = check(&params(json), &shape);
            match (outcome, problem) {
                (Ok(()), None) => {}
                (Err(error), Some(words)) => {
                    assert_eq!(error.error, ErrorName::InvalidInput);
                    assert!(error.detail.contains(words), "{json}: {}", error.detail);
                }
                (outcome, problem) => panic!("{json}: {outcome:?}, not {problem:?}"),
            }
        }
    }
}
