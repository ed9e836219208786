//! Bodies, and whether they are accepted.

use super::{columns, jobs};

/// Bodies to try with one schema.
pub type Cases = &'static [(&'static str, bool)];

const ID: Cases = &[
    (r#"{"id":["ns","t"]}"#, true),
    (r#"{"id":null}"#, true),
    (r#"{"id":"ns$t"}"#, false),
    (r#"{"id":[1]}"#, false),
];

const COMPACT: Cases = &[
    ("{}", true),
    (r#"{"unknown":[1]}"#, true),
    ("[]", false),
    ("1", false),
    (r#"{"target_rows_per_fragment":1}"#, true),
    (r#"{"target_rows_per_fragment":9223372036854775807}"#, true),
    (r#"{"target_rows_per_fragment":9223372036854775808}"#, false),
    (r#"{"target_rows_per_fragment":0}"#, false),
    (r#"{"target_rows_per_fragment":null}"#, true),
    (r#"{"target_rows_per_fragment":"5"}"#, false),
    (r#"{"target_rows_per_fragment":1.5}"#, false),
    (r#"{"max_rows_per_group":1}"#, true),
    (r#"{"max_rows_per_group":0}"#, false),
    (r#"{"max_bytes_per_file":0}"#, true),
    (r#"{"max_bytes_per_file":-1}"#, false),
    (r#"{"materialize_deletions":false}"#, true),
    (r#"{"materialize_deletions":1}"#, false),
    (r#"{"materialize_deletions_threshold":-1}"#, true),
    (r#"{"materialize_deletions_threshold":1e308}"#, true),
    (r#"{"materialize_deletions_threshold":"0.1"}"#, false),
    (r#"{"compaction_mode":"reencode"}"#, true),
    (r#"{"compaction_mode":null}"#, true),
    (r#"{"compaction_mode":"REENCODE"}"#, false),
    (r#"{"compaction_mode":""}"#, false),
];

const SCALAR: Cases = &[
    ("{}", false),
    (r#"{"column":"c"}"#, true),
    (r#"{"column":""}"#, false),
    (r#"{"column":null}"#, false),
    (r#"{"column":7}"#, false),
    (r#"{"column":"c","index_type":"Label_List"}"#, true),
    (r#"{"column":"c","index_type":"fts"}"#, true),
    (r#"{"column":"c","index_type":null}"#, true),
    (r#"{"column":"c","index_type":""}"#, false),
    (r#"{"column":"c","index_type":"IVF_PQ"}"#, false),
    (r#"{"column":"c","index_type":"BTREEX"}"#, false),
    (r#"{"column":"c","name":"n","index_name":null}"#, true),
    (r#"{"column":"c","name":"n","index_name":7}"#, false),
    (r#"{"column":"c","replace":"no"}"#, false),
    (r#"{"column":"c","stem":true}"#, true),
    (r#"{"column":"c","stem":1}"#, false),
    (r#"{"column":"c","base_tokenizer":"icu/split"}"#, true),
    (r#"{"column":"c","base_tokenizer":"jieba/x"}"#, true),
    (r#"{"column":"c","base_tokenizer":"icu/splits"}"#, false),
    (r#"{"column":"c","base_tokenizer":"words"}"#, false),
    (r#"{"column":"c","base_tokenizer":""}"#, false),
    (r#"{"column":"c","language":7}"#, false),
    (r#"{"column":"c","max_token_length":0}"#, true),
    (r#"{"column":"c","max_token_length":-1}"#, false),
    (r#"{"column":"c","rows_per_zone":0}"#, false),
    (r#"{"column":"c","zone_size":0}"#, false),
    (r#"{"column":"c","zone_size":1}"#, true),
];

const VECTOR: Cases = &[
    ("{}", false),
    (r#"{"column":"v"}"#, true),
    (r#"{"column":"v","index_type":"ivf_hnsw_sq"}"#, true),
    (r#"{"column":"v","index_type":"BTREE"}"#, false),
    (r#"{"column":"v","metric_type":"Euclidean"}"#, true),
    (r#"{"column":"v","metric_type":"manhattan"}"#, false),
    (r#"{"column":"v","distance_type":"dot"}"#, true),
    (r#"{"column":"v","distance_type":"manhattan"}"#, false),
    (r#"{"column":"v","metric":"manhattan"}"#, false),
    (r#"{"column":"v","metric_type":null,"metric":"l2"}"#, true),
    (r#"{"column":"v","metric_type":"l2","metric":1}"#, false),
    (r#"{"column":"v","num_partitions":0}"#, true),
    (r#"{"column":"v","num_partitions":-1}"#, false),
    (r#"{"column":"v","target_partition_size":-1}"#, false),
    (r#"{"column":"v","num_sub_vectors":0}"#, false),
    (r#"{"column":"v","num_bits":0}"#, false),
    (r#"{"column":"v","num_bits":4}"#, true),
    (r#"{"column":"v","sample_rate":0}"#, false),
    (r#"{"column":"v","max_iterations":0}"#, false),
    (r#"{"column":"v","m":0}"#, false),
    (r#"{"column":"v","ef_construction":0}"#, false),
    (r#"{"column":"v","max_level":0}"#, false),
    (r#"{"column":"v","index_name":"n"}"#, true),
];

const OPTIMIZE: Cases = &[
    ("{}", true),
    (r#"{"index_names":["a"]}"#, true),
    (r#"{"index_names":[""]}"#, false),
    (r#"{"index_names":"a"}"#, false),
    (r#"{"index_names":[null]}"#, false),
    (r#"{"num_indices_to_merge":0}"#, true),
    (r#"{"num_indices_to_merge":-1}"#, false),
    (r#"{"retrain":"yes"}"#, false),
];

const CLEANUP: Cases = &[
    ("{}", false),
    (r#"{"older_than":"7d"}"#, true),
    (r#"{"older_than":"no age"}"#, true),
    (r#"{"older_than":""}"#, false),
    (r#"{"older_than":7}"#, false),
    (r#"{"older_than":null,"retain_versions":1}"#, true),
    (r#"{"older_than":"","retain_versions":0}"#, false),
    (r#"{"older_than":"7d","retain_versions":0}"#, true),
    (r#"{"older_than":"7d","retain_versions":-1}"#, false),
    (r#"{"retain_versions":2,"delete_unverified":false}"#, true),
    (r#"{"retain_versions":2,"delete_unverified":true}"#, false),
    (
        r#"{"retain_versions":2,"error_if_tagged_old_versions":true}"#,
        false,
    ),
];

const CREATE_NAMESPACE: Cases = &[
    ("{}", true),
    (r#"{"mode":"ExistOk"}"#, true),
    (r#"{"mode":"Exist_Ok"}"#, true),
    (r#"{"mode":"replace"}"#, false),
    (r#"{"properties":{"a":"b"}}"#, true),
    (r#"{"properties":{"a":1}}"#, false),
    (r#"{"properties":[]}"#, false),
];

const DROP_NAMESPACE: Cases = &[
    ("{}", true),
    (r#"{"mode":"SKIP","behavior":"Cascade"}"#, true),
    (r#"{"mode":""}"#, false),
    (r#"{"behavior":"all"}"#, false),
];

const DECLARE: Cases = &[
    ("{}", true),
    (r#"{"location":""}"#, true),
    (r#"{"location":null}"#, true),
    (r#"{"location":"file:///x"}"#, false),
    (r#"{"properties":{"a":null}}"#, false),
];

const REGISTER: Cases = &[
    ("{}", false),
    (r#"{"location":"/x"}"#, true),
    (r#"{"location":""}"#, false),
    (r#"{"location":"/x","mode":"CREATE"}"#, true),
    (r#"{"location":"/x","mode":"overwrite"}"#, false),
];

const DESCRIBE: Cases = &[
    ("{}", true),
    (r#"{"version":1}"#, true),
    (r#"{"version":0}"#, false),
    (r#"{"version":"1"}"#, false),
    (r#"{"tag":""}"#, true),
    (r#"{"version":1,"tag":"t"}"#, false),
    (r#"{"version":1,"tag":null}"#, true),
    (r#"{"version":null,"tag":"t"}"#, true),
    (r#"{"branch":7}"#, false),
    (r#"{"check_declared":"true"}"#, false),
    (r#"{"with_table_uri":true}"#, true),
    (r#"{"load_detailed_metadata":1}"#, false),
];

const VERSION: Cases = &[
    ("{}", true),
    (r#"{"version":1,"branch":"b"}"#, true),
    (r#"{"version":-1}"#, false),
    (r#"{"branch":1}"#, false),
];

const RENAME: Cases = &[
    ("{}", false),
    (r#"{"new_table_name":"t"}"#, true),
    (r#"{"new_table_name":""}"#, false),
    (r#"{"new_table_name":"T"}"#, false),
    (r#"{"new_table_name":"t_"}"#, false),
    (r#"{"new_table_name":"t","new_namespace_id":["n"]}"#, true),
    (r#"{"new_table_name":"t","new_namespace_id":null}"#, true),
    (r#"{"new_table_name":"t","new_namespace_id":[]}"#, false),
    (
        r#"{"new_table_name":"t","new_namespace_id":["ossx"]}"#,
        false,
    ),
    (
        r#"{"new_table_name":"t","new_namespace_id":["a","b"]}"#,
        false,
    ),
    (r#"{"new_table_name":"t","new_namespace_id":"a"}"#, false),
];

const CREATE_VERSION: Cases = &[
    ("{}", false),
    (r#"{"version":2,"manifest_path":"p"}"#, true),
    (r#"{"version":0,"manifest_path":"p"}"#, false),
    (r#"{"version":null,"manifest_path":"p"}"#, false),
    (r#"{"version":2,"manifest_path":""}"#, false),
    (
        r#"{"version":2,"manifest_path":"p","manifest_size":-1}"#,
        false,
    ),
    (r#"{"version":2,"manifest_path":"p","e_tag":1}"#, false),
    (
        r#"{"version":2,"manifest_path":"p","naming_scheme":"V2"}"#,
        true,
    ),
];

const POLICY: Cases = &[
    ("{}", false),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"oss:Get*","Resource":"*","Principal":"*"}}"#,
        true,
    ),
    (
        r#"{"Version":"1","Statement":[{"Sid":"s","Effect":"Deny","Action":["*"],"Resource":["*"],"Principal":{"RAM":["alice"]},"Condition":{"IpAddress":{"acs:SourceIp":"10.0.0.0/8"},"Bool":{"acs:SecureTransport":[true,"false"]},"DateLessThan":{"acs:CurrentTime":"2027-01-01T00:00:00Z"}}}]}"#,
        true,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"OSS:get*","Resource":"acs:osstables:*:*:bucket/b","Principal":["acs:ram::12:user/a-*","12","alice@x"]}}"#,
        true,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"","Resource":"*","Principal":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"s3:Get*","Resource":"*","Principal":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"bucket/b","Principal":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"acs:ram::x:user/a"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"al ice"}}"#,
        false,
    ),
    (r#"{"Version":"2","Statement":[]}"#, false),
    (r#"{"Version":"1","Statement":[]}"#, false),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"allow","Action":"*","Resource":"*","Principal":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":[],"Resource":"*","Principal":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*","NotAction":"*"}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*","Sid":null}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*","Condition":{"StringLike":{}}}}"#,
        false,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*","Condition":{"IpAddress":{}}}}"#,
        false,
    ),
];

const IDENTITY_POLICY: Cases = &[
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}"#,
        true,
    ),
    (
        r#"{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}}"#,
        false,
    ),
];

/// The parser knows the id in the path only if it stands in the body.
const CREDENTIAL: Cases = &[
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678"}"#,
        true,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"1234567"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a,b","secret_access_key":"12345678"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a/b","secret_access_key":"12345678"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a-.+0","secret_access_key":"12345678"}"#,
        true,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","session_token":"x y"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","user":"alice@x","status":"inactive","expires_at":"2027-01-01T00:00:00Z","policy":{"Version":"1","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}}"#,
        true,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","user":"al ice"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","status":"on"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","expires_at":"soon"}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","expires_at":null}"#,
        false,
    ),
    (
        r#"{"access_key_id":"a","secret_access_key":"12345678","role":"x"}"#,
        false,
    ),
];

/// The bodies to try with each schema.
pub fn table() -> Vec<(&'static str, Vec<Cases>)> {
    vec![
        ("CompactRequest", vec![COMPACT]),
        ("ScalarIndexRequest", vec![SCALAR]),
        ("VectorIndexRequest", vec![VECTOR]),
        ("OptimizeIndicesRequest", vec![OPTIMIZE]),
        ("CleanupRequest", vec![CLEANUP]),
        ("JobRequest", jobs::ALL.to_vec()),
        ("CreateNamespaceRequest", vec![CREATE_NAMESPACE, ID]),
        ("DropNamespaceRequest", vec![DROP_NAMESPACE, ID]),
        ("IdRequest", vec![ID]),
        ("DeclareTableRequest", vec![DECLARE, ID]),
        ("RegisterTableRequest", vec![REGISTER]),
        ("DescribeTableRequest", vec![DESCRIBE, ID]),
        ("TableVersionRequest", vec![VERSION, ID]),
        ("RenameTableRequest", vec![RENAME]),
        ("CreateTableVersionRequest", vec![CREATE_VERSION]),
        ("AddColumnsRequest", vec![columns::ADD]),
        ("BackfillColumnRequest", vec![columns::FILL]),
        ("ResourcePolicy", vec![POLICY]),
        ("IdentityPolicy", vec![IDENTITY_POLICY]),
        ("PutCredentialRequest", vec![CREDENTIAL]),
    ]
}
