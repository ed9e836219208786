"""The maintenance of a table from its first rows on, in the order in which a user does it."""

import lance
import pyarrow as pa

import tables


def numbers(start, stop):
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


def test_compact_optimize_and_clean_up(client):
    table, location = client.new_table()
    tables.append_in_parts(location, numbers(0, 2000), 20)
    created = client.complete(table, "create_scalar_index", {"column": "id", "index_type": "BTREE"})
    assert created["num_indexed_rows"] == 2000
    tables.append_in_parts(location, numbers(2000, 4000), 20)
    assert len(tables.shape(location).fragments) == 200
    assert tables.unindexed(location, "id_idx") == 2000
    assert len(tables.versions(location)) == 201
    rows = tables.digest(location)

    result = client.complete(table, "compact", {})
    assert (result["fragments_removed"], tables.shape(location).rows) == (200, 4000)
    # Indexed and other rows are never put into one fragment: an index covers a fragment or not.
    assert len(tables.shape(location).fragments) == result["fragments_added"] == 2
    result = client.complete(table, "optimize_indices", {})
    assert result["indices"] == [{"name": "id_idx", "num_indexed_rows": 4000, "num_unindexed_rows": 0}]
    result = client.complete(table, "cleanup", {"retain_versions": 1})
    assert result["old_versions"] == tables.shape(location).version - 1
    assert result["data_files_removed"] == 200

    assert tables.versions(location) == [lance.dataset(location).version]
    assert tables.digest(location) == rows
    assert tables.unreferenced(location) == set()
    assert tables.unindexed(location, "id_idx") == 0
    assert "id_idx" in tables.plan(location, filter="id = 3999")
    assert tables.ids(location, filter="id IN (5, 1999, 2000, 3999)") == [5, 1999, 2000, 3999]

    # With every row indexed, the two fragments become one.
    client.complete(table, "compact", {})
    assert len(tables.shape(location).fragments) == 1
    assert tables.unindexed(location, "id_idx") == 0
    assert tables.digest(location) == rows
