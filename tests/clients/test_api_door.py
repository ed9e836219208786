"""The service's door, seen from a socket: what no client library sends, and what slow ones do.

Statuses are exact where one program can be meant only. Where Spin's server and the local host may
say different things, as both run the application, it is enough that the request is refused.
"""

import time

import pytest

import raw
import wire
from cases import TABLE_NOT_FOUND, rows, task_ids
from service import refusal

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def client(idle):
    return idle.client()


@pytest.fixture(scope="module")
def table(idle):
    return idle.client().new_table()[0]


def alive(client):
    answer = wire.send(client, "GET", "/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


# Heads


@rows(
    "case,first,headers,expected",
    ("100 headers", "GET /healthz HTTP/1.1", [(f"X-{n}", "") for n in range(99)], 200),
    ("101 headers", "GET /healthz HTTP/1.1", [(f"X-{n}", "") for n in range(100)], 431),
    ("10000 headers", "GET /healthz HTTP/1.1", [("X", "")] * 10000, 431),
    ("60 KiB of head", "GET /healthz HTTP/1.1", {"X": "a" * (60 << 10)}, 200),
    ("65 KiB of head", "GET /healthz HTTP/1.1", {"X": "a" * (65 << 10)}, 431),
    ("8 MiB of head", "GET /healthz HTTP/1.1", {"X": "a" * (8 << 20)}, 431),
    ("15 KiB of target", f"GET /{'a' * (15 << 10)} HTTP/1.1", {}, 404),
    ("17 KiB of target", f"GET /{'a' * (17 << 10)} HTTP/1.1", {}, 414),
    ("17 KiB of query", f"GET /?{'a' * (17 << 10)} HTTP/1.1", {}, 414),
    ("65 KiB of target", f"GET /{'a' * (65 << 10)} HTTP/1.1", {}, 431),
    ("a folded header", "GET /healthz HTTP/1.1", {"X": "a\r\n b"}, 400),
    ("a bare CR in a value", "GET /healthz HTTP/1.1", {"X": "a\rb"}, 400),
    ("a bare CR in the target", "GET /a\rb HTTP/1.1", {}, 400),
    ("a NUL in a value", "GET /healthz HTTP/1.1", {"X": "a\0b"}, 400),
    ("a NUL in a name", "GET /healthz HTTP/1.1", {"X\0": "a"}, 400),
    ("a NUL in the target", "GET /\0 HTTP/1.1", {}, 400),
    ("a space before a colon", "GET /healthz HTTP/1.1", {"X ": "a"}, 400),
    ("a header without a name", "GET /healthz HTTP/1.1", {"": "a"}, 400),
    ("a space in the target", "GET /a b HTTP/1.1", {}, 400),
    ("a byte that is no UTF-8", "GET /\xff HTTP/1.1", {}, 400),
    ("such a byte in the query", "GET /?\xff HTTP/1.1", {}, 400),
    ("a fragment", "GET /healthz#x HTTP/1.1", {}, 400),
    ("no method", " /healthz HTTP/1.1", {}, 400),
    ("a method that is none", "G(T /healthz HTTP/1.1", {}, 400),
    ("HTTP/0.9", "GET /healthz", {}, 400),
    ("HTTP/1.2", "GET /healthz HTTP/1.2", {}, 400),
    ("HTTP/2.0", "GET /healthz HTTP/2.0", {}, 400),
    ("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {}, 400),
    ("HTTP/1.0", "GET /healthz HTTP/1.0", {}, 200),
    ("absolute", "GET http://localhost/healthz HTTP/1.1", {}, 200),
    ("absolute, https", "GET https://localhost/healthz HTTP/1.1", {}, 200),
    ("absolute, another host", "GET http://other/healthz HTTP/1.1", {}, 400),
    ("absolute, a user", "GET http://u@localhost/healthz HTTP/1.1", {}, 400),
    ("absolute, no path", "GET http://localhost HTTP/1.1", {}, 404),
    ("an authority", "GET localhost:80 HTTP/1.1", {}, 400),
    ("no slash", "GET healthz HTTP/1.1", {}, 400),
    ("a star", "OPTIONS * HTTP/1.1", {}, 400),
    ("CONNECT", "CONNECT localhost:80 HTTP/1.1", {}, 400),
    ("CONNECT to a path", "CONNECT /healthz HTTP/1.1", {}, 405),
    ("TRACE", "TRACE /healthz HTTP/1.1", {"X-Secret": "seen"}, 405),
    ("a transfer encoding", "POST /x HTTP/1.1", {"Transfer-Encoding": "gzip"}, 400),
    ("two of them", "POST /x HTTP/1.1", {"Transfer-Encoding": "gzip, chunked"}, 501),
    ("chunked twice", "POST /x HTTP/1.1", {"Transfer-Encoding": "chunked, chunked"}, 501),
    ("not quite chunked", "POST /x HTTP/1.1", {"Transfer-Encoding": "xchunked"}, 400),
    ("chunked in HTTP/1.0", "POST /x HTTP/1.0", {"Transfer-Encoding": "chunked"}, 400),
    ("a length with a sign", "POST /x HTTP/1.1", {"Content-Length": "+0"}, 400),
    ("a negative length", "POST /x HTTP/1.1", {"Content-Length": "-1"}, 400),
    ("a length in hex", "POST /x HTTP/1.1", {"Content-Length": "0x0"}, 400),
    ("no length", "POST /x HTTP/1.1", {"Content-Length": ""}, 400),
    ("a list of lengths", "POST /x HTTP/1.1", {"Content-Length": "0, 0"}, 400),
    ("two lengths", "POST /x HTTP/1.1", [("Content-Length", "0"), ("Content-Length", "1")], 400),
    ("one length twice", "POST /x HTTP/1.1", [("Content-Length", "0"), ("Content-Length", "0")], 404),
    ("257 MiB", "POST /x HTTP/1.1", {"Content-Length": str(257 << 20)}, 413),
    ("2^63 bytes", "POST /x HTTP/1.1", {"Content-Length": str(1 << 63)}, 413),
    ("2^64 bytes", "POST /x HTTP/1.1", {"Content-Length": str(1 << 64)}, 400),
)
def test_heads(client, case, first, headers, expected):
    answers = raw.exchange(client, raw.message(first, headers))
    assert raw.statuses(answers) == [expected]
    assert answers[0].closes or expected in (200, 404, 405)
    assert "seen" not in answers[0].text
    alive(client)


def test_http_2_is_told_so(client):
    answers = raw.exchange(client, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5))
    assert raw.statuses(answers) == [505]
    assert answers[0].closes
    # Later on a connection it is a request like others, and none.
    answers = raw.exchange(client, HEALTH + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 2)
    assert raw.statuses(answers)[0] == 200 and 505 not in raw.statuses(answers)


@rows(
    "case,host,expected",
    ("none", None, 400),
    ("empty", "", 400),
    ("a port alone", ":80", 400),
    ("two words", "a b", 400),
    ("a user", "u@localhost", 400),
    ("a path", "localhost/x", 400),
    ("a byte that is no text", "\xff", 400),
    ("an internal name", "compact.spin.internal", 400),
    ("its port", "compact.spin.internal:80", 400),
    ("its trailing dot", "compact.spin.internal.", 400),
    ("in upper case", "COMPACT.SPIN.INTERNAL", 400),
    ("the internal domain", "spin.internal", 400),
    ("a name below one", "a.compact.spin.internal", 400),
    ("a name like it", "spin.internal.example.com", 200),
    ("a port", "localhost:1", 200),
    ("a trailing dot", "localhost.", 200),
    ("IPv4", "127.0.0.1", 200),
    ("IPv6", "[::1]:80", 200),
)
def test_hosts(client, case, host, expected):
    for version in ["1.1", "1.0"]:
        data = raw.message(f"GET /healthz HTTP/{version}", host=host)
        assert raw.statuses(raw.exchange(client, data)) == [expected]


@rows("hosts", ["a", "b"], ["a", "a"], ["a", ""])
def test_there_is_one_host(client, hosts):
    data = raw.message("GET /healthz HTTP/1.1", [("Host", host) for host in hosts])
    assert raw.statuses(raw.exchange(client, data)) == [400]


@rows(
    "protocol,headers",
    ("h2c", {"Connection": "Upgrade, HTTP2-Settings", "HTTP2-Settings": "AAMAAABkAAQAAP__"}),
    (
        "websocket",
        {
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        },
    ),
    ("TLS/1.2", {"Connection": "Upgrade"}),
)
def test_no_other_protocol(client, protocol, headers):
    data = raw.message("GET /healthz HTTP/1.1", headers | {"Upgrade": protocol})
    answers = raw.exchange(client, data + HEALTH, 2)
    # The second is still read as HTTP/1.1.
    assert raw.statuses(answers) == [200, 200]


# Where a request ends


HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


@rows(
    "case,headers,body,expected",
    ("length, then chunked", [("Content-Length", "5"), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n", 400),
    ("chunked, then length", [("Transfer-Encoding", "chunked"), ("Content-Length", "5")], b"0\r\n\r\n", 400),
    ("odd spelling", [("tRANSFER-eNCODING", "Chunked"), ("cONTENT-lENGTH", "5")], b"0\r\n\r\n", 400),
    ("no length", [("Content-Length", "0"), ("Transfer-Encoding", "chunked")], b"0\r\n\r\n", 400),
    ("two lengths", [("Content-Length", "0"), ("Content-Length", str(len(HIDDEN)))], b"", 400),
    ("no chunk", {"Transfer-Encoding": "chunked"}, b"zz\r\n\r\n", 400),
    ("a chunk without end", {"Transfer-Encoding": "chunked"}, b"2\r\n{}0\r\n\r\n", 400),
    ("too large a chunk", {"Transfer-Encoding": "chunked"}, b"ffffffffffffffff1\r\n{}\r\n0\r\n\r\n", 400),
    ("a negative chunk", {"Transfer-Encoding": "chunked"}, b"-1\r\n{}\r\n0\r\n\r\n", 400),
    ("chunks", {"Transfer-Encoding": "chunked"}, b"2;a=b\r\n{}\r\n0\r\n\r\n", 404),
)
def test_nothing_hides_behind_a_body(client, case, headers, body, expected):
    data = raw.message("POST /x HTTP/1.1", headers) + body + HIDDEN
    answers = raw.exchange(client, data)
    assert raw.statuses(answers) == [expected]
    assert answers[0].closes


def test_answers_come_in_the_order_of_requests(client, table):
    requests, expected = [], []
    for n in range(20):
        if n % 2:
            body = b"x" * (n * 997)
            path = f"/lance/oss/v1/table/tests$missing{n}/compact"
            requests.append(raw.signed(client, "POST", path, body))
            expected.append(TABLE_NOT_FOUND)
        else:
            requests.append(raw.message("GET /healthz HTTP/1.1"))
            expected.append(200)
    answers = raw.exchange(client, b"".join(requests), len(requests))
    found = [200 if it.status_code == 200 else refusal(it) for it in answers]
    assert found == expected
    assert len({it.headers["x-oss-request-id"] for it in answers}) == 20


def test_a_refusal_is_the_last_answer(client):
    bad = raw.message("GET /healthz HTTP/1.1", host=None)
    assert raw.statuses(raw.exchange(client, HEALTH + bad + HEALTH, 2)) == [200, 400]


@rows(
    "case,size,expected",
    ("small", 100, 404),
    ("large", 8 << 20, 404),
    ("too large", 300 << 20, 413),
)
def test_a_refusal_arrives_while_the_client_still_sends(client, case, size, expected):
    with raw.connect(client) as connection:
        connection.send(raw.message("POST /x HTTP/1.1", {"Content-Length": str(size)}))
        left = min(size, 12 << 20)
        while left > 0 and connection.send_while_open(b"x" * min(left, 1 << 16)):
            left -= 1 << 16
        assert connection.answer().status_code == expected


def test_expect_continue(client, table):
    path = f"/lance/oss/v1/table/{table}/tasks?task_type=lance_compact"
    with raw.connect(client) as connection:
        for _ in range(2):
            request = raw.signed(client, "GET", path, b"{}", {"Expect": "100-continue"})
            connection.send(request[:-2])
            assert connection.answer().status_code == 100
            connection.send(request[-2:])
            answer = connection.answer()
            assert (answer.status_code, answer.json()["tasks"]) == (200, [])


def test_a_refused_body_is_not_asked_for(client):
    headers = {"Expect": "100-continue", "Content-Length": str(300 << 20)}
    answers = raw.exchange(client, raw.message("POST /x HTTP/1.1", headers))
    assert raw.statuses(answers) == [413]


# Much, and slow


def test_a_body_without_an_end(client, table):
    path = f"/lance/oss/v1/table/{table}/compact"
    for headers in [{}, wire.signed(client, "POST", path)]:
        pairs = headers | {"Transfer-Encoding": "chunked"}
        with raw.connect(client) as connection:
            connection.send(raw.message(f"POST {path} HTTP/1.1", pairs))
            chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
            sent, start = 0, time.monotonic()
            while sent < 1 << 30 and connection.send_while_open(chunk):
                sent += len(chunk)
                assert raw.seconds_since(start) < 60
            assert sent < 64 << 20
            answer = connection.answer()
            # Those who go on sending for too long lose the connection, and with it the answer.
            assert answer is None or refusal(answer)[0] in (403, 413)
    assert task_ids(client, table, "lance_compact") == []
    alive(client)


def test_slow_clients_stop_nobody(client, table):
    head = raw.message("POST /lance/v1/namespace/x/create HTTP/1.1", {"Content-Length": "200000"})
    slow = [
        (b"", 64),
        (b"GET /heal", 64),
        (head + b"{", 64),
        (head + b"x" * 100000, 48),
    ]
    connections = []
    try:
        for data, count in slow:
            for _ in range(count):
                connections.append(raw.Connection(client))
                connections[-1].send(data)
        start = time.monotonic()
        for n in range(20):
            path = f"/lance/oss/v1/table/{table}/tasks?task_type=lance_compact"
            assert raw.statuses(raw.exchange(client, raw.signed(client, "GET", path))) == [200]
            body = b"{}" + b" " * (100000 if n % 4 == 0 else 0)
            path = "/lance/v1/namespace/tests/describe"
            assert wire.request(client, "POST", path, body).status_code == 200
        assert raw.seconds_since(start) < 20
        assert wire.send(client, "GET", "/healthz").status_code == 200
    finally:
        for connection in connections:
            connection.close()
    alive(client)


def test_how_long_slow_clients_are_waited_for(client):
    """The one test that takes half a minute: all kinds of slowness side by side."""
    head = raw.message("POST /lance/v1/namespace/x/create HTTP/1.1", {"Content-Length": "200000"})
    chunked = raw.message("POST /lance/v1/namespace/x/create HTTP/1.1", {"Transfer-Encoding": "chunked"})
    # What is sent at once, what then each second, and the status at the end.
    kinds = {
        "silent": (b"", b"", 0),
        "idle": (HEALTH, b"", 200),
        "a head in drops": (b"GET /healthz HTTP/1.1\r\nX: ", b"x", 408),
        "half a head": (b"GET /healthz HTTP/1.1\r\n", b"", 408),
        "no body": (head, b"", 408),
        "a body in drops": (head, b"x", 408),
        "half a body": (head + b"x" * 100000, b"", 408),
        "half a body, then drops": (head + b"x" * 100000, b"x", 408),
        "chunks in drops": (chunked, b"1\r\nx\r\n", 408),
    }
    connections = {kind: raw.Connection(client, wait=60) for kind in kinds}
    start = time.monotonic()
    open_ones = dict(connections)
    for kind, (at_once, _, _) in kinds.items():
        connections[kind].send(at_once)
    while raw.seconds_since(start) < 28:
        time.sleep(1)
        for kind, (_, drop, _) in kinds.items():
            assert connections[kind].send_while_open(drop), kind
    for kind, (_, _, expected) in kinds.items():
        answer = open_ones[kind].answer()
        assert (answer.status_code if answer else 0) == expected, kind
        assert open_ones[kind].is_closed(), kind
        assert raw.seconds_since(start) < 45, kind
        open_ones[kind].close()
    alive(client)
