"""What goes out: paths, queries, bodies, signatures."""

import logging

import pytest
from fake import KEY, REGION, SECRET, TOKEN, Answer, Fake

from lance_maintenance_client import MaintenanceClient, MaintenanceError
from lance_maintenance_client._auth import SigV4

JOB = {"job_id": "j.1", "state": "queued"}
HEALTH = {"table": "t", "errors": {}, "advice": []}
TASK = {"task_info": {"task_id": "1", "status": "submitted"}}
DOOR = "/maintenance/v1/table/ns%24t"
OSS = "/lance/oss/v1/table/ns%24t"


@pytest.mark.parametrize(
    ("call", "line", "body", "answer"),
    [
        (lambda c: c.health("ns$t"), f"GET {DOOR}/health", None, HEALTH),
        (
            lambda c: c.health("ns$t", check_files=True, reclaim=True),
            f"GET {DOOR}/health?check_files=true&reclaim=true",
            None,
            HEALTH,
        ),
        (
            lambda c: c.preview("ns$t", "cleanup", {"retain_versions": 1}),
            f"POST {DOOR}/preview",
            {"operation": "cleanup", "options": {"retain_versions": 1}},
            {"old_versions": 3},
        ),
        (
            lambda c: c.submit("ns$t", "compact"),
            f"POST {DOOR}/jobs",
            {"operation": "compact", "options": {}},
            JOB,
        ),
        (lambda c: c.job("j.1"), "GET /maintenance/v1/jobs/j.1", None, JOB),
        (lambda c: c.cancel("j.1"), "POST /maintenance/v1/jobs/j.1/cancel", {}, JOB),
        (lambda c: c.jobs("ns$t"), f"GET {DOOR}/jobs", None, {"jobs": [JOB]}),
        (
            lambda c: c.jobs("ns$t", "a+b/c=", 7),
            f"GET {DOOR}/jobs?page_token=a%2Bb%2Fc%3D&limit=7",
            None,
            {"jobs": [], "page_token": "x"},
        ),
        (
            lambda c: {"version": c.add_columns("ns$t", {"a": "x + 1", "b c": "upper(y)"})},
            "POST /lance/v1/table/ns%24t/add_columns",
            {
                "new_columns": [
                    {"name": "a", "computed": "x + 1"},
                    {"name": "b c", "computed": "upper(y)"},
                ]
            },
            {"version": 7},
        ),
        (
            lambda c: {"version": c.add_columns("ns$t", {"a": "x"}, computed=False, branch="dev")},
            "POST /lance/v1/table/ns%24t/add_columns",
            {"new_columns": [{"name": "a", "expression": "x"}], "branch": "dev"},
            {"version": 7},
        ),
        (
            lambda c: {"job_id": c.backfill_column("ns$t", "a", where="x > 1", num_frags=2)},
            "POST /lance/v1/table/ns%24t/backfill_column",
            {"column": "a", "where": "x > 1", "num_frags": 2},
            {"job_id": "j.1"},
        ),
        (
            lambda c: c.create_namespace("ns", mode="exist_ok"),
            "POST /lance/v1/namespace/ns/create",
            {"mode": "exist_ok"},
            None,
        ),
        (
            lambda c: c.register_table("ns$t", "file:///w/t.lance"),
            "POST /lance/v1/table/ns%24t/register",
            {"location": "file:///w/t.lance"},
            {"location": "file:///w/t.lance"},
        ),
        (
            lambda c: c.describe_table("ns$t"),
            "POST /lance/v1/table/ns%24t/describe",
            {},
            {"table": "t", "namespace": ["ns"]},
        ),
    ],
)
def test_calls(fake, client, call, line, body, answer):
    fake.answers(Answer(200, answer))
    assert call(client) == answer
    assert fake.lines == [line]
    assert (fake.last.json() if fake.last.body else None) == body
    assert fake.last.headers.get("content-type") == ("application/json" if body is not None else None)


@pytest.mark.parametrize(
    ("call", "line", "body"),
    [
        (lambda c: c.compact("ns$t"), "compact", {}),
        (
            lambda c: c.compact("ns$t", target_rows_per_fragment=5),
            "compact",
            {"target_rows_per_fragment": 5},
        ),
        (
            lambda c: c.create_scalar_index("ns$t", "id", index_type="BITMAP", name="x"),
            "create_scalar_index",
            {"column": "id", "index_type": "BITMAP", "name": "x"},
        ),
        (lambda c: c.create_vector_index("ns$t", "v"), "create_vector_index", {"column": "v"}),
        (lambda c: c.optimize_indices("ns$t", retrain=True), "optimize_indices", {"retrain": True}),
        (lambda c: c.cleanup("ns$t", older_than="7d"), "cleanup", {"older_than": "7d"}),
    ],
)
def test_submits_of_tasks(fake, client, call, line, body):
    fake.answers(Answer(200, {"task_id": "1" * 32}))
    assert call(client) == "1" * 32
    assert fake.lines == [f"POST {OSS}/{line}"]
    assert fake.last.json() == body


def test_tasks(fake, client):
    fake.answers(Answer(200, TASK))
    assert client.get_task("ns$t", "1") == TASK["task_info"]
    assert "x-lance-task-progress" not in fake.last.headers
    client.get_task("ns$t", "1", with_progress=True)
    assert fake.last.headers["x-lance-task-progress"] == "true"
    fake.answers(Answer(204))
    assert client.delete_task("ns$t", "1") is None
    assert fake.lines == [f"GET {OSS}/tasks/1"] * 2 + [f"DELETE {OSS}/tasks/1"]


def test_listings_go_on_to_their_end(fake, client):
    fake.answers(
        Answer(200, {"tasks": [{"task_id": "3"}, {"task_id": "2"}], "next_marker": "m=2"}),
        Answer(200, {"tasks": [], "next_marker": "m1"}),
        Answer(200, {"tasks": [{"task_id": "1"}], "next_marker": ""}),
    )
    tasks = client.list_tasks("ns$t", "lance_compact", max_results=2)
    assert [task["task_id"] for task in tasks] == ["3", "2", "1"]
    query = "task_type=lance_compact&max_results=2"
    assert fake.lines == [
        f"GET {OSS}/tasks?{query}",
        f"GET {OSS}/tasks?{query}&marker=m%3D2",
        f"GET {OSS}/tasks?{query}&marker=m1",
    ]
    fake.requests.clear()
    fake.answers(
        Answer(200, {"jobs": [JOB], "page_token": "p"}), Answer(200, {"jobs": [{**JOB, "job_id": "k"}]})
    )
    assert [job["job_id"] for job in client.all_jobs("ns$t", limit=1)] == ["j.1", "k"]
    assert fake.lines == [f"GET {DOOR}/jobs?limit=1", f"GET {DOOR}/jobs?page_token=p&limit=1"]


@pytest.mark.parametrize(
    ("table", "segment"),
    [
        ("ns$t", "ns%24t"),
        ("file:///w/t.lance", "file%3A%2F%2F%2Fw%2Ft.lance"),
        ("s3://b/a b+c&d=e;f,g@h.lance", "s3%3A%2F%2Fb%2Fa%20b%2Bc%26d%3De%3Bf%2Cg%40h.lance"),
        ("/w/100%/%2F/%25.lance", "%2Fw%2F100%25%2F%252F%2F%2525.lance"),
        ("/w/../x/./t//y", "%2Fw%2F..%2Fx%2F.%2Ft%2F%2Fy"),
        ("/w/é?#[x]|{y}~", "%2Fw%2F%C3%A9%3F%23%5Bx%5D%7C%7By%7D~"),
        ("/w/a\r\nx: y", "%2Fw%2Fa%0D%0Ax%3A%20y"),
    ],
)
def test_a_table_is_one_segment_that_goes_out_as_it_is_signed(fake, client, table, segment):
    fake.answers(Answer(200, HEALTH))
    client.health(table, reclaim=True)
    assert fake.lines == [f"GET /maintenance/v1/table/{segment}/health?reclaim=true"]


@pytest.mark.parametrize("table", ["", ".", "..", "\ud800", "x" * 9000, None, 7])
def test_what_names_no_table(fake, client, table):
    with pytest.raises(MaintenanceError) as raised:
        client.health(table)
    assert (raised.value.code, fake.requests) == ("invalid_input", [])


@pytest.mark.parametrize("job_id", ["", ".", "..", "a/b", "a b", "é", "x" * 129, "a\n", None, 7])
def test_what_names_no_job(fake, client, job_id):
    for call in (client.job, client.cancel):
        with pytest.raises(MaintenanceError) as raised:
            call(job_id)
        assert (raised.value.code, fake.requests) == ("job_not_found", [])


@pytest.mark.parametrize("options", [{"a": {1}}, {"a": float("nan")}, ["a"], "ab"])
def test_options_that_are_no_json(fake, client, options):
    with pytest.raises(MaintenanceError) as raised:
        client.submit("ns$t", "compact", options)
    assert (raised.value.code, fake.requests) == ("invalid_input", [])


def test_a_session_token_is_sent_and_signed(fake):
    fake.token = TOKEN
    fake.answers(Answer(200, JOB))
    with MaintenanceClient(fake.url, KEY, SECRET, session_token=TOKEN) as client:
        client.submit("ns$t", "compact", {"materialize_deletions": False})
    assert fake.last.headers["x-amz-security-token"] == TOKEN


def test_what_is_no_signature_is_seen():
    fake = Fake()
    with MaintenanceClient(fake.url, KEY, "another", REGION) as client:
        client.describe_table("ns$t")
    fake.stop()
    assert fake.mistakes == ["the signature does not match"]


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:3000",
        "ftp://h",
        "http://",
        "http://h/lance",
        "http://h?x=y",
        "http://h#x",
        "http://me:hidden@h",
        "http://h:port",
        "",
        None,
    ],
)
def test_what_is_no_address(url):
    with pytest.raises(MaintenanceError) as raised:
        MaintenanceClient(url, KEY, SECRET)
    assert raised.value.code == "invalid_input"
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("name", ["access_key_id", "secret_access_key", "session_token", "region"])
@pytest.mark.parametrize("value", ["", "hidden\n", "hid den", "hiddén", 7])
def test_keys_that_can_not_be_sent(name, value):
    keys = {"access_key_id": KEY, "secret_access_key": SECRET, "region": REGION, name: value}
    with pytest.raises(MaintenanceError, match=f"'{name}'") as raised:
        MaintenanceClient("http://h", **keys)
    assert raised.value.code == "invalid_input"
    assert "hid" not in str(raised.value)


def test_no_secret_is_shown_or_logged(fake, caplog):
    caplog.set_level(logging.DEBUG)
    fake.token = TOKEN
    # Whoever repeats what it was sent, in an error.
    fake.answer = lambda request: Answer(
        403, {"error": "AccessDenied", "detail": str(request.headers), "instance": SECRET}
    )
    with MaintenanceClient(fake.url, KEY, SECRET, session_token=TOKEN) as client:
        with pytest.raises(MaintenanceError) as raised:
            client.job("j.1")
        error = raised.value
        texts = [repr(client), str(client), repr(error), str(error), str(vars(error)), caplog.text]
    texts.append(repr(SigV4(KEY, SECRET, REGION, TOKEN)))
    assert "x-amz-date" in error.detail
    for text in texts:
        assert SECRET not in text
        assert TOKEN not in text
