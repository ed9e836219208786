"""Quota, and many at a time."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from cases import (
    INVALID_INPUT,
    SUBMITS,
    TASK_QUOTA_EXCEEDED,
    rows,
    submitted,
    task_ids,
)
from service import refusal

LANCE = "lance.oss-tables.localhost"
# The default mode of the service in question is none.
BODIES = {operation: body for operation, (_, body) in SUBMITS.items()}
BODIES["compact"] = {"compaction_mode": "reencode"}


@pytest.fixture
def small(strict):
    """A new table that keeps three tasks of each type."""
    client = strict.client(LANCE)
    return client, client.new_table()[0]


@rows("operation", *SUBMITS)
def test_a_table_keeps_so_many_tasks_of_a_type(small, operation):
    client, table = small
    task_type, body = SUBMITS[operation][0], BODIES[operation]
    # What is refused does not count.
    for _ in range(5):
        assert refusal(client.submit(table, operation, b"[]")) == INVALID_INPUT
    tasks = [submitted(client, table, operation, body) for _ in range(3)]
    for _ in range(5):
        assert refusal(client.submit(table, operation, body)) == TASK_QUOTA_EXCEEDED
    assert task_ids(client, table, task_type) == tasks[::-1]
    # What is wrong in itself is told first.
    assert refusal(client.submit(table, operation, b"[]")) == INVALID_INPUT

    # Other types and other tables have their own.
    other_type = next(other for other in SUBMITS if other != operation)
    submitted(client, table, other_type, BODIES[other_type])
    other_table, _ = client.new_table()
    submitted(client, other_table, operation, body)

    # Tasks that ended count until they are deleted.
    for task_id in tasks:
        client.wait(table, task_id)
    assert refusal(client.submit(table, operation, body)) == TASK_QUOTA_EXCEEDED
    for task_id in tasks[:2]:
        assert client.delete(table, task_id).status_code == 204
        tasks.append(submitted(client, table, operation, body))
        assert refusal(client.submit(table, operation, body)) == TASK_QUOTA_EXCEEDED
    assert task_ids(client, table, task_type) == tasks[:1:-1]


def test_deleting_a_task_twice_frees_one_place(small):
    client, table = small
    tasks = [submitted(client, table, "cleanup") for _ in range(3)]
    client.wait(table, tasks[0])
    assert [client.delete(table, tasks[0]).status_code for _ in range(3)] == [204, 404, 404]
    submitted(client, table, "cleanup")
    assert refusal(client.submit(table, "cleanup", BODIES["cleanup"])) == TASK_QUOTA_EXCEEDED


def test_a_rush_leaves_the_quota_as_it_was(strict, small):
    client, table = small

    def submit(_):
        return strict.client(LANCE).submit(table, "cleanup", BODIES["cleanup"])

    for _ in range(2):
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(submit, range(48)))
        accepted = [answer.json()["task_id"] for answer in answers if answer.status_code == 200]
        refused = [refusal(answer) for answer in answers if answer.status_code != 200]
        assert len(accepted) >= 3
        assert set(refused) == {TASK_QUOTA_EXCEEDED}
        assert sorted(task_ids(client, table, "lance_cleanup")) == sorted(accepted)
        for task_id in accepted:
            client.wait(table, task_id)
            assert client.delete(table, task_id).status_code == 204


def test_pages_while_others_submit_and_delete(service):
    client = service.client()
    table, _ = client.new_table()
    steady = []
    stop = threading.Event()

    def come_and_go(_):
        mine = service.client()
        while not stop.is_set():
            task_id = submitted(mine, table, "cleanup")
            mine.wait(table, task_id)
            assert mine.delete(table, task_id).status_code == 204

    def come(_):
        mine = service.client()
        while not stop.is_set():
            submitted(mine, table, "cleanup")
            time.sleep(0.03)

    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(come_and_go, n) for n in range(3)] + [pool.submit(come, 0)]
        try:
            # Tasks that stay, with others between them.
            for _ in range(30):
                steady.append(submitted(client, table, "cleanup"))
            end = time.monotonic() + 3
            listings = 0
            while time.monotonic() < end or listings < 3:
                listings += 1
                listed = task_ids(client, table, "lance_cleanup", max_results=random.randint(1, 9))
                slots = [int(task_id[1:12], 16) for task_id in listed]
                assert slots == sorted(set(slots), reverse=True), "a task is there once, in order"
                assert [task_id for task_id in listed if task_id in steady] == steady[::-1]
        finally:
            stop.set()
        for other in others:
            other.result()


TABLES = 4
THREADS = 16
TURNS = 30
SECONDS = 10


def test_many_at_a_time_and_none_is_lost(start):
    busy = start()
    tables = [busy.client().new_table(f"busy{n}")[0] for n in range(TABLES)]
    end = time.monotonic() + SECONDS

    def work(number):
        client, choose = busy.client(), random.Random(number)
        mine = []
        for _ in range(TURNS):
            if time.monotonic() > end:
                break
            table, operation = choose.choice(tables), choose.choice(list(SUBMITS))
            task_id = submitted(client, table, operation)
            mine.append((table, operation, task_id))
            table, operation, task_id = choose.choice(mine)
            answer = client.get(table, task_id)
            assert answer.status_code == 200, answer.text
            assert answer.json()["task_info"]["task_id"] == task_id
            listed = client.list(table, f"task_type={SUBMITS[operation][0]}&max_results=5")
            assert listed.status_code == 200, listed.text
        return mine

    with ThreadPoolExecutor(THREADS) as pool:
        made = sum(pool.map(work, range(THREADS)), [])
    assert len(made) >= THREADS
    assert len({task_id for _, _, task_id in made}) == len(made)

    def check(client):
        for table in tables:
            for operation, (task_type, _) in SUBMITS.items():
                expected = sorted(made_id for t, o, made_id in made if (t, o) == (table, operation))
                assert sorted(task_ids(client, table, task_type)) == expected

    check(busy.client())
    # They are there again after a stop, and those that had not ended, end.
    busy.stop()
    busy.start()
    check(busy.client())
    client = busy.client()
    for table, _, task_id in made:
        assert client.wait(table, task_id)["status"] == "failed"
    busy.stop()
