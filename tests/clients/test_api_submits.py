"""The five submits: which bodies are accepted, what is stored of them, and which are refused."""

import json

import pytest

import wire
from cases import FIELDS, INVALID_INPUT, SUBMITS, rows, submitted, task_ids
from service import refusal

COMPACT = {
    "target_rows_per_fragment": 1048576,
    "materialize_deletions": True,
    "materialize_deletions_threshold": 0.1,
    "max_rows_per_group": 1024,
    "max_bytes_per_file": 0,
    "compaction_mode": "reencode",
}
CLEANUP = {
    "older_than": "",
    "retain_versions": 0,
    "delete_unverified": False,
    "error_if_tagged_old_versions": False,
}
SCALAR = {"column": "c", "index_type": "BTREE", "name": "", "replace": True}
BTREE = SCALAR | {"zone_size": 4096}
TEXT = {
    "with_position": False,
    "base_tokenizer": "simple",
    "language": "English",
    "max_token_length": 40,
    "lower_case": True,
    "stem": True,
    "remove_stop_words": True,
    "ascii_folding": True,
}
INVERTED = SCALAR | {"index_type": "INVERTED"} | TEXT
OPTIMIZE = {"index_names": [], "num_indices_to_merge": None, "retrain": False}

INT64_MAX = 9223372036854775807


def scalar(index_type, **more):
    return SCALAR | {"index_type": index_type} | more


def vector(index_type="IVF_PQ", metric_type="l2", **more):
    """The parameters of a vector index, in their order."""
    params = {
        "column": "v",
        "index_type": index_type,
        "name": "",
        "metric_type": metric_type,
        "replace": False,
        "num_partitions": 0,
        "target_partition_size": 0,
    }
    if index_type.endswith("PQ"):
        params["num_sub_vectors"] = 16
    if not index_type.endswith("FLAT"):
        params["num_bits"] = 5 if index_type == "IVF_RQ" else 8
    params |= {"sample_rate": 256, "max_iterations": 50}
    if "HNSW" in index_type:
        params |= {"m": 20, "ef_construction": 150, "max_level": 7}
    unknown = set(more) - set(params)
    assert not unknown, unknown
    return params | more


ACCEPTED = [
    ("compact", "", COMPACT),
    ("compact", "{}", COMPACT),
    ("compact", " { } ", COMPACT),
    ("compact", '{"batch_size":1024}', COMPACT),
    ("compact", '{"materialize_deletions_threshold":0}', COMPACT),
    ("compact", '{"materialize_deletions_threshold":-1}', COMPACT | {"materialize_deletions_threshold": -1.0}),
    ("compact", '{"materialize_deletions_threshold":2.5}', COMPACT | {"materialize_deletions_threshold": 2.5}),
    ("compact", '{"materialize_deletions_threshold":1}', COMPACT | {"materialize_deletions_threshold": 1.0}),
    ("compact", '{"materialize_deletions":false}', COMPACT | {"materialize_deletions": False}),
    ("compact", '{"target_rows_per_fragment":1}', COMPACT | {"target_rows_per_fragment": 1}),
    ("compact", f'{{"target_rows_per_fragment":{INT64_MAX}}}', COMPACT | {"target_rows_per_fragment": INT64_MAX}),
    ("compact", '{"max_rows_per_group":1}', COMPACT | {"max_rows_per_group": 1}),
    ("compact", '{"max_bytes_per_file":0}', COMPACT),
    ("compact", '{"max_bytes_per_file":1}', COMPACT | {"max_bytes_per_file": 1}),
    ("compact", '{"compaction_mode":"reencode"}', COMPACT),
    ("compact", '{"compaction_mode":"try_binary_copy"}', COMPACT | {"compaction_mode": "try_binary_copy"}),
    ("compact", '{"compaction_mode":"force_binary_copy"}', COMPACT | {"compaction_mode": "force_binary_copy"}),
    ("compact", json.dumps(dict.fromkeys(COMPACT)), COMPACT),
    ("compact", '{"max_rows_per_group":0,"max_rows_per_group":7}', COMPACT | {"max_rows_per_group": 7}),
    ("compact", json.dumps(dict(reversed(COMPACT.items()))), COMPACT),
    ("cleanup", '{"retain_versions":2}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"retain_versions":2,"delete_unverified":false}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"retain_versions":2,"error_if_tagged_old_versions":false}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"retain_versions":2,"older_than":""}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"retain_versions":2,"older_than":null}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"retain_versions":-1,"retain_versions":2}', CLEANUP | {"retain_versions": 2}),
    ("cleanup", '{"older_than":"7d"}', CLEANUP | {"older_than": "7d"}),
    ("cleanup", '{"older_than":"7D"}', CLEANUP | {"older_than": "7D"}),
    ("cleanup", '{"older_than":"1w"}', CLEANUP | {"older_than": "1w"}),
    ("cleanup", '{"older_than":" "}', CLEANUP | {"older_than": " "}),
    ("cleanup", '{"older_than":"7d","retain_versions":0}', CLEANUP | {"older_than": "7d"}),
    ("cleanup", '{"older_than":"7d","retain_versions":3,"x":1}', CLEANUP | {"older_than": "7d", "retain_versions": 3}),
    ("create_scalar_index", '{"column":"c"}', BTREE),
    ("create_scalar_index", '{"column":"c","index_type":null,"name":null,"replace":null,"zone_size":null}', BTREE),
    ("create_scalar_index", '{"column":"a.b","metric_type":"l2"}', BTREE | {"column": "a.b"}),
    ("create_scalar_index", '{"column":"größe \\" 1"}', BTREE | {"column": 'größe " 1'}),
    ("create_scalar_index", '{"column":"c","name":"n","replace":false}', BTREE | {"name": "n", "replace": False}),
    ("create_scalar_index", '{"column":"c","index_name":"n"}', BTREE | {"name": "n"}),
    ("create_scalar_index", '{"column":"c","index_type":"btree","zone_size":1}', BTREE | {"zone_size": 1}),
    ("create_scalar_index", '{"column":"c","index_type":"BITMAP"}', scalar("BITMAP")),
    ("create_scalar_index", '{"column":"c","index_type":"bitmap","zone_size":8}', scalar("BITMAP")),
    ("create_scalar_index", '{"column":"c","index_type":"LABEL_LIST"}', scalar("LABEL_LIST")),
    ("create_scalar_index", '{"column":"c","index_type":"Label_List"}', scalar("LABEL_LIST")),
    ("create_scalar_index", '{"column":"c","index_type":"NGRAM"}', scalar("NGRAM")),
    ("create_scalar_index", '{"column":"c","index_type":"ZONEMAP"}', scalar("ZONEMAP", rows_per_zone=8192)),
    ("create_scalar_index", '{"column":"c","index_type":"ZONEMAP","rows_per_zone":5}', scalar("ZONEMAP", rows_per_zone=5)),
    ("create_scalar_index", '{"column":"c","index_type":"BLOOMFILTER"}', scalar("BLOOMFILTER")),
    ("create_scalar_index", '{"column":"c","index_type":"INVERTED"}', INVERTED),
    ("create_scalar_index", '{"column":"c","index_type":"FTS"}', INVERTED),
    ("create_scalar_index", '{"column":"c","index_type":"fts","with_position":true}', INVERTED | {"with_position": True}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"whitespace"}', INVERTED | {"base_tokenizer": "whitespace"}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"raw"}', INVERTED | {"base_tokenizer": "raw"}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"icu/split"}', INVERTED | {"base_tokenizer": "icu/split"}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"ngram"}', INVERTED | {"base_tokenizer": "ngram", "stem": False, "remove_stop_words": False}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"ngram","stem":true}', INVERTED | {"base_tokenizer": "ngram", "remove_stop_words": False}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","language":"French","max_token_length":0}', INVERTED | {"language": "French", "max_token_length": 0}),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","lower_case":false,"ascii_folding":false}', INVERTED | {"lower_case": False, "ascii_folding": False}),
    ("create_vector_index", '{"column":"v"}', vector()),
    ("create_vector_index", '{"column":"v","index_type":null,"metric_type":null,"num_bits":null,"m":null}', vector()),
    ("create_vector_index", '{"column":"v","index_type":"IVF_FLAT"}', vector("IVF_FLAT")),
    ("create_vector_index", '{"column":"v","index_type":"ivf_pq","m":3}', vector("IVF_PQ")),
    ("create_vector_index", '{"column":"v","index_type":"IVF_SQ"}', vector("IVF_SQ")),
    ("create_vector_index", '{"column":"v","index_type":"IVF_RQ"}', vector("IVF_RQ")),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_FLAT"}', vector("IVF_HNSW_FLAT")),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_PQ"}', vector("IVF_HNSW_PQ")),
    ("create_vector_index", '{"column":"v","index_type":"Ivf_Hnsw_Sq"}', vector("IVF_HNSW_SQ")),
    ("create_vector_index", '{"column":"v","metric_type":"cosine"}', vector(metric_type="cosine")),
    ("create_vector_index", '{"column":"v","metric_type":"dot"}', vector(metric_type="dot")),
    ("create_vector_index", '{"column":"v","metric_type":"hamming"}', vector(metric_type="hamming")),
    ("create_vector_index", '{"column":"v","metric_type":"euclidean"}', vector()),
    ("create_vector_index", '{"column":"v","distance_type":"Cosine"}', vector(metric_type="cosine")),
    ("create_vector_index", '{"column":"v","metric":"DOT"}', vector(metric_type="dot")),
    ("create_vector_index", '{"column":"v","index_name":"n","replace":true}', vector(name="n", replace=True)),
    ("create_vector_index", '{"column":"v","num_partitions":7,"target_partition_size":9}', vector(num_partitions=7, target_partition_size=9)),
    ("create_vector_index", '{"column":"v","num_sub_vectors":3,"num_bits":4}', vector(num_sub_vectors=3, num_bits=4)),
    ("create_vector_index", '{"column":"v","sample_rate":1,"max_iterations":1}', vector(sample_rate=1, max_iterations=1)),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_SQ","m":8,"ef_construction":9,"max_level":1}', vector("IVF_HNSW_SQ", m=8, ef_construction=9, max_level=1)),
    ("optimize_indices", "", OPTIMIZE),
    ("optimize_indices", "{}", OPTIMIZE),
    ("optimize_indices", '{"index_names":[],"column":"c"}', OPTIMIZE),
    ("optimize_indices", '{"index_names":null,"num_indices_to_merge":null,"retrain":null}', OPTIMIZE),
    ("optimize_indices", '{"index_names":["b","a"]}', OPTIMIZE | {"index_names": ["b", "a"]}),
    ("optimize_indices", '{"num_indices_to_merge":0}', OPTIMIZE | {"num_indices_to_merge": 0}),
    ("optimize_indices", '{"num_indices_to_merge":3,"retrain":true}', OPTIMIZE | {"num_indices_to_merge": 3, "retrain": True}),
]

# The third column is what the error speaks of.
REFUSED = [
    ("compact", '{"target_rows_per_fragment":0}', "target_rows_per_fragment"),
    ("compact", '{"target_rows_per_fragment":-1}', "target_rows_per_fragment"),
    ("compact", '{"max_rows_per_group":0}', "max_rows_per_group"),
    ("compact", '{"max_rows_per_group":-1}', "max_rows_per_group"),
    ("compact", '{"max_bytes_per_file":-1}', "max_bytes_per_file"),
    ("compact", '{"max_rows_per_group":7,"max_rows_per_group":0}', "max_rows_per_group"),
    ("compact", '{"compaction_mode":"REENCODE"}', "compaction_mode"),
    ("compact", '{"compaction_mode":""}', "compaction_mode"),
    ("compact", '{"compaction_mode":"binary"}', "compaction_mode"),
    ("compact", '{"compaction_mode":"reencode "}', "compaction_mode"),
    ("compact", '{"materialize_deletions_threshold":1e400}', "JSON"),
    ("compact", '{"materialize_deletions_threshold":NaN}', "JSON"),
    ("cleanup", "", "older_than"),
    ("cleanup", "{}", "older_than"),
    ("cleanup", '{"x":1}', "older_than"),
    ("cleanup", '{"retain_versions":0}', "retain_versions"),
    ("cleanup", '{"retain_versions":-1}', "retain_versions"),
    ("cleanup", '{"retain_versions":null,"older_than":null}', "retain_versions"),
    ("cleanup", '{"older_than":""}', "older_than"),
    ("cleanup", '{"older_than":"","retain_versions":0}', "retain_versions"),
    ("cleanup", '{"older_than":"7d","retain_versions":-1}', "retain_versions"),
    ("cleanup", '{"retain_versions":2,"delete_unverified":true}', "delete_unverified"),
    ("cleanup", '{"retain_versions":2,"error_if_tagged_old_versions":true}', "error_if_tagged_old_versions"),
    ("create_scalar_index", "", "column"),
    ("create_scalar_index", "{}", "column"),
    ("create_scalar_index", '{"column":""}', "column"),
    ("create_scalar_index", '{"column":null}', "column"),
    ("create_scalar_index", '{"column":"c","index_type":""}', "index_type"),
    ("create_scalar_index", '{"column":"c","index_type":"HASH"}', "index_type"),
    ("create_scalar_index", '{"column":"c","index_type":"IVF_PQ"}', "index_type"),
    ("create_scalar_index", '{"column":"c","zone_size":0}', "zone_size"),
    ("create_scalar_index", '{"column":"c","index_type":"ZONEMAP","rows_per_zone":0}', "rows_per_zone"),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","max_token_length":-1}', "max_token_length"),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":"words"}', "base_tokenizer"),
    ("create_scalar_index", '{"column":"c","index_type":"FTS","base_tokenizer":""}', "base_tokenizer"),
    ("create_vector_index", "", "column"),
    ("create_vector_index", "{}", "column"),
    ("create_vector_index", '{"column":""}', "column"),
    ("create_vector_index", '{"column":"v","index_type":""}', "index_type"),
    ("create_vector_index", '{"column":"v","index_type":"BTREE"}', "index_type"),
    ("create_vector_index", '{"column":"v","metric_type":""}', "metric_type"),
    ("create_vector_index", '{"column":"v","metric_type":"manhattan"}', "metric_type"),
    ("create_vector_index", '{"column":"v","num_partitions":-1}', "num_partitions"),
    ("create_vector_index", '{"column":"v","target_partition_size":-1}', "target_partition_size"),
    ("create_vector_index", '{"column":"v","num_sub_vectors":0}', "num_sub_vectors"),
    ("create_vector_index", '{"column":"v","num_bits":0}', "num_bits"),
    ("create_vector_index", '{"column":"v","sample_rate":0}', "sample_rate"),
    ("create_vector_index", '{"column":"v","max_iterations":0}', "max_iterations"),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_PQ","m":0}', "'m'"),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_PQ","ef_construction":0}', "ef_construction"),
    ("create_vector_index", '{"column":"v","index_type":"IVF_HNSW_PQ","max_level":0}', "max_level"),
    ("optimize_indices", '{"index_names":[""]}', "index_names"),
    ("optimize_indices", '{"index_names":["a",""]}', "index_names"),
    ("optimize_indices", '{"num_indices_to_merge":-1}', "num_indices_to_merge"),
]

# Bodies that no submit takes.
NO_OBJECTS = ["[]", "[{}]", "1", '"{}"', "null", "true", "{", "{}{}", "{}x", "{'a':1}", '{"a":}', '{"a":1,}', " ", "\0", "\ufeff{}", "[" * 5000, '{"a":"\ud800"}']

# Values of a wrong type, by the type that is due.
WRONG = {
    "integer": ['"5"', "1.5", "true", "[]", "{}", str(INT64_MAX + 1), str(-INT64_MAX - 2), "1e99"],
    "number": ['"0.1"', "true", "[]", "{}"],
    "boolean": ["1", "0", '"true"', "[]", "{}"],
    "string": ["7", "true", "[]", "{}"],
    "strings": ['"a"', "1", "{}", "[1]", '["a",null]', '[["a"]]'],
}
TYPES = {
    "compact": {
        "target_rows_per_fragment": "integer",
        "materialize_deletions": "boolean",
        "materialize_deletions_threshold": "number",
        "max_rows_per_group": "integer",
        "max_bytes_per_file": "integer",
        "compaction_mode": "string",
    },
    "cleanup": {
        "older_than": "string",
        "retain_versions": "integer",
        "delete_unverified": "boolean",
        "error_if_tagged_old_versions": "boolean",
    },
    "create_scalar_index": {
        "column": "string",
        "index_type": "string",
        "name": "string",
        "index_name": "string",
        "replace": "boolean",
        "with_position": "boolean",
        "base_tokenizer": "string",
        "language": "string",
        "max_token_length": "integer",
        "lower_case": "boolean",
        "stem": "boolean",
        "remove_stop_words": "boolean",
        "ascii_folding": "boolean",
        "rows_per_zone": "integer",
        "zone_size": "integer",
    },
    "create_vector_index": {
        "column": "string",
        "index_type": "string",
        "name": "string",
        "index_name": "string",
        "metric_type": "string",
        "distance_type": "string",
        "metric": "string",
        "replace": "boolean",
        "num_partitions": "integer",
        "target_partition_size": "integer",
        "num_sub_vectors": "integer",
        "num_bits": "integer",
        "sample_rate": "integer",
        "max_iterations": "integer",
        "m": "integer",
        "ef_construction": "integer",
        "max_level": "integer",
    },
    "optimize_indices": {
        "index_names": "strings",
        "num_indices_to_merge": "integer",
        "retrain": "boolean",
    },
}


def wrong_types():
    for operation, fields in TYPES.items():
        for name, kind in fields.items():
            # With what is required, unless that is the field in question.
            rest = {k: v for k, v in SUBMITS[operation][1].items() if k != name}
            for value in WRONG[kind]:
                parts = [f'"{k}":{json.dumps(v)}' for k, v in rest.items()]
                yield operation, "{" + ",".join([*parts, f'"{name}":{value}']) + "}", name


@pytest.fixture(scope="module")
def accepting(idle):
    client = idle.client()
    return client, client.new_table()[0]


@pytest.fixture(scope="module")
def refusing(idle):
    """A table whose tasks are all refused."""
    client = idle.client()
    return client, client.new_table()[0]


@rows("operation,body,stored", *ACCEPTED)
def test_accepts(accepting, operation, body, stored):
    client, table = accepting
    answer = client.submit(table, operation, body.encode())
    assert answer.status_code == 200, answer.text
    text = client.get(table, answer.json()["task_id"]).text
    params = text.split('"params":', 1)[1].split(',"status":', 1)[0]
    assert params == json.dumps(stored, separators=(",", ":"), ensure_ascii=False)


def refuses(refusing, operation, body: bytes, speaks_of):
    client, table = refusing
    answer = client.submit(table, operation, body)
    assert refusal(answer) == INVALID_INPUT
    assert speaks_of in answer.json()["detail"]
    listing = client.list(table, f"task_type={SUBMITS[operation][0]}")
    assert listing.text == '{"tasks":[],"next_marker":""}'


@rows("operation,body,speaks_of", *REFUSED)
def test_refuses(refusing, operation, body, speaks_of):
    refuses(refusing, operation, body.encode(), speaks_of)


@rows("operation,body,name", *wrong_types())
def test_refuses_values_of_a_wrong_type(refusing, operation, body, name):
    refuses(refusing, operation, body.encode(), f"'{name}'")


@rows("operation,body", *((operation, body) for operation in SUBMITS for body in NO_OBJECTS))
def test_refuses_what_is_no_json_object(refusing, operation, body):
    refuses(refusing, operation, body.encode("utf-8", "surrogatepass"), "JSON")


@rows("operation", *SUBMITS)
def test_a_submit_answers_with_the_id_alone(accepting, operation):
    client, table = accepting
    answer = client.submit(table, operation, SUBMITS[operation][1])
    task_id = answer.json()["task_id"]
    assert answer.text == f'{{"task_id":"{task_id}"}}'
    assert len(task_id) == 32 and set(task_id) <= set("0123456789abcdef")


@rows("operation", *SUBMITS)
def test_each_submit_makes_a_task(accepting, operation):
    client, table = accepting
    task_type, body = SUBMITS[operation]
    before = task_ids(client, table, task_type)
    made = [submitted(client, table, operation, body) for _ in range(3)]
    assert len(set(made)) == 3
    assert task_ids(client, table, task_type) == made[::-1] + before


@rows("content_type", None, "text/plain", "application/json; charset=utf-8")
def test_the_content_type_does_not_matter(accepting, content_type):
    client, table = accepting
    headers = {"Content-Type": content_type} if content_type else {}
    path = f"/lance/oss/v1/table/{table}/compact"
    answer = wire.request(client, "POST", path, b'{"max_rows_per_group":5}', headers)
    assert answer.status_code == 200, answer.text
    info = client.get(table, answer.json()["task_id"]).json()["task_info"]
    assert info["params"]["max_rows_per_group"] == 5


def test_a_body_may_come_in_chunks(accepting):
    client, table = accepting
    path = f"/lance/oss/v1/table/{table}/compact"
    body = b'{"max_rows_per_group": 6}'
    headers = wire.signed(client, "POST", path, body)
    answer = wire.send(client, "POST", path, headers, [body[:7], body[7:8], body[8:]])
    assert answer.status_code == 200, answer.text
    info = client.get(table, answer.json()["task_id"]).json()["task_info"]
    assert info["params"]["max_rows_per_group"] == 6


@rows(
    "size,chunked,expected",
    (1 << 20, False, None),
    (1 << 20, True, None),
    ((1 << 20) + 1, False, (413, "RequestTooLarge", 13)),
    ((1 << 20) + 1, True, (413, "RequestTooLarge", 13)),
)
def test_a_body_has_at_most_a_mebibyte(accepting, size, chunked, expected):
    client, table = accepting
    path = f"/lance/oss/v1/table/{table}/compact"
    body = b"{}".ljust(size)
    headers = wire.signed(client, "POST", path, body)
    pieces = [body[:65536], body[65536:]] if chunked else body
    answer = wire.send(client, "POST", path, headers, pieces)
    if expected:
        assert refusal(answer) == expected
    else:
        assert answer.status_code == 200, answer.text


def test_the_servers_mode_counts_where_none_is_given(strict):
    client = strict.client("lance.oss-tables.localhost")
    table, _ = client.new_table()
    for body in [b"", {}, {"compaction_mode": None}]:
        answer = client.submit(table, "compact", body)
        assert refusal(answer) == (500, "InternalError", 18)
    assert refusal(client.submit(table, "compact", {"compaction_mode": "fast"})) == INVALID_INPUT
    assert task_ids(client, table, "lance_compact") == []
    submitted(client, table, "compact", {"compaction_mode": "reencode"})
    info = client.list(table, "task_type=lance_compact").json()["tasks"][0]
    assert list(info) == FIELDS
    assert info["params"] == COMPACT
