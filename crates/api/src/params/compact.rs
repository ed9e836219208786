use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{ApiError, ErrorName};
use crate::fields::{Fields, choose};

/// The options of a job.
const JOB_OPTIONS: [&str; 4] = [
    "target_rows_per_fragment",
    "max_bytes_per_file",
    "materialize_deletions",
    "materialize_deletions_threshold",
];

/// How a compaction carries data over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactionMode {
    /// Decode and encode again.
    Reencode,
    /// Copy pages where their encoding allows it, else encode again.
    TryBinaryCopy,
    /// Copy pages, and fail where that is not possible.
    ForceBinaryCopy,
}

impl CompactionMode {
    const CHOICES: [(&str, Self); 3] = [
        ("reencode", Self::Reencode),
        ("try_binary_copy", Self::TryBinaryCopy),
        ("force_binary_copy", Self::ForceBinaryCopy),
    ];

    /// The mode of this name, which is case-sensitive.
    fn parse(text: &str) -> Result<Self, ApiError> {
        choose("compaction_mode", text, &Self::CHOICES, |word, text| {
            word == text
        })
    }
}

/// Parameters of `lance_compact` (API facts, section 5). The OSS API fills in what a request leaves
/// out. A job keeps it left out (null): the table's configuration decides, else Lance; what that came
/// to is shown once the task has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompactParams {
    /// Rows that a fragment should have.
    pub target_rows_per_fragment: Option<i64>,
    /// Whether fragments are rewritten for their deleted rows alone.
    pub materialize_deletions: Option<bool>,
    /// The share of deleted rows above which a fragment is rewritten: negative for every
    /// fragment, 1 or more for none. Twelve decimal places are kept, and nothing beyond 1000.
    pub materialize_deletions_threshold: Option<f64>,
    /// Rows per group, for the old file format.
    pub max_rows_per_group: Option<i64>,
    /// A soft limit on the size of a file in bytes; 0 for Lance's own.
    pub max_bytes_per_file: Option<i64>,
    /// How data is carried over.
    pub compaction_mode: Option<CompactionMode>,
    /// Whether the table's budgets per run (`lance.compaction.max_source_*`) limit the task: those of
    /// jobs. A task of the OSS API does all there is to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub table_budgets: bool,
}

impl CompactParams {
    const DELETIONS_THRESHOLD: f64 = 0.1;

    /// Parses a request body, which may be empty. `default_mode` is the server's default
    /// compaction mode, read per request; that it is not a mode is the server's fault.
    pub fn parse(body: &[u8], default_mode: &str) -> Result<Self, ApiError> {
        let fields = Fields::parse(body)?;
        let compaction_mode = match fields.string("compaction_mode")? {
            Some(text) => CompactionMode::parse(text)?,
            None => CompactionMode::parse(default_mode).map_err(|_| {
                ApiError::new(
                    ErrorName::InternalError,
                    "The server's default compaction mode is not a compaction mode; \
                     give 'compaction_mode' or have the server's configuration corrected.",
                )
            })?,
        };
        Ok(Self {
            target_rows_per_fragment: fields
                .integer_from("target_rows_per_fragment", 1)?
                .or(Some(1024 * 1024)),
            materialize_deletions: fields.boolean("materialize_deletions")?.or(Some(true)),
            // 0 is as unset: the only rule here that differs from Lance's own.
            materialize_deletions_threshold: fields
                .number("materialize_deletions_threshold")?
                .filter(|threshold| *threshold != 0.0)
                .map(storable)
                .or(Some(Self::DELETIONS_THRESHOLD)),
            max_rows_per_group: fields.integer_from("max_rows_per_group", 1)?.or(Some(1024)),
            max_bytes_per_file: fields.integer_from("max_bytes_per_file", 0)?.or(Some(0)),
            compaction_mode: Some(compaction_mode),
            table_budgets: false,
        })
    }

    /// Parses the options of a job.
    pub(crate) fn of_job(options: &Map<String, Value>) -> Result<Self, ApiError> {
        let fields = Fields::of(options.clone());
        fields.refuse_others("option of a compaction", &JOB_OPTIONS)?;
        Ok(Self {
            target_rows_per_fragment: fields.integer_from("target_rows_per_fragment", 1)?,
            materialize_deletions: fields.boolean("materialize_deletions")?,
            materialize_deletions_threshold: fields
                .number("materialize_deletions_threshold")?
                .map(storable),
            max_rows_per_group: None,
            max_bytes_per_file: fields.integer_from("max_bytes_per_file", 1)?,
            compaction_mode: None,
            table_budgets: true,
        })
    }

    /// Those of a task that leaves everything to the table's configuration, but for its budgets.
    pub fn left_out() -> Self {
        Self {
            target_rows_per_fragment: None,
            materialize_deletions: None,
            materialize_deletions_threshold: None,
            max_rows_per_group: None,
            max_bytes_per_file: None,
            compaction_mode: None,
            table_budgets: false,
        }
    }

    /// These as options of a job; null where nothing was given.
    pub(crate) fn job_options(&self) -> Value {
        json!({
            "target_rows_per_fragment": self.target_rows_per_fragment,
            "max_bytes_per_file": self.max_bytes_per_file,
            "materialize_deletions": self.materialize_deletions,
            "materialize_deletions_threshold": self.materialize_deletions_threshold,
        })
    }
}

/// The threshold next to this one that JSON gives back as it was: its reader gets the last bits of
/// long numbers wrong, so that 1.234567890123456e-11 would be another number with every reading.
/// Its sign stays, which means something.
fn storable(threshold: f64) -> f64 {
    if threshold == 0.0 {
        return 0.0;
    }
    let size = threshold.abs().clamp(1e-12, 1000.0);
    let rounded = format!("{size:.12}").parse().unwrap_or(size);
    f64::copysign(rounded, threshold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(body: &str) -> Result<String, ErrorName> {
        CompactParams::parse(body.as_bytes(), "reencode")
            .map(|params| serde_json::to_string(&params).unwrap())
            .map_err(|error| error.name)
    }

    #[test]
    fn the_defaults_in_the_documented_order() {
        let all = r#"{"target_rows_per_fragment":1048576,"materialize_deletions":true,"materialize_deletions_threshold":0.1,"max_rows_per_group":1024,"max_bytes_per_file":0,"compaction_mode":"reencode"}"#;
        for body in [
            "",
            "{}",
            r#"{"batch_size":1024}"#,
            r#"{"materialize_deletions_threshold":0}"#,
            r#"{"max_bytes_per_file":null,"compaction_mode":null}"#,
            r#"{"target_rows_per_fragment":5,"target_rows_per_fragment":1048576}"#,
        ] {
            assert_eq!(stored(body).as_deref(), Ok(all), "{body}");
        }
    }

    #[test]
    fn what_is_accepted() {
        for body in [
            r#"{"materialize_deletions_threshold":-1}"#,
            r#"{"materialize_deletions_threshold":2.5}"#,
            r#"{"compaction_mode":"force_binary_copy"}"#,
            r#"{"max_bytes_per_file":1}"#,
            r#"{"target_rows_per_fragment":9223372036854775807}"#,
        ] {
            assert!(stored(body).is_ok(), "{body}");
        }
    }

    #[test]
    fn what_is_refused() {
        for body in [
            "[]",
            "1",
            "{",
            "\u{0}",
            r#"{"target_rows_per_fragment":0}"#,
            r#"{"target_rows_per_fragment":-1}"#,
            r#"{"target_rows_per_fragment":"5"}"#,
            r#"{"target_rows_per_fragment":1.5}"#,
            r#"{"target_rows_per_fragment":9223372036854775808}"#,
            r#"{"max_rows_per_group":0}"#,
            r#"{"max_bytes_per_file":-1}"#,
            r#"{"materialize_deletions":1}"#,
            r#"{"materialize_deletions_threshold":"0.1"}"#,
            r#"{"compaction_mode":"REENCODE"}"#,
            r#"{"compaction_mode":""}"#,
            r#"{"compaction_mode":"binary"}"#,
        ] {
            assert_eq!(stored(body), Err(ErrorName::InvalidInput), "{body}");
        }
    }

    #[test]
    fn the_servers_default_mode_counts_only_where_none_is_given() {
        let mode = |body: &str, default| {
            CompactParams::parse(body.as_bytes(), default)
                .map(|params| params.compaction_mode)
                .map_err(|error| error.name)
        };
        assert_eq!(
            mode("", "try_binary_copy"),
            Ok(Some(CompactionMode::TryBinaryCopy))
        );
        assert_eq!(mode("", "fast"), Err(ErrorName::InternalError));
        assert_eq!(
            mode(r#"{"compaction_mode":"reencode"}"#, "fast"),
            Ok(Some(CompactionMode::Reencode))
        );
    }

    #[test]
    fn a_threshold_has_the_digits_that_can_be_stored() {
        for (given, expected) in [
            ("0.1", 0.1),
            ("-1", -1.0),
            ("2.5", 2.5),
            ("0.30000000000000004", 0.3),
            ("0.1234567890123456e-10", 1.2e-11),
            ("0.9999999999999", 1.0),
            ("5e-324", 1e-12),
            ("-5e-324", -1e-12),
            ("5.0090671884326146e197", 1000.0),
            ("-1.7976931348623157e308", -1000.0),
        ] {
            let body = format!(r#"{{"materialize_deletions_threshold":{given}}}"#);
            let params = CompactParams::parse(body.as_bytes(), "reencode").unwrap();
            assert_eq!(
                params.materialize_deletions_threshold,
                Some(expected),
                "{given}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn any_threshold_is_read_back_as_it_was(
            number in prop_oneof![-2.0..2.0f64, -2000.0..2000.0f64, prop::num::f64::NORMAL],
        ) {
            let body = format!(r#"{{"materialize_deletions_threshold":{number}}}"#);
            let params = CompactParams::parse(body.as_bytes(), "reencode").unwrap();
            let text = serde_json::to_string(&params).unwrap();
            prop_assert_eq!(serde_json::from_str::<CompactParams>(&text).unwrap(), params);
        }
    }
}
