"""Health reports and previews of what is no table, of busy tables and of large ones."""

import json
import time

import lance
import pyarrow.parquet
import pytest

import conditions
import maintenance
import tables
from cases import INVALID_INPUT, TABLE_NOT_FOUND
from service import refusal

COMPACT = ("compaction", ("compact", {}))
OPTIMIZE = ("unindexed_rows", ("optimize_indices", {}))


# Tables that are none, and requests


def never_written(client, service):
    return client.new_table()


def parquet(client, service):
    roots = json.loads((service.folder / "variables.json").read_text())["register_roots"]
    name = f"parquet_{time.time_ns()}"
    location = f"{roots.split(',')[0]}/{name}"
    tables.folder(location).mkdir()
    pyarrow.parquet.write_table(conditions.narrow(0, 10), tables.folder(location) / "part-0.parquet")
    client.create_namespace("tests", mode="exist_ok")
    path = f"/lance/v1/table/tests%24{name}/register"
    assert client.request("POST", path, {"location": location}).status_code == 200
    return f"tests${name}", location


def zeroed(client, service):
    table, location = conditions.made(client, conditions.example)
    newest = min((tables.folder(location) / "_versions").glob("*.manifest"))
    newest.write_bytes(b"\x00" * newest.stat().st_size)
    return table, location


def gone(client, service):
    return "tests$nothing", "file:///nowhere"


@pytest.mark.parametrize(
    "make, health, preview, word",
    [
        # A task on it would find no table.
        (never_written, (409, "InvalidTableState", 19), TABLE_NOT_FOUND, ""),
        (gone, TABLE_NOT_FOUND, TABLE_NOT_FOUND, "nothing"),
        (parquet, INVALID_INPUT, INVALID_INPUT, "part-0.parquet"),
        (zeroed, (409, "InvalidTableState", 19), (409, "InvalidTableState", 19), "version"),
    ],
)
def test_a_table_that_is_none(client, service, make, health, preview, word):
    table, location = make(client, service)
    before = tables.files(location)
    answers = [(health, client.request("GET", maintenance.path(table, "health?check_files=true&reclaim=true")))]
    for operation, options in [("compact", {}), ("optimize_indices", {}), ("cleanup", {"retain_versions": 1})]:
        answers.append((preview, maintenance.ask_preview(client, table, operation, options)))
    for expected, answer in answers:
        assert refusal(answer) == expected
        assert word in answer.json()["detail"]
        assert "file://" not in answer.text
    assert tables.files(location) == before


def test_the_query(client):
    table, location = conditions.made(client, conditions.fresh)
    for query in ["check_files=maybe", "reclaim=2"]:
        answer = client.request("GET", maintenance.path(table, f"health?{query}"))
        assert refusal(answer) == INVALID_INPUT, query
    # A table is found by its folder, too.
    by_uri, by_name = [maintenance.health(client, name) for name in (location, table)]
    assert by_uri["oldest_version"].pop("age_seconds") <= by_name["oldest_version"].pop("age_seconds")
    assert by_uri == by_name


# Tasks, and large tables


def linked(location, fragments):
    """Adds fragments that are all one file under many names, which takes hardly any time."""
    (fragment,) = lance.fragment.write_fragments(conditions.narrow(0, 1), location, mode="append")
    data = tables.folder(location) / "data"
    description = fragment.to_json()
    name = description["files"][0]["path"]
    added = []
    for number in range(fragments):
        (data / f"{number:06}{name}").hardlink_to(data / name)
        file = description["files"][0] | {"path": f"{number:06}{name}"}
        added.append(lance.FragmentMetadata.from_json(json.dumps(description | {"files": [file]})))
    (data / name).unlink()
    version = lance.dataset(location).version
    lance.LanceDataset.commit(location, lance.LanceOperation.Append(added), read_version=version)


def test_what_is_under_way_is_not_advised(client):
    table, location = conditions.made(client, conditions.fresh)
    conditions.scalar(location)
    linked(location, 6000)
    report = maintenance.health(client, table)
    assert maintenance.jobs_of(report) == [OPTIMIZE, COMPACT] and report["tasks"] == []
    jobs = [maintenance.submit(client, table, operation) for operation in ("compact", "optimize_indices")]
    report = maintenance.health(client, table, "reclaim=true")
    open_tasks = {task["job_id"]: task for task in report["tasks"]}
    assert [open_tasks[job]["operation"] for job in jobs] == ["compact", "optimize_indices"]
    assert {open_tasks[job]["state"] for job in jobs} <= {"queued", "running"}
    assert all(set(task) == {"job_id", "operation", "state", "created_at"} for task in report["tasks"])
    assert {advice["rule"] for advice in report["advice"]} <= {"old_versions"}
    assert [maintenance.wait(client, job)["state"] for job in jobs] == ["succeeded", "succeeded"]
    # Rows that were not indexed could not be merged with those that were.
    report = maintenance.health(client, table)
    assert maintenance.jobs_of(report) == [COMPACT]


def test_a_table_of_the_same_name(client):
    table, location = conditions.made(client, conditions.target)
    job = maintenance.submit(client, table, "compact")
    name = table.replace("$", "%24")
    maintenance.wait(client, job)
    assert client.request("POST", f"/lance/v1/table/{name}/drop", {}).status_code == 200
    answer = client.request("GET", maintenance.path(table, "health"))
    assert refusal(answer) == TABLE_NOT_FOUND
    location = client.declare(table)
    conditions.target(location)
    assert maintenance.jobs_of(maintenance.health(client, table)) == [COMPACT]
    answer = client.request("GET", maintenance.path(table, "jobs"))
    assert answer.json()["jobs"] == []


def test_many_fragments_and_versions_take_no_time(client):
    table, location = conditions.made(client, conditions.fresh)
    for number in range(1000):
        conditions.configure(location, number=number)
    linked(location, 10_000)
    calls = {
        "health": lambda: maintenance.health(client, table, "check_files=true&reclaim=true"),
        "compact": lambda: maintenance.preview(client, table, "compact"),
        "cleanup": lambda: maintenance.preview(client, table, "cleanup", {"retain_versions": 1}),
    }
    for name, call in calls.items():
        seconds = []
        for _ in range(3):
            start = time.monotonic()
            answer = call()
            seconds.append(time.monotonic() - start)
        assert min(seconds) < 2, (name, seconds)
        if name == "health":
            assert (answer["num_fragments"], answer["num_versions"], answer["errors"]) == (10_001, 1002, {})
            assert answer["missing"]["num_files"] == 0
            assert [advice["rule"] for advice in answer["advice"]] == ["compaction", "old_versions"]
