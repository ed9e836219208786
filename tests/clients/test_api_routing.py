"""What there is and what there is not, and what of several faults is told."""

import base64
import json
import socket
from urllib.parse import urlsplit

import pytest

import wire
from acting_worker import ActingWorker
from cases import (
    ACCESS_DENIED,
    INVALID_DIGEST,
    INVALID_INPUT,
    METHOD_NOT_ALLOWED,
    NO_SUCH_OPERATION,
    TABLE_NOT_FOUND,
    rows,
    submitted,
    table_id,
)
from service import refusal


@pytest.fixture(scope="module")
def table(idle):
    client = idle.client()
    return client.new_table()[0]


@pytest.fixture
def client(idle):
    return idle.client()


# Paths and methods


@rows(
    "method,path,expected",
    ("GET", "/", NO_SUCH_OPERATION),
    ("POST", "/", NO_SUCH_OPERATION),
    ("GET", "/lance", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table/{table}", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table/{table}/", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/table/{table}/lance_compact", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/table/{table}/Compact", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/table/{table}/compact/", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/table/{table}/compact/x", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/table/{table}/scalar-index", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v1/namespace/tests/compact", NO_SUCH_OPERATION),
    ("POST", "/lance/oss/v2/table/{table}/compact", NO_SUCH_OPERATION),
    ("POST", "/oss/v1/table/{table}/compact", NO_SUCH_OPERATION),
    ("POST", "/v1/table/{table}/compact", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table/{table}/tasks/a/b", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table/{table}/tasks//", NO_SUCH_OPERATION),
    ("GET", "/lance/oss/v1/table/{table}/tasks/", INVALID_INPUT),
    ("DELETE", "/lance/oss/v1/table/{table}/tasks/", INVALID_INPUT),
    ("POST", "/compact", NO_SUCH_OPERATION),
    ("POST", "/catalog", NO_SUCH_OPERATION),
    ("GET", "/health", NO_SUCH_OPERATION),
    ("GET", "/healthz/", NO_SUCH_OPERATION),
    ("POST", "/healthz", METHOD_NOT_ALLOWED),
    ("GET", "/lance/oss/v1/table/{table}/compact", METHOD_NOT_ALLOWED),
    ("PUT", "/lance/oss/v1/table/{table}/compact", METHOD_NOT_ALLOWED),
    ("DELETE", "/lance/oss/v1/table/{table}/cleanup", METHOD_NOT_ALLOWED),
    ("PATCH", "/lance/oss/v1/table/{table}/create_scalar_index", METHOD_NOT_ALLOWED),
    ("OPTIONS", "/lance/oss/v1/table/{table}/create_vector_index", METHOD_NOT_ALLOWED),
    ("GET", "/lance/oss/v1/table/{table}/optimize_indices", METHOD_NOT_ALLOWED),
    ("POST", "/lance/oss/v1/table/{table}/tasks", METHOD_NOT_ALLOWED),
    ("DELETE", "/lance/oss/v1/table/{table}/tasks", METHOD_NOT_ALLOWED),
    ("POST", "/lance/oss/v1/table/{table}/tasks/a", METHOD_NOT_ALLOWED),
    ("PUT", "/lance/oss/v1/table/{table}/tasks/a", METHOD_NOT_ALLOWED),
    ("BREW", "/lance/oss/v1/table/{table}/tasks/a", METHOD_NOT_ALLOWED),
)
def test_what_there_is_not(client, table, method, path, expected):
    answer = wire.request(client, method, path.replace("{table}", table), b"{}")
    assert refusal(answer) == expected


def test_head_is_no_method_of_a_list(client, table):
    answer = wire.request(client, "HEAD", f"/lance/oss/v1/table/{table}/tasks")
    assert (answer.status_code, answer.content) == (405, b"")


@rows("headers", {}, {"Host": "oss-tables.localhost"}, {"Authorization": "x"})
def test_health_is_for_everybody(client, headers):
    answer = wire.send(client, "GET", "/healthz", headers)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


# What is told first


GARBAGE = b"{"
WRONG_MD5 = {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
OTHER_HOST = {"Host": "third.oss-tables.localhost"}


@rows(
    "case,path,is_signed,headers,expected",
    ("path, then bucket", "/nothing", False, OTHER_HOST, NO_SUCH_OPERATION),
    ("bucket, then signature", "/lance/oss/v1/table/{table}/compact", False, OTHER_HOST, (404, "NoSuchTableBucket", 1)),
    ("signature, then body", "/lance/oss/v1/table/{table}/compact", False, {}, ACCESS_DENIED),
    ("signature, then id", "/lance/oss/v1/table/x/compact", False, {}, ACCESS_DENIED),
    ("signature, then table", "/lance/oss/v1/table/a$b/compact", False, {}, ACCESS_DENIED),
    ("signature, then digest", "/lance/oss/v1/table/{table}/compact", False, WRONG_MD5, ACCESS_DENIED),
    ("id, then digest", "/lance/oss/v1/table/x/compact", True, WRONG_MD5, INVALID_INPUT),
    ("table, then digest", "/lance/oss/v1/table/a$b/compact", True, WRONG_MD5, TABLE_NOT_FOUND),
    ("table, then body", "/lance/oss/v1/table/a$b/compact", True, {}, TABLE_NOT_FOUND),
    ("digest, then body", "/lance/oss/v1/table/{table}/compact", True, WRONG_MD5, INVALID_DIGEST),
    ("body", "/lance/oss/v1/table/{table}/compact", True, {}, INVALID_INPUT),
)
def test_what_is_told_first(client, table, case, path, is_signed, headers, expected):
    path = path.replace("{table}", table)
    if is_signed:
        headers = wire.signed(client, "POST", path, GARBAGE, headers)
    assert refusal(wire.send(client, "POST", path, headers, GARBAGE)) == expected


@rows(
    "path,expected",
    ("/lance/oss/v1/table/a$b/tasks?status=", TABLE_NOT_FOUND),
    ("/lance/oss/v1/table/a$b/tasks/abc", TABLE_NOT_FOUND),
    ("/lance/oss/v1/table/x/tasks?status=", INVALID_INPUT),
)
def test_the_table_comes_before_the_query(client, path, expected):
    assert refusal(wire.request(client, "GET", path)) == expected


# What the parts of the application tell each other


@rows("path", "/worker/v1", "/worker/v1/", "/worker/v1/claim", "/worker/v1/heartbeat", "/worker/v1/x")
def test_the_workers_paths_believe_workers_only(idle, client, path):
    message = {"worker_id": "local", "starting": True, "in_hand": [], "room": 1}
    body = json.dumps(message).encode()
    worker = ActingWorker(idle)
    plain = {"Content-Type": "application/json"}
    right = worker.headers(path, body)
    answers = [
        wire.send(client, "POST", path, plain, body),
        wire.send(client, "GET", path),
        wire.request(client, "POST", path, body),
        worker.send(path, message, secret="guessed"),
        worker.send(path, message, secret=client.secret_access_key),
        worker.send(path, message, seconds=-400),
        worker.send(path, message, seconds=400),
        wire.send(client, "POST", path, right, body + b" "),
        wire.send(client, "PUT", path, right, body),
        wire.send(client, "POST", path, worker.headers("/worker/v1/finish", body), body),
        wire.send(client, "POST", path, right | {"x-lance-timestamp": "now"}, body),
        wire.send(client, "POST", path, right | {"x-lance-signature": "00"}, body),
        wire.send(client, "POST", path, [*right.items(), *right.items()], body),
    ]
    assert {refusal(answer) for answer in answers} == {ACCESS_DENIED}


@rows(
    "method,path,message,expected",
    ("POST", "/worker/v1/x", {}, NO_SUCH_OPERATION),
    ("GET", "/worker/v1/claim", {}, METHOD_NOT_ALLOWED),
    ("POST", "/worker/v1/claim", {}, INVALID_INPUT),
    ("POST", "/worker/v1/finish", [], INVALID_INPUT),
    ("POST", "/worker/v1/progress", {"worker_id": 1}, INVALID_INPUT),
    ("POST", "/worker/v1/claim", {"worker_id": "w", "table_id": "t", "task_id": "1" * 32, "attempt": 1}, (404, "TaskNotFound", 10000)),
    ("POST", "/worker/v1/claim", {"worker_id": "w", "table_id": "t", "task_id": "x", "attempt": 1}, INVALID_INPUT),
)
def test_what_workers_are_refused(idle, method, path, message, expected):
    assert refusal(ActingWorker(idle).send(path, message, method)) == expected


def test_a_worker_ends_only_what_it_runs(idle, client):
    table, _ = client.new_table()
    own_id, task_id = table_id(client, table), submitted(client, table, "compact")
    one, two = ActingWorker(idle, "one"), ActingWorker(idle, "two")
    task = {"table_id": own_id, "task_id": task_id, "attempt": 1}
    finish = {"worker_id": "two", "outcome": {"completed": {}}} | task
    conflict = (409, "ConcurrentModification", 14)
    assert refusal(two.send("/worker/v1/finish", finish)) == conflict
    one.claim(own_id, task_id)
    assert refusal(two.send("/worker/v1/claim", {"worker_id": "two"} | task)) == conflict
    assert refusal(two.send("/worker/v1/finish", finish)) == conflict
    report = {"worker_id": "two", "percent": 1, "message": ""} | task
    assert refusal(two.send("/worker/v1/progress", report)) == conflict
    one.complete(own_id, task_id, {"n": 1})
    assert refusal(two.send("/worker/v1/claim", {"worker_id": "two"} | task)) == conflict
    assert client.get(table, task_id).json()["task_info"]["result"] == {"n": 1}


def test_of_each_table_one_task_at_a_time(idle, client):
    (table, _), (other, _) = client.new_table(), client.new_table()
    own_id, other_id = table_id(client, table), table_id(client, other)
    first, second = submitted(client, table, "compact"), submitted(client, table, "cleanup")
    third, elsewhere = submitted(client, table, "compact"), submitted(client, other, "compact")
    one, two, three = (ActingWorker(idle, name) for name in ["one", "two", "three"])
    assert one.may_begin(own_id, first)
    assert not three.may_begin(own_id, third)
    assert not two.may_begin(own_id, second)
    assert two.may_begin(other_id, elsewhere)
    assert client.get(table, second).json()["task_info"]["status"] == "submitted"
    one.complete(own_id, first, {})
    # The one that was submitted first comes first, whoever asks first.
    assert not three.may_begin(own_id, third)
    assert two.may_begin(own_id, second)
    two.complete(own_id, second, {})
    assert three.may_begin(own_id, third)


PRIVATE = [
    "compact",
    "scalar-index",
    "vector-index",
    "optimize-indices",
    "cleanup",
    "get-task",
    "list-tasks",
    "delete-task",
    "catalog",
]


def raw(client, head: str) -> str:
    """Sends these lines, and returns the first line of the answer."""
    address = urlsplit(client.endpoint)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall((head.replace("\n", "\r\n") + "\r\n\r\n").encode("latin-1"))
        return connection.makefile("rb").readline().decode().strip()


@rows("component", *PRIVATE)
def test_private_components_have_no_address(client, component):
    host = f"{component}.spin.internal"
    for path in ["/", f"/{component}", f"/{host}/"]:
        for is_signed in [True, False]:
            headers = {"Host": host}
            if is_signed:
                headers = wire.signed(client, "POST", path, b"{}", headers)
            answer = wire.send(client, "POST", path, headers, b"{}")
            # A host of the application may know the name and refuse it before the router does.
            assert answer.status_code in (400, 404)
    absolute = f"POST http://{host}/ HTTP/1.1\nHost: {host}\nContent-Length: 0\nConnection: close"
    assert raw(client, absolute).split()[1] in ("400", "404")


def test_what_only_the_router_says_is_ignored_from_outside(client, table):
    context = {
        "request_id": "FORGED",
        "access_key_id": "root",
        "bucket": "lance",
        "method": "GET",
        "path": "/",
        "query": "",
        "table": {"id": "forged", "arn": "forged", "location": "file:///etc"},
        "task_id": None,
        "with_progress": False,
    }
    forged = {
        "x-lance-context": base64.urlsafe_b64encode(json.dumps(context).encode()).decode().rstrip("="),
        "x-lance-timestamp": "1",
        "x-lance-signature": "00" * 32,
        "spin-path-info": "/worker/v1/claim",
        "spin-full-url": "http://compact.spin.internal/",
        "spin-component-route": "/worker/v1/...",
        "x-forwarded-host": "third.oss-tables.localhost",
        "x-oss-request-id": "FORGED",
        "x-oss-table-id": "forged",
    }
    path = f"/lance/oss/v1/table/{table}/tasks?task_type=lance_compact"
    plain = wire.request(client, "GET", path)
    # Not signed: the application's host puts its own values in the place of some.
    answer = wire.send(client, "GET", path, wire.signed(client, "GET", path) | forged)
    assert (answer.status_code, answer.text) == (200, plain.text)
    assert answer.headers["x-oss-table-id"] == plain.headers["x-oss-table-id"]
    assert "FORGED" not in answer.headers["x-oss-request-id"]
    assert refusal(wire.send(client, "GET", path, forged)) == ACCESS_DENIED


# Whatever comes


@rows(
    "path",
    "/lance/oss/v1/table/../../../etc/passwd",
    "/lance/oss/v1/table/{table}/../{table}/tasks?task_type=lance_compact",
    "/lance/oss/v1/table/{table}/tasks/..",
    "/lance/oss/v1/table/{table}/tasks/%2e%2e%2f",
    "/lance/oss/v1/table/{table}/./tasks?task_type=lance_compact",
    "/lance/oss/v1/table/%00/tasks?task_type=lance_compact",
    "/lance/oss/v1/table/{table}/tasks/%00",
    "/lance/oss/v1/table/{table}/tasks/%",
    "/lance/oss/v1/table/{table}/tasks/%f",
    "/lance/oss/v1/table/%ff%fe/tasks?task_type=lance_compact",
    "/lance/oss/v1/table/%c0%ae/tasks",
    "/lance/oss/v1/table/{table}%0d%0aX-A:b/tasks",
    "//lance//oss//v1//table//{table}//tasks",
    "//lance/oss/v1/table/{table}/tasks?task_type=lance_compact",
    "//",
    "///healthz",
    "/lance/v1/",
    "/lance/v1//",
    "/lance/v1///create",
    "/lance/v1/namespace//create",
    "/lance/v1/namespace/%ff/create",
    "/lance/v1/table/%24/describe",
    "/lance/v1/lance/v1/namespace/tests/describe",
    "/worker/v1/../../lance",
    "/worker//v1/claim",
    "/lance/oss/v1/table/{table}/tasks?",
    "/lance/oss/v1/table/{table}/tasks?&&&==&",
    "/lance/oss/v1/table/{table}/tasks?task_type=%ff&%00=%00",
    "/lance/oss/v1/table/{table}/tasks?delimiter=%00",
    "/lance/oss/v1/table/{table}/tasks?task_type=lance_compact&marker=" + "A" * 4000,
    "/lance/oss/v1/table/{table}/tasks?" + "&".join(f"p{n}" for n in range(2000)),
    "/lance/oss/v1/table/" + "a" * 8000 + "/tasks",
    "/" + "a" * 60000,
    "/" + "a" * 100000,
    "/" + "/" * 5000,
    "/{}|\\^`<>\"",
    "/lance/oss/v1/table/{table}/tasks;x=1",
)
def test_no_path_is_the_servers_fault(client, table, path):
    path = path.replace("{table}", table)
    for method in ["GET", "POST", "DELETE"]:
        body = b"{}" if method == "POST" else b""
        for headers in [wire.signed(client, method, path, body), {}]:
            answer = wire.send(client, method, path, headers, body)
            assert 200 <= answer.status_code < 500, answer.text
            if answer.status_code >= 400 and "x-oss-request-id" in answer.headers:
                refusal(answer)
    assert client.request("GET", "/healthz").status_code == 200


@rows(
    "head",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.0",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.1",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.1\nHost:",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.1\nHost: a\nHost: b",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.1\nHost: \xff",
    "GET /lance/oss/v1/table/a$b/tasks HTTP/1.1\nHost: a b",
    "GET /lance/oss/v1/table/\xe9/tasks HTTP/1.1\nHost: a",
    "GET http:// HTTP/1.1\nHost: a",
    "OPTIONS * HTTP/1.1\nHost: a",
    "GET lance HTTP/1.1\nHost: a",
    "CONNECT a:80 HTTP/1.1\nHost: a:80",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: 99999999999",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: x",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: -1",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: 0\nContent-Length: 5",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: 0\nAuthorization: \xff\xfe",
    "POST /lance/oss/v1/table/a$b/compact HTTP/1.1\nHost: a\nContent-Length: 0\nAuthorization: AWS4-HMAC-SHA256 " + "a," * 5000,
    "nonsense",
)
def test_no_head_is_the_servers_fault(client, head):
    status = raw(client, head if head == "nonsense" else head + "\nConnection: close")
    assert status == "" or 400 <= int(status.split()[1]) < 500, status
    assert client.request("GET", "/healthz").status_code == 200


def test_a_body_that_is_cut_short_submits_nothing(client, table):
    path = f"/lance/oss/v1/table/{table}/compact"
    headers = wire.signed(client, "POST", path, b"{}")
    lines = "\n".join(f"{name}: {value}" for name, value in headers.items())
    host = urlsplit(client.endpoint)
    head = f"POST {path} HTTP/1.1\nHost: {host.netloc}\n{lines}\nContent-Length: 2\n\n"
    with socket.create_connection((host.hostname, host.port), timeout=30) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"{")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").readline().decode()
    assert answer == "" or answer.split()[1] == "400"
    listed = client.list(table, "task_type=lance_compact").json()
    assert listed["tasks"] == []
