"""The Lance REST namespace, as far as it is served."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

import wire
from cases import INVALID_INPUT, METHOD_NOT_ALLOWED, TABLE_NOT_FOUND, rows
from catalog import (
    NAMESPACE_ALREADY_EXISTS,
    NAMESPACE_NOT_FOUND,
    TABLE_ALREADY_EXISTS,
    UNSUPPORTED,
    at_once,
    namespaces,
    on_namespace,
    on_table,
    outcomes,
    tables,
)
from service import refusal


@pytest.fixture
def client(idle):
    return idle.client()


@pytest.fixture
def namespace(client):
    """A new namespace."""
    name = "n" + uuid.uuid4().hex[:12]
    assert client.create_namespace(name).status_code == 200
    return name


# Namespaces


@rows(
    "body,expected",
    (None, {}),
    ({}, {}),
    ({"mode": "create"}, {}),
    ({"mode": "Create"}, {}),
    ({"mode": "exist_ok"}, {}),
    ({"properties": {"owner": "me", "a": ""}}, {"a": "", "owner": "me"}),
    ({"id": None, "context": {}, "unknown": 1, "mode": None}, {}),
    ({"mode": "overwrite"}, {}),
    ({"id": ["other"]}, INVALID_INPUT),
    ({"mode": ""}, INVALID_INPUT),
    ({"mode": 1}, INVALID_INPUT),
    ({"properties": {"a": 1}}, INVALID_INPUT),
    ({"properties": []}, INVALID_INPUT),
    ([], INVALID_INPUT),
    (b"{", INVALID_INPUT),
)
def test_creates_a_namespace(client, body, expected):
    name = "n" + uuid.uuid4().hex[:12]
    answer = on_namespace(client, name, "create", body)
    described = on_namespace(client, name, "describe")
    if isinstance(expected, tuple):
        assert refusal(answer) == expected
        assert refusal(described) == NAMESPACE_NOT_FOUND
        assert name not in namespaces(client)
    else:
        assert answer.status_code == 200, answer.text
        assert answer.json() == described.json() == {"properties": expected}
        assert namespaces(client)[0] == name


def test_a_namespace_is_created_once(client, namespace):
    assert refusal(on_namespace(client, namespace, "create")) == NAMESPACE_ALREADY_EXISTS
    assert refusal(on_namespace(client, namespace, "create", {"mode": "create"})) == NAMESPACE_ALREADY_EXISTS
    body = {"mode": "exist_ok", "properties": {"second": "yes"}}
    answer = on_namespace(client, namespace, "create", body)
    assert (answer.status_code, answer.json()) == (200, {"properties": {}})


@rows(
    "name,query,valid",
    ("a", "", True),
    ("0", "", True),
    ("a_b__c", "", True),
    ("a" * 255, "", True),
    ("awake", "", True),
    ("os", "", True),
    ("%61bc", "", True),
    ("abc", "?delimiter=.", True),
    ("a" * 256, "", False),
    ("%20", "", False),
    ("", "", False),
    ("_a", "", False),
    ("a_", "", False),
    ("_", "", False),
    ("A", "", False),
    ("a-b", "", False),
    ("a.b", "", False),
    ("a.b", "?delimiter=.", False),
    ("a%24b", "", False),
    ("%24", "", False),
    ("%C3%A9", "", False),
    ("%00", "", False),
    ("a%2Fb", "", False),
    ("oss", "", False),
    ("ossified", "", False),
    ("acs", "", False),
    ("aliyun1", "", False),
    ("alibaba", "", False),
    ("aws_x", "", False),
    ("abc", "?delimiter=-", False),
)
def test_the_name_of_a_namespace(client, name, query, valid):
    path = f"/lance/v1/namespace/{name}/create{query}"
    answer = wire.request(client, "POST", path, b'{"mode":"exist_ok"}')
    if valid:
        assert answer.status_code == 200, answer.text
    else:
        assert refusal(answer) == INVALID_INPUT


@rows("limit", 1, 2, 3, 1000)
def test_lists_namespaces_in_pages(client, namespace, limit):
    more = [f"{namespace}_{n}" for n in range(5)]
    for name in more:
        client.create_namespace(name)
    found = namespaces(client, limit)
    assert len(set(found)) == len(found)
    assert found[:6] == [*more[::-1], namespace]


def test_a_namespace_holds_no_namespaces(client, namespace):
    answer = client.request("GET", f"/lance/v1/namespace/{namespace}/list")
    assert (answer.status_code, answer.json()) == (200, {"namespaces": []})
    answer = client.request("GET", "/lance/v1/namespace/missing/list")
    assert refusal(answer) == NAMESPACE_NOT_FOUND
    answer = wire.request(client, "GET", "/lance/v1/namespace/./list?delimiter=.")
    assert namespace in answer.json()["namespaces"]


@rows("query", "limit=0", "limit=-1", "limit=x", "page_token=x", "limit=1&limit=1", "delimiter=/")
def test_the_query_of_a_listing(client, namespace, query):
    for path in ["%24/list", f"{namespace}/table/list"]:
        answer = client.request("GET", f"/lance/v1/namespace/{path}?{query}")
        assert refusal(answer) == INVALID_INPUT


# Tables


def test_a_table_from_declaration_to_drop(idle, client, namespace):
    table = f"{namespace}$docs"
    answer = on_table(client, table, "declare", {"properties": {"owner": "me"}})
    assert answer.status_code == 200, answer.text
    declared = answer.json()
    assert set(declared) == {"location", "properties", "managed_versioning"}
    assert declared["properties"] == {"owner": "me"}
    assert declared["managed_versioning"] is False

    described = on_table(client, table, "describe").json()
    own_id = described["properties"]["table_id"]
    assert str(uuid.UUID(own_id)) == own_id
    assert described == {
        "table": "docs",
        "namespace": [namespace],
        "location": declared["location"],
        "properties": {
            "owner": "me",
            "table_id": own_id,
            "table_arn": f"acs:osstables:local:0:bucket/lance/table/{own_id}",
        },
        "managed_versioning": False,
    }
    assert declared["location"] == f"file://{idle.folder}/warehouse/lance/{own_id}.lance"

    assert refusal(on_table(client, table, "declare")) == TABLE_ALREADY_EXISTS
    assert tables(client, namespace) == ["docs"]

    dropped = on_table(client, table, "drop")
    assert dropped.status_code == 200, dropped.text
    assert dropped.json()["id"] == [namespace, "docs"]
    assert dropped.json()["location"] == declared["location"]
    assert tables(client, namespace) == []
    for action in ["describe", "drop"]:
        assert refusal(on_table(client, table, action)) == TABLE_NOT_FOUND

    again = on_table(client, table, "declare")
    assert again.json()["location"] != declared["location"]
    assert tables(client, namespace) == ["docs"]


def test_a_description_tells_the_uri_to_who_asks(client, namespace):
    location = client.declare(f"{namespace}$t")
    for body, query, told in [
        (None, "", False),
        ({"with_table_uri": False}, "", False),
        ({"with_table_uri": None}, "", False),
        ({"with_table_uri": True}, "", True),
        (None, "?with_table_uri=true", True),
        (None, "?with_table_uri=false", False),
    ]:
        described = on_table(client, f"{namespace}$t", "describe", body, query).json()
        assert described.get("table_uri") == (location if told else None), (body, query)
    body = {"with_table_uri": "yes"}
    assert refusal(on_table(client, f"{namespace}$t", "describe", body)) == INVALID_INPUT


def test_a_tables_own_id_can_not_be_given(client, namespace):
    properties = {"table_id": "forged", "table_arn": "forged"}
    on_table(client, f"{namespace}$t", "declare", {"properties": properties})
    described = on_table(client, f"{namespace}$t", "describe").json()["properties"]
    assert "forged" not in described.values()


@rows(
    "body,expected",
    (None, None),
    ({}, None),
    ({"location": None, "properties": None, "id": None, "unknown": []}, None),
    ({"location": ""}, None),
    ({"id": ["x"]}, INVALID_INPUT),
    ({"location": "file:///tmp/x"}, INVALID_INPUT),
    ({"location": 7}, INVALID_INPUT),
    ({"properties": {"a": None}}, INVALID_INPUT),
    ([], INVALID_INPUT),
    (b"{", INVALID_INPUT),
)
def test_the_body_of_a_declaration(client, namespace, body, expected):
    answer = on_table(client, f"{namespace}$t", "declare", body)
    if expected:
        assert refusal(answer) == expected
        assert tables(client, namespace) == []
    else:
        assert answer.status_code == 200, answer.text


@rows(
    "name,valid",
    ("t", True),
    ("0", True),
    ("a__b", True),
    ("a" * 255, True),
    ("oss_t", True),
    ("a" * 256, False),
    ("_t", False),
    ("t_", False),
    ("T", False),
    ("a-b", False),
    ("a.b", False),
    ("a b", False),
    ("é", False),
    ("a/b", False),
    ("a$b", False),
    ("", False),
)
def test_the_name_of_a_table(client, namespace, name, valid):
    answer = on_table(client, f"{namespace}${name}", "declare")
    if valid:
        assert answer.status_code == 200, answer.text
        assert tables(client, namespace) == [name]
    else:
        assert refusal(answer) == INVALID_INPUT
        assert tables(client, namespace) == []


def test_a_table_needs_its_namespace(idle, client):
    location = {"location": f"file://{idle.folder}/x.lance"}
    assert refusal(on_table(client, "missing$t", "declare")) == NAMESPACE_NOT_FOUND
    assert refusal(on_table(client, "missing$t", "register", location)) == NAMESPACE_NOT_FOUND
    assert refusal(on_table(client, "missing$t", "describe")) == TABLE_NOT_FOUND
    assert refusal(on_table(client, "missing$t", "drop")) == TABLE_NOT_FOUND
    answer = client.request("GET", "/lance/v1/namespace/missing/table/list")
    assert refusal(answer) == NAMESPACE_NOT_FOUND


def test_a_delimiter_for_tables(client, namespace):
    answer = on_table(client, f"{namespace}__t", "declare", query="?delimiter=__")
    assert answer.status_code == 200, answer.text
    described = on_table(client, f"{namespace}.t", "describe", query="?delimiter=.").json()
    assert described["location"] == answer.json()["location"]


@rows("limit", 1, 2, 3, 1000)
def test_lists_tables_in_pages(client, namespace, limit):
    names = [f"t{n}" for n in range(6)]
    for name in names:
        client.declare(f"{namespace}${name}")
    on_table(client, f"{namespace}$t2", "drop")
    names.remove("t2")
    assert tables(client, namespace, limit) == names[::-1]


# Registration. `{root}` is the only place that tables are registered from.


@rows(
    "location,stored",
    ("{root}/t.lance", "{root}/t.lance"),
    ("{root}/a/b/t.lance/", "{root}/a/b/t.lance"),
    ("{path}/t.lance", "{root}/t.lance"),
    ("{root}/with space.lance", "{root}/with space.lance"),
    ("{root}/t..lance", "{root}/t..lance"),
    ("{root}", None),
    ("{root}/", None),
    ("{root}2/t.lance", None),
    ("{root}/../t.lance", None),
    ("{root}/a/../t.lance", None),
    ("{root}/a/..", None),
    ("{root}/%2e%2e/t.lance", None),
    ("{root}/%2E./t.lance", None),
    ("{root}/a%2Ft.lance", None),
    ("{root}/./t.lance", None),
    ("{root}//t.lance", None),
    ("{root}/t.lance?x=1", None),
    ("{root}/t.lance#x", None),
    ("{root}/a\\..\\t.lance", None),
    ("{root}/t\n.lance", None),
    ("{root}/t\0.lance", None),
    ("{path}/../t.lance", None),
    ("file:{path}/t.lance", None),
    ("file://localhost{path}/t.lance", None),
    ("FILE://{path}/t.lance", None),
    ("s3:/{path}/t.lance", None),
    ("s3://bucket/t.lance", None),
    ("http://127.0.0.1/t.lance", None),
    ("memory://t.lance", None),
    ("/etc", None),
    ("file:///etc/t.lance", None),
    ("file:///", None),
    ("t.lance", None),
    ("../t.lance", None),
    ("~/t.lance", None),
)
def test_registers_under_a_root_only(idle, client, namespace, location, stored):
    variables = json.loads((idle.folder / "variables.json").read_text())
    root = variables["register_roots"]
    full = {"{root}": root, "{path}": root.removeprefix("file://")}
    for name, value in full.items():
        location = location.replace(name, value)
        stored = stored and stored.replace(name, value)
    answer = on_table(client, f"{namespace}$t", "register", {"location": location})
    if stored:
        assert answer.status_code == 200, answer.text
        assert answer.json()["location"] == stored
        assert on_table(client, f"{namespace}$t", "describe").json()["location"] == stored
        again = on_table(client, f"{namespace}$t", "register", {"location": location})
        assert refusal(again) == TABLE_ALREADY_EXISTS
        # The next case may have the location.
        assert on_table(client, f"{namespace}$t", "deregister").status_code == 200
    else:
        assert refusal(answer) == INVALID_INPUT
        assert tables(client, namespace) == []


@rows(
    "body",
    None,
    {},
    {"location": None},
    {"location": ""},
    {"location": 7},
    {"location": ["x"]},
    {"location": "{root}/t", "mode": "overwrite"},
    {"location": "{root}/t", "properties": 1},
)
def test_the_body_of_a_registration(idle, client, namespace, body):
    text = json.dumps(body or {}).replace("{root}", f"file://{idle.folder}")
    answer = on_table(client, f"{namespace}$t", "register", text.encode())
    assert refusal(answer) == INVALID_INPUT
    assert tables(client, namespace) == []


# Many at once


@rows("turn", 0, 1, 2)
def test_one_of_many_declares_a_table(idle, client, namespace, turn):
    answers = at_once(idle, lambda mine: on_table(mine, f"{namespace}$t", "declare"))
    seen = outcomes(answers)
    assert seen.count("ok") == 1, seen
    assert {it.status_code for it in answers} == {200, 409}, seen
    assert tables(client, namespace) == ["t"]
    (made,) = (it.json()["location"] for it in answers if it.status_code == 200)
    assert on_table(client, f"{namespace}$t", "describe").json()["location"] == made

    answers = at_once(idle, lambda mine: on_table(mine, f"{namespace}$t", "drop"))
    assert outcomes(answers).count("ok") == 1
    assert {it.status_code for it in answers} <= {200, 404, 409}
    assert tables(client, namespace) == []
    assert on_table(client, f"{namespace}$t", "declare").status_code == 200


def test_one_of_many_creates_a_namespace(idle, client):
    name = "n" + uuid.uuid4().hex[:12]
    answers = at_once(idle, lambda mine: mine.create_namespace(name))
    assert outcomes(answers).count("ok") == 1
    assert {it.status_code for it in answers} == {200, 409}
    assert namespaces(client).count(name) == 1


def test_many_declare_many(idle, client, namespace):
    def declare(number):
        mine = idle.client()
        for turn in range(5):
            mine.declare(f"{namespace}$t{number}_{turn}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(declare, range(8)))
    expected = sorted(f"t{number}_{turn}" for number in range(8) for turn in range(5))
    for limit in [7, 1000]:
        assert sorted(tables(client, namespace, limit)) == expected


# What is not served


@rows(
    "method,path,expected",
    ("GET", "/lance/v1/", UNSUPPORTED),
    ("GET", "/lance/v1/namespace", UNSUPPORTED),
    ("POST", "/lance/v1/table/{ns}$t/compact", UNSUPPORTED),
    ("GET", "/lance/v1/table/{ns}$t/describe", METHOD_NOT_ALLOWED),
    ("PUT", "/lance/v1/table/{ns}$t/declare", METHOD_NOT_ALLOWED),
    ("DELETE", "/lance/v1/table/{ns}$t/drop", METHOD_NOT_ALLOWED),
    ("POST", "/lance/v1/table", METHOD_NOT_ALLOWED),
    ("GET", "/lance/v1/table/{ns}$t/version/list", METHOD_NOT_ALLOWED),
    ("GET", "/lance/v1/namespace/{ns}/create", METHOD_NOT_ALLOWED),
    ("POST", "/lance/v1/namespace/{ns}/list", METHOD_NOT_ALLOWED),
    ("POST", "/lance/v1/namespace/{ns}/table/list", METHOD_NOT_ALLOWED),
)
def test_what_is_not_served(client, namespace, method, path, expected):
    path = path.replace("{ns}", namespace)
    assert refusal(wire.request(client, method, path, b"{}")) == expected
    # It is no secret: whoever asks is told.
    assert refusal(wire.send(client, method, path, {}, b"{}")) == expected
