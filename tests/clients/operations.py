"""Every operation: its name, how it is called, and what a policy must allow.

`{ns}` stands for a namespace, `{t}` for a table in it, and `{key}` for an access key that is not
there.
"""

MAINTAIN, JOBS = "oss:PutTableMaintenanceConfiguration", "oss:GetTableMaintenanceJobStatus"
TABLE, TASKS = "/lance/v1/table/{ns}%24{t}", "/lance/oss/v1/table/{ns}%24{t}"

# Name, method, path, body, action, what the action is done to.
OPERATIONS = [
    ("SubmitLanceTableCompactTask", "POST", TASKS + "/compact", "{}", MAINTAIN, "table"),
    ("SubmitLanceTableScalarIndexTask", "POST", TASKS + "/create_scalar_index", '{"column":"c"}', MAINTAIN, "table"),
    ("SubmitLanceTableVectorIndexTask", "POST", TASKS + "/create_vector_index", '{"column":"v"}', MAINTAIN, "table"),
    ("SubmitLanceTableOptimizeIndicesTask", "POST", TASKS + "/optimize_indices", "{}", MAINTAIN, "table"),
    ("SubmitLanceTableCleanupTask", "POST", TASKS + "/cleanup", '{"retain_versions":9}', MAINTAIN, "table"),
    ("GetLanceTaskStatus", "GET", TASKS + "/tasks/abc", "", JOBS, "table"),
    ("ListLanceTasks", "GET", TASKS + "/tasks?task_type=lance_compact", "", JOBS, "table"),
    ("DeleteLanceTask", "DELETE", TASKS + "/tasks/abc", "", MAINTAIN, "table"),
    ("CreateNamespace", "POST", "/lance/v1/namespace/{ns}2/create", "{}", "oss:CreateNamespace", "bucket"),
    ("DescribeNamespace", "POST", "/lance/v1/namespace/{ns}/describe", "{}", "oss:GetNamespace", "bucket"),
    ("NamespaceExists", "POST", "/lance/v1/namespace/{ns}/exists", "{}", "oss:GetNamespace", "bucket"),
    ("DropNamespace", "POST", "/lance/v1/namespace/{ns}/drop", "{}", "oss:DeleteNamespace", "bucket"),
    ("ListNamespaces", "GET", "/lance/v1/namespace/%24/list", "", "oss:ListNamespaces", "bucket"),
    ("ListTables", "GET", "/lance/v1/namespace/{ns}/table/list", "", "oss:ListTables", "bucket"),
    ("ListAllTables", "GET", "/lance/v1/table", "", "oss:ListTables", "bucket"),
    ("CreateTable", "POST", "/lance/v1/table/{ns}%24{t}2/create", "no rows", "oss:CreateTable", "bucket"),
    ("DeclareTable", "POST", "/lance/v1/table/{ns}%24{t}3/declare", "{}", "oss:CreateTable", "bucket"),
    ("RegisterTable", "POST", "/lance/v1/table/{ns}%24{t}4/register", '{"location":"/x"}', "oss:CreateTable", "bucket"),
    ("DescribeTable", "POST", TABLE + "/describe", "{}", "oss:GetTable", "table"),
    ("TableExists", "POST", TABLE + "/exists", "{}", "oss:GetTable", "table"),
    ("RenameTable", "POST", TABLE + "/rename", '{"new_table_name":"{t}"}', "oss:RenameTable", "table"),
    ("AlterTableAddColumns", "POST", TABLE + "/add_columns", '{"new_columns":[{"name":"c","computed":"1"}]}', "oss:PutTableData", "table"),
    ("AlterTableBackfillColumns", "POST", TABLE + "/backfill_column", '{"column":"c"}', "oss:PutTableData", "table"),
    ("CreateTableVersion", "POST", TABLE + "/version/create", '{"version":2,"manifest_path":"x"}', "oss:PutTableData", "table"),
    ("DescribeTableVersion", "POST", TABLE + "/version/describe", "{}", "oss:GetTable", "table"),
    ("ListTableVersions", "POST", TABLE + "/version/list", "", "oss:GetTable", "table"),
    ("PutTableBucketPolicy", "PUT", "/access/v1/policy", "{}", "oss:PutTableBucketPolicy", "bucket"),
    ("GetTableBucketPolicy", "GET", "/access/v1/policy", "", "oss:GetTableBucketPolicy", "bucket"),
    ("DeleteTableBucketPolicy", "DELETE", "/access/v1/policy", "", "oss:DeleteTableBucketPolicy", "bucket"),
    ("PutTablePolicy", "PUT", "/access/v1/table/{ns}%24{t}/policy", "{}", "oss:PutTablePolicy", "table"),
    ("GetTablePolicy", "GET", "/access/v1/table/{ns}%24{t}/policy", "", "oss:GetTablePolicy", "table"),
    ("DeleteTablePolicy", "DELETE", "/access/v1/table/{ns}%24{t}/policy", "", "oss:DeleteTablePolicy", "table"),
    ("PutCredential", "PUT", "/access/v1/credentials/{key}", '{"secret_access_key":"12345678"}', "ram:CreateAccessKey", "user"),
    ("GetCredential", "GET", "/access/v1/credentials/{key}", "", "ram:GetAccessKey", "user"),
    ("DeleteCredential", "DELETE", "/access/v1/credentials/{key}", "", "ram:DeleteAccessKey", "user"),
    ("ListCredentials", "GET", "/access/v1/credentials", "", "ram:ListAccessKeys", "user"),
    # The last, because they take the table away.
    ("DropTable", "POST", TABLE + "/drop", "{}", "oss:DeleteTable", "table"),
    ("DeregisterTable", "POST", TABLE + "/deregister", "{}", "oss:DeleteTable", "table"),
]

# What the specification has and this service does not: method and path.
UNSERVED = [
    ("POST", path)
    for path in [
        "/lance/v1/materialized_view/{id}/create",
        "/lance/v1/materialized_view/{id}/refresh",
        "/lance/v1/table/batch-commit",
        "/lance/v1/table/version/batch-create",
        "/lance/v1/table/{id}/alter_columns",
        "/lance/v1/table/{id}/analyze_plan",
        "/lance/v1/table/{id}/branches/create",
        "/lance/v1/table/{id}/branches/delete",
        "/lance/v1/table/{id}/branches/list",
        "/lance/v1/table/{id}/count_rows",
        "/lance/v1/table/{id}/create_index",
        "/lance/v1/table/{id}/create_scalar_index",
        "/lance/v1/table/{id}/delete",
        "/lance/v1/table/{id}/drop_columns",
        "/lance/v1/table/{id}/explain_plan",
        "/lance/v1/table/{id}/index/list",
        "/lance/v1/table/{id}/index/{name}/drop",
        "/lance/v1/table/{id}/index/{name}/stats",
        "/lance/v1/table/{id}/insert",
        "/lance/v1/table/{id}/merge_insert",
        "/lance/v1/table/{id}/query",
        "/lance/v1/table/{id}/restore",
        "/lance/v1/table/{id}/schema_metadata/update",
        "/lance/v1/table/{id}/stats",
        "/lance/v1/table/{id}/tags/create",
        "/lance/v1/table/{id}/tags/delete",
        "/lance/v1/table/{id}/tags/list",
        "/lance/v1/table/{id}/tags/update",
        "/lance/v1/table/{id}/tags/version",
        "/lance/v1/table/{id}/update",
        "/lance/v1/table/{id}/update_field_metadata",
        "/lance/v1/table/{id}/version/delete",
        "/lance/v1/transaction/{id}/alter",
        "/lance/v1/transaction/{id}/describe",
    ]
]
