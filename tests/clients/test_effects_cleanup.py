"""Old versions of tables that pylance wrote, and the files that only they need."""

import time

import lance
import pytest

import tables


def ten_versions(client, rows_each=30):
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 10 * rows_each), rows_each)
    assert tables.versions(location) == list(range(1, 11))
    return table, location


@pytest.mark.parametrize(
    "body, left",
    [
        ({"older_than": "0d"}, [10]),
        ({"older_than": "000s"}, [10]),
        ({"retain_versions": 1}, [10]),
        ({"retain_versions": 3}, [8, 9, 10]),
        ({"retain_versions": 99}, list(range(1, 11))),
        ({"older_than": "7d"}, list(range(1, 11))),
        ({"older_than": "10000d"}, list(range(1, 11))),
        # A version goes when it fulfils both.
        ({"older_than": "7d", "retain_versions": 2}, list(range(1, 11))),
        ({"older_than": "0m", "retain_versions": 2}, [9, 10]),
    ],
)
def test_which_versions_stay(client, body, left):
    table, location = ten_versions(client)
    rows = tables.digest(location)
    result = client.complete(table, "cleanup", body)
    assert tables.versions(location) == left
    assert result["old_versions"] == 10 - len(left)
    assert tables.digest(location) == rows


def test_age_and_number(client):
    table, location = ten_versions(client)
    time.sleep(2.1)
    tables.append_in_parts(location, tables.rows(300, 330), 10)
    # Version 10 is the newest that is old enough, and 11 to 13 are not.
    client.complete(table, "cleanup", {"older_than": "2s", "retain_versions": 4})
    assert tables.versions(location)[0] == 10
    client.complete(table, "cleanup", {"older_than": "1h", "retain_versions": 1})
    assert tables.versions(location)[0] == 10
    client.complete(table, "cleanup", {"older_than": "0s", "retain_versions": 2})
    assert tables.versions(location) == [12, 13]


def test_versions_with_a_tag_stay(client):
    table, location = ten_versions(client)
    lance.dataset(location).tags.create("kept", 3)
    result = client.complete(table, "cleanup", {"retain_versions": 2})
    assert tables.versions(location) == [3, 9, 10]
    assert result["old_versions"] == 7
    assert lance.dataset(location, version="kept").count_rows() == 90
    lance.dataset(location).tags.delete("kept")
    client.complete(table, "cleanup", {"retain_versions": 2})
    assert tables.versions(location) == [9, 10]


def test_a_busy_table_afterwards(client):
    table, location = client.new_table()
    tables.busy(location)
    client.complete(table, "create_scalar_index", {"column": "digit", "index_type": "BITMAP"})
    client.complete(table, "create_vector_index", {"column": "vector", "num_partitions": 1})
    tables.busy(location, 300)
    client.complete(table, "compact", {})
    client.complete(table, "optimize_indices", {"retrain": True})
    image = tables.images()[0][9]
    queries = [{"filter": "digit = 4"}, {"nearest": {"column": "vector", "q": image, "k": 20}}]
    answers, rows = [tables.ids(location, **query) for query in queries], tables.digest(location)
    before = tables.files(location)

    result = client.complete(table, "cleanup", {"older_than": "0d"})
    after = tables.files(location)
    gone = {path: size for path, size in before.items() if path not in after}
    assert set(after) < set(before)

    def removed(*places):
        return sum(path.startswith(places) for path in gone)

    assert result == {
        "bytes_removed": sum(gone.values()),
        "old_versions": removed("_versions/"),
        "data_files_removed": removed("data/"),
        "transaction_files_removed": removed("_transactions/"),
        "index_files_removed": removed("_indices/"),
        "deletion_files_removed": removed("_deletions/"),
    }
    assert min(result.values()) > 0
    assert tables.unreferenced(location) == set()
    assert tables.digest(location) == rows
    assert [tables.ids(location, **query) for query in queries] == answers
    assert "ScalarIndexQuery" in tables.plan(location, **queries[0])
    assert "ANNSubIndex" in tables.plan(location, **queries[1])

    # And nothing more is to be done.
    again = client.complete(table, "cleanup", {"older_than": "0d"})
    assert set(again.values()) == {0}
    # A writer goes on where it was.
    tables.append(location, tables.rows(0, 10))
    assert client.complete(table, "compact", {})["fragments_removed"] == 2


def test_files_that_are_not_the_tables(client):
    table, location = ten_versions(client)
    root = tables.folder(location)
    foreign = ["media/a.lance", "notes.txt", "data/readme.md", "_indices/note.txt"]
    for name in foreign:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("mine")
    lance.dataset(location).delete("id < 60")
    client.complete(table, "compact", {})
    assert client.complete(table, "cleanup", {"older_than": "0d"})["data_files_removed"] > 0
    assert all((root / name).read_text() == "mine" for name in foreign)


def test_a_writer_that_has_not_committed_yet(client):
    table, location = ten_versions(client)
    pending = lance.fragment.write_fragments(tables.rows(300, 330), location)
    client.complete(table, "cleanup", {"older_than": "0d"})
    # What it wrote is still there when it commits.
    lance.LanceDataset.commit(location, lance.LanceOperation.Append(pending), read_version=10)
    assert tables.ids(location) == list(range(330))
