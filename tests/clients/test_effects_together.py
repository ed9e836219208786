"""Several who change one table at the same time: tasks among themselves, and tasks and pylance."""

import threading
import time

import lance
import pyarrow as pa
from lance.file import LanceFileReader

import tables

# What a task may end with when others keep changing the table.
CONFLICT = ("ConcurrentModification", 14)


def submit(client, table, operation, body=None):
    answer = client.submit(table, operation, body)
    assert answer.status_code == 200, answer.text
    return answer.json()["task_id"]


def test_two_maintainers(client):
    table, location = client.new_table()
    tables.busy(location)
    client.complete(table, "create_scalar_index", {"column": "digit", "index_type": "BITMAP"})
    tables.append_in_parts(location, tables.rows(1797, 2000), 40)
    rows, answer = tables.digest(location), tables.ids(location, filter="digit = 3")

    body = {"column": "id", "name": "by id"}
    tasks = [
        submit(client, table, operation, body)
        for operation, body in [
            ("compact", {}),
            ("optimize_indices", {}),
            *[("create_scalar_index", body)] * 8,
            ("compact", {}),
            ("cleanup", {"retain_versions": 1}),
            ("optimize_indices", {}),
        ]
    ]
    ended = [client.wait(table, task) for task in tasks]
    assert [info["error"] for info in ended] == [None] * len(tasks)
    # One after the other.
    spans = sorted((info["started_at"], info["completed_at"]) for info in ended)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), spans

    uuids = [info["result"]["index_uuid"] for info in ended[2:10]]
    assert len(set(uuids)) == 8
    assert len(tables.index(location, "by id").segments) == 1
    assert sorted(tables.index_names(location)) == ["by id", "digit_idx"]
    assert [tables.unindexed(location, name) for name in ("by id", "digit_idx")] == [0, 0]
    assert len(tables.shape(location).fragments) == 1
    assert tables.digest(location) == rows
    assert tables.ids(location, filter="digit = 3") == answer


def test_tables_do_not_wait_for_each_other(client):
    pairs = [client.new_table() for _ in range(4)]
    for _, location in pairs:
        tables.busy(location, 600)
    rows = [tables.digest(location) for _, location in pairs]
    tasks = [
        (table, submit(client, table, operation, {}))
        for operation in ("compact", "optimize_indices")
        for table, _ in pairs
    ]
    for table, task in tasks:
        assert client.wait(table, task)["error"] is None
    assert [tables.digest(location) for _, location in pairs] == rows


class Writer(threading.Thread):
    """Appends, deletes, updates and upserts without a pause, and knows which rows there are."""

    def __init__(self, location: str, seconds: float):
        super().__init__()
        self.location = location
        self.seconds = seconds
        self.rows: dict[int, int] = {}
        self.commits = 0
        self.error = None

    def batch(self, ids, value) -> pa.Table:
        self.rows |= {id: value for id in ids}
        return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([value] * len(ids), pa.int64())})

    def run(self):
        end = time.monotonic() + self.seconds
        try:
            while time.monotonic() < end:
                self.step(self.commits)
                self.commits += 1
        except Exception as error:
            self.error = error

    def step(self, number: int):
        first, kind = number * 20, number % 5
        if kind < 2:
            tables.append(self.location, self.batch(range(first, first + 20), number))
        elif kind == 2:
            lance.dataset(self.location).delete(f"id % 7 = {number % 7}")
            self.rows = {id: value for id, value in self.rows.items() if id % 7 != number % 7}
        elif kind == 3:
            lance.dataset(self.location).update({"value": "value + 1"}, where=f"id % 11 = {number % 11}")
            self.rows = {id: value + (id % 11 == number % 11) for id, value in self.rows.items()}
        else:
            ids = range(first - 50, first - 30)
            tables.upsert(self.location, self.batch(ids, number))


def test_a_writer_goes_on_meanwhile(client):
    table, location = client.new_table()
    writer = Writer(location, seconds=15)
    writer.step(0)
    writer.commits = 1
    client.complete(table, "create_scalar_index", {"column": "id"})
    writer.start()
    ended = []
    bodies = {
        "compact": {},
        "optimize_indices": {},
        "create_scalar_index": {"column": "value", "index_type": "BITMAP"},
        "cleanup": {"older_than": "5s"},
    }
    while writer.is_alive():
        for operation, body in bodies.items():
            ended.append(client.run(table, operation, body))
    writer.join()
    assert writer.error is None
    assert writer.commits > 20
    errors = [(info["error"]["error"], info["error"]["code"]) for info in ended if info["error"]]
    assert set(errors) <= {CONFLICT}, errors
    completed = {info["task_type"] for info in ended if info["status"] == "completed"}
    assert len(completed) == 4, errors

    found = lance.dataset(location).to_table().to_pydict()
    assert len(found["id"]) == len(writer.rows)
    assert dict(zip(found["id"], found["value"])) == writer.rows
    client.complete(table, "compact", {})
    client.complete(table, "optimize_indices", {})
    client.complete(table, "cleanup", {"older_than": "0d"})
    assert tables.ids(location) == sorted(writer.rows)
    for id in list(writer.rows)[::50]:
        assert tables.ids(location, filter=f"id = {id}") == [id]
    # A compaction that lost to the writer left nothing behind. The writer's own lost attempts did:
    # lists of deleted rows, and updates of a small part of the rows.
    left = [path for path in tables.unreferenced(location) if not path.startswith("_deletions/")]
    for path in left:
        count = LanceFileReader(str(tables.folder(location) / path)).metadata().num_rows
        assert path.startswith("data/") and count <= max(20, len(writer.rows) / 5), (path, count)
