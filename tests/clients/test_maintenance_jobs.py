"""Jobs: the same tasks as those of the OSS API, with the names and meanings of the maintenance skill."""

import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import lance
import pytest

import tables
from service import refusal

FINAL = {"succeeded", "failed", "canceled"}
JOB_SECONDS = 120


def path(table, rest=""):
    """Of a table that is named by its identifier, or by the URI of its folder."""
    return f"/maintenance/v1/table/{quote(table, safe='')}{rest}"


def submit(client, table, operation, **options):
    answer = client.request("POST", path(table, "/jobs"), {"operation": operation, "options": options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def job(client, job_id):
    answer = client.request("GET", f"/maintenance/v1/jobs/{job_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def cancel(client, job_id):
    answer = client.request("POST", f"/maintenance/v1/jobs/{job_id}/cancel")
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait(client, job_id):
    end = time.monotonic() + JOB_SECONDS
    while True:
        status = job(client, job_id)
        if status["state"] in FINAL:
            return status
        assert time.monotonic() < end, f"the job does not end: {status}"
        time.sleep(0.05)


def run(client, table, operation, **options):
    return wait(client, submit(client, table, operation, **options)["job_id"])


@pytest.fixture
def appended(client):
    """A table of 20 fragments."""
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 200), 10)
    return table, location


# What a job is


def test_a_job_and_the_task_that_it_is(client, appended):
    table, location = appended
    submitted = submit(client, table, "compact")
    assert submitted["state"] == "queued"
    assert (submitted["operation"], submitted["options"]) == ("compact", {})
    job_id, task_id = submitted["job_id"], submitted["task_id"]
    assert job_id.endswith(f".{task_id}") and len(job_id) <= 128
    ended = wait(client, job_id)
    assert ended["state"] == "succeeded" and "error" not in ended
    assert ended["result"] == {
        "fragments_removed": 20,
        "fragments_added": 1,
        "files_removed": 20,
        "files_added": 1,
    }
    assert ended["version"] == lance.dataset(location).version
    assert ended["progress"] == {"percent": 100, "message": "done"}
    assert ended["created_at"] <= ended["started_at"] <= ended["completed_at"]

    task = client.get(table, task_id).json()["task_info"]
    assert (task["status"], task["task_type"]) == ("completed", "lance_compact")
    assert task["result"] == ended["result"] | {"version": ended["version"]}
    assert "progress" not in task
    (listed,) = client.list(table, "task_type=lance_compact").json()["tasks"]
    assert listed == task

    # A second one has nothing to do.
    again = run(client, table, "compact")
    assert set(again["result"].values()) == {0}
    assert again["version"] == ended["version"]


def test_what_is_left_out_is_decided_when_the_task_runs(client, appended):
    table, location = appended
    lance.dataset(location).update_config(
        {
            "lance.compaction.target_rows_per_fragment": "50",
            "lance.compaction.materialize_deletions_threshold": "0.25",
        }
    )
    ended = run(client, table, "compact", max_bytes_per_file=1 << 30)
    assert ended["options"] == {"max_bytes_per_file": 1 << 30}
    assert ended["result"]["fragments_added"] == 4
    params = client.get(table, ended["task_id"]).json()["task_info"]["params"]
    assert params == {
        "target_rows_per_fragment": 50,
        "materialize_deletions": True,
        "materialize_deletions_threshold": 0.25,
        "max_rows_per_group": 1024,
        "max_bytes_per_file": 1 << 30,
        "compaction_mode": "reencode",
        "table_budgets": True,
    }
    # The OSS API fills in its own defaults, whatever the table says.
    task = client.run(table, "compact", {})
    assert task["params"]["target_rows_per_fragment"] == 1 << 20
    assert "table_budgets" not in task["params"]
    assert task["result"]["fragments_removed"] == 4


def test_budgets_limit_jobs_only(client, appended):
    table, location = appended
    config = {
        "lance.compaction.target_rows_per_fragment": "50",
        "lance.compaction.max_source_fragments": "10",
    }
    lance.dataset(location).update_config(config)
    assert [run(client, table, "compact")["result"]["fragments_removed"] for _ in range(3)] == [10, 10, 0]
    tables.append_in_parts(location, tables.rows(200, 400), 10)
    assert client.complete(table, "compact", {})["fragments_removed"] == 24

    lance.dataset(location).update_config({"lance.compaction.max_source_fragments": "3"})
    tables.append_in_parts(location, tables.rows(400, 600), 10)
    failed = run(client, table, "compact")
    assert (failed["state"], failed["error"]["code"]) == ("failed", "invalid_input")
    assert "lance.compaction.max_source_fragments = 3" in failed["error"]["message"]


def test_tagged_versions_stop_a_cleanup_unless_it_says_otherwise(client, appended):
    table, location = appended
    lance.dataset(location).tags.create("keep", 3)
    failed = run(client, table, "cleanup", retain_versions=2)
    assert (failed["state"], failed["error"]["code"]) == ("failed", "invalid_input")
    assert "'keep' (version 3)" in failed["error"]["message"]
    assert len(tables.versions(location)) == 20
    done = run(client, table, "cleanup", retain_versions=2, error_if_tagged_old_versions=False)
    assert done["result"]["old_versions"] == 17 and done["result"]["failed_deletes"] == 0
    assert "version" not in done
    assert tables.versions(location) == [3, 19, 20]


def test_an_index_that_is_not_there_is_a_mistake_in_the_job(client, appended):
    table, _ = appended
    failed = run(client, table, "optimize_indices", index_names=["none"])
    assert (failed["state"], failed["error"]["code"]) == ("failed", "invalid_input")
    task = client.get(table, failed["task_id"]).json()["task_info"]
    assert task["error"]["error"] == "TableIndexNotFound"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        {},
        {"operation": "compact", "option": {}},
        {"operation": "vacuum"},
        {"operation": "create_scalar_index", "options": {"column": "id"}},
        {"operation": "compact", "options": {"target_rows": 5}},
        {"operation": "compact", "options": {"target_rows_per_fragment": "5"}},
        {"operation": "cleanup"},
        {"operation": "cleanup", "options": {"retain_version": 1}},
        {"operation": "cleanup", "options": {"retain_versions": 0}},
        {"operation": "cleanup", "options": {"older_than_seconds": -1}},
        {"operation": "compact", "table": "jobs$other"},
    ],
)
def test_what_is_refused_leaves_no_task(client, appended, body):
    table, _ = appended
    for door in ("/jobs", "/preview"):
        answer = client.request("POST", path(table, door), body)
        assert refusal(answer) == (400, "InvalidInput", 13), answer.text
    assert client.request("GET", path(table, "/jobs")).json() == {"jobs": []}


def test_a_body_may_name_the_table_of_the_path(client, appended):
    table, location = appended
    for name in (table, location, location + "/", location.removeprefix("file://")):
        body = {"table": name, "operation": "optimize_indices", "options": {}}
        answer = client.request("POST", path(table, "/preview"), body)
        assert answer.status_code == 200, answer.text


# Naming a table by its folder


def test_a_table_is_named_by_its_folder_in_any_spelling(client, service):
    client.create_namespace("folders", mode="exist_ok")
    location = f"file://{service.folder}/some where/100% a+b.lance"
    tables.append(location, tables.rows(0, 10))
    # What can't be written in a URI as it is can't be registered.
    plain = f"file://{service.folder}/by_folder.lance"
    tables.append(plain, tables.rows(0, 10))
    registered = client.request("POST", "/lance/v1/table/folders%24t/register", {"location": plain})
    assert registered.status_code == 200, registered.text
    for name in (plain, plain + "/", plain.removeprefix("file://")):
        answer = client.request("GET", path(name, "/health"))
        assert answer.status_code == 200, answer.text
        assert (answer.json()["table"], answer.json()["num_rows"]) == (plain, 10)
    ended = run(client, plain, "compact")
    assert ended["state"] == "succeeded"
    assert client.get("folders$t", ended["task_id"]).json()["task_info"]["status"] == "completed"
    for name in (location, plain + "x", f"file://{service.folder}", "/", "s3://b/t"):
        assert refusal(client.request("GET", path(name, "/health"))) == (404, "TableNotFound", 4)
    # The OSS API knows identifiers only.
    answer = client.request("POST", f"/lance/oss/v1/table/{quote(plain, safe='')}/compact", {})
    assert refusal(answer) == (400, "InvalidInput", 13)


# Listing


def test_jobs_are_listed_newest_first_whatever_they_do(client, appended):
    table, _ = appended
    names = ["compact", "optimize_indices", "cleanup"]
    options = {"cleanup": {"retain_versions": 100}}
    submitted = [
        submit(client, table, names[number % 3], **options.get(names[number % 3], {}))["job_id"]
        for number in range(7)
    ]
    index = client.run(table, "create_scalar_index", {"column": "id"})
    for job_id in submitted:
        wait(client, job_id)

    seen, token = [], ""
    while token is not None:
        page = client.request("GET", path(table, f"/jobs?limit=3&page_token={token}")).json()
        assert 1 <= len(page["jobs"]) <= 3
        seen += page["jobs"]
        token = page.get("page_token")
    assert [status["job_id"] for status in seen[1:]] == submitted[::-1]
    assert seen[0]["operation"] == "create_scalar_index"
    assert seen[0]["task_id"] == index["task_id"]
    assert seen[1:] == [job(client, job_id) for job_id in submitted[::-1]]
    for query in ("limit=0", "limit=1001", "limit=x", "page_token=x", "limit=1&limit=2"):
        answer = client.request("GET", path(table, f"/jobs?{query}"))
        assert refusal(answer) == (400, "InvalidInput", 13)


@pytest.mark.parametrize("method, rest", [("GET", ""), ("POST", "/cancel")])
def test_no_such_job(client, appended, method, rest):
    table, _ = appended
    known = submit(client, table, "compact")["job_id"]
    wait(client, known)
    table_id, task_id = known.split(".")
    other = client.new_table()[0]
    of_other = submit(client, other, "compact")["job_id"].split(".")[0]
    for job_id in ["no-such-job-0000", task_id, f"{table_id}.", f"{of_other}.{task_id}", f"{known}0"]:
        answer = client.request(method, f"/maintenance/v1/jobs/{job_id}{rest}")
        assert refusal(answer) == (404, "TaskNotFound", 10000), job_id
    client.delete(table, task_id)
    answer = client.request(method, f"/maintenance/v1/jobs/{known}{rest}")
    assert refusal(answer) == (404, "TaskNotFound", 10000)


def test_who_may_do_what(service, client, appended):
    table, _ = appended
    job_id = submit(client, table, "compact")["job_id"]

    def user(name, *actions):
        policy = {
            "Version": "1",
            "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}],
        }
        body = {"secret_access_key": "s" * 40, "policy": policy}
        answer = client.request("PUT", f"/access/v1/credentials/{name}", body)
        assert answer.status_code == 200, answer.text
        return service.client_of(name, "s" * 40)

    calls = [
        ("GET", path(table, "/health"), None),
        ("POST", path(table, "/preview"), {"operation": "compact"}),
        ("GET", path(table, "/jobs"), None),
        ("GET", f"/maintenance/v1/jobs/{job_id}", None),
        ("POST", path(table, "/jobs"), {"operation": "compact"}),
        ("POST", f"/maintenance/v1/jobs/{job_id}/cancel", None),
    ]
    reader = user("jobs-reader", "oss:GetTableMaintenanceJobStatus")
    keeper = user("jobs-keeper", "oss:PutTableMaintenanceConfiguration")
    for number, (method, target, body) in enumerate(calls):
        allowed, denied = (reader, keeper) if number < 4 else (keeper, reader)
        assert allowed.request(method, target, body).status_code == 200, target
        assert refusal(denied.request(method, target, body)) == (403, "PermissionDenied", 15), target
        assert refusal(client.send(method, target)) == (403, "AccessDenied", 15), target


# Canceling


def test_one_that_has_ended_stays_as_it_is(client, appended):
    table, _ = appended
    ended = run(client, table, "compact")
    assert cancel(client, ended["job_id"]) == ended
    assert job(client, ended["job_id"]) == ended


def test_one_that_waits_ends_at_once(idle):
    client = idle.client()
    table, _ = client.new_table()
    waiting = submit(client, table, "compact")
    canceled = cancel(client, waiting["job_id"])
    assert canceled["state"] == "canceled"
    assert canceled["error"]["code"] == "canceled"
    assert canceled["started_at"] == "" and canceled["completed_at"] != ""
    assert cancel(client, waiting["job_id"]) == canceled
    task = client.get(table, waiting["task_id"]).json()["task_info"]
    assert task["status"] == "failed"
    assert (task["error"]["error"], task["error"]["code"]) == ("Canceled", 10003)
    # It has ended: its record can go.
    assert client.delete(table, waiting["task_id"]).status_code == 204


def test_a_running_one_stops_and_leaves_nothing(client):
    """Tasks of the OSS API can be canceled, too: one that takes long."""
    table, location = client.new_table()
    tables.append(location, tables.rows(0, 200_000))
    before, files = tables.shape(location), tables.files(location)
    body = {"column": "vector", "index_type": "IVF_PQ", "num_partitions": 512, "max_iterations": 1000}
    task_id = client.submit(table, "create_vector_index", body | {"sample_rate": 400}).json()["task_id"]
    (listed,) = client.request("GET", path(table, "/jobs")).json()["jobs"]
    assert listed["task_id"] == task_id
    end = time.monotonic() + JOB_SECONDS
    while (status := job(client, listed["job_id"])).get("progress", {}).get("percent", 0) < 5:
        assert status["state"] in ("queued", "running"), status
        assert time.monotonic() < end, status
        time.sleep(0.02)
    assert status["progress"]["message"]
    # The OSS API shows how far it is where that is asked for.
    asking = {"x-lance-task-progress": "true"}
    assert client.get(table, task_id, headers=asking).json()["task_info"]["progress"]["percent"] >= 5
    listing = f"/lance/oss/v1/table/{quote(table, safe='')}/tasks?task_type=lance_vector_index"
    (task,) = client.request("GET", listing, headers=asking).json()["tasks"]
    assert task["progress"]["percent"] >= 5
    assert "progress" not in client.get(table, task_id).json()["task_info"]
    assert client.delete(table, task_id).status_code == 409

    asked = cancel(client, listed["job_id"])
    assert asked["state"] == "canceled" or asked["cancel_requested"], asked
    began = time.monotonic()
    ended = wait(client, listed["job_id"])
    assert time.monotonic() - began < 10
    assert (ended["state"], ended["error"]["code"]) == ("canceled", "canceled"), ended
    assert (ended["completed_at"] > ended["started_at"] > "") and "cancel_requested" not in ended
    assert tables.shape(location) == before
    assert tables.files(location) == files
    assert client.get(table, task_id).json()["task_info"]["error"]["error"] == "Canceled"
    # Another one finds the table as if nothing had been.
    assert run(client, table, "optimize_indices")["result"] == {"indices": []}


def test_whenever_it_is_canceled_all_of_it_is_done_or_nothing(client):
    rows = tables.rows(0, 20_000)

    def one(number):
        table, location = client.new_table("canceled")
        tables.fragments_at_once(location, rows, 500)
        before, files = tables.shape(location), tables.files(location)
        running = submit(client, table, "compact", target_rows_per_fragment=5000)
        time.sleep(number * 0.02)
        cancel(client, running["job_id"])
        ended = wait(client, running["job_id"])
        after = tables.shape(location)
        match ended["state"]:
            case "succeeded":
                assert len(after.fragments) == 4
            case "canceled":
                assert after.fragments == before.fragments
                # Lance may have made a version to reserve fragment ids.
                written = set(tables.files(location)) - set(files)
                assert all(name.startswith(("_versions/", "_transactions/")) for name in written)
            case _:
                raise AssertionError(ended)
        assert after.rows == before.rows
        return ended["state"]

    client.create_namespace("canceled", mode="exist_ok")
    with ThreadPoolExecutor(4) as pool:
        states = list(pool.map(one, range(24)))
    assert set(states) <= {"succeeded", "canceled"}
    assert "canceled" in states, states
