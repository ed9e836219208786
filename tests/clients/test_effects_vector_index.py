"""Indices on vectors of tables that pylance wrote, used by pylance's queries."""

import lance
import numpy as np
import pyarrow as pa
import pytest

import tables

K = 10
QUERIES = 40

# Of each type: options, and the share of the true neighbours that a search finds at least.
TYPES = {
    "IVF_FLAT": ({}, 0.99),
    "IVF_PQ": ({"num_sub_vectors": 16}, 0.9),
    "IVF_SQ": ({"num_bits": 8}, 0.95),
    "IVF_RQ": ({"num_bits": 5}, 0.9),
    "IVF_HNSW_FLAT": ({"m": 16, "ef_construction": 100}, 0.9),
    "IVF_HNSW_PQ": ({"num_sub_vectors": 16, "m": 16}, 0.85),
    "IVF_HNSW_SQ": ({"m": 16, "ef_construction": 100}, 0.9),
}


@pytest.fixture(scope="module")
def digits(service):
    """A busy table that tests add an index to."""
    client = service.client()
    table, location = client.new_table()
    tables.busy(location)
    return client, table, location


def distances(vectors: np.ndarray, query: np.ndarray, metric: str) -> np.ndarray:
    if metric == "l2":
        return ((vectors - query) ** 2).sum(axis=1)
    if metric == "dot":
        return 1 - vectors @ query
    if metric == "cosine":
        return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    return np.unpackbits(vectors ^ query, axis=1).sum(axis=1)


def recall(location: str, column: str, metric: str, **options) -> float:
    """How many of the nearest that a look at every vector finds, a search through the index finds."""
    table = lance.dataset(location)
    # As a matrix: vectors may be of floats or of bytes.
    vectors = np.stack(table.to_table(columns=[column])[column].to_numpy())
    found = 0
    for query in vectors[:: len(vectors) // QUERIES][:QUERIES]:
        nearest = {"column": column, "q": query, "k": K, "metric": metric, **options}
        rows = table.to_table(columns=[column], nearest=nearest)[column].to_numpy()
        # By distance, since several may be as far away as the last.
        last = np.sort(distances(vectors, query, metric))[K - 1]
        found += (distances(np.stack(rows), query, metric) <= last + 1e-3 * max(1, abs(last))).sum()
    return found / (QUERIES * K)


def assert_indexed(result, location, name, column, index_type):
    """The result, and what pylance says, of an index that covers every row."""
    found, rows = tables.index(location, name), tables.shape(location).rows
    assert (found.index_type, found.field_names, len(found.segments)) == (index_type, [column], 1)
    assert found.num_rows_indexed == rows
    assert tables.unindexed(location, name) == 0
    assert result == {
        "index_name": name,
        "column": column,
        "index_type": index_type,
        "index_uuid": str(found.segments[0].uuid),
        "num_indexed_rows": rows,
        "version": lance.dataset(location).version,
    }


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("index_type", TYPES)
def test_index_on_floats(digits, index_type, metric):
    client, table, location = digits
    options, bound = TYPES[index_type]
    body = {"column": "vector", "index_type": index_type, "metric_type": metric, "num_partitions": 4}
    result = client.complete(table, "create_vector_index", body | options | {"replace": True})
    assert_indexed(result, location, "vector_idx", "vector", index_type)

    (stats,) = lance.dataset(location).stats.index_stats("vector_idx")["indices"]
    assert (stats["metric_type"], stats["num_partitions"]) == (metric, 4)
    inner = stats["sub_index"]
    assert inner.get("num_sub_vectors", 16) == 16
    details = tables.index(location, "vector_idx").details
    assert details["metric_type"] == metric.upper()

    search = {"nprobes": 4, "refine_factor": 10, "ef": 200}
    nearest = {"column": "vector", "q": tables.images()[0][0], "k": K, "metric": metric} | search
    plan = tables.plan(location, nearest=nearest)
    assert "ANNSubIndex: name=vector_idx" in plan and "KNNVectorDistance: metric" not in plan.split("ANN")[-1]
    assert recall(location, "vector", metric, **search) >= bound


@pytest.mark.parametrize("index_type", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_index_on_bits(digits, index_type):
    client, table, location = digits
    body = {"column": "bits", "index_type": index_type, "metric_type": "hamming", "replace": True}
    result = client.complete(table, "create_vector_index", body | {"num_partitions": 2})
    assert_indexed(result, location, "bits_idx", "bits", index_type)
    nearest = {"column": "bits", "q": np.zeros(8, np.uint8), "k": K, "metric": "hamming"}
    assert "ANNSubIndex: name=bits_idx" in tables.plan(location, nearest=nearest)
    assert recall(location, "bits", "hamming", nprobes=2, ef=200) >= 0.9


@pytest.mark.parametrize(
    "options, partitions",
    [({}, 1), ({"target_partition_size": 600}, 2), ({"num_partitions": 7, "target_partition_size": 600}, 7)],
)
def test_number_of_partitions(client, options, partitions):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 1797).select(["id", "vector"]))
    body = {"column": "vector", "index_type": "IVF_FLAT"} | options
    client.complete(table, "create_vector_index", body)
    (stats,) = lance.dataset(location).stats.index_stats("vector_idx")["indices"]
    assert stats["num_partitions"] == partitions


def test_kinds_of_floats(client):
    table, location = client.new_table()
    pixels = tables.images()[0][:600]
    columns = {"id": pa.array(range(600))}
    for name, kind in [("half", np.float16), ("double", np.float64)]:
        flat = pa.array(pixels.astype(kind).ravel())
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, 64)
    tables.append(location, pa.table(columns))
    for name in ["half", "double"]:
        body = {"column": name, "num_partitions": 1}
        result = client.complete(table, "create_vector_index", body)
        assert_indexed(result, location, f"{name}_idx", name, "IVF_PQ")
        assert recall(location, name, "l2", refine_factor=10) >= 0.9


def test_vectors_that_are_null(client):
    table, location = client.new_table()
    rows = tables.rows(0, 600)
    some = pa.array([None if n % 3 == 0 else v for n, v in enumerate(rows["vector"].to_pylist())], rows["vector"].type)
    tables.append(location, rows.set_column(5, "vector", some))
    body = {"column": "vector", "num_partitions": 1}
    assert client.complete(table, "create_vector_index", body)["num_indexed_rows"] == 600
    nearest = {"column": "vector", "q": tables.images()[0][1], "k": 500}
    assert tables.ids(location, nearest=nearest) == [n for n in range(600) if n % 3]


def test_replaces_and_names(client):
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 600))

    def create(**body):
        return client.complete(table, "create_vector_index", {"column": "vector", "num_partitions": 1} | body)

    first = create(distance_type="cosine")
    assert_indexed(first, location, "vector_idx", "vector", "IVF_PQ")
    # An index on vectors is only replaced when the task says so.
    for body in [{}, {"index_type": "IVF_FLAT"}, {"column": "bits", "name": "vector_idx", "metric": "hamming"}]:
        body = {"column": "vector", "index_type": "IVF_FLAT"} | body
        error = client.fail(table, "create_vector_index", body)
        assert (error["error"], error["code"]) == ("TableIndexAlreadyExists", 7)
        assert "'vector_idx'" in error["detail"]
    assert_indexed(first, location, "vector_idx", "vector", "IVF_PQ")

    second = create(index_type="ivf_hnsw_sq", metric="euclidean", replace=True)
    assert second["index_uuid"] != first["index_uuid"]
    assert_indexed(second, location, "vector_idx", "vector", "IVF_HNSW_SQ")
    create(index_name="by cosine", metric_type="cosine")
    assert sorted(tables.index_names(location)) == ["by cosine", "vector_idx"]
    metrics = {i.name: i.details["metric_type"] for i in lance.dataset(location).describe_indices()}
    assert metrics == {"by cosine": "COSINE", "vector_idx": "L2"}
