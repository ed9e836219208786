"""The execution backend of the maintenance skill, through the skill's own steps, against the service."""

import os
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "clients/python"
sys.path[:0] = [str(PACKAGE / "src"), str(PACKAGE / "tests")]

from lance_maintenance_client import MaintenanceClient, MaintenanceError  # noqa: E402
from lance_maintenance_client.skill import Backend  # noqa: E402
from walk import walk  # noqa: E402

import tables  # noqa: E402


def append(uri, start, stop):
    rows = pa.table({"id": pa.array(range(start, stop), pa.int64())})
    lance.write_dataset(rows, uri, mode="append", max_rows_per_file=20)


@pytest.fixture
def environment(service, monkeypatch):
    """The settings of a backend."""
    keys = service.client()
    settings = {
        "URL": service.endpoint,
        "ACCESS_KEY_ID": keys.access_key_id,
        "SECRET_ACCESS_KEY": keys.secret_access_key,
        "REGION": keys.region,
    }
    for name in [name for name in os.environ if name.startswith("LANCE_MAINTENANCE_")]:
        monkeypatch.delenv(name)
    for name, value in settings.items():
        monkeypatch.setenv(f"LANCE_MAINTENANCE_{name}", value)
    return settings


def test_every_step_of_the_checker(service, environment, monkeypatch):
    monkeypatch.setenv("LANCE_MAINTENANCE_REGISTER_NAMESPACE", "skill")
    slowest = walk(Backend(), str(service.folder / "walked/t.lance"), append)
    assert slowest < 10
    # It was registered on the way.
    listed = service.client().request("GET", "/lance/v1/namespace/skill/table/list").json()
    assert len(listed["tables"]) == 1


def test_a_table_of_the_catalog_needs_no_registering(service, environment):
    client = service.client()
    _, location = client.new_table()
    append(location, 0, 100)
    preview = Backend().preview({"table": location, "operation": "compact", "options": {}})
    assert (preview["tasks"], preview["fragments_rewritten"]) == (1, 5)


def test_one_that_is_not_there_is_not_registered_unasked(service, environment):
    location = str(service.folder / "unknown.lance")
    append(location, 0, 10)
    with pytest.raises(MaintenanceError) as raised:
        Backend().submit({"table": location, "operation": "compact", "options": {}})
    assert raised.value.code == "table_not_found"
    assert "REGISTER" in str(raised.value)


@pytest.mark.parametrize(
    "job, code",
    [
        ({"operation": "compact", "options": {"rows": 1}}, "invalid_input"),
        ({"operation": "cleanup", "options": {}}, "invalid_input"),
        ({"operation": "vacuum", "options": {}}, "unsupported"),
        ({"operation": "compact", "options": {}, "more": 1}, "invalid_input"),
    ],
)
def test_mistakes(service, environment, job, code):
    _, location = service.client().new_table()
    append(location, 0, 10)
    for call in (Backend().preview, Backend().submit):
        with pytest.raises(Exception) as raised:
            call({"table": location} | job)
        assert raised.value.code == code


def test_who_may_not_is_told_so(service, environment, monkeypatch):
    _, location = service.client().new_table()
    monkeypatch.setenv("LANCE_MAINTENANCE_SECRET_ACCESS_KEY", "wrong" * 8)
    with pytest.raises(MaintenanceError) as raised:
        Backend().submit({"table": location, "operation": "compact", "options": {}})
    assert raised.value.code == "permission_denied"
    assert "wrong" not in str(raised.value)


def test_a_service_that_is_not_there(service, environment, monkeypatch):
    # A port that nobody listens on.
    monkeypatch.setenv("LANCE_MAINTENANCE_URL", "http://127.0.0.1:9")
    with pytest.raises(MaintenanceError) as raised:
        Backend().status("5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab." + "1" * 32)
    assert raised.value.code == "internal"


def test_the_client_by_both_doors(service, environment, tmp_path):
    keys = service.client()
    table, location = keys.new_table()
    tables.append_in_parts(location, tables.rows(0, 300), 30)
    shown = (tmp_path / "progress").open("w+")
    with MaintenanceClient(
        service.endpoint, keys.access_key_id, keys.secret_access_key, keys.region
    ) as client:
        health = client.health(table, check_files=True)
        assert [advice["rule"] for advice in health["advice"]] == ["compaction"]
        assert health["missing"]["num_files"] == 0
        advised = health["advice"][0]["job"]
        preview = client.preview(table, advised["operation"], advised["options"])
        submitted = client.submit(table, advised["operation"], advised["options"])
        done = client.wait(submitted["job_id"], progress=shown)
        assert done["result"]["fragments_removed"] == preview["fragments_rewritten"] == 10
        assert client.health(table)["advice"] == []

        task_id = client.create_scalar_index(table, column="id")
        assert client.wait_task(table, task_id)["status"] == "completed"
        assert [found["task_id"] for found in client.list_tasks(table, "lance_compact")] == [done["task_id"]]
        assert [found["operation"] for found in client.all_jobs(table)] == ["create_scalar_index", "compact"]
        assert client.cancel(done["job_id"])["state"] == "succeeded"
        client.delete_task(table, task_id)
        with pytest.raises(MaintenanceError) as raised:
            client.get_task(table, task_id)
        assert (raised.value.code, raised.value.name) == ("job_not_found", "TaskNotFound")

        before = lance.dataset(location).version
        assert client.add_columns(table, {"c": "digit + 1"}) == before + 1
        filled = client.wait(client.backfill_column(table, "c", where="digit < 5"), progress=False)
        assert filled["result"]["rows_filled"] == lance.dataset(location).count_rows("c IS NOT NULL") > 0
        (fill,) = client.list_tasks(table, "lance_backfill_column")
        assert fill["task_id"] == filled["task_id"]
        client.add_columns(table, {"d": "digit + 1"}, computed=False)
        assert lance.dataset(location).count_rows("d = digit + 1") == 300
    shown.seek(0)
    assert "100%" in shown.read()
