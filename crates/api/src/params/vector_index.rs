use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::{Fields, choose};

/// The kinds of vector index: inverted file, then how vectors are kept in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VectorIndexType {
    /// Whole vectors.
    IvfFlat,
    /// Product quantisation.
    IvfPq,
    /// Scalar quantisation.
    IvfSq,
    /// RaBitQ quantisation.
    IvfRq,
    /// A graph over whole vectors.
    IvfHnswFlat,
    /// A graph over product-quantised vectors.
    IvfHnswPq,
    /// A graph over scalar-quantised vectors.
    IvfHnswSq,
}

impl VectorIndexType {
    const CHOICES: [(&str, Self); 7] = [
        ("IVF_FLAT", Self::IvfFlat),
        ("IVF_PQ", Self::IvfPq),
        ("IVF_SQ", Self::IvfSq),
        ("IVF_RQ", Self::IvfRq),
        ("IVF_HNSW_FLAT", Self::IvfHnswFlat),
        ("IVF_HNSW_PQ", Self::IvfHnswPq),
        ("IVF_HNSW_SQ", Self::IvfHnswSq),
    ];

    /// The type's name, as it is stored and shown.
    pub fn as_str(self) -> &'static str {
        Self::CHOICES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(word, _)| word)
    }

    /// Whether vectors are product-quantised.
    pub fn has_sub_vectors(self) -> bool {
        matches!(self, Self::IvfPq | Self::IvfHnswPq)
    }

    /// Whether partitions hold a graph.
    pub fn has_graph(self) -> bool {
        matches!(self, Self::IvfHnswFlat | Self::IvfHnswPq | Self::IvfHnswSq)
    }

    fn default_num_bits(self) -> Option<i64> {
        match self {
            Self::IvfFlat | Self::IvfHnswFlat => None,
            Self::IvfRq => Some(5),
            _ => Some(8),
        }
    }
}

/// How the distance of two vectors is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MetricType {
    /// Euclidean distance.
    L2,
    /// Angle.
    Cosine,
    /// Inner product.
    Dot,
    /// Differing bits.
    Hamming,
}

impl MetricType {
    const CHOICES: [(&str, Self); 5] = [
        ("l2", Self::L2),
        ("cosine", Self::Cosine),
        ("dot", Self::Dot),
        ("hamming", Self::Hamming),
        ("euclidean", Self::L2),
    ];
}

/// Parameters of `lance_vector_index` (API facts, section 7.2). Options of a part that the index
/// type does not have are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorIndexParams {
    /// The column to index.
    pub column: String,
    /// The kind of index.
    pub index_type: VectorIndexType,
    /// The index's name; empty for `{column}_idx`.
    pub name: String,
    /// The distance.
    pub metric_type: MetricType,
    /// Whether an index of this name is replaced; if not, its being there is a failure.
    pub replace: bool,
    /// Partitions; 0 to choose by the number of rows.
    pub num_partitions: i64,
    /// Rows that a partition should have, where their number is chosen; 0 for the type's own.
    pub target_partition_size: i64,
    /// Product quantisation: parts of a vector; must divide its dimension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_sub_vectors: Option<i64>,
    /// Quantisation: bits per value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_bits: Option<i64>,
    /// Vectors per centroid that training looks at.
    pub sample_rate: i64,
    /// Rounds of training at the most.
    pub max_iterations: i64,
    /// Graph: edges per vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub m: Option<i64>,
    /// Graph: candidates looked at while building.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ef_construction: Option<i64>,
    /// Graph: levels at the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_level: Option<i64>,
}

impl VectorIndexParams {
    /// Parses a request body.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let index_type = choose(
            "index_type",
            fields.string("index_type")?.unwrap_or("IVF_PQ"),
            &VectorIndexType::CHOICES,
            str::eq_ignore_ascii_case,
        )?;
        let metric_type = choose(
            "metric_type",
            fields
                .string_of(&["metric_type", "distance_type", "metric"])?
                .unwrap_or("l2"),
            &MetricType::CHOICES,
            str::eq_ignore_ascii_case,
        )?;
        let positive = |name| fields.integer_from(name, 1);
        let num_sub_vectors = positive("num_sub_vectors")?.or(Some(16));
        let num_bits = positive("num_bits")?;
        let m = positive("m")?.or(Some(20));
        let ef_construction = positive("ef_construction")?.or(Some(150));
        let max_level = positive("max_level")?.or(Some(7));
        let graph = index_type.has_graph();
        Ok(Self {
            column: fields.required_string("column")?.to_owned(),
            index_type,
            name: fields
                .string_of(&["name", "index_name"])?
                .unwrap_or_default()
                .to_owned(),
            metric_type,
            replace: fields.boolean("replace")?.unwrap_or(false),
            num_partitions: fields.integer_from("num_partitions", 0)?.unwrap_or(0),
            target_partition_size: fields
                .integer_from("target_partition_size", 0)?
                .unwrap_or(0),
            num_sub_vectors: num_sub_vectors.filter(|_| index_type.has_sub_vectors()),
            num_bits: index_type
                .default_num_bits()
                .map(|bits| num_bits.unwrap_or(bits)),
            sample_rate: positive("sample_rate")?.unwrap_or(256),
            max_iterations: positive("max_iterations")?.unwrap_or(50),
            m: m.filter(|_| graph),
            ef_construction: ef_construction.filter(|_| graph),
            max_level: max_level.filter(|_| graph),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored() {
        let cases = [
            (
                r#"{"column":"v"}"#,
                r#"{"column":"v","index_type":"IVF_PQ","name":"","metric_type":"l2","replace":false,"num_partitions":0,"target_partition_size":0,"num_sub_vectors":16,"num_bits":8,"sample_rate":256,"max_iterations":50}"#,
            ),
            (
                r#"{"column":"v","index_type":"ivf_flat","distance_type":"Euclidean","num_sub_vectors":4}"#,
                r#"{"column":"v","index_type":"IVF_FLAT","name":"","metric_type":"l2","replace":false,"num_partitions":0,"target_partition_size":0,"sample_rate":256,"max_iterations":50}"#,
            ),
            (
                r#"{"column":"v","index_type":"IVF_RQ","metric":"dot"}"#,
                r#"{"column":"v","index_type":"IVF_RQ","name":"","metric_type":"dot","replace":false,"num_partitions":0,"target_partition_size":0,"num_bits":5,"sample_rate":256,"max_iterations":50}"#,
            ),
            (
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","m":8,"name":"n","replace":true,"num_partitions":3}"#,
                r#"{"column":"v","index_type":"IVF_HNSW_SQ","name":"n","metric_type":"l2","replace":true,"num_partitions":3,"target_partition_size":0,"num_bits":8,"sample_rate":256,"max_iterations":50,"m":8,"ef_construction":150,"max_level":7}"#,
            ),
        ];
        for (body, stored) in cases {
            let params = VectorIndexParams::parse(body.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), stored, "{body}");
        }
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"column":""}"#,
            r#"{"column":"v","index_type":"BTREE"}"#,
            r#"{"column":"v","metric_type":"manhattan"}"#,
            r#"{"column":"v","num_partitions":-1}"#,
            r#"{"column":"v","target_partition_size":-1}"#,
            r#"{"column":"v","num_sub_vectors":0}"#,
            r#"{"column":"v","num_bits":0}"#,
            r#"{"column":"v","sample_rate":0}"#,
            r#"{"column":"v","max_iterations":0}"#,
            r#"{"column":"v","ef_construction":0}"#,
            r#"{"column":"v","max_level":0}"#,
            r#"{"column":"v","num_partitions":"4"}"#,
        ] {
            let error = VectorIndexParams::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.name, crate::ErrorName::InvalidInput, "{body}");
        }
    }
}
