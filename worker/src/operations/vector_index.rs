//! Creation of an index on vectors.
//!
//! Lance builds an index without training it where there is too little to train on, so that the
//! index covers nothing until it is optimised later. For an empty table that is the sensible thing;
//! where there are some vectors, only too few, the task fails and says how many it takes.

use lance::Dataset;
use lance::index::vector::VectorIndexParams as LanceParams;
use lance_index::vector::bq::RQBuildParams;
use lance_index::vector::hnsw::builder::HnswBuildParams;
use lance_index::vector::ivf::IvfBuildParams;
use lance_index::vector::pq::PQBuildParams;
use lance_index::vector::sq::builder::SQBuildParams;
use lance_index::{IndexParams, IndexType};
use lance_linalg::distance::DistanceType;
use lance_maintenance_api::TaskError;
use lance_maintenance_api::params::{MetricType, VectorIndexParams, VectorIndexType};
use serde_json::Value;

use super::index::{IndexSpec, create};
use super::redact::Redactor;
use super::table::{Column, Table};
use super::vector_checks::{VectorShape, check, check_enough, invalid};
use super::{Operation, OperationContext, memory, to_result, unreadable};

impl Operation for VectorIndexParams {
    async fn run(&self, table: &mut Table, ctx: &OperationContext) -> Result<Value, TaskError> {
        let redactor = Redactor::new(ctx);
        let spec = VectorSpec {
            params: self,
            redactor: &redactor,
        };
        to_result(&create(&spec, table, ctx).await?)
    }
}

struct VectorSpec<'a> {
    params: &'a VectorIndexParams,
    redactor: &'a Redactor,
}

impl IndexSpec for VectorSpec<'_> {
    fn column(&self) -> &str {
        &self.params.column
    }

    fn name(&self) -> &str {
        &self.params.name
    }

    fn replace(&self) -> bool {
        self.params.replace
    }

    fn type_name(&self) -> &'static str {
        self.params.index_type.as_str()
    }

    fn memory(&self, column: &Column, rows: u64) -> u64 {
        let given = |number: i64| u64::try_from(number).unwrap_or(0);
        // Where none is given, Lance makes partitions of so many rows.
        let partitions = given(self.params.num_partitions).max(rows / 4096).max(1);
        let sampled = partitions.saturating_mul(given(self.params.sample_rate).max(256));
        memory::vector_index(&column.field, rows, sampled)
    }

    async fn prepare(
        &self,
        dataset: &Dataset,
        column: &Column,
    ) -> Result<(IndexType, Box<dyn IndexParams>), TaskError> {
        let shape = VectorShape::of(column)?;
        check(self.params, &shape)?;
        let rows = self.count(dataset, column, None).await?;
        if rows > 0 && !shape.several {
            let filter = format!("{} IS NOT NULL", column.path);
            let vectors = self.count(dataset, column, Some(filter)).await?;
            check_enough(self.params, column, vectors)?;
        }
        let params = lance_params(self.params, rows)?;
        Ok((params.index_type(), Box::new(params)))
    }
}

impl VectorSpec<'_> {
    async fn count(
        &self,
        dataset: &Dataset,
        column: &Column,
        filter: Option<String>,
    ) -> Result<usize, TaskError> {
        match dataset.count_rows(filter).await {
            Ok(rows) => Ok(rows),
            Err(error) => {
                let (fragments, column) = (dataset.fragments(), Some(column.path.as_str()));
                Err(unreadable::explain(dataset, fragments, column, &error, self.redactor).await)
            }
        }
    }
}

/// Training that has not settled by then goes round in circles (seen with more partitions than
/// different vectors), for as many rounds as it is given.
const MOST_TRAINING_ROUNDS: usize = 1000;

fn lance_params(params: &VectorIndexParams, rows: usize) -> Result<LanceParams, TaskError> {
    let distance = match params.metric_type {
        MetricType::L2 => DistanceType::L2,
        MetricType::Cosine => DistanceType::Cosine,
        MetricType::Dot => DistanceType::Dot,
        MetricType::Hamming => DistanceType::Hamming,
    };
    let positive = |value: i64| usize::try_from(value).ok().filter(|value| *value > 0);
    let number = |name: &str, value: Option<i64>| {
        value.and_then(positive).ok_or_else(|| {
            invalid(format!(
                "'{name}' is missing or out of range for {}.",
                params.index_type.as_str()
            ))
        })
    };
    // More than all rows can't be looked at.
    let sample_rate = number("sample_rate", Some(params.sample_rate))?.min(rows.max(256));
    let iterations =
        number("max_iterations", Some(params.max_iterations))?.min(MOST_TRAINING_ROUNDS);
    let ivf = IvfBuildParams {
        num_partitions: positive(params.num_partitions),
        target_partition_size: positive(params.target_partition_size),
        max_iters: iterations,
        sample_rate,
        ..Default::default()
    };
    let bits = || number("num_bits", params.num_bits);
    let pq = || -> Result<PQBuildParams, TaskError> {
        Ok(PQBuildParams {
            num_sub_vectors: number("num_sub_vectors", params.num_sub_vectors)?,
            num_bits: bits()?,
            max_iters: iterations,
            sample_rate,
            ..Default::default()
        })
    };
    let sq = || -> Result<SQBuildParams, TaskError> {
        Ok(SQBuildParams {
            num_bits: bits()?.try_into().unwrap_or(u16::MAX),
            sample_rate,
        })
    };
    let hnsw = || -> Result<HnswBuildParams, TaskError> {
        Ok(HnswBuildParams {
            max_level: number("max_level", params.max_level)?
                .try_into()
                .unwrap_or(u16::MAX),
            m: number("m", params.m)?,
            ef_construction: number("ef_construction", params.ef_construction)?,
            ..Default::default()
        })
    };
    Ok(match params.index_type {
        VectorIndexType::IvfFlat => LanceParams::with_ivf_flat_params(distance, ivf),
        VectorIndexType::IvfPq => LanceParams::with_ivf_pq_params(distance, ivf, pq()?),
        VectorIndexType::IvfSq => LanceParams::with_ivf_sq_params(distance, ivf, sq()?),
        VectorIndexType::IvfRq => {
            let rq = RQBuildParams::new(bits()?.try_into().unwrap_or(u8::MAX));
            LanceParams::with_ivf_rq_params(distance, ivf, rq)
        }
        VectorIndexType::IvfHnswFlat => LanceParams::ivf_hnsw(distance, ivf, hnsw()?),
        VectorIndexType::IvfHnswPq => {
            LanceParams::with_ivf_hnsw_pq_params(distance, ivf, hnsw()?, pq()?)
        }
        VectorIndexType::IvfHnswSq => {
            LanceParams::with_ivf_hnsw_sq_params(distance, ivf, hnsw()?, sq()?)
        }
    })
}
