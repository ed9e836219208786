"""Tasks whose worker, or whose whole service, ends in the middle."""

import os
import signal
import time

import numpy as np
import pyarrow as pa
import pytest

import tables


@pytest.fixture
def own(start):
    """A service of the test's own."""
    return start()


def submit(client, table, operation, body=None):
    answer = client.submit(table, operation, body)
    assert answer.status_code == 200, answer.text
    return answer.json()["task_id"]


def wide(location, fragments=16, megabytes=8):
    """A table that takes a while to rewrite: large values that can't be compressed."""
    random = np.random.default_rng(7)
    for number in range(fragments):
        values = [random.bytes(1 << 18) for _ in range(megabytes * 4)]
        ids = range(number * len(values), (number + 1) * len(values))
        tables.append(location, pa.table({"id": ids, "value": values, "digit": [id % 10 for id in ids]}))


def kill_worker(service):
    pid = service.read_state()["worker_pid"]
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while service.read_state()["worker_pid"] in (pid, None):
        assert time.monotonic() < end, "the worker is not started again"
        time.sleep(0.05)


def test_worker_killed_while_it_compacts(own):
    client = own.client()
    table, location = client.new_table()
    wide(location)
    ids, before = tables.ids(location), set(tables.files(location))
    tasks = [submit(client, table, "compact", {}) for _ in range(2)]
    tasks.append(submit(client, table, "create_scalar_index", {"column": "digit"}))
    # Killed while it writes: there is a data file that was not there before.
    folder, end = tables.folder(location), time.monotonic() + 30
    while not any(f"data/{path.name}" not in before for path in (folder / "data").iterdir()):
        assert time.monotonic() < end
    kill_worker(own)
    ended = [client.wait(table, task) for task in tasks]
    assert [info["error"] for info in ended] == [None] * 3
    assert ended[0]["result"]["fragments_removed"] == 16
    assert ended[1]["result"]["fragments_removed"] == 0
    assert tables.ids(location) == ids
    assert tables.unindexed(location, "digit_idx") == 0

    # What it left half written is unverified: Lance keeps such files for seven days, in which
    # somebody may still commit them. One that is killed leaves no more than it was writing.
    client.complete(table, "cleanup", {"older_than": "0d"})
    left = tables.unreferenced(location)
    assert all(path.startswith("data/") for path in left) and len(left) <= 2, left
    assert client.complete(table, "compact", {})["fragments_removed"] == 0


def test_worker_killed_twice(own):
    client = own.client()
    made = [client.new_table() for _ in range(3)]
    for _, location in made:
        tables.busy(location)
    rows = [tables.digest(location) for _, location in made]
    bodies = [
        ("compact", {}),
        ("create_scalar_index", {"column": "review", "index_type": "INVERTED"}),
        ("create_vector_index", {"column": "vector", "index_type": "IVF_HNSW_PQ", "num_partitions": 4}),
        ("optimize_indices", {}),
        ("cleanup", {"older_than": "0d"}),
    ]
    tasks = [(table, submit(client, table, *body)) for body in bodies for table, _ in made]
    # Twice, since a task that loses its worker three times is given up.
    for pause in (0.05, 0.4):
        time.sleep(pause)
        kill_worker(own)
    for table, task in tasks:
        info = client.wait(table, task)
        assert info["error"] is None, info
    for (_, location), content in zip(made, rows):
        assert tables.digest(location) == content
        assert sorted(tables.index_names(location)) == ["review_idx", "vector_idx"]
        assert [tables.unindexed(location, name) for name in ("review_idx", "vector_idx")] == [0, 0]
        assert tables.shape(location).deleted == 0


def test_everything_stopped_while_tasks_wait(own):
    client = own.client()
    table, location = client.new_table()
    wide(location, fragments=6)
    ids = tables.ids(location)
    bodies = [("compact", {})] + [("create_scalar_index", {"column": "id", "name": f"i{n}"}) for n in range(12)]
    tasks = [submit(client, table, *body) for body in bodies]
    own.stop()
    assert not (own.folder / "up.json").exists()
    own.start()
    client = own.client()
    ended = [client.wait(table, task) for task in tasks]
    assert [info["error"] for info in ended] == [None] * len(tasks)
    assert tables.ids(location) == ids
    assert len(tables.index_names(location)) == 12
    assert len(tables.shape(location).fragments) == 1


def test_application_killed_while_tasks_wait(own):
    client = own.client()
    table, location = client.new_table()
    tables.busy(location)
    rows = tables.digest(location)
    tasks = [submit(client, table, "compact", {}) for _ in range(5)]
    pid = own.read_state()["application_pid"]
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while own.read_state()["application_pid"] in (pid, None):
        assert time.monotonic() < end, "the application is not started again"
        time.sleep(0.05)
    tasks += [submit_when_it_answers(client, table)]
    ended = [client.wait(table, task) for task in tasks]
    assert [info["error"] for info in ended] == [None] * len(tasks)
    assert sum(info["result"]["fragments_added"] for info in ended) == 1
    assert tables.digest(location) == rows


def submit_when_it_answers(client, table):
    end = time.monotonic() + 60
    while True:
        try:
            return submit(client, table, "compact", {})
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.1)
