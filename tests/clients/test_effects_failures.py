"""Tasks that cannot be done: what the user is told, and that nothing is touched."""

import json
import re

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tables

CODES = {
    "TableNotFound": 4,
    "TableIndexNotFound": 6,
    "TableIndexAlreadyExists": 7,
    "TableColumnNotFound": 12,
    "InvalidInput": 13,
    "InvalidTableState": 19,
}
OPERATIONS = {
    "compact": {},
    "create_scalar_index": {"column": "id"},
    "create_vector_index": {"column": "vector", "num_partitions": 1},
    "optimize_indices": {},
    "cleanup": {"retain_versions": 1},
}


@pytest.fixture
def fail(service, client):
    """Runs a task that must fail so, and leave every file as it is."""
    secrets = [text for name in ("credentials.json", "secrets.json") for text in values(service, name)]

    def fail_one(table, location, operation, body, name, *words):
        before = tables.files(location)
        error = client.fail(table, operation, body)
        detail = error["detail"]
        assert set(error) == {"error", "code", "detail"}
        assert (error["error"], error["code"]) == (name, CODES[name]), error
        assert [word for word in words if word not in detail] == [], detail
        assert not re.search(r"\.rs\b|backtrace|panicked|file://|/tmp/", detail), detail
        assert not any(secret in detail for secret in secrets)
        assert tables.files(location) == before
        return detail

    return fail_one


def values(service, name):
    """What of a file of the service must not be shown; the region is no secret."""
    content = json.loads((service.folder / name).read_text())
    return [value for value in content.values() if len(value) > 8]


@pytest.fixture(scope="module")
def table(service):
    """A table with an index of each kind, that every task fails on."""
    client = service.client()
    table, location = client.new_table()
    rows = tables.rows(0, 300)
    few = pa.array([None] * 290 + rows["vector"].to_pylist()[290:], rows["vector"].type)
    none = pa.nulls(300, rows["vector"].type)
    odd = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(300 * 12, np.float32)), 12)
    whole = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(300 * 4, np.int32)), 4)
    for name, column in [("few", few), ("none", none), ("odd", odd), ("whole", whole)]:
        rows = rows.append_column(name, column)
    tables.append_in_parts(location, rows, 100)
    client.complete(table, "create_scalar_index", {"column": "id"})
    client.complete(table, "create_vector_index", {"column": "vector", "index_type": "IVF_FLAT"})
    return table, location


SCALAR = [
    ({"column": "nowhere"}, "TableColumnNotFound", "'nowhere'", "'digit'"),
    ({"column": "id.x"}, "TableColumnNotFound", "'id.x'"),
    ({"column": "vector"}, "InvalidInput", "BTREE", "'vector'"),
    ({"column": "words"}, "InvalidInput", "BTREE", "'words'"),
    ({"column": "words", "index_type": "BITMAP"}, "InvalidInput", "BITMAP", "'words'"),
    ({"column": "id", "index_type": "LABEL_LIST", "name": "x"}, "InvalidInput", "LABEL_LIST", "lists"),
    ({"column": "id", "index_type": "INVERTED", "name": "x"}, "InvalidInput", "INVERTED", "strings"),
    ({"column": "ink", "index_type": "NGRAM"}, "InvalidInput", "NGRAM", "strings"),
    ({"column": "words", "index_type": "ZONEMAP"}, "InvalidInput", "ZONEMAP"),
    ({"column": "vector", "index_type": "BLOOMFILTER", "name": "x"}, "InvalidInput", "BLOOMFILTER"),
    ({"column": "review", "index_type": "FTS", "language": "Klingon"}, "InvalidInput", "Klingon"),
    ({"column": "id", "replace": False}, "TableIndexAlreadyExists", "'id_idx'", "replace"),
    ({"column": "ink", "name": "id_idx"}, "TableIndexAlreadyExists", "'id_idx'", "another name"),
    ({"column": "id", "name": "__lance_frag_reuse"}, "InvalidInput", "__lance_"),
]
VECTOR = [
    ({"column": "nowhere"}, "TableColumnNotFound", "'nowhere'", "'vector'"),
    ({"column": "id", "name": "x"}, "InvalidInput", "'id'", "Int64"),
    ({"column": "review"}, "InvalidInput", "'review'"),
    ({"column": "whole"}, "InvalidInput", "'whole'"),
    ({"column": "odd"}, "InvalidInput", "num_sub_vectors", "16", "12", "1, 2, 3, 4, 6, 12"),
    ({"column": "odd", "index_type": "IVF_HNSW_PQ", "num_sub_vectors": 5}, "InvalidInput", "num_sub_vectors"),
    ({"column": "odd", "index_type": "IVF_RQ"}, "InvalidInput", "multiple of 8", "12"),
    ({"column": "few"}, "InvalidInput", "256", "10 vectors", "IVF_FLAT"),
    ({"column": "none", "index_type": "IVF_FLAT"}, "InvalidInput", "null"),
    ({"column": "odd", "num_sub_vectors": 4, "num_bits": 7}, "InvalidInput", "num_bits", "7"),
    ({"column": "odd", "index_type": "IVF_SQ", "num_bits": 4}, "InvalidInput", "num_bits", "8"),
    ({"column": "odd", "index_type": "IVF_HNSW_SQ", "m": 3}, "InvalidInput", "'m'", "4"),
    ({"column": "odd", "metric_type": "hamming"}, "InvalidInput", "hamming", "uint8"),
    ({"column": "bits", "index_type": "IVF_FLAT"}, "InvalidInput", "hamming"),
    ({"column": "bits", "metric_type": "hamming"}, "InvalidInput", "IVF_FLAT"),
    ({"column": "vector"}, "TableIndexAlreadyExists", "'vector_idx'", "replace"),
]
CLEANUP = ["1w", "1.5d", "-7d", "1h30m", "7D", "7 d", "7", "d", "9" * 30 + "d", f"{2**63 - 1}s", "20000000d"]


@pytest.mark.parametrize("case", SCALAR, ids=lambda case: json.dumps(case[0]))
def test_index_on_values(fail, table, case):
    fail(*table, "create_scalar_index", *case)


@pytest.mark.parametrize("case", VECTOR, ids=lambda case: json.dumps(case[0]))
def test_index_on_vectors(fail, table, case):
    fail(*table, "create_vector_index", *case)


@pytest.mark.parametrize("older_than", CLEANUP)
def test_ages(fail, table, older_than):
    fail(*table, "cleanup", {"older_than": older_than}, "InvalidInput", older_than, "[dhms]")


@pytest.mark.parametrize("names", [["nowhere"], ["id_idx", "nowhere"], ["ID_IDX"]])
def test_indices_that_are_not_there(fail, table, names):
    words = [f"'{names[-1]}'", "'id_idx'", "'vector_idx'"]
    fail(*table, "optimize_indices", {"index_names": names}, "TableIndexNotFound", *words)


def test_copying_files_that_have_deleted_rows(client, fail):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 100), 10)
    lance.dataset(location).delete("id % 3 = 0")
    rows = tables.digest(location)
    fail(table, location, "compact", {"compaction_mode": "force_binary_copy"}, "InvalidInput", "binary copy")
    client.complete(table, "compact", {"compaction_mode": "try_binary_copy"})
    assert tables.digest(location) == rows and tables.shape(location).deleted == 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_written_yet(client, fail, operation):
    table, location = client.new_table()
    fail(table, location, operation, OPERATIONS[operation], "TableNotFound", "no Lance table")
    assert not tables.folder(location).exists()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_folder_of_parquet(service, client, fail, operation):
    roots = json.loads((service.folder / "variables.json").read_text())["register_roots"]
    location = f"{roots.split(',')[0]}/parquet-{operation}"
    tables.folder(location).mkdir()
    for n in range(3):
        pyarrow.parquet.write_table(tables.rows(0, 10), tables.folder(location) / f"part-{n}.parquet")
    client.create_namespace("tests", mode="exist_ok")
    table = f"tests$parquet_{operation}"
    answer = client.request("POST", f"/lance/v1/table/{table.replace('$', '%24')}/register", {"location": location})
    assert answer.status_code == 200, answer.text
    words = ["not a Lance table", "'part-0.parquet'"]
    fail(table, location, operation, OPERATIONS[operation], "InvalidInput", *words)


def spoil(file):
    """Both ends stay whole, and the offsets and lengths of texts between them do not."""
    data = bytearray(file.read_bytes())
    for at in range(0, len(data) - 4096, 2):
        data[at] ^= 0xFF
    file.write_bytes(data)


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda file: file.unlink(), ["missing"]),
        (lambda file: file.write_bytes(file.read_bytes()[:1000]), ["can't be read", "1000 bytes"]),
        (lambda file: file.write_bytes(b"\x00" * file.stat().st_size), ["can't be read"]),
        (spoil, ["can't be read"]),
    ],
    ids=["missing", "cut short", "zeros", "spoilt inside"],
)
def test_a_data_file_that_cannot_be_read(client, fail, damage, words):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 600), 100)
    client.complete(table, "create_scalar_index", {"column": "id"})
    tables.append(location, tables.rows(600, 700))
    file = tables.data_file(location, 2)
    damage(file)
    words = words + [f"data/{file.name}"]
    fail(table, location, "compact", {}, "InvalidTableState", *words)
    fail(table, location, "create_scalar_index", {"column": "review"}, "InvalidTableState", *words)
    if damage != spoil:  # Numbers that are wrong are numbers.
        body = {"column": "vector", "index_type": "IVF_FLAT"}
        fail(table, location, "create_vector_index", body, "InvalidTableState", *words)
    # What does not need the file goes on.
    result = client.complete(table, "optimize_indices", {})
    assert result["indices"] == [{"name": "id_idx", "num_indexed_rows": 700, "num_unindexed_rows": 0}]
    assert client.complete(table, "cleanup", {"older_than": "0d"})["old_versions"] > 0


def test_a_newest_version_that_cannot_be_read(client, fail):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 30), 10)
    newest = min((tables.folder(location) / "_versions").glob("*.manifest"))
    newest.write_bytes(b"\x00" * newest.stat().st_size)
    for operation, body in OPERATIONS.items():
        fail(table, location, operation, body, "InvalidTableState", "newest version")


def test_an_empty_table(client):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 0))
    version = tables.shape(location).version
    result = client.complete(table, "compact", {})
    assert result["fragments_removed"] == 0 and result["version"] == version
    for column in ["id", "digit"]:
        assert client.complete(table, "create_scalar_index", {"column": column})["num_indexed_rows"] == 0
    for body in [{"column": "vector"}, {"column": "vector", "index_type": "IVF_FLAT", "replace": True}]:
        assert client.complete(table, "create_vector_index", body)["num_indexed_rows"] == 0
    assert sorted(tables.index_names(location)) == ["digit_idx", "id_idx", "vector_idx"]
    result = client.complete(table, "optimize_indices", {})
    assert [index["num_unindexed_rows"] for index in result["indices"]] == [0, 0, 0]
    assert client.complete(table, "cleanup", {"retain_versions": 1})["old_versions"] > 0

    # And they fill up once there are rows.
    tables.append(location, tables.rows(0, 500))
    result = client.complete(table, "optimize_indices", {})
    assert [index["num_indexed_rows"] for index in result["indices"]] == [500, 500, 500]
    assert tables.ids(location, filter="id = 17") == [17]


@pytest.mark.parametrize("delete", ["every row", "and compacted"])
def test_a_table_of_which_all_rows_are_deleted(client, delete):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 300), 100)
    client.complete(table, "create_scalar_index", {"column": "id"})
    client.complete(table, "create_vector_index", {"column": "vector", "num_partitions": 1})
    lance.dataset(location).delete("true")
    if delete == "and compacted":
        client.complete(table, "compact", {})
        assert tables.shape(location).fragments == frozenset()
    for operation, body in OPERATIONS.items():
        client.complete(table, operation, body | ({"replace": True} if "create" in operation else {}))
    assert tables.shape(location).rows == 0
    tables.append(location, tables.rows(0, 300))
    client.complete(table, "optimize_indices", {})
    assert [tables.unindexed(location, name) for name in ("id_idx", "vector_idx")] == [0, 0]
    assert tables.ids(location, filter="id = 17") == [17]
