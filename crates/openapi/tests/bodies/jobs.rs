//! Jobs, and whether they are accepted.

use super::cases::Cases;

/// The jobs to try.
pub const ALL: [Cases; 4] = [FIELDS, COMPACT, OPTIMIZE, CLEANUP];

const FIELDS: Cases = &[
    ("{}", false),
    ("[]", false),
    ("7", false),
    (r#"{"operation":null}"#, false),
    (r#"{"operation":""}"#, false),
    (r#"{"operation":7}"#, false),
    (r#"{"operation":"COMPACT"}"#, false),
    (r#"{"operation":"vacuum"}"#, false),
    (
        r#"{"operation":"create_scalar_index","options":{"column":"c"}}"#,
        false,
    ),
    (r#"{"operation":"compact"}"#, true),
    (r#"{"operation":"compact","options":null}"#, true),
    (r#"{"operation":"compact","options":{}}"#, true),
    (r#"{"operation":"compact","options":[]}"#, false),
    (r#"{"operation":"compact","options":""}"#, false),
    (r#"{"operation":"compact","option":{}}"#, false),
    (r#"{"operation":"compact","option":null}"#, false),
    (r#"{"operation":"compact","table":"ns$t"}"#, true),
    (r#"{"operation":"compact","table":"s3://b/t.lance"}"#, true),
    (r#"{"operation":"compact","table":null}"#, true),
    (r#"{"operation":"compact","table":["ns","t"]}"#, false),
    (r#"{"options":{"retain_versions":1}}"#, false),
];

const COMPACT: Cases = &[
    (
        r#"{"operation":"compact","options":{"target_rows_per_fragment":1,"max_bytes_per_file":1,"materialize_deletions":false,"materialize_deletions_threshold":-1}}"#,
        true,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows_per_fragment":null,"materialize_deletions":null}}"#,
        true,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows_per_fragment":0}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows_per_fragment":"5"}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows_per_fragment":9223372036854775808}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"max_bytes_per_file":0}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"max_bytes_per_file":1.5}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"materialize_deletions":1}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"materialize_deletions_threshold":0}}"#,
        true,
    ),
    (
        r#"{"operation":"compact","options":{"materialize_deletions_threshold":"0.1"}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows":5}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"target_rows":null}}"#,
        false,
    ),
    // Of the OSS API only.
    (
        r#"{"operation":"compact","options":{"compaction_mode":"reencode"}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"max_rows_per_group":1024}}"#,
        false,
    ),
    (
        r#"{"operation":"compact","options":{"retain_versions":1}}"#,
        false,
    ),
];

const OPTIMIZE: Cases = &[
    (r#"{"operation":"optimize_indices"}"#, true),
    (
        r#"{"operation":"optimize_indices","options":{"index_names":["i"],"num_indices_to_merge":0,"retrain":true}}"#,
        true,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"index_names":[],"num_indices_to_merge":null}}"#,
        true,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"index_names":[""]}}"#,
        false,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"index_names":"i"}}"#,
        false,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"num_indices_to_merge":-1}}"#,
        false,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"retrain":"yes"}}"#,
        false,
    ),
    (
        r#"{"operation":"optimize_indices","options":{"indices":["i"]}}"#,
        false,
    ),
];

const CLEANUP: Cases = &[
    (r#"{"operation":"cleanup"}"#, false),
    (r#"{"operation":"cleanup","options":null}"#, false),
    (r#"{"operation":"cleanup","options":{}}"#, false),
    (
        r#"{"operation":"cleanup","options":{"error_if_tagged_old_versions":true}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"retain_versions":1}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"retain_versions":0}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"retain_versions":null}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":0}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":0.5,"error_if_tagged_old_versions":false}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":-1}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":315360000000}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":315360000001}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":"7d"}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":null,"retain_versions":2}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":3600,"retain_versions":2}}"#,
        true,
    ),
    (
        r#"{"operation":"cleanup","options":{"older_than_seconds":3600,"retain_versions":0}}"#,
        false,
    ),
    // Of the OSS API only.
    (
        r#"{"operation":"cleanup","options":{"older_than":"7d"}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"retain_versions":1,"delete_unverified":false}}"#,
        false,
    ),
    (
        r#"{"operation":"cleanup","options":{"retain_versions":1,"error_if_tagged_old_versions":"no"}}"#,
        false,
    ),
];
