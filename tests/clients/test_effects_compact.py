"""Compaction of tables that pylance wrote, seen with pylance."""

import datetime
import decimal
import time

import lance
import numpy as np
import pyarrow as pa
import pytest

import tables

NOTHING = {"fragments_removed": 0, "fragments_added": 0, "files_removed": 0, "files_added": 0}


def assert_counts(result, before, after):
    """The result's numbers are those of the table before and after."""
    assert result == {
        "fragments_removed": len(before.fragments - after.fragments),
        "fragments_added": len(after.fragments - before.fragments),
        "files_removed": before.data_files + before.deletion_files,
        "files_added": after.data_files + after.deletion_files,
        "version": after.version,
    }


def test_rows_stay_while_fragments_and_deleted_rows_go(client):
    table, location = client.new_table()
    tables.busy(location)
    before, rows = tables.shape(location), tables.digest(location)
    assert len(before.fragments) > 30 and before.deleted > 100

    result = client.complete(table, "compact", {})
    after = tables.shape(location)
    assert tables.digest(location) == rows
    assert (after.rows, after.deleted, len(after.fragments)) == (before.rows, 0, 1)
    assert after.version > before.version
    assert_counts(result, before, after)
    assert tables.unreferenced(location) == set()

    # Without a body and with all defaults, there is nothing more to do, and no version for it.
    again = client.complete(table, "compact")
    assert again == NOTHING | {"version": after.version}
    assert tables.shape(location) == after


@pytest.mark.parametrize("mode", ["try_binary_copy", "force_binary_copy"])
def test_rows_stay_when_files_are_copied(client, mode):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 300), 20)
    before, rows = tables.shape(location), tables.digest(location)
    result = client.complete(table, "compact", {"compaction_mode": mode})
    assert_counts(result, before, tables.shape(location))
    assert result["fragments_added"] == 1
    assert tables.digest(location) == rows


def test_sizes_are_healthy_and_final(client):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 2000), 200)
    body = {"target_rows_per_fragment": 500}
    assert client.complete(table, "compact", body)["fragments_removed"] == 10
    sizes = [fragment.count_rows() for fragment in lance.dataset(location).get_fragments()]
    # No leftover that is smaller than what was asked for.
    assert sum(sizes) == 2000 and min(sizes) >= 500, sizes
    version = tables.shape(location).version
    assert client.complete(table, "compact", body) == NOTHING | {"version": version}


@pytest.mark.parametrize(
    "options, rewritten",
    [
        ({}, 2),
        ({"materialize_deletions_threshold": 0}, 2),  # unset, which is 0.1
        ({"materialize_deletions_threshold": 0.01}, 3),
        ({"materialize_deletions_threshold": 0.3}, 1),
        ({"materialize_deletions_threshold": 1}, 0),
        ({"materialize_deletions_threshold": 2.5}, 0),
        ({"materialize_deletions_threshold": -1}, 4),
        ({"materialize_deletions": False}, 0),
        ({"materialize_deletions": False, "materialize_deletions_threshold": -1}, 0),
    ],
)
def test_which_deletions_count(client, options, rewritten):
    table, location = client.new_table()
    tables.fragments_at_once(location, tables.rows(0, 800).select(["id", "ink"]), 200)
    # 0, 5, 20 and 50 of each hundred.
    gone = "(id >= 200 AND id < 210) OR (id >= 400 AND id < 440) OR id >= 700"
    lance.dataset(location).delete(gone)
    rows = tables.digest(location)
    result = client.complete(table, "compact", {"target_rows_per_fragment": 200} | options)
    assert result["fragments_removed"] == rewritten
    left = {0: 150, 1: 50, 2: 10, 3: 0, 4: 0}[rewritten]
    assert tables.shape(location).deleted == left
    assert tables.digest(location) == rows


def test_files_have_a_limit(client):
    table, location = client.new_table()
    values = np.random.default_rng(1).bytes(40_000_000)
    for start in range(0, 1000, 100):
        part = [values[row * 40_000 : (row + 1) * 40_000] for row in range(start, start + 100)]
        tables.append(location, pa.table({"id": range(start, start + 100), "value": part}))
    rows, limit = lance.dataset(location).to_table(), 10 << 20
    client.complete(table, "compact", {"max_bytes_per_file": limit})
    count = len(tables.shape(location).fragments)
    sizes = [tables.data_file(location, n).stat().st_size for n in range(count)]
    # The limit is a soft one: the writer holds up to 8 MiB of a column before they count.
    assert count == 3 and max(sizes) < limit + (8 << 20), sizes
    assert lance.dataset(location).to_table().sort_by("id") == rows
    # Files that are full have fewer rows than the target, and are left alone all the same.
    version = tables.shape(location).version
    for body in [{"max_bytes_per_file": limit}, {"max_bytes_per_file": 1}]:
        assert client.complete(table, "compact", body) == NOTHING | {"version": version}
    # Without the limit they become one, and so do small files with any limit.
    assert client.complete(table, "compact", {})["fragments_added"] == 1
    tables.append_in_parts(location, rows.slice(0, 20), 10)
    assert client.complete(table, "compact", {"max_bytes_per_file": 1 << 40})["fragments_removed"] == 3


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_indices_stay_usable(client, stable_row_ids):
    table, location = client.new_table()
    tables.busy(location, enable_stable_row_ids=stable_row_ids)
    client.complete(table, "create_scalar_index", {"column": "digit", "index_type": "BITMAP"})
    client.complete(table, "create_scalar_index", {"column": "review", "index_type": "FTS"})
    client.complete(table, "create_vector_index", {"column": "vector", "num_partitions": 4, "index_type": "IVF_FLAT"})
    image = tables.images()[0][42]
    queries = [
        {"filter": "digit = 7"},
        {"full_text_query": "alcohol", "limit": 10_000},
        {"nearest": {"column": "vector", "q": image, "k": 20, "nprobes": 4}},
    ]
    answers = [tables.ids(location, **query) for query in queries]
    plans = ["ScalarIndexQuery", "MatchQuery", "ANNSubIndex"]

    client.complete(table, "compact", {})
    assert len(tables.shape(location).fragments) == 1
    for query, answer, words in zip(queries, answers, plans):
        assert len(answer) >= 20
        assert tables.ids(location, **query) == answer
        assert words in tables.plan(location, **query)
    for name in ["digit_idx", "review_idx", "vector_idx"]:
        assert tables.unindexed(location, name) == 0, name
    assert tables.unreferenced(location) == set()


def test_every_type_of_value(client):
    table, location = client.new_table()
    point = pa.struct([("x", pa.float32()), ("label", pa.string())])
    values = {
        "decimal": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")], pa.decimal128(10, 2)),
        "time": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5), None, None], pa.timestamp("us", "UTC")),
        "day": pa.array([datetime.date(2026, 1, 2), None, datetime.date(1969, 1, 1)]),
        "binary": pa.array([b"\x00\xff", b"", None]),
        "large": pa.array(["x" * 100_000, "", None], pa.large_string()),
        "truth": pa.array([True, None, False]),
        "half": pa.array([1.5, None, 2.5], pa.float16()),
        "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "point": pa.array([{"x": 1.5, "label": "a"}, None, {"x": None, "label": None}], point),
        "word": pa.array(["a", None, "a"]).dictionary_encode(),
        "nothing": pa.nulls(3),
    }
    for _ in range(6):
        tables.append(location, pa.table(values))
    lance.dataset(location).delete("truth = false")
    # A column that came later, and is missing in the files of older rows.
    lance.dataset(location).add_columns({"later": "day IS NULL"})
    rows = tables.digest(location)
    assert client.complete(table, "compact", {})["files_removed"] == 6 * 3
    assert tables.digest(location) == rows


def test_three_thousand_fragments_of_one_row(client):
    table, location = client.new_table()
    tables.fragments_at_once(location, tables.rows(0, 3000).select(["id", "ink"]), 1)
    rows, start = tables.digest(location), time.monotonic()
    result = client.complete(table, "compact", {})
    assert time.monotonic() - start < 60
    assert (result["fragments_removed"], result["fragments_added"]) == (3000, 1)
    assert tables.digest(location) == rows
