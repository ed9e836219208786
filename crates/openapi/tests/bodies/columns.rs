//! Bodies about columns, and whether they are accepted.

use super::cases::Cases;

/// Columns to add.
pub const ADD: Cases = &[
    (r#"{}"#, false),
    (r#"{"new_columns":null}"#, false),
    (r#"{"new_columns":[]}"#, false),
    (r#"{"new_columns":{}}"#, false),
    (r#"{"new_columns":["c"]}"#, false),
    (r#"{"new_columns":[{"name":"c"}]}"#, false),
    (r#"{"new_columns":[{"expression":"1"}]}"#, false),
    (
        r#"{"new_columns":[{"name":"c","expression":"id + 1"}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"id + 1"},{"name":"d","computed":"1"}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","expression":null}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"","expression":"1"}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","virtual_column":null}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","unknown":1}]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","expression":"1"}]}"#,
        false,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"","expression":""}]}"#,
        false,
    ),
    (r#"{"new_columns":[{"name":"c","computed":1}]}"#, false),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","expression":1}]}"#,
        false,
    ),
    (r#"{"new_columns":[{"name":"","computed":"1"}]}"#, false),
    (r#"{"new_columns":[{"name":null,"computed":"1"}]}"#, false),
    (
        r#"{"new_columns":[{"name":"c","virtual_column":{"udf":"f"}}]}"#,
        false,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1","virtual_column":{}}]}"#,
        false,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1"}],"branch":"dev","id":["ns","t"]}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1"}],"branch":null}"#,
        true,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1"}],"branch":7}"#,
        false,
    ),
    (
        r#"{"new_columns":[{"name":"c","computed":"1"}],"id":"ns$t"}"#,
        false,
    ),
];

/// Columns to fill.
pub const FILL: Cases = &[
    (r#"{}"#, false),
    (r#"{"column":""}"#, false),
    (r#"{"column":null}"#, false),
    (r#"{"column":7}"#, false),
    (r#"{"column":["c"]}"#, false),
    (r#"{"column":"c"}"#, true),
    (r#"{"column":"a.`b.c`","unknown":1}"#, true),
    (r#"{"column":"c","where":"id > 5"}"#, true),
    (r#"{"column":"c","where":""}"#, true),
    (r#"{"column":"c","where":null}"#, true),
    (r#"{"column":"c","where":5}"#, false),
    (r#"{"column":"c","branch":"main"}"#, true),
    (r#"{"column":"c","branch":""}"#, true),
    (r#"{"column":"c","branch":null}"#, true),
    (r#"{"column":"c","branch":"dev"}"#, false),
    (r#"{"column":"c","branch":1}"#, false),
    (r#"{"column":"c","cluster":""}"#, true),
    (r#"{"column":"c","cluster":null}"#, true),
    (r#"{"column":"c","cluster":"gpu"}"#, false),
    (r#"{"column":"c","cluster":1}"#, false),
    (r#"{"column":"c","manifest":""}"#, true),
    (r#"{"column":"c","manifest":null}"#, true),
    (r#"{"column":"c","manifest":"m"}"#, false),
    (r#"{"column":"c","manifest":{}}"#, false),
    (r#"{"column":"c","read_version":1}"#, true),
    (r#"{"column":"c","read_version":0}"#, false),
    (r#"{"column":"c","read_version":null}"#, true),
    (r#"{"column":"c","num_frags":1}"#, true),
    (r#"{"column":"c","num_frags":0}"#, false),
    (r#"{"column":"c","num_frags":"1"}"#, false),
    (r#"{"column":"c","concurrency":1}"#, true),
    (r#"{"column":"c","concurrency":0}"#, false),
    (r#"{"column":"c","concurrency":true}"#, false),
    (r#"{"column":"c","intra_applier_concurrency":1}"#, true),
    (r#"{"column":"c","intra_applier_concurrency":-1}"#, false),
    (r#"{"column":"c","task_size":9223372036854775807}"#, true),
    (r#"{"column":"c","task_size":9223372036854775808}"#, false),
    (r#"{"column":"c","task_size":1.5}"#, false),
    (r#"{"column":"c","checkpoint_size":1}"#, true),
    (r#"{"column":"c","checkpoint_size":0}"#, false),
    (r#"{"column":"c","min_checkpoint_size":1}"#, true),
    (r#"{"column":"c","min_checkpoint_size":0}"#, false),
    (r#"{"column":"c","max_checkpoint_size":1}"#, true),
    (r#"{"column":"c","max_checkpoint_size":0}"#, false),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":5.637376656633329}"#,
        true,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":0.001}"#,
        true,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":86400}"#,
        true,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":null}"#,
        true,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":0}"#,
        false,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":-1}"#,
        false,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":86401}"#,
        false,
    ),
    (
        r#"{"column":"c","batch_checkpoint_flush_interval_seconds":"1"}"#,
        false,
    ),
    (r#"{"column":"c","commit_granularity":1}"#, true),
    (r#"{"column":"c","commit_granularity":0}"#, false),
    (r#"{"column":"c","commit_granularity":[]}"#, false),
    (r#"{"column":"c","id":["ns","t"]}"#, true),
    (r#"{"column":"c","id":null}"#, true),
    (r#"{"column":"c","id":"ns$t"}"#, false),
    (
        r#"{"column":"c","min_checkpoint_size":4,"max_checkpoint_size":5}"#,
        true,
    ),
];
