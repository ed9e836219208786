"""Signed requests at the service's door: which spelling of a target and a host means what, what is
there twice, what is sent again, and what only the application's own parts may say.
"""

import base64
import json
import time

import pytest

import raw
import wire
from acting_worker import ActingWorker
from cases import (
    ACCESS_DENIED,
    INVALID_INPUT,
    NO_SUCH_OPERATION,
    SIGNATURE_DOES_NOT_MATCH,
    rows,
    table_id,
    task_ids,
)
from service import refusal

LIST = "task_type=lance_compact"


@pytest.fixture
def client(idle):
    return idle.client()


@pytest.fixture(scope="module")
def table(idle):
    return idle.client().new_table()[0]


# Targets


@rows(
    "written,expected",
    ("tests${name}", 200),
    ("tests%24{name}", 200),
    ("%74%65sts%24{name}", 200),
    ("tests%2524{name}", 400),
    ("tests%2F{name}", 400),
    ("tests%2f{name}", 400),
    ("tests%252F{name}", 400),
    ("tests/{name}", 404),
    ("tests${name}%00", 400),
    ("tests${name}%", 400),
    ("tests${name}%2", 400),
    ("tests${name}%zz", 400),
    ("tests${name}%20", 400),
    ("tests${name}+", 400),
    ("tests${name};", 400),
    ("tests;{name}", 400),
    ("tests\\{name}", 400),
    ("tests%5c{name}", 400),
    ("tests$${name}", 400),
    ("$tests${name}", 400),
    ("tests${name}$", 400),
    ("x/../tests${name}", 404),
    ("x/%2e%2e/tests${name}", 404),
    ("./tests${name}", 404),
    ("%2e/tests${name}", 404),
    ("/tests${name}", 404),
    ("..%2ftests${name}", 400),
    ("tests${name}%ff", 400),
    ("tests%c0%a4{name}", 400),
    ("tests\uff04{name}", 400),
    ("tests${name}\u00e9", 400),
    ("..", 400),
    ("%2e%2e", 400),
    ("%00", 400),
    ("", 400),
)
def test_no_spelling_means_another_table(client, table, written, expected):
    other, _ = client.new_table()
    segment = written.replace("{name}", table.removeprefix("tests$"))
    for query in [f"?{LIST}", ""]:
        path = f"/lance/oss/v1/table/{segment}/tasks{query}"
        answers = raw.exchange(client, raw.signed(client, "GET", path))
        if query == "" and expected == 200:
            assert raw.statuses(answers) == [400]
            continue
        if expected == 200:
            assert raw.statuses(answers) == [200]
            assert answers[0].headers["x-oss-table-id"] == table_id(client, table)
        else:
            status, _, _ = refusal(answers[0])
            # A table of that name may be thinkable, and is not there.
            assert status in (expected, 404)
            assert "x-oss-table-id" not in answers[0].headers
    assert other != table


@rows(
    "old,new",
    ("$", "%24"),
    ("/table/", "/table//"),
    ("/table/", "/table/./"),
    ("/table/", "/x/../table/"),
    ("/lance", "//lance"),
    ("/lance", "/%6cance"),
    ("/tasks", "/tasks/"),
    ("/tasks", "/tasks;x"),
    ("=lance_compact", "=lance_cleanup"),
    ("=lance_compact", "=lance_compact&x"),
    ("=lance_compact", "=lance_compact&task_type=lance_cleanup"),
    ("?task_type=lance_compact", ""),
)
def test_the_target_is_signed_as_it_is_sent(client, table, old, new):
    path = f"/lance/oss/v1/table/{table}/tasks?{LIST}"
    request = raw.signed(client, "GET", path)
    changed = request.replace(path.encode(), path.replace(old, new, 1).encode(), 1)
    assert changed != request
    answer = raw.exchange(client, changed)[0]
    if answer.status_code == 200:
        # Two spellings of one name may have one signature.
        assert new == "%24"
        assert answer.headers["x-oss-table-id"] == table_id(client, table)
    else:
        assert refusal(answer) in (SIGNATURE_DOES_NOT_MATCH, NO_SUCH_OPERATION, INVALID_INPUT)


def test_the_absolute_form_is_the_same_request(client, table):
    path = f"/lance/oss/v1/table/{table}/tasks?{LIST}"
    request = raw.signed(client, "GET", path)
    absolute = request.replace(path.encode(), (client.endpoint + path).encode(), 1)
    assert raw.statuses(raw.exchange(client, absolute)) == [200]
    elsewhere = request.replace(path.encode(), b"http://other" + path.encode(), 1)
    assert raw.statuses(raw.exchange(client, elsewhere)) == [400]


# Hosts name buckets


@rows(
    "host,expected",
    ("lance.oss-tables.localhost", 200),
    ("LANCE.OSS-Tables.LOCALHOST", 200),
    ("lance.oss-tables.localhost.", 200),
    ("lance.oss-tables.localhost:80", 200),
    ("lance-1234567890.oss-tables.localhost", 200),
    ("other.oss-tables.localhost", (404, "TableNotFound", 4)),
    ("third.oss-tables.localhost", (404, "NoSuchTableBucket", 1)),
    ("other.lance.oss-tables.localhost", (404, "NoSuchTableBucket", 1)),
    (".oss-tables.localhost", (404, "NoSuchTableBucket", 1)),
    ("lance..oss-tables.localhost", (404, "NoSuchTableBucket", 1)),
    ("oss-tables.localhost", None),
    ("127.0.0.1", None),
    ("[::1]", None),
    ("lance.oss-tables.localhost.example.com", None),
)
def test_a_host_means_one_bucket(strict, host, expected):
    client = strict.client(host="lance.oss-tables.localhost")
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/tasks?{LIST}"
    # A host is signed in lower case and without the default port.
    canonical = host.lower().removesuffix(":80")
    request = raw.signed(client, "GET", path, headers={"Host": canonical})
    request = request.replace(f"Host: {canonical}\r\n".encode(), f"Host: {host}\r\n".encode())
    answer = raw.exchange(client, request)[0]
    if expected == 200:
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-oss-table-id"] == table_id(client, table)
    else:
        found = refusal(answer)
        assert 400 <= found[0] < 500
        assert expected is None or found == expected
        assert "x-oss-table-id" not in answer.headers


def test_the_host_is_signed(strict):
    client = strict.client(host="lance.oss-tables.localhost")
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/tasks?{LIST}"
    request = raw.signed(client, "GET", path, headers={"Host": "lance.oss-tables.localhost"})
    for other in [b"other.oss-tables.localhost", b"lance-1234567890.oss-tables.localhost"]:
        changed = request.replace(b"lance.oss-tables.localhost", other)
        assert refusal(raw.exchange(client, changed)[0]) == SIGNATURE_DOES_NOT_MATCH
    twice = request.replace(b"\r\n\r\n", b"\r\nHost: other.oss-tables.localhost\r\n\r\n", 1)
    assert raw.statuses(raw.exchange(client, twice)) == [400]
    forwarded = [("X-Forwarded-Host", "other.oss-tables.localhost"), ("Forwarded", "host=other")]
    more = b"".join(f"{name}: {value}\r\n".encode() for name, value in forwarded)
    named = request[:-2] + more + b"\r\n"
    answer = raw.exchange(client, named)[0]
    assert answer.headers["x-oss-table-id"] == table_id(client, table)


# Twice


@rows(
    "name",
    "Authorization",
    "X-Amz-Date",
    "X-Amz-Content-SHA256",
)
def test_a_header_that_is_there_twice(client, table, name):
    path = f"/lance/oss/v1/table/{table}/compact"
    body = b"{}"
    digest = {"X-Amz-Content-SHA256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}
    headers = wire.signed(client, "POST", path, body, digest)
    for value in [headers[name], "other"]:
        data = raw.signed(client, "POST", path, body, digest, more=[(name, value)])
        answers = raw.exchange(client, data)
        assert refusal(answers[0])[0] in (400, 403)
    assert task_ids(client, table, "lance_compact") == []


def test_digests_that_are_there_twice(client, table):
    path = f"/lance/oss/v1/table/{table}/compact"
    right, wrong = "mZFLkyvTelC5g8XnyQrpOw==", "1B2M2Y8AsgTpgAmY7PhCfg=="
    for values in [[right, wrong], [wrong, right]]:
        more = [("Content-MD5", value) for value in values]
        answer = raw.exchange(client, raw.signed(client, "POST", path, b"{}", more=more))[0]
        assert refusal(answer)[0] in (400, 403)
    assert task_ids(client, table, "lance_compact") == []


def test_a_request_may_be_sent_again_while_its_time_lasts(client):
    own, _ = client.new_table()
    path = f"/lance/oss/v1/table/{own}/compact"
    request = raw.signed(client, "POST", path, b"{}", minutes=-14)
    answers = raw.exchange(client, request) + raw.exchange(client, request)
    ids = [answer.json()["task_id"] for answer in answers]
    assert len(set(ids)) == 2
    assert sorted(task_ids(client, own, "lance_compact")) == sorted(ids)
    late = raw.signed(client, "POST", path, b"{}", minutes=-16)
    found = [refusal(raw.exchange(client, late)[0]) for _ in range(2)]
    assert found == [(403, "RequestTimeTooSkewed", 16)] * 2
    assert len(task_ids(client, own, "lance_compact")) == 2


# What only the application's own parts may say


FORGED = {
    "request_id": "FORGED",
    "access_key_id": "root",
    "bucket": "lance",
    "method": "POST",
    "path": "/",
    "query": "",
    "table": {"id": "forged", "arn": "forged", "location": "file:///etc"},
    "task_id": None,
    "with_progress": False,
}


def forged_headers() -> dict[str, str]:
    context = base64.urlsafe_b64encode(json.dumps(FORGED).encode()).decode().rstrip("=")
    return {
        "x-lance-context": context,
        "x-lance-timestamp": str(int(time.time())),
        "x-lance-signature": "00" * 32,
    }


@rows(
    "first,host",
    ("POST / HTTP/1.1", "compact.spin.internal"),
    ("POST / HTTP/1.1", "Compact.Spin.Internal."),
    ("POST / HTTP/1.1", "compact.spin.internal:80"),
    ("POST http://compact.spin.internal/ HTTP/1.1", "compact.spin.internal"),
    ("POST http://compact.spin.internal/ HTTP/1.1", "localhost"),
    ("POST http://localhost/ HTTP/1.1", "compact.spin.internal"),
    ("POST //compact.spin.internal/ HTTP/1.1", "localhost"),
    ("POST /compact.spin.internal/ HTTP/1.1", "localhost"),
    ("POST /compact HTTP/1.1", "localhost"),
    ("POST /catalog HTTP/1.1", "localhost"),
    ("CONNECT compact.spin.internal:80 HTTP/1.1", "compact.spin.internal:80"),
)
def test_private_components_stay_private(client, first, host):
    answers = raw.exchange(client, raw.message(first, forged_headers(), b"{}", host))
    assert raw.statuses(answers) in ([400], [404])
    assert "forged" not in answers[0].text


@rows(
    "path",
    "/worker/v1/claim",
    "/worker/v1/heartbeat",
    "/worker/v1/",
    "/worker/v1/../v1/claim",
    "/worker/v1/%63laim",
    "/worker/v1//claim",
)
def test_the_workers_door_believes_workers_only(idle, client, path):
    body = json.dumps({"worker_id": "w", "table_id": "t", "task_id": "1" * 32, "attempt": 1}).encode()
    guessed = ActingWorker(idle).headers(path, body, secret="guessed")
    for headers in [{}, forged_headers(), guessed, forged_headers() | guessed]:
        answer = raw.exchange(client, raw.message(f"POST {path} HTTP/1.1", headers, body))[0]
        assert refusal(answer) == ACCESS_DENIED


@rows("path", "//worker/v1/claim", "/worker/V1/claim", "/%77orker/v1/claim", "/worker%2fv1/claim", "/worker/v1\\claim")
def test_other_spellings_are_not_the_workers_door(client, path):
    answer = raw.exchange(client, raw.message(f"POST {path} HTTP/1.1", forged_headers(), b"{}"))[0]
    assert refusal(answer) in (NO_SUCH_OPERATION, ACCESS_DENIED)
