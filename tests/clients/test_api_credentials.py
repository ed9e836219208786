"""Keys, tokens and clocks in all forms of signatures, by signers that others wrote."""

import base64
import hashlib
import uuid
from datetime import datetime, timedelta, timezone

import pytest

import wire
from cases import (
    ACCESS_DENIED,
    INVALID_DIGEST,
    SIGNATURE_DOES_NOT_MATCH,
    TASK_NOT_FOUND,
    rows,
)
from service import refusal
from signers import EXPIRES, FORMS, Signature

UNKNOWN_KEY = (403, "InvalidAccessKeyId", 16)
INVALID_TOKEN = (403, "InvalidSecurityToken", 16)
TIME_TOO_SKEWED = (403, "RequestTimeTooSkewed", 16)

ALL = {"Version": "1", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
SECRET = "secret-" + uuid.uuid4().hex
OTHER_SECRET = "other-" + uuid.uuid4().hex
TOKEN = "token/+=" + uuid.uuid4().hex
BODY = b'{"max_rows_per_group":8}'
OTHER_BODY = b'{"max_rows_per_group":9}'

HEADER_FORMS = [form for form in FORMS if not form.endswith("query")]
QUERY_FORMS = [form for form in FORMS if form.endswith("query")]
AWS_FORMS = [form for form in FORMS if form.startswith("AWS4")]
OSS_FORMS = [form for form in FORMS if form.startswith("OSS4")]


def credential(key, **more):
    return {"access_key_id": key, "secret_access_key": SECRET, "policy": ALL} | more


def at(**offset) -> str:
    return (datetime.now(timezone.utc) + timedelta(**offset)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def place(start):
    """A client, and the path of a submit to a table."""
    credentials = [
        credential("active"),
        credential("odd+key=1:@"),
        credential("inactive", status="inactive"),
        credential("expired", expires_at=at(minutes=-1)),
        credential("lasting", expires_at=at(hours=1)),
        credential("temporary", session_token=TOKEN),
        credential("short", session_token=TOKEN, expires_at=at(hours=1)),
        credential("ended", session_token=TOKEN, expires_at=at(minutes=-1)),
        credential("stopped", session_token=TOKEN, status="inactive"),
    ]
    service = start({"credentials": credentials}, table_buckets="lance,other")
    client = service.client()
    table, _ = client.new_table()
    client.access_key_id, client.secret_access_key = "active", SECRET
    return client, f"/lance/oss/v1/table/{table.replace('$', '%24')}/compact"


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def outcome(answer):
    """200, or the refusal, which must not tell a secret."""
    for secret in [SECRET, OTHER_SECRET, TOKEN]:
        assert secret not in answer.text
    return answer.status_code if answer.status_code < 300 else refusal(answer)


# Who signs


@rows(
    "case,signature,expected",
    ("a key", {"key": "active"}, 200),
    ("a key of odd letters", {"key": "odd+key=1:@"}, 200),
    ("a key that expires later", {"key": "lasting"}, 200),
    ("a key with its token", {"key": "temporary", "token": TOKEN}, 200),
    ("a token that expires later", {"key": "short", "token": TOKEN}, 200),
    ("another secret", {"key": "active", "secret": OTHER_SECRET}, SIGNATURE_DOES_NOT_MATCH),
    ("an unknown key", {"key": "nobody"}, UNKNOWN_KEY),
    ("a key in upper case", {"key": "ACTIVE"}, UNKNOWN_KEY),
    ("an inactive key", {"key": "inactive"}, UNKNOWN_KEY),
    ("an expired key", {"key": "expired"}, INVALID_TOKEN),
    ("an expired token", {"key": "ended", "token": TOKEN}, INVALID_TOKEN),
    ("no token", {"key": "temporary"}, INVALID_TOKEN),
    ("another token", {"key": "temporary", "token": TOKEN + "x"}, INVALID_TOKEN),
    ("a token too many", {"key": "active", "token": TOKEN}, INVALID_TOKEN),
    ("an inactive key with its token", {"key": "stopped", "token": TOKEN}, UNKNOWN_KEY),
    # How a key stands is told to who has the secret.
    ("inactive, another secret", {"key": "inactive", "secret": OTHER_SECRET}, SIGNATURE_DOES_NOT_MATCH),
    ("expired, another secret", {"key": "expired", "secret": OTHER_SECRET}, SIGNATURE_DOES_NOT_MATCH),
    ("no token, another secret", {"key": "temporary", "secret": OTHER_SECRET}, SIGNATURE_DOES_NOT_MATCH),
    ("another region", {"region": "cn-hangzhou"}, SIGNATURE_DOES_NOT_MATCH),
    ("another service", {"service": "oss"}, SIGNATURE_DOES_NOT_MATCH),
    ("the service of S3", {"service": "s3"}, SIGNATURE_DOES_NOT_MATCH),
)
def test_who_is_believed(place, form, case, signature, expected):
    client, path = place
    assert outcome(Signature(form, **signature).send(client, "POST", path, BODY)) == expected


@pytest.mark.parametrize("form", OSS_FORMS)
@rows("bucket,account", ("other", "0"), ("lance", "1"), ("lanc", "0"), ("", "0"))
def test_an_oss_signature_names_the_bucket(place, form, bucket, account):
    client, path = place
    answer = Signature(form, bucket=bucket, account=account).send(client, "POST", path, BODY)
    assert outcome(answer) == SIGNATURE_DOES_NOT_MATCH


@rows("minutes,in_header,in_query", (-16, TIME_TOO_SKEWED, 200), (-14, 200, 200), (14, 200, 200), (16, TIME_TOO_SKEWED, TIME_TOO_SKEWED))
def test_clocks_that_differ(place, form, minutes, in_header, in_query):
    client, path = place
    signature = Signature(form, minutes=minutes, expires=3600)
    expected = in_query if signature.is_presigned else in_header
    assert outcome(signature.send(client, "POST", path, BODY)) == expected


# What was changed since


def tampered(place, signature, method="POST", sent_path=None, sent_body=BODY, headers=None, more=None):
    """Signs a submit, and sends it otherwise. `sent_path` is a change of the path."""
    client, path = place
    path, signed = signature.sign(client, method, path, BODY, headers)
    path = sent_path(path) if sent_path else path
    return wire.send(client, method, path, signed | (more or {}), sent_body)


def test_a_body_that_was_changed(place, form):
    answer = tampered(place, Signature(form), sent_body=OTHER_BODY)
    expected = {
        "AWS4 header": SIGNATURE_DOES_NOT_MATCH,
        "AWS4 query": SIGNATURE_DOES_NOT_MATCH,
        # It says what the body was.
        "AWS4 connector": INVALID_DIGEST,
        # The body is not signed, unless a digest is.
        "OSS4 header": 200,
        "OSS4 query": 200,
    }
    assert outcome(answer) == expected[form]


def test_a_digest_binds_the_body(place, form):
    md5 = lambda body: base64.b64encode(hashlib.md5(body).digest()).decode()
    headers = {"content-md5": md5(BODY)}
    assert outcome(tampered(place, Signature(form), headers=headers)) == 200
    answer = tampered(place, Signature(form), headers=headers, sent_body=OTHER_BODY)
    expected = INVALID_DIGEST
    if form in ("AWS4 header", "AWS4 query"):
        expected = SIGNATURE_DOES_NOT_MATCH
    assert outcome(answer) == expected
    # With the digest changed too.
    changed = {"content-md5": md5(OTHER_BODY)}
    answer = tampered(place, Signature(form), headers=headers, sent_body=OTHER_BODY, more=changed)
    expected = INVALID_DIGEST if form == "AWS4 connector" else SIGNATURE_DOES_NOT_MATCH
    assert outcome(answer) == expected


@rows(
    "case,change",
    ("another operation", lambda path: path.replace("/compact", "/optimize_indices")),
    ("another table", lambda path: path.replace("%24", "%24x")),
    ("a parameter", lambda path: path + ("&" if "?" in path else "?") + "x=1"),
    ("a parameter in front", lambda path: path.replace("?", "?x=1&") if "?" in path else path + "?x"),
    ("a delimiter", lambda path: path + ("&" if "?" in path else "?") + "delimiter=%24"),
)
def test_a_path_that_was_changed(place, form, case, change):
    answer = tampered(place, Signature(form), sent_path=change)
    assert outcome(answer) == SIGNATURE_DOES_NOT_MATCH


def test_a_method_that_was_changed(place, form):
    client, path = place
    path = path.replace("/compact", "/tasks/abc")
    path, headers = Signature(form).sign(client, "GET", path)
    assert outcome(wire.send(client, "GET", path, headers)) == TASK_NOT_FOUND
    assert outcome(wire.send(client, "DELETE", path, headers)) == SIGNATURE_DOES_NOT_MATCH


def test_a_query_that_was_changed(place, form):
    client, path = place
    path = path.replace("/compact", "/tasks?task_type=lance_compact&max_results=1&marker=")
    path, headers = Signature(form).sign(client, "GET", path)
    assert outcome(wire.send(client, "GET", path, headers)) == 200
    changed = path.replace("max_results=1", "max_results=2")
    assert outcome(wire.send(client, "GET", changed, headers)) == SIGNATURE_DOES_NOT_MATCH
    missing = path.replace("max_results=1&", "")
    assert outcome(wire.send(client, "GET", missing, headers)) == SIGNATURE_DOES_NOT_MATCH


def test_a_signed_header_that_was_changed(place, form):
    headers = {"content-type": "application/json"}
    assert outcome(tampered(place, Signature(form), headers=headers)) == 200
    answer = tampered(place, Signature(form), headers=headers, more={"content-type": "text/plain"})
    assert outcome(answer) == SIGNATURE_DOES_NOT_MATCH


@rows(
    "form,name,expected",
    ("AWS4 header", "x-amz-meta", ACCESS_DENIED),
    ("AWS4 query", "x-amz-meta", ACCESS_DENIED),
    ("AWS4 connector", "x-amz-meta", ACCESS_DENIED),
    ("OSS4 header", "x-oss-meta", SIGNATURE_DOES_NOT_MATCH),
    ("OSS4 query", "x-oss-meta", SIGNATURE_DOES_NOT_MATCH),
    # Nothing here depends on these.
    ("AWS4 header", "x-oss-meta", 200),
    ("OSS4 header", "x-amz-meta", 200),
    ("OSS4 query", "user-agent", 200),
)
def test_a_header_that_was_added(place, form, name, expected):
    assert outcome(tampered(place, Signature(form), more={name: "x"})) == expected


@rows(
    "form,host_is_signed,other_bucket,same_bucket",
    ("AWS4 header", False, SIGNATURE_DOES_NOT_MATCH, SIGNATURE_DOES_NOT_MATCH),
    ("AWS4 query", False, SIGNATURE_DOES_NOT_MATCH, SIGNATURE_DOES_NOT_MATCH),
    ("AWS4 connector", False, SIGNATURE_DOES_NOT_MATCH, SIGNATURE_DOES_NOT_MATCH),
    # The bucket is signed, and the host only if it is listed.
    ("OSS4 header", False, SIGNATURE_DOES_NOT_MATCH, 200),
    ("OSS4 query", False, SIGNATURE_DOES_NOT_MATCH, 200),
    ("OSS4 header", True, SIGNATURE_DOES_NOT_MATCH, SIGNATURE_DOES_NOT_MATCH),
    ("OSS4 query", True, SIGNATURE_DOES_NOT_MATCH, SIGNATURE_DOES_NOT_MATCH),
)
def test_a_host_that_was_changed(place, form, host_is_signed, other_bucket, same_bucket):
    signature = Signature(form, host_is_signed=host_is_signed)
    assert outcome(tampered(place, signature)) == 200
    for bucket, expected in [("other", other_bucket), ("lance", same_bucket)]:
        host = {"host": f"{bucket}.oss-tables.localhost"}
        assert outcome(tampered(place, signature, more=host)) == expected, bucket


@pytest.mark.parametrize("form", OSS_FORMS)
@rows("segment,expected", ("a%2Fb", ACCESS_DENIED), ("a%25b", ACCESS_DENIED), ("a%00", ACCESS_DENIED), ("a%FF", ACCESS_DENIED), ("%6E", 404))
def test_oss_does_not_sign_paths_that_can_be_told_apart(place, form, segment, expected):
    client, _ = place
    answer = Signature(form).send(client, "POST", f"/lance/v1/namespace/{segment}/describe")
    assert (answer.status_code if expected == 404 else outcome(answer)) == expected


@rows(
    "first,second",
    ("AWS4 header", "AWS4 query"),
    ("AWS4 header", "OSS4 query"),
    ("OSS4 header", "OSS4 query"),
    ("OSS4 header", "AWS4 query"),
    ("AWS4 query", "OSS4 query"),
)
def test_signed_twice(place, first, second):
    client, path = place
    signed, headers = Signature(second).sign(client, "POST", path, BODY)
    signed, more = Signature(first).sign(client, "POST", signed, BODY, headers)
    answer = wire.send(client, "POST", signed, headers | more, BODY)
    assert outcome(answer) == ACCESS_DENIED


# Presigned URLs


@pytest.mark.parametrize("form", QUERY_FORMS)
@rows(
    "expires,minutes,expected",
    (1, 0, 200),
    (604800, 0, 200),
    (604800, -60 * 24 * 6, 200),
    (60, -2, ACCESS_DENIED),
    (604800, -60 * 24 * 7 - 2, ACCESS_DENIED),
    (0, 0, ACCESS_DENIED),
    (-5, 0, ACCESS_DENIED),
    (604801, 0, ACCESS_DENIED),
)
def test_how_long_a_presigned_url_is_good(place, form, expires, minutes, expected):
    client, path = place
    # A URL that is good for one second is made anew if the clock went on.
    for _ in range(3 if expires == 1 else 1):
        answer = outcome(Signature(form, expires=expires, minutes=minutes).send(client, "POST", path, BODY))
        if answer == expected:
            break
    assert answer == expected


@pytest.mark.parametrize("form", QUERY_FORMS)
def test_a_presigned_url_can_not_be_prolonged(place, form):
    change = lambda path: path.replace(f"xpires={EXPIRES}", f"xpires={EXPIRES}0")
    assert outcome(tampered(place, Signature(form), sent_path=change)) == SIGNATURE_DOES_NOT_MATCH


@pytest.mark.parametrize("form", QUERY_FORMS)
@rows("part", "Signature", "Credential", "Date", "Expires")
def test_parts_of_a_presigned_url(place, form, part):
    def without(path):
        head, query = path.split("?")
        name = ("X-Amz-" + part) if form.startswith("AWS4") else ("x-oss-" + part.lower())
        pairs = [pair for pair in query.split("&") if not pair.startswith(name + "=")]
        assert len(pairs) == query.count("&")
        return f"{head}?{'&'.join(pairs)}"

    assert outcome(tampered(place, Signature(form), sent_path=without)) == ACCESS_DENIED


@pytest.mark.parametrize("form", QUERY_FORMS)
def test_a_presigned_url_is_good_more_than_once(place, form):
    client, path = place
    path, headers = Signature(form).sign(client, "POST", path, BODY)
    ids = {wire.send(client, "POST", path, headers, BODY).json()["task_id"] for _ in range(3)}
    assert len(ids) == 3


# Every kind of request


@rows(
    "keys",
    {"key": "active"},
    {"key": "temporary", "token": TOKEN},
)
def test_the_life_of_a_task(place, form, keys):
    client, _ = place
    signature = Signature(form, **keys)
    json = {"content-type": "application/json"}
    table = "t" + uuid.uuid4().hex[:12]
    declared = signature.send(client, "POST", f"/lance/v1/table/tests%24{table}/declare", b"{}", json)
    assert declared.status_code == 200, declared.text
    path = f"/lance/oss/v1/table/tests%24{table}"
    # There is no table: the task fails, and can be deleted.
    task_id = signature.send(client, "POST", path + "/compact", BODY, json).json()["task_id"]
    assert client.wait(f"tests${table}", task_id)["status"] == "failed"
    got = signature.send(client, "GET", f"{path}/tasks/{task_id}?delimiter=%24")
    assert got.json()["task_info"]["params"]["max_rows_per_group"] == 8
    query = "task_type=lance_compact&max_results=10&marker=&delimiter=%24"
    found = signature.send(client, "GET", f"{path}/tasks?{query}")
    assert [task["task_id"] for task in found.json()["tasks"]] == [task_id]
    deleted = signature.send(client, "DELETE", f"{path}/tasks/{task_id}")
    assert (deleted.status_code, deleted.text) == (204, "")
    assert outcome(signature.send(client, "GET", f"{path}/tasks/{task_id}")) == TASK_NOT_FOUND
    listing = signature.send(client, "GET", "/lance/v1/namespace/%24/list?delimiter=%24&limit=1")
    assert listing.json()["namespaces"] == ["tests"]
