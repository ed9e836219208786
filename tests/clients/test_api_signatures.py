"""Who is believed, and what of a request has to be as it was signed."""

import base64
import hashlib
import shutil
import subprocess

import pytest

import wire
from cases import (
    ACCESS_DENIED,
    INVALID_DIGEST,
    SIGNATURE_DOES_NOT_MATCH,
    rows,
    submitted,
    task_ids,
)
from service import refusal, sha256

UNKNOWN_KEY = (403, "InvalidAccessKeyId", 16)
TIME_TOO_SKEWED = (403, "RequestTimeTooSkewed", 16)
BODY = b'{"max_rows_per_group":8}'
OTHER_BODY = b'{"max_rows_per_group":9}'


@pytest.fixture(scope="module")
def place(idle):
    """A client, and the path of a submit to a table that takes none in this module."""
    client = idle.client()
    table, _ = client.new_table()
    yield client, f"/lance/oss/v1/table/{table}/compact"
    assert task_ids(client, table, "lance_compact") == []


def refused(client, path, headers, body=BODY, method="POST"):
    """The refusal, which must not tell what would have been right."""
    answer = wire.send(client, method, path, headers, body)
    assert client.secret_access_key not in answer.text
    return refusal(answer)


# How the request is signed


@rows(
    "case,signature,expected",
    ("another secret", {"secret": "0" * 40}, SIGNATURE_DOES_NOT_MATCH),
    ("another key", {"key": "LMUNKNOWN"}, UNKNOWN_KEY),
    ("another region", {"region": "cn-hangzhou"}, SIGNATURE_DOES_NOT_MATCH),
    ("another service", {"service": "s3"}, SIGNATURE_DOES_NOT_MATCH),
    ("service in upper case", {"service": "OSSTables"}, SIGNATURE_DOES_NOT_MATCH),
    ("16 minutes ago", {"minutes": -16}, TIME_TOO_SKEWED),
    ("16 minutes ahead", {"minutes": 16}, TIME_TOO_SKEWED),
    ("two days ago", {"minutes": -2880}, TIME_TOO_SKEWED),
    ("session token", {"token": "token"}, (403, "InvalidSecurityToken", 16)),
)
def test_signed_by_or_for_somebody_else(place, case, signature, expected):
    client, path = place
    assert refused(client, path, wire.signed(client, "POST", path, BODY, **signature)) == expected


@rows("minutes", -14, -1, 1, 14)
def test_clocks_may_differ(idle, minutes):
    client = idle.client()
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/compact"
    answer = wire.request(client, "POST", path, BODY, minutes=minutes)
    assert answer.status_code == 200, answer.text


# What was changed since


def other_digit(text):
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def with_header(name, change):
    """Changes the value of a header; `None` takes it away."""

    def changed(headers):
        names = {known.lower(): known for known in headers}
        known = names.get(name, name)
        value = change(headers.get(known, ""))
        return {k: v for k, v in headers.items() if k != known} | ({known: value} if value is not None else {})

    return changed


def authorization(change):
    return with_header("authorization", change)


@rows(
    "case,change,expected",
    ("no authorization", authorization(lambda _: None), ACCESS_DENIED),
    ("empty authorization", authorization(lambda _: ""), ACCESS_DENIED),
    ("a bearer", authorization(lambda _: "Bearer abc"), ACCESS_DENIED),
    ("basic", authorization(lambda _: "Basic YTpi"), ACCESS_DENIED),
    ("the scheme alone", authorization(lambda _: "AWS4-HMAC-SHA256"), ACCESS_DENIED),
    ("the scheme in lower case", authorization(str.lower), ACCESS_DENIED),
    ("OSS V4", authorization(lambda it: it.replace("AWS4-", "OSS4-")), ACCESS_DENIED),
    ("no signature", authorization(lambda it: it.split(", Signature")[0]), ACCESS_DENIED),
    ("a short signature", authorization(lambda it: it[:-2]), ACCESS_DENIED),
    ("a signature that is no hex", authorization(lambda it: it[:-1] + "x"), ACCESS_DENIED),
    ("a part twice", authorization(lambda it: it + ", Signature=" + "0" * 64), ACCESS_DENIED),
    ("host not signed", authorization(lambda it: it.replace("host;", "")), ACCESS_DENIED),
    ("date not signed", authorization(lambda it: it.replace(";x-amz-date", "")), ACCESS_DENIED),
    ("another signature", authorization(other_digit), SIGNATURE_DOES_NOT_MATCH),
    ("another terminator", authorization(lambda it: it.replace("aws4_request", "request")), ACCESS_DENIED),
    ("another day", authorization(lambda it: it.replace("/20", "/19", 1)), SIGNATURE_DOES_NOT_MATCH),
    ("a header signed and absent", authorization(lambda it: it.replace("host;", "host;x-a;")), SIGNATURE_DOES_NOT_MATCH),
    ("no date", with_header("x-amz-date", lambda _: None), ACCESS_DENIED),
    ("a date that is none", with_header("x-amz-date", lambda _: "yesterday"), ACCESS_DENIED),
    ("another second", with_header("x-amz-date", lambda it: it[:-3] + ("00Z" if it[-3:] != "00Z" else "01Z")), SIGNATURE_DOES_NOT_MATCH),
    ("another content type", with_header("content-type", lambda _: "text/plain"), SIGNATURE_DOES_NOT_MATCH),
    ("another host", with_header("host", lambda _: "lance.oss-tables.localhost"), SIGNATURE_DOES_NOT_MATCH),
    ("more to trust", with_header("x-amz-user", lambda _: "root"), ACCESS_DENIED),
    ("a token that is not signed", with_header("x-amz-security-token", lambda _: "x"), ACCESS_DENIED),
)
def test_headers_that_were_changed(place, case, change, expected):
    client, path = place
    headers = wire.signed(client, "POST", path, BODY, {"Content-Type": "application/json"})
    assert refused(client, path, change(headers)) == expected


@rows(
    "case,method,path,body",
    ("the body", "POST", "{path}", OTHER_BODY),
    ("the body's end", "POST", "{path}", BODY + b" "),
    ("no body", "POST", "{path}", b""),
    ("the path", "POST", "{other}", BODY),
    ("a query", "POST", "{path}?delimiter=", BODY),
    ("an empty parameter", "POST", "{path}?x", BODY),
)
def test_requests_that_were_changed(place, case, method, path, body):
    client, signed_path = place
    headers = wire.signed(client, "POST", signed_path, BODY)
    sent = path.replace("{path}", signed_path)
    sent = sent.replace("{other}", signed_path.replace("/compact", "/cleanup"))
    assert refused(client, sent, headers, body, method) == SIGNATURE_DOES_NOT_MATCH


def test_a_method_that_was_changed(idle):
    client = idle.client()
    table, _ = client.new_table()
    task_id = submitted(client, table, "compact")
    path = f"/lance/oss/v1/table/{table}/tasks/{task_id}"
    headers = wire.signed(client, "GET", path)
    assert refused(client, path, headers, b"", "DELETE") == SIGNATURE_DOES_NOT_MATCH


def test_a_query_that_was_changed(idle):
    client = idle.client()
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/tasks?task_type=lance_compact&max_results=1"
    headers = wire.signed(client, "GET", path)
    assert wire.send(client, "GET", path, headers).status_code == 200
    for changed in [
        path.replace("=1", "=2"),
        path + "&marker=",
        path.replace("&max_results=1", ""),
        path + "&max_results=1",
    ]:
        assert refused(client, changed, headers, b"", "GET") == SIGNATURE_DOES_NOT_MATCH
    # The order of parameters is not signed.
    head, query = path.split("?")
    reordered = head + "?" + "&".join(reversed(query.split("&")))
    assert wire.send(client, "GET", reordered, headers).status_code == 200


def test_a_header_may_be_there_once(place):
    client, path = place
    headers = wire.signed(client, "POST", path, BODY)
    for name in ["Authorization", "X-Amz-Date", "Host"]:
        value = headers.get(name) or client.endpoint.removeprefix("http://")
        twice = [*headers.items(), (name, value)]
        if name == "Host":
            twice.append((name, value))
        answer = wire.send(client, "POST", path, twice, BODY)
        assert 400 <= answer.status_code < 500, name
        if name != "Host":
            assert refusal(answer) == ACCESS_DENIED


# Digests of the body


@rows(
    "case,digest,expected",
    ("right", sha256(BODY), None),
    ("of another body", sha256(OTHER_BODY), INVALID_DIGEST),
    ("of none", sha256(b""), INVALID_DIGEST),
    ("none", "x", INVALID_DIGEST),
    ("empty", "", INVALID_DIGEST),
    ("unsigned", "UNSIGNED-PAYLOAD", INVALID_DIGEST),
    ("streamed", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", INVALID_DIGEST),
)
def test_the_signed_digest(idle, case, digest, expected):
    client = idle.client()
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/compact"
    answer = wire.request(client, "POST", path, BODY, {"X-Amz-Content-SHA256": digest})
    if expected:
        assert refusal(answer) == expected
    else:
        assert answer.status_code == 200, answer.text


def md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body).digest()).decode()


@rows(
    "value,body,accepted",
    ("mZFLkyvTelC5g8XnyQrpOw==", b"{}", True),
    ("1B2M2Y8AsgTpgAmY7PhCfg==", b"", True),
    (md5(BODY), BODY, True),
    (f" {md5(BODY)} ", BODY, True),
    (md5(OTHER_BODY), BODY, False),
    ("1B2M2Y8AsgTpgAmY7PhCfg==", b"{}", False),
    ("mZFLkyvTelC5g8XnyQrpOw==", b"", False),
    ("mZFLkyvTelC5g8XnyQrpOw", b"{}", False),
    ("99914b932bd37a50b983c5e7c90ae93b", b"{}", False),
    ("AAAA", b"{}", False),
    ("!", b"{}", False),
    ("", b"{}", False),
)
def test_content_md5(idle, value, body, accepted):
    client = idle.client()
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/compact"
    # Signed or not.
    answers = [wire.request(client, "POST", path, body, {"Content-MD5": value})]
    headers = wire.signed(client, "POST", path, body)
    answers.append(wire.send(client, "POST", path, headers | {"Content-MD5": value}, body))
    for answer in answers:
        if accepted:
            assert answer.status_code == 200, answer.text
        else:
            assert refusal(answer) == INVALID_DIGEST
    assert len(task_ids(client, table, "lance_compact")) == (2 if accepted else 0)


@rows("rest", "tasks?task_type=lance_compact", "tasks/abc")
def test_content_md5_of_requests_without_a_body(idle, rest):
    client = idle.client()
    table, _ = client.new_table()
    path = f"/lance/oss/v1/table/{table}/{rest}"
    plain = wire.request(client, "GET", path)
    right = wire.request(client, "GET", path, headers={"Content-MD5": md5(b"")})
    assert right.status_code == plain.status_code
    wrong = wire.request(client, "GET", path, headers={"Content-MD5": md5(b"{}")})
    assert refusal(wrong) == INVALID_DIGEST


# Other signers


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
@rows(
    "method,path,body,accepted",
    ("POST", "compact", "{}", True),
    ("POST", "compact?delimiter=", "{}", True),
    ("GET", "tasks?task_type=lance_compact", None, True),
    ("GET", "tasks?delimiter=%24&max_results=5&task_type=lance_compact", None, True),
    ("GET", "tasks?task_type=lance_compact&max_results=5", None, True),
    ("GET", "tasks?status=&task_type=lance_compact", None, False),
)
def test_curl(idle, method, path, body, accepted):
    client = idle.client()
    table, _ = client.new_table()
    command = ["curl", "-sS", "--aws-sigv4", f"aws:amz:{client.region}:osstables"]
    command += ["--user", f"{client.access_key_id}:{client.secret_access_key}"]
    command += ["-X", method, "-H", "content-type: application/json", "-w", "\n%{http_code}"]
    command += ["-d", body] if body else []
    url = f"{client.endpoint}/lance/oss/v1/table/{table.replace('$', '%24')}/{path}"
    run = subprocess.run([*command, url], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    text, status = run.stdout.rsplit("\n", 1)
    assert status == ("200" if accepted else "400"), text
