"""Get, list and delete: one task's way, step by step, with the test as the worker."""

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

import wire
from acting_worker import ActingWorker
from cases import (
    FIELDS,
    INVALID_INPUT,
    SUBMITS,
    TASK_NOT_FOUND,
    TASK_STATE_CONFLICT,
    rows,
    submitted,
    table_id,
    task_ids,
)
from service import refusal

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
PROGRESS = {"x-lance-task-progress": "true"}
ERROR = {"error": "TableColumnNotFound", "code": 12, "detail": "There is no column 'c'."}


@pytest.fixture(scope="module")
def worker(idle):
    return ActingWorker(idle)


@pytest.fixture
def table(idle):
    """A client, a new table, and the table's own id."""
    client = idle.client()
    name, _ = client.new_table()
    return client, name, table_id(client, name)


def info_of(client, name, task_id, **options):
    answer = client.get(name, task_id, **options)
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["task_info"]
    return answer.json()["task_info"]


def age(text) -> timedelta:
    assert TIME.fullmatch(text), text
    return datetime.now(timezone.utc) - datetime.fromisoformat(text)


# What every success has


def successes(client, name, own_id, worker):
    for operation in SUBMITS:
        yield operation, client.submit(name, operation, SUBMITS[operation][1])
    task_id = submitted(client, name, "compact")
    yield "get", client.get(name, task_id)
    yield "list", client.list(name, "task_type=lance_compact")
    worker.run(own_id, task_id)
    yield "delete", client.delete(name, task_id)


def test_every_success_names_table_and_request(table, worker):
    client, name, own_id = table
    seen = set()
    for operation, answer in successes(client, name, own_id, worker):
        assert answer.headers["x-oss-table-id"] == own_id, operation
        seen.add(answer.headers["x-oss-request-id"])
        if operation == "delete":
            assert answer.status_code == 204
            assert answer.content == b""
            assert "content-type" not in answer.headers
        else:
            assert answer.status_code == 200, operation
            assert answer.headers["content-type"] == "application/json", operation
    assert len(seen) == 8


# Get


@rows("operation", *SUBMITS)
def test_a_task_that_was_submitted(table, operation):
    client, name, _ = table
    task_id = submitted(client, name, operation)
    info = info_of(client, name, task_id)
    assert list(info) == FIELDS
    assert info["task_id"] == task_id
    assert info["task_type"] == SUBMITS[operation][0]
    assert info["status"] == "submitted"
    assert timedelta(seconds=-1) < age(info["created_at"]) < timedelta(seconds=60)
    assert (info["started_at"], info["completed_at"]) == ("", "")
    assert (info["result"], info["error"]) == ({}, None)


def test_a_task_that_runs_and_completes(table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    worker.claim(own_id, task_id)
    running = info_of(client, name, task_id)
    assert list(running) == FIELDS
    assert running["status"] == "running"
    assert running["created_at"] <= running["started_at"]
    assert age(running["started_at"]) < timedelta(seconds=60)
    assert (running["completed_at"], running["result"], running["error"]) == ("", {}, None)

    result = {"fragments_removed": 9, "nested": [{"a": None}, "b"]}
    worker.complete(own_id, task_id, result)
    done = info_of(client, name, task_id)
    assert list(done) == FIELDS
    assert done["status"] == "completed"
    assert (done["result"], done["error"]) == (result, None)
    assert TIME.fullmatch(done["completed_at"])
    assert done["started_at"] <= done["completed_at"]
    for kept in ["created_at", "started_at", "params", "task_type"]:
        assert done[kept] == running[kept]


def test_a_task_that_fails_is_no_failed_query(table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "create_scalar_index")
    worker.claim(own_id, task_id)
    worker.fail(own_id, task_id, ERROR)
    info = info_of(client, name, task_id)
    assert list(info) == FIELDS
    assert info["status"] == "failed"
    assert (info["result"], info["error"]) == ({}, ERROR)
    assert TIME.fullmatch(info["completed_at"])


def test_progress_is_shown_to_who_asks(table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    worker.claim(own_id, task_id)
    assert "progress" not in info_of(client, name, task_id, headers=PROGRESS)
    worker.progress(own_id, task_id, 40, "rewriting")
    info = info_of(client, name, task_id, headers=PROGRESS)
    assert list(info) == [*FIELDS, "progress"]
    assert info["progress"] == {"percent": 40, "message": "rewriting"}
    for headers in [None, {"x-lance-task-progress": "false"}, {"x-lance-task-progress": ""}]:
        assert list(info_of(client, name, task_id, headers=headers)) == FIELDS
    listed = client.list(name, "task_type=lance_compact").json()["tasks"]
    assert [list(task) for task in listed] == [FIELDS]


# Ids that name no task. `{id}` is one that names a task of the table.
NO_TASKS = [
    "abc",
    "0",
    "1" * 32,
    "f" * 32,
    "g" * 32,
    "{id}0",
    "{short}",
    "{upper}",
    "{other type}",
    "{other slot}",
    "{other random}",
    "11111111-1111-1111-1111-111111111111",
    "..%2f..",
    "%00",
    "%ff",
    "%",
    "%20",
    "x" * 4000,
]


@rows("task_id", *NO_TASKS)
def test_what_names_no_task(table, worker, task_id):
    client, name, own_id = table
    known = submitted(client, name, "compact")
    worker.run(own_id, known)
    submitted(client, name, "create_scalar_index")
    replaced = (
        task_id.replace("{id}", known)
        .replace("{short}", known[:-1])
        .replace("{upper}", known[:12] + "ABCDEF" + known[18:])
        .replace("{other type}", "2" + known[1:])
        .replace("{other slot}", known[:11] + "2" + known[12:])
        .replace("{other random}", known[:-1] + ("0" if known[-1] != "0" else "1"))
    )
    path = f"/lance/oss/v1/table/{name}/tasks/{replaced}"
    for method in ["GET", "DELETE"]:
        assert refusal(wire.request(client, method, path)) == TASK_NOT_FOUND
    assert info_of(client, name, known)["status"] == "completed"


def test_a_task_id_is_required(table):
    client, name, _ = table
    assert refusal(client.get(name, "")) == INVALID_INPUT
    assert refusal(client.delete(name, "")) == INVALID_INPUT


def test_a_task_of_another_table(table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    worker.run(own_id, task_id)
    other, _ = client.new_table()
    submitted(client, other, "compact")
    assert refusal(client.get(other, task_id)) == TASK_NOT_FOUND
    assert refusal(client.delete(other, task_id)) == TASK_NOT_FOUND
    assert info_of(client, name, task_id)["status"] == "completed"


# List


@rows(
    "query,accepted",
    ("task_type=lance_compact", True),
    ("task_type=lance_scalar_index", True),
    ("task_type=lance_vector_index", True),
    ("task_type=lance_optimize_indices", True),
    ("task_type=lance_cleanup", True),
    ("task_type=lance_backfill_column", True),
    ("task_type=lance_compact&max_results=1", True),
    ("task_type=lance_compact&max_results=1000", True),
    ("task_type=lance_compact&marker=", True),
    ("task_type=lance_compact&delimiter=", True),
    ("task_type=lance_compact&delimiter=%24", True),
    ("task_type=lance_compact&x=1&Status=failed&prefix=", True),
    ("task_type=lance%5Fcompact", True),
    ("", False),
    ("max_results=5", False),
    ("task_type", False),
    ("task_type=", False),
    ("task_type=compact", False),
    ("task_type=backfill_column", False),
    ("task_type=create_scalar_index", False),
    ("task_type=scalar_index", False),
    ("task_type=LANCE_COMPACT", False),
    ("task_type=lance_compact+", False),
    ("task_type=lance_compact,lance_cleanup", False),
    ("task_type=lance_compact&task_type=lance_cleanup", False),
    ("task_type=lance_compact&task_type=lance_compact", False),
    ("task_type=lance_compact&max_results=0", False),
    ("task_type=lance_compact&max_results=1001", False),
    ("task_type=lance_compact&max_results=-1", False),
    ("task_type=lance_compact&max_results=abc", False),
    ("task_type=lance_compact&max_results=", False),
    ("task_type=lance_compact&max_results=1.0", False),
    ("task_type=lance_compact&max_results=99999999999999999999", False),
    ("task_type=lance_compact&max_results=1&max_results=1", False),
    ("task_type=lance_compact&status", False),
    ("task_type=lance_compact&status=", False),
    ("task_type=lance_compact&status=completed", False),
    ("task_type=lance_compact&mode", False),
    ("task_type=lance_compact&mode=", False),
    ("task_type=lance_compact&mode=x", False),
    ("mod%65=x&task_type=lance_compact", False),
    ("task_type=lance_compact&marker=x", False),
    ("task_type=lance_compact&marker=%00", False),
    ("task_type=lance_compact&marker=1", False),
    ("task_type=lance_compact&marker=AAAAAAAAAAAAAAAA", False),
    ("task_type=lance_compact&marker=AAAAAAAAAAAAAAAAA%3D%3D", False),
)
def test_the_query_of_a_list(table, query, accepted):
    client, name, _ = table
    answer = client.list(name, query)
    if accepted:
        assert answer.status_code == 200
        assert answer.text == '{"tasks":[],"next_marker":""}'
    else:
        assert refusal(answer) == INVALID_INPUT


@rows("max_results", 1, 2, 3, 6, 7, 8, 1000)
def test_pages_go_from_the_newest_to_the_oldest(table, max_results):
    client, name, _ = table
    made = [submitted(client, name, "compact") for _ in range(7)]
    submitted(client, name, "cleanup")
    assert task_ids(client, name, "lance_compact", max_results) == made[::-1]
    pages, marker = 0, ""
    while pages == 0 or marker:
        query = f"task_type=lance_compact&max_results={max_results}&marker={marker}"
        page = client.list(name, query).json()
        assert list(page) == ["tasks", "next_marker"]
        assert page["tasks"], "a page of what does not change is not empty"
        pages, marker = pages + 1, page["next_marker"]
    assert pages == -(-7 // max_results)


def test_a_page_has_a_hundred_tasks_unless_told_otherwise(table):
    client, name, _ = table
    made = [submitted(client, name, "compact") for _ in range(101)]
    page = client.list(name, "task_type=lance_compact").json()
    assert [task["task_id"] for task in page["tasks"]] == made[:0:-1]
    rest = client.list(name, f"task_type=lance_compact&marker={page['next_marker']}").json()
    assert [task["task_id"] for task in rest["tasks"]] == made[:1]
    assert rest["next_marker"] == ""


def test_a_list_shows_what_get_shows(table, worker):
    client, name, own_id = table
    made = [submitted(client, name, "create_vector_index") for _ in range(4)]
    worker.run(own_id, made[2])
    worker.claim(own_id, made[3])
    worker.fail(own_id, made[3], ERROR)
    worker.claim(own_id, made[1])
    listed = client.list(name, "task_type=lance_vector_index").json()["tasks"]
    assert listed == [info_of(client, name, task_id) for task_id in made[::-1]]
    assert [task["status"] for task in listed] == ["failed", "completed", "running", "submitted"]
    assert all(list(task) == FIELDS for task in listed)


def test_a_marker_belongs_to_one_table_and_type(table):
    client, name, _ = table
    other, _ = client.new_table()
    for operation in ["compact", "cleanup"]:
        for of in [name, other]:
            for _ in range(3):
                submitted(client, of, operation)
    marker = client.list(name, "task_type=lance_compact&max_results=1").json()["next_marker"]

    def continued(of, task_type, marker):
        return client.list(of, f"task_type={task_type}&max_results=1&marker={marker}")

    assert continued(name, "lance_compact", marker).status_code == 200
    assert refusal(continued(other, "lance_compact", marker)) == INVALID_INPUT
    assert refusal(continued(name, "lance_cleanup", marker)) == INVALID_INPUT
    assert refusal(continued(name, "lance_compact", marker[:-1])) == INVALID_INPUT
    assert refusal(continued(name, "lance_compact", marker + "A")) == INVALID_INPUT
    changed = ("B" if marker[9] != "B" else "C").join([marker[:9], marker[10:]])
    assert refusal(continued(name, "lance_compact", changed)) == INVALID_INPUT


def test_a_marker_outlives_the_tasks_around_it(table, worker):
    client, name, own_id = table
    made = [submitted(client, name, "compact") for _ in range(6)]
    marker = client.list(name, "task_type=lance_compact&max_results=2").json()["next_marker"]
    submitted(client, name, "compact")
    # The last task of the page, and the first of the next.
    for task_id in [made[4], made[3]]:
        worker.run(own_id, task_id)
        assert client.delete(name, task_id).status_code == 204
    query = f"task_type=lance_compact&max_results=2&marker={marker}"
    first = client.list(name, query).json()
    assert [task["task_id"] for task in first["tasks"]] == [made[2], made[1]]
    # The same marker gives the same page.
    assert client.list(name, query).json() == first


# Delete


def test_only_what_has_ended_is_deleted(table, worker):
    client, name, own_id = table
    task_id, failed = (submitted(client, name, "compact") for _ in range(2))
    assert refusal(client.delete(name, task_id)) == TASK_STATE_CONFLICT
    worker.claim(own_id, task_id)
    assert refusal(client.delete(name, task_id)) == TASK_STATE_CONFLICT
    assert info_of(client, name, task_id)["status"] == "running"
    worker.complete(own_id, task_id, {})
    worker.claim(own_id, failed)
    worker.fail(own_id, failed, ERROR)
    for ended in [task_id, failed]:
        assert client.delete(name, ended).status_code == 204
        assert refusal(client.get(name, ended)) == TASK_NOT_FOUND
        assert refusal(client.delete(name, ended)) == TASK_NOT_FOUND
    assert task_ids(client, name, "lance_compact") == []


def test_a_state_of_another_version_is_shown_and_kept(idle, table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    worker.run(own_id, task_id)
    with sqlite3.connect(idle.folder / "state" / "key-value.db", timeout=30) as store:
        changed = store.execute(
            "UPDATE key_value SET value = CAST(json_set(value, '$.status', 'paused') AS BLOB)"
            " WHERE key = ?",
            [f"task/{own_id}/lance_compact/{int(task_id[1:12], 16)}"],
        )
        assert changed.rowcount == 1
    store.close()
    assert info_of(client, name, task_id)["status"] == "paused"
    listed = client.list(name, "task_type=lance_compact").json()["tasks"]
    assert [task["status"] for task in listed] == ["paused"]
    assert refusal(client.delete(name, task_id)) == TASK_STATE_CONFLICT


def test_one_of_many_deletes_it(idle, table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    worker.run(own_id, task_id)
    with ThreadPoolExecutor(16) as pool:
        delete = lambda _: idle.client().delete(name, task_id).status_code
        answers = list(pool.map(delete, range(16)))
    assert sorted(answers) == [204] + [404] * 15


# Isolation


def test_a_table_of_the_same_name_is_another_table(table, worker):
    client, name, own_id = table
    tasks = {operation: submitted(client, name, operation) for operation in SUBMITS}
    worker.run(own_id, tasks["compact"])
    marker_query = "task_type=lance_cleanup&max_results=1"
    submitted(client, name, "cleanup")
    marker = client.list(name, marker_query).json()["next_marker"]

    assert client.request("POST", f"/lance/v1/table/{name}/drop").status_code == 200
    for task_id in tasks.values():
        assert refusal(client.get(name, task_id)) == (404, "TableNotFound", 4)

    client.declare(name)
    new_id = table_id(client, name)
    assert new_id != own_id
    for operation, task_id in tasks.items():
        answer = client.list(name, f"task_type={SUBMITS[operation][0]}")
        assert answer.json() == {"tasks": [], "next_marker": ""}
        assert answer.headers["x-oss-table-id"] == new_id
        assert refusal(client.get(name, task_id)) == TASK_NOT_FOUND
        assert refusal(client.delete(name, task_id)) == TASK_NOT_FOUND
    assert refusal(client.list(name, f"{marker_query}&marker={marker}")) == INVALID_INPUT
    assert submitted(client, name, "compact") not in tasks.values()


def test_tasks_of_a_dropped_table_do_not_start(table, worker):
    client, name, own_id = table
    task_id = submitted(client, name, "compact")
    assert client.request("POST", f"/lance/v1/table/{name}/drop").status_code == 200
    message = {"worker_id": "w", "table_id": own_id, "task_id": task_id, "attempt": 1}
    answer = worker.send("/worker/v1/claim", message)
    assert refusal(answer) == (409, "ConcurrentModification", 14)
