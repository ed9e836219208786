"""Indices of tables that pylance goes on writing to, brought up to date."""

import lance
import pytest

import tables

INDICES = ["digit_idx", "review_idx", "vector_idx"]


@pytest.fixture
def indexed(client):
    """A table with an index on values, one on texts and one on vectors."""
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 600), 300)
    client.complete(table, "create_scalar_index", {"column": "digit"})
    client.complete(table, "create_scalar_index", {"column": "review", "index_type": "INVERTED"})
    body = {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": 2}
    client.complete(table, "create_vector_index", body)
    return table, location


def segments(location, name):
    return len(tables.index(location, name).segments)


def answers(location):
    """What the three indices answer."""
    image = tables.images()[0][5]
    return [
        tables.ids(location, filter="digit = 5"),
        tables.ids(location, full_text_query="Noir", limit=10_000),
        tables.ids(location, nearest={"column": "vector", "q": image, "k": 30, "nprobes": 2}),
    ]


def test_takes_new_rows_in_and_then_does_nothing(client, indexed):
    table, location = indexed
    tables.append_in_parts(location, tables.rows(600, 900), 60)
    lance.dataset(location).delete("id % 10 = 3")
    tables.upsert(location, tables.rows(590, 610))
    # Until then a query looks at new rows one by one: the answers are the same.
    expected, rows = answers(location), tables.digest(location)
    assert tables.unindexed(location, "vector_idx") > 0

    result = client.complete(table, "optimize_indices", {})
    count = tables.shape(location).rows
    coverage = [{"name": n, "num_indexed_rows": count, "num_unindexed_rows": 0} for n in INDICES]
    version = lance.dataset(location).version
    assert result == {"indices": coverage, "version": version}
    for name in INDICES:
        assert tables.unindexed(location, name) == 0
    assert answers(location) == expected
    assert all(len(answer) >= 30 for answer in expected)
    assert tables.digest(location) == rows

    # There is nothing more to do, and no version for it, with or without a body.
    for body in [{}, None, {"index_names": ["digit_idx"]}, {"num_indices_to_merge": 0}]:
        again = client.complete(table, "optimize_indices", body)
        assert again["version"] == version
    assert lance.dataset(location).version == version


def test_only_what_is_named(client, indexed):
    table, location = indexed
    tables.append(location, tables.rows(600, 700))
    body = {"index_names": ["vector_idx", "digit_idx", "vector_idx"]}
    result = client.complete(table, "optimize_indices", body)
    assert [index["name"] for index in result["indices"]] == ["vector_idx", "digit_idx"]
    assert [tables.unindexed(location, name) for name in INDICES] == [0, 100, 0]


def test_how_many_are_merged(client, indexed):
    table, location = indexed
    for start, merge, left in [(600, 0, 2), (700, 0, 3), (800, 1, 3), (900, 2, 2), (1000, 99, 1)]:
        tables.append(location, tables.rows(start, start + 100))
        body = {"index_names": ["vector_idx"], "num_indices_to_merge": merge}
        client.complete(table, "optimize_indices", body)
        assert segments(location, "vector_idx") == left, (start, merge)
        assert tables.unindexed(location, "vector_idx") == 0


def test_retrain_leaves_one_segment(client, indexed):
    table, location = indexed
    for start in [600, 700, 800]:
        tables.append(location, tables.rows(start, start + 100))
        client.complete(table, "optimize_indices", {"num_indices_to_merge": 0})
    assert segments(location, "vector_idx") == 4
    expected = answers(location)
    client.complete(table, "optimize_indices", {"retrain": True, "num_indices_to_merge": 0})
    assert [segments(location, name) for name in INDICES] == [1, 1, 1]
    assert [tables.unindexed(location, name) for name in INDICES] == [0, 0, 0]
    assert answers(location) == expected


def test_segments_stay_few(client, indexed):
    table, location = indexed
    for start in range(600, 1100, 100):
        tables.append(location, tables.rows(start, start + 100))
        client.complete(table, "optimize_indices", {})
        for name in INDICES:
            assert segments(location, name) <= 4
            assert tables.unindexed(location, name) == 0
    assert tables.unreferenced(location) == set()


def test_segments_that_another_tool_trained_apart(client):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 900), 300)
    apart = lance.dataset(location)
    made = [
        apart.create_index_uncommitted(
            "vector", "IVF_FLAT", name="vector_idx", num_partitions=2, fragment_ids=[fragment]
        )
        for fragment in range(3)
    ]
    apart.commit_existing_index_segments("vector_idx", "vector", made)
    assert segments(location, "vector_idx") == 3
    # Their partitions differ, so they can't be merged: who asks for it learns why.
    error = client.fail(table, "optimize_indices", {"num_indices_to_merge": 2})
    assert (error["error"], error["code"]) == ("InvalidInput", 13)
    assert "do not share IVF centroids" in error["detail"]

    for start in range(900, 1700, 100):
        tables.append(location, tables.rows(start, start + 100))
        client.complete(table, "optimize_indices", {})
        assert segments(location, "vector_idx") <= 4
        assert tables.unindexed(location, "vector_idx") == 0
    nearest = {"column": "vector", "q": tables.images()[0][1600], "k": 1, "nprobes": 99}
    assert tables.ids(location, nearest=nearest) == [1600]


def test_a_table_without_indices(client):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 10))
    assert client.complete(table, "optimize_indices") == {"indices": [], "version": 1}
