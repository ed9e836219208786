use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::fields::Fields;

/// Parameters of `lance_backfill_column`, those of the namespace specification's
/// AlterTableBackfillColumns. What is left out (null) is chosen when the task runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackfillColumnParams {
    /// The computed column: a Lance field path, names with dots in backticks.
    pub column: String,
    /// Which rows are computed: a SQL condition. Null: those that are null, and on tables that track row
    /// versions those whose inputs changed since they were computed.
    #[serde(rename = "where")]
    pub filter: Option<String>,
    /// Only fragments that this version has.
    pub read_version: Option<i64>,
    /// Fragments to fill at the most.
    pub num_frags: Option<i64>,
    /// Fragments that are filled at the same time, within what the worker allows.
    pub concurrency: Option<i64>,
    /// Parts of a fragment that are computed at the same time.
    pub intra_applier_concurrency: Option<i64>,
    /// Rows that are computed at a time.
    pub task_size: Option<i64>,
    /// Rows that are kept at a time, for an attempt that goes on after a lost one.
    pub checkpoint_size: Option<i64>,
    /// Rows of such a checkpoint at the least.
    pub min_checkpoint_size: Option<i64>,
    /// Rows of such a checkpoint at the most.
    pub max_checkpoint_size: Option<i64>,
    /// After how many seconds a checkpoint is kept though it has fewer rows.
    pub batch_checkpoint_flush_interval_seconds: Option<f64>,
    /// Fragments of one commit.
    pub commit_granularity: Option<i64>,
}

impl BackfillColumnParams {
    /// Parses a request body. What the service does not do is refused by name.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let positive = |name| fields.integer_from(name, 1);
        let refused = |name, why: &str| match fields.string(name)? {
            Some(text) if !text.is_empty() => {
                Err(ApiError::invalid(format!("'{name}' is not taken: {why}.")))
            }
            _ => Ok(()),
        };
        refused("cluster", "tasks run on the workers of this service")?;
        refused(
            "manifest",
            "there are no environments, as no columns are computed by functions of a user",
        )?;
        match fields.string("branch")? {
            None | Some("" | "main") => {}
            Some(_) => {
                return Err(ApiError::invalid(
                    "'branch' must be main: columns of other branches are not filled.",
                ));
            }
        }
        let flush = fields.number("batch_checkpoint_flush_interval_seconds")?;
        if flush.is_some_and(|seconds| !(0.001..=86_400.0).contains(&seconds)) {
            return Err(ApiError::invalid(
                "'batch_checkpoint_flush_interval_seconds' must be from 0.001 to 86400.",
            ));
        }
        let params = Self {
            column: fields.required_string("column")?.to_owned(),
            filter: fields.non_empty("where")?,
            read_version: positive("read_version")?,
            num_frags: positive("num_frags")?,
            concurrency: positive("concurrency")?,
            intra_applier_concurrency: positive("intra_applier_concurrency")?,
            task_size: positive("task_size")?,
            checkpoint_size: positive("checkpoint_size")?,
            min_checkpoint_size: positive("min_checkpoint_size")?,
            max_checkpoint_size: positive("max_checkpoint_size")?,
            // Thousandths, which JSON gives back as they are.
            batch_checkpoint_flush_interval_seconds: flush
                .map(|seconds| (seconds * 1000.0).round() / 1000.0),
            commit_granularity: positive("commit_granularity")?,
        };
        if params
            .min_checkpoint_size
            .zip(params.max_checkpoint_size)
            .is_some_and(|(min, max)| min > max)
        {
            return Err(ApiError::invalid(
                "'min_checkpoint_size' must be at most 'max_checkpoint_size'.",
            ));
        }
        Ok(params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorName;

    #[test]
    fn what_is_stored() {
        let cases = [
            (
                r#"{"column":"c"}"#,
                r#"{"column":"c","where":null,"read_version":null,"num_frags":null,"concurrency":null,"intra_applier_concurrency":null,"task_size":null,"checkpoint_size":null,"min_checkpoint_size":null,"max_checkpoint_size":null,"batch_checkpoint_flush_interval_seconds":null,"commit_granularity":null}"#,
            ),
            (
                r#"{"column":"a.`b.c`","where":"id > 5","branch":"main","cluster":"","manifest":null,"read_version":2,"num_frags":9,"concurrency":1,"intra_applier_concurrency":6,"task_size":7,"checkpoint_size":3,"min_checkpoint_size":1,"max_checkpoint_size":5,"batch_checkpoint_flush_interval_seconds":5.637376656633329,"commit_granularity":2}"#,
                r#"{"column":"a.`b.c`","where":"id > 5","read_version":2,"num_frags":9,"concurrency":1,"intra_applier_concurrency":6,"task_size":7,"checkpoint_size":3,"min_checkpoint_size":1,"max_checkpoint_size":5,"batch_checkpoint_flush_interval_seconds":5.637,"commit_granularity":2}"#,
            ),
        ];
        for (body, stored) in cases {
            let params = BackfillColumnParams::parse(body.as_bytes()).unwrap();
            assert_eq!(serde_json::to_string(&params).unwrap(), stored);
        }
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"column":""}"#,
            r#"{"column":7}"#,
            r#"{"column":"c","branch":"dev"}"#,
            r#"{"column":"c","cluster":"gpu"}"#,
            r#"{"column":"c","manifest":"m"}"#,
            r#"{"column":"c","concurrency":0}"#,
            r#"{"column":"c","num_frags":-1}"#,
            r#"{"column":"c","task_size":1.5}"#,
            r#"{"column":"c","min_checkpoint_size":5,"max_checkpoint_size":4}"#,
            r#"{"column":"c","batch_checkpoint_flush_interval_seconds":0}"#,
            r#"{"column":"c","where":5}"#,
        ] {
            let error = BackfillColumnParams::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.name, ErrorName::InvalidInput, "{body}");
        }
    }
}
