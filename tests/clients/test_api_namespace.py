"""Every operation of the Lance REST namespace in all its modes, on tables that are there."""

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import lance
import pyarrow as pa
import pytest

import tables
import wire
from cases import INVALID_INPUT, METHOD_NOT_ALLOWED, TABLE_NOT_FOUND, TASK_NOT_FOUND, rows
from catalog import (
    NAMESPACE_ALREADY_EXISTS,
    NAMESPACE_NOT_EMPTY,
    NAMESPACE_NOT_FOUND,
    TABLE_ALREADY_EXISTS,
    TABLE_BRANCH_NOT_FOUND,
    TABLE_TAG_NOT_FOUND,
    TABLE_VERSION_NOT_FOUND,
    UNSUPPORTED,
    at_once,
    create_table,
    ipc,
    listed,
    namespaces,
    on_namespace,
    on_table,
    outcomes,
)
from catalog import tables as tables_in
from operations import OPERATIONS, UNSERVED
from service import refusal

SOON_SECONDS = 20
INVALID_TABLE_STATE = (409, "InvalidTableState", 19)


@pytest.fixture
def namespace(client):
    """A new namespace."""
    name = "n" + uuid.uuid4().hex[:12]
    assert client.create_namespace(name, properties={"first": "yes"}).status_code == 200
    return name


def seen(answer):
    """The body of a success, or the refusal."""
    return answer.json() if answer.status_code == 200 else refusal(answer)


def written(client, namespace, name="t", count=30, each=10):
    """A declared table with a version for every `each` rows; returns its id and location."""
    table = f"{namespace}${name}"
    location = client.declare(table)
    tables.append_in_parts(location, tables.rows(0, count), each)
    return table, location


def gone_soon(location):
    """Waits until a table's folder is not there any more."""
    end = time.monotonic() + SOON_SECONDS
    while tables.folder(location).exists():
        assert time.monotonic() < end, tables.files(location)
        time.sleep(0.05)


def state(client, namespace):
    """What a namespace is: its properties and its tables, or the refusal."""
    described = seen(on_namespace(client, namespace, "describe"))
    if isinstance(described, tuple):
        return described
    return described["properties"], sorted(tables_in(client, namespace))


# Namespaces


@rows(
    "body,empty,full",
    # What a creation makes of a namespace that is there, with `first` among its properties.
    ({}, NAMESPACE_ALREADY_EXISTS, NAMESPACE_ALREADY_EXISTS),
    ({"mode": "Create"}, NAMESPACE_ALREADY_EXISTS, NAMESPACE_ALREADY_EXISTS),
    ({"mode": "exist_ok"}, {"first": "yes"}, {"first": "yes"}),
    ({"mode": "ExistOk", "properties": {"second": "yes"}}, {"first": "yes"}, {"first": "yes"}),
    ({"mode": "overwrite"}, {}, NAMESPACE_NOT_EMPTY),
    ({"mode": "OVERWRITE", "properties": {"second": "yes"}}, {"second": "yes"}, NAMESPACE_NOT_EMPTY),
)
def test_creating_a_namespace_that_is_there(client, namespace, body, empty, full):
    for expected in (empty, full):
        answer = seen(on_namespace(client, namespace, "create", body))
        assert (answer if isinstance(answer, tuple) else answer["properties"]) == expected
        if not isinstance(expected, tuple):
            assert state(client, namespace) == (expected, state(client, namespace)[1])
        if expected is empty and not tables_in(client, namespace):
            client.declare(f"{namespace}$t")
            if body.get("mode", "").lower() == "overwrite":
                on_namespace(client, namespace, "create", {})
    assert tables_in(client, namespace) == ["t"]


@rows(
    "body,missing,empty,full",
    (None, NAMESPACE_NOT_FOUND, "dropped", NAMESPACE_NOT_EMPTY),
    ({}, NAMESPACE_NOT_FOUND, "dropped", NAMESPACE_NOT_EMPTY),
    ({"behavior": "Restrict"}, NAMESPACE_NOT_FOUND, "dropped", NAMESPACE_NOT_EMPTY),
    ({"mode": "fail", "behavior": None}, NAMESPACE_NOT_FOUND, "dropped", NAMESPACE_NOT_EMPTY),
    ({"mode": "skip"}, "nothing", "dropped", NAMESPACE_NOT_EMPTY),
    ({"behavior": "cascade"}, NAMESPACE_NOT_FOUND, "dropped", "dropped"),
    ({"mode": "Skip", "behavior": "Cascade"}, "nothing", "dropped", "dropped"),
    ({"mode": "x"}, INVALID_INPUT, INVALID_INPUT, INVALID_INPUT),
    ({"behavior": "all"}, INVALID_INPUT, INVALID_INPUT, INVALID_INPUT),
    ({"behavior": 1}, INVALID_INPUT, INVALID_INPUT, INVALID_INPUT),
    ({"id": ["other"]}, INVALID_INPUT, INVALID_INPUT, INVALID_INPUT),
    (b"[]", INVALID_INPUT, INVALID_INPUT, INVALID_INPUT),
)
def test_dropping_a_namespace(client, namespace, body, missing, empty, full):
    full_one = namespace + "_full"
    client.create_namespace(full_one, properties={"first": "yes"})
    locations = [written(client, full_one, name)[1] for name in ["a", "b"]]
    declared = client.declare(f"{full_one}$c")
    for name, expected in [("missing", missing), (namespace, empty), (full_one, full)]:
        before = state(client, name)
        answer = seen(on_namespace(client, name, "drop", body))
        if expected == "dropped":
            assert answer == {"properties": {"first": "yes"}}
            assert state(client, name) == NAMESPACE_NOT_FOUND
            assert name not in namespaces(client)
        else:
            assert answer == ({"properties": {}} if expected == "nothing" else expected)
            assert state(client, name) == before
    if full == "dropped":
        for location in [*locations, declared]:
            gone_soon(location)
        # Its name stands for a new one.
        client.create_namespace(full_one)
        assert state(client, full_one) == ({}, [])
        client.declare(f"{full_one}$a")
        assert tables_in(client, full_one) == ["a"]
    else:
        assert all(tables.ids(location) == list(range(30)) for location in locations)


def test_the_root_is_there(client):
    for root in ["%24", "@?delimiter=%40"]:
        name, _, query = root.partition("?")
        query = f"?{query}" if query else ""
        assert seen(on_namespace(client, name, "describe", {}, query)) == {"properties": {}}
        assert seen(on_namespace(client, name, "exists", {"id": []}, query)) == {}
        for action in ["create", "drop"]:
            answer = on_namespace(client, name, action, {}, query)
            assert refusal(answer) == INVALID_INPUT
    assert refusal(client.request("GET", "/lance/v1/namespace/%24/table/list")) == INVALID_INPUT


def test_whether_a_namespace_exists(client, namespace):
    assert seen(on_namespace(client, namespace, "exists")) == {}
    assert seen(on_namespace(client, namespace, "exists", {"id": [namespace]})) == {}
    assert seen(on_namespace(client, "missing", "exists")) == NAMESPACE_NOT_FOUND


@rows("name", *[name for name, _, path, body, *_ in OPERATIONS if body.startswith("{") and path.startswith("/lance/v1")])
def test_the_id_in_a_body_is_that_of_the_path(client, namespace, name):
    _, method, path, body, *_ = next(row for row in OPERATIONS if row[0] == name)
    client.declare(f"{namespace}$t")
    path = path.replace("{ns}", namespace).replace("{t}", "t")
    body = json.loads(body.replace("{ns}", namespace).replace("{t}", "u"))
    kind = "namespace" if path.startswith("/lance/v1/namespace/") else "table"
    own = [path.split("/")[4]] if kind == "namespace" else path.split("/")[4].split("%24")
    for wrong in [["other"], [], own + ["x"], own[:-1] + ["other"], "$".join(own), {"a": 1}, [1]]:
        answer = client.request(method, path, body | {"id": wrong})
        assert refusal(answer) == INVALID_INPUT, wrong
    for right in [own, None]:
        answer = client.request(method, path, body | {"id": right})
        # The bodies that register a table or create a version have nothing to refer to.
        accepted = name not in ("RegisterTable", "CreateTableVersion")
        if accepted and right is own:
            assert answer.status_code == 200 or refusal(answer)[0] != 400, answer.text
        if name in ("DropNamespace", "RenameTable", "DropTable", "DeregisterTable", "CreateNamespace", "DeclareTable"):
            break


# Lists


@pytest.fixture(scope="module")
def crowd(start):
    """A service of its own with many names: 60 namespaces, and 12 of them with 7 tables."""
    running = start()
    client = running.client()
    names = [f"n{number:02}" for number in range(60)]
    for name in names:
        client.create_namespace(name)

    def fill(name):
        mine = running.client()
        for number in range(7):
            mine.declare(f"{name}$t{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, names[:12]))
    return running


@rows("limit", 1, 2, 7, 8, 59, 60, 61, 1000, 5000)
def test_lists_in_pages(crowd, limit):
    client = crowd.client()
    found = namespaces(client, limit)
    assert found == [f"n{number:02}" for number in reversed(range(60))]
    assert tables_in(client, "n03", limit) == [f"t{number}" for number in reversed(range(7))]
    found = listed(client, "/lance/v1/table", "tables", limit)
    assert sorted(found) == [f"n{n:02}$t{t}" for n in range(12) for t in range(7)]


def test_lists_all_tables_with_another_delimiter(crowd):
    found = listed(crowd.client(), "/lance/v1/table", "tables", 10, "&delimiter=%40%40")
    assert len(found) == 84 and all(name.count("@@") == 1 for name in found)


def test_a_token_is_that_of_its_list(crowd):
    client = crowd.client()
    lists = [
        "/lance/v1/namespace/%24/list",
        "/lance/v1/namespace/n01/table/list",
        "/lance/v1/namespace/n02/table/list",
        "/lance/v1/table",
        "/access/v1/credentials",
    ]
    for number in range(3):
        body = {"secret_access_key": "12345678"}
        client.request("PUT", f"/access/v1/credentials/k{number}", body)
    tokens = {path: client.request("GET", path + "?limit=2").json()["page_token"] for path in lists}
    for of, token in tokens.items():
        for path in lists:
            answer = client.request("GET", f"{path}?limit=2&page_token={token}")
            if path == of:
                assert answer.status_code == 200
            else:
                assert refusal(answer) == INVALID_INPUT, (of, path)
        for wrong in [token[:-1], token + "A", "A" + token, token.swapcase()]:
            answer = client.request("GET", f"{of}?page_token={wrong}")
            assert refusal(answer) == INVALID_INPUT, (of, wrong)


def test_a_list_goes_on_while_others_write(client, namespace):
    for number in range(10):
        client.declare(f"{namespace}$t{number}")
    path = f"/lance/v1/namespace/{namespace}/table/list?limit=4"
    page = client.request("GET", path).json()
    assert page["tables"] == ["t9", "t8", "t7", "t6"]
    client.declare(f"{namespace}$new")
    for name in ["t9", "t6", "t3"]:
        on_table(client, f"{namespace}${name}", "drop")
    on_table(client, f"{namespace}$t0", "rename", {"new_table_name": "renamed"})
    found = []
    while page.get("page_token"):
        page = client.request("GET", f"{path}&page_token={page['page_token']}").json()
        found += page["tables"]
    assert found[:4] == ["t5", "t4", "t2", "t1"] and found[4:] in ([], ["renamed"])


def test_lists_without_what_was_only_declared(client, namespace):
    written(client, namespace, "a", 2, 2)
    client.declare(f"{namespace}$b")
    written(client, namespace, "c", 2, 2)
    client.declare(f"{namespace}$d")
    expected = {"false": ["c", "a"], "true": ["d", "c", "b", "a"], "": ["d", "c", "b", "a"]}
    for value, names in expected.items():
        for limit in [1, 2, 1000]:
            assert tables_in(client, namespace, limit, f"&include_declared={value}") == names
    everything = listed(client, "/lance/v1/table", "tables", 1000, "&include_declared=false")
    mine = [name.split("$")[1] for name in everything if name.startswith(namespace + "$")]
    assert sorted(mine) == ["a", "c"]
    for value in ["1", "no", "False"]:
        path = f"/lance/v1/namespace/{namespace}/table/list?include_declared={value}"
        assert refusal(client.request("GET", path)) == INVALID_INPUT


# Tables from rows


def test_creates_a_table_from_rows(client, service, namespace):
    table = f"{namespace}$t"
    properties = quote(json.dumps({"owner": "me", "of": "a=b&c"}))
    answer = create_table(client, table, tables.rows(0, 100), f"?mode=create&properties={properties}")
    created = seen(answer)
    assert created == {
        "location": created["location"],
        "version": 1,
        "properties": {"owner": "me", "of": "a=b&c"},
    }
    described = on_table(client, table, "describe").json()
    own_id = described["properties"].pop("table_id")
    described["properties"].pop("table_arn")
    assert described["properties"] == created["properties"]
    assert created["location"] == described["location"]
    assert created["location"] == f"file://{service.folder}/warehouse/lance/{own_id}.lance"
    assert lance.dataset(created["location"]).to_table().equals(tables.rows(0, 100))
    assert client.complete(table, "create_scalar_index", {"column": "id"})["num_indexed_rows"] == 100


@rows(
    "query,missing,there",
    # The version that is made, and the rows then.
    ("", (1, 3), TABLE_ALREADY_EXISTS),
    ("?mode=create", (1, 3), TABLE_ALREADY_EXISTS),
    ("?mode=CREATE", (1, 3), TABLE_ALREADY_EXISTS),
    ("?mode=", (1, 3), TABLE_ALREADY_EXISTS),
    ("?mode=exist_ok", (1, 3), (None, 30)),
    ("?mode=ExistOk", (1, 3), (None, 30)),
    ("?mode=overwrite", (1, 3), (4, 3)),
    ("?mode=Overwrite&storage_options=%7B%7D", (1, 3), (4, 3)),
    ("?mode=append", INVALID_INPUT, INVALID_INPUT),
    ("?properties=%5B%5D", INVALID_INPUT, INVALID_INPUT),
    ("?properties=x", INVALID_INPUT, INVALID_INPUT),
    ("?storage_options=%7B%22a%22%3A%22b%22%7D", INVALID_INPUT, INVALID_INPUT),
)
def test_modes_of_creation(client, namespace, query, missing, there):
    existing, location = written(client, namespace, "there")
    for table, expected in [(f"{namespace}$missing", missing), (existing, there)]:
        answer = seen(create_table(client, table, tables.rows(50, 53), query))
        if isinstance(answer, tuple):
            assert answer == expected
        else:
            version, count = expected
            assert answer.get("version") == version
            assert lance.dataset(answer["location"]).count_rows() == count
    assert len(tables.versions(location)) == (4 if there == (4, 3) else 3)
    made = ["missing"] if missing == (1, 3) else []
    assert sorted(tables_in(client, namespace)) == made + ["there"]


def test_rows_over_a_declaration(client, namespace):
    """A table that was declared only is there: its rows come by `overwrite`, or from a writer."""
    table = f"{namespace}$t"
    location = client.declare(table)
    assert seen(create_table(client, table, tables.rows(0, 5))) == TABLE_ALREADY_EXISTS
    assert not tables.folder(location).exists()
    answer = seen(create_table(client, table, tables.rows(0, 5), "?mode=overwrite"))
    assert (answer["location"], answer["version"]) == (location, 1)
    assert tables.ids(location) == [0, 1, 2, 3, 4]


NO_ROWS = pa.table({"id": pa.array([], pa.int64())})


def test_a_table_without_rows_has_a_schema(client, namespace):
    created = seen(create_table(client, f"{namespace}$t", NO_ROWS))
    assert created["version"] == 1
    assert lance.dataset(created["location"]).schema.equals(NO_ROWS.schema)


@rows(
    "case,length,body",
    ("nothing", 0, b""),
    ("no stream", 20, b"these are no rows"),
    ("json", 2, b"{}"),
    ("half a stream", 5000, ipc(tables.rows(0, 100))[:5000]),
    ("a column twice", 1, ipc(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))),
)
def test_rows_that_are_none(service, client, namespace, case, length, body):
    answer = create_table(client, f"{namespace}$t", body)
    assert answer.status_code == 400, answer.text
    assert refusal(answer) in (INVALID_INPUT, (400, "TableSchemaValidationError", 20))
    assert tables_in(client, namespace) == []
    # Nothing lies about.
    before = time.monotonic()
    known = {seen(on_table(client, table, "describe"))["location"] for table in all_tables(client)}
    while True:
        lie = {f"file://{path}" for path in (service.folder / "warehouse/lance").iterdir()}
        if lie <= known:
            break
        assert time.monotonic() < before + SOON_SECONDS, lie - known
        time.sleep(0.1)


def all_tables(client):
    return listed(client, "/lance/v1/table", "tables", 1000)


def test_a_creation_needs_its_namespace(client):
    assert seen(create_table(client, "missing$t", NO_ROWS)) == NAMESPACE_NOT_FOUND


@rows("mode", "create", "exist_ok", "overwrite")
def test_one_of_many_creates_a_table(service, client, namespace, mode):
    table = f"{namespace}$t"
    answers = at_once(service, lambda mine: create_table(mine, table, tables.rows(0, 9), f"?mode={mode}"))
    found = outcomes(answers)
    assert tables_in(client, namespace) == ["t"]
    location = on_table(client, table, "describe").json()["location"]
    assert tables.ids(location) == list(range(9))
    if mode == "create":
        assert found.count("ok") == 1, found
    assert "ok" in found and set(found) <= {
        "ok",
        "TableAlreadyExists",
        "ConcurrentModification",
        # The worker writes a few at a time.
        "ServiceUnavailable",
    }
    # What was written for those that came too late goes.
    warehouse = service.folder / "warehouse/lance"
    end = time.monotonic() + SOON_SECONDS
    while True:
        known = {on_table(client, it, "describe").json()["location"] for it in all_tables(client)}
        if {f"file://{path}" for path in warehouse.iterdir()} <= known:
            break
        assert time.monotonic() < end
        time.sleep(0.2)
    assert tables.ids(location) == list(range(9))


# Descriptions


@pytest.fixture(scope="module")
def versioned(service):
    """A table with five versions, the tag `kept` on the second, and a branch of the third."""
    client = service.client()
    table, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 50), 10)
    dataset = lance.dataset(location)
    dataset.tags.create("kept", 2)
    branch = dataset.create_branch("side", 3)
    lance.write_dataset(tables.rows(90, 91), branch, mode="append")
    lance.write_dataset(tables.rows(91, 92), branch, mode="append")
    return table, location


@rows(
    "body,expected",
    ({"version": 1}, (1, 1)),
    ({"version": 5}, (5, 5)),
    ({"tag": "kept"}, (2, 2)),
    ({"version": 9}, TABLE_VERSION_NOT_FOUND),
    ({"tag": "missing"}, TABLE_TAG_NOT_FOUND),
    ({"branch": "missing"}, TABLE_BRANCH_NOT_FOUND),
    ({"branch": "side"}, (5, 5)),
    ({"branch": "side", "version": 4}, (4, 4)),
    ({"branch": "side", "version": 99}, TABLE_VERSION_NOT_FOUND),
    ({"version": 1, "tag": "kept"}, INVALID_INPUT),
    ({"version": 0}, INVALID_INPUT),
    ({"version": -1}, INVALID_INPUT),
    ({"version": "1"}, INVALID_INPUT),
    ({"version": 1.5}, INVALID_INPUT),
    ({"tag": 1}, INVALID_INPUT),
)
def test_describes_a_version(client, versioned, body, expected):
    table, location = versioned
    body = body | {"load_detailed_metadata": True}
    answer = seen(on_table(client, table, "describe", body))
    if isinstance(expected, tuple) and len(expected) == 3:
        assert answer == expected
    else:
        version, fragments = expected
        assert (answer["version"], answer["stats"]["num_fragments"]) == (version, fragments)
        assert answer["location"] == location


def test_a_description_in_detail(client, versioned):
    table, location = versioned
    for body, query in [({"load_detailed_metadata": True}, ""), ({}, "?load_detailed_metadata=true")]:
        answer = seen(on_table(client, table, "describe", body, query))
        assert answer["version"] == 5
        assert answer["stats"] == {"num_fragments": 5, "num_deleted_rows": 0}
        assert answer["metadata"] == {}
        fields = {field["name"]: field for field in answer["schema"]["fields"]}
        assert list(fields) == tables.rows(0, 1).column_names
        assert fields["id"]["type"]["type"] == "int64"
        assert fields["vector"]["type"]["type"] == "fixed_size_list"
        assert fields["vector"]["type"]["length"] == 64
    plain = seen(on_table(client, table, "describe", {}))
    assert not {"version", "schema", "stats", "metadata", "is_only_declared"} & set(plain)
    # The version alone does not ask for the rest.
    answer = seen(on_table(client, table, "describe", {"version": 2}))
    assert answer["version"] == 2 and not {"schema", "stats"} & set(answer)


def test_whether_a_table_was_only_declared(client, namespace):
    table = f"{namespace}$t"
    location = client.declare(table)
    for body in [{"check_declared": True}, {"check_declared": True, "load_detailed_metadata": True}]:
        answer = seen(on_table(client, table, "describe", body))
        assert answer["is_only_declared"] is True
        assert "version" not in answer
    assert seen(on_table(client, table, "describe", {"version": 1})) == TABLE_VERSION_NOT_FOUND
    tables.append(location, tables.rows(0, 5))
    for query in ["?check_declared=true", "?check_declared=true&load_detailed_metadata=true"]:
        answer = seen(on_table(client, table, "describe", {}, query))
        assert answer["is_only_declared"] is False
    lance.dataset(location).delete("id = 3")
    answer = seen(on_table(client, table, "describe", {"load_detailed_metadata": True}))
    assert answer["stats"] == {"num_fragments": 1, "num_deleted_rows": 1}
    for query in ["?check_declared=1", "?load_detailed_metadata=yes"]:
        assert seen(on_table(client, table, "describe", {}, query)) == INVALID_INPUT


@rows(
    "body,expected",
    (None, {}),
    ({}, {}),
    ({"version": 5}, {}),
    ({"version": 1}, {}),
    ({"version": 6}, TABLE_VERSION_NOT_FOUND),
    ({"version": 0}, INVALID_INPUT),
    ({"version": "1"}, INVALID_INPUT),
)
def test_whether_a_table_exists(client, versioned, body, expected):
    answer = on_table(client, versioned[0], "exists", body)
    assert seen(answer) == expected
    assert refusal(on_table(client, "tests$missing", "exists", {})) == TABLE_NOT_FOUND


# Versions


@rows(
    "query,expected",
    ("", None),
    ("&descending=true", [5, 4, 3, 2, 1]),
    ("&descending=false", None),
    ("&descending=", None),
    ("&branch=side&descending=true", [5, 4, 3]),
    ("&branch=missing", TABLE_BRANCH_NOT_FOUND),
    ("&descending=1", INVALID_INPUT),
)
def test_lists_versions(client, versioned, query, expected):
    table, _ = versioned
    for limit in [1, 2, 3, 1000]:
        found, token = [], ""
        while True:
            answer = on_table(client, table, "version/list", None, f"?limit={limit}&page_token={token}{query}")
            if isinstance(expected, tuple):
                assert refusal(answer) == expected
                return
            page = answer.json()
            assert len(page["versions"]) <= limit
            found += [it["version"] for it in page["versions"]]
            token = page.get("page_token")
            if not token:
                break
        # Without `descending` any order will do.
        found = found if expected else sorted(found)
        assert found == (expected or [1, 2, 3, 4, 5]), limit


def test_a_token_of_versions_is_that_of_its_list(client, versioned):
    table, _ = versioned
    other, location = client.new_table()
    tables.append_in_parts(location, tables.rows(0, 30), 10)
    listing = lambda table, query: on_table(client, table, "version/list", None, query)
    token = listing(table, "?limit=2&descending=true").json()["page_token"]
    for where, query in [(other, "&descending=true"), (table, ""), (table, "&descending=true&branch=side")]:
        assert refusal(listing(where, f"?limit=2&page_token={token}{query}")) == INVALID_INPUT
    assert refusal(listing(table, "?page_token=x")) == INVALID_INPUT
    assert refusal(listing(table, "?limit=0")) == INVALID_INPUT


@rows(
    "body,expected",
    ({}, 5),
    ({"version": 3}, 3),
    ({"version": 6}, TABLE_VERSION_NOT_FOUND),
    ({"branch": "side"}, 5),
    ({"branch": "missing"}, TABLE_BRANCH_NOT_FOUND),
    ({"version": 0}, INVALID_INPUT),
)
def test_describes_one_version(client, versioned, body, expected):
    table, location = versioned
    answer = seen(on_table(client, table, "version/describe", body))
    if isinstance(expected, tuple):
        assert answer == expected
        return
    version = answer["version"]
    assert version["version"] == expected
    manifest = version["manifest_path"]
    assert manifest.startswith(str(tables.folder(location)).lstrip("/")) or manifest.startswith("/")
    path = tables.folder("/" + manifest.lstrip("/"))
    assert path.stat().st_size == version["manifest_size"]
    assert abs(version["timestamp_millis"] / 1000 - path.stat().st_mtime) < 60


def test_versions_of_a_table_that_was_only_declared(client, namespace):
    table = f"{namespace}$t"
    client.declare(table)
    answer = on_table(client, table, "version/list")
    assert seen(answer) in ({"versions": []}, INVALID_TABLE_STATE)
    assert seen(on_table(client, table, "version/describe", {"version": 1})) == TABLE_VERSION_NOT_FOUND
    assert seen(on_table(client, table, "version/describe")) == TABLE_VERSION_NOT_FOUND


def test_versions_that_a_client_makes(client, namespace):
    table, location = written(client, namespace)
    newest = seen(on_table(client, table, "version/describe"))["version"]
    folder = tables.folder(location)
    stage = folder / "_versions" / f"{newest['version'] + 1}.manifest-{uuid.uuid4()}"
    # The same rows as a new version: nothing but its number is new in it.
    lance.dataset(location).update_config({"by": "hand"})
    made = seen(on_table(client, table, "version/describe"))["version"]
    assert made["version"] == newest["version"] + 1
    path = tables.folder("/" + made["manifest_path"].lstrip("/"))
    path.rename(stage)
    assert lance.dataset(location).version == newest["version"]
    body = {
        "version": made["version"],
        "manifest_path": str(stage).lstrip("/"),
        "manifest_size": stage.stat().st_size,
        "naming_scheme": "V2",
    }
    for wrong in [
        body | {"version": made["version"] + 1},
        body | {"version": newest["version"]},
        body | {"manifest_path": "etc/passwd"},
        body | {"manifest_path": str(stage).lstrip("/") + "x"},
        body | {"manifest_size": 1},
        body | {"naming_scheme": "V3"},
    ]:
        answer = on_table(client, table, "version/create", wrong)
        assert 400 <= answer.status_code < 500, (wrong, answer.text)
        refusal(answer)
        assert lance.dataset(location).version == newest["version"]
    answer = seen(on_table(client, table, "version/create", body))
    assert answer["version"]["version"] == made["version"]
    assert lance.dataset(location).version == made["version"]
    assert tables.ids(location) == list(range(30))
    again = on_table(client, table, "version/create", body)
    assert again.status_code in (404, 409), again.text
    refusal(again)


# Rename, drop, deregister, register


def test_a_rename_keeps_the_table(client, namespace):
    table, location = written(client, namespace)
    other = namespace + "_other"
    client.create_namespace(other)
    own_id = on_table(client, table, "describe").json()["properties"]["table_id"]
    task = client.submit(table, "compact", {}).json()["task_id"]
    client.wait(table, task)
    for body, expected in [
        ({"new_table_name": "u"}, f"{namespace}$u"),
        ({"new_table_name": "v", "new_namespace_id": [namespace]}, f"{namespace}$v"),
        ({"new_table_name": "v", "new_namespace_id": [other]}, f"{other}$v"),
        ({"new_table_name": "t", "new_namespace_id": [namespace]}, table),
    ]:
        answer = on_table(client, table, "rename", body)
        assert (answer.status_code, answer.json()) == (200, {}), body
        assert answer.headers["x-oss-table-id"] == own_id
        assert seen(on_table(client, table, "describe")) == TABLE_NOT_FOUND or table == expected
        described = seen(on_table(client, expected, "describe"))
        assert (described["location"], described["properties"]["table_id"]) == (location, own_id)
        assert [described["namespace"][0], described["table"]] == expected.split("$")
        # Its history goes with it, and maintenance goes on.
        assert client.get(expected, task).json()["task_info"]["status"] == "completed"
        assert client.complete(expected, "compact", {})
        table = expected
    assert tables_in(client, other) == []
    assert tables_in(client, namespace) == ["t"]


@rows(
    "body,expected",
    ({}, INVALID_INPUT),
    (None, INVALID_INPUT),
    ({"new_table_name": ""}, INVALID_INPUT),
    ({"new_table_name": "T"}, INVALID_INPUT),
    ({"new_table_name": "a$b"}, INVALID_INPUT),
    ({"new_table_name": 1}, INVALID_INPUT),
    ({"new_table_name": "x", "new_namespace_id": []}, INVALID_INPUT),
    ({"new_table_name": "x", "new_namespace_id": ["a", "b"]}, INVALID_INPUT),
    ({"new_table_name": "x", "new_namespace_id": "{ns}"}, INVALID_INPUT),
    ({"new_table_name": "x", "new_namespace_id": ["Bad"]}, INVALID_INPUT),
    ({"new_table_name": "x", "new_namespace_id": ["missing"]}, NAMESPACE_NOT_FOUND),
    ({"new_table_name": "taken"}, TABLE_ALREADY_EXISTS),
    ({"new_table_name": "taken", "new_namespace_id": ["{ns}"]}, TABLE_ALREADY_EXISTS),
    ({"new_table_name": "t"}, TABLE_ALREADY_EXISTS),
)
def test_renames_that_are_refused(client, namespace, body, expected):
    location = client.declare(f"{namespace}$t")
    client.declare(f"{namespace}$taken")
    body = json.loads(json.dumps(body).replace("{ns}", namespace)) if body else body
    assert seen(on_table(client, f"{namespace}$t", "rename", body)) == expected
    assert on_table(client, f"{namespace}$t", "describe").json()["location"] == location
    assert sorted(tables_in(client, namespace)) == ["t", "taken"]
    missing = on_table(client, f"{namespace}$missing", "rename", {"new_table_name": "x"})
    assert seen(missing) == TABLE_NOT_FOUND


def test_many_rename_at_once(service, client, namespace):
    table = f"{namespace}$t"
    location = client.declare(table)
    numbers = iter(range(16))
    rename = lambda mine: on_table(mine, table, "rename", {"new_table_name": f"u{next(numbers)}"})
    found = outcomes(at_once(service, rename))
    assert found.count("ok") == 1, found
    assert set(found) <= {"ok", "TableNotFound", "ConcurrentModification"}
    (name,) = tables_in(client, namespace)
    assert on_table(client, f"{namespace}${name}", "describe").json()["location"] == location


def test_a_drop_removes_the_data(client, namespace):
    table, location = written(client, namespace)
    dropped = seen(on_table(client, table, "drop"))
    assert dropped == {"id": [namespace, "t"], "location": location, "properties": {}}
    gone_soon(location)
    again = client.declare(table)
    assert again != location
    assert seen(create_table(client, table, tables.rows(0, 3), "?mode=overwrite"))["version"] == 1


def test_a_drop_leaves_what_is_not_the_tables(client, namespace):
    table, location = written(client, namespace)
    folder = tables.folder(location)
    for name in ["notes.txt", "data/notes.txt", "mine/data/kept.lance"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("kept")
    on_table(client, table, "drop")
    end = time.monotonic() + SOON_SECONDS
    while any(name.endswith(".manifest") for name in tables.files(location)):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)
    kept = set(tables.files(location))
    assert {"notes.txt", "mine/data/kept.lance"} <= kept <= {"notes.txt", "data/notes.txt", "mine/data/kept.lance"}


def test_a_drop_of_what_was_only_declared(client, namespace):
    table = f"{namespace}$t"
    for _ in range(3):
        location = client.declare(table)
        assert seen(on_table(client, table, "drop"))["location"] == location
    assert tables_in(client, namespace) == []


def test_tasks_end_with_their_table(client, namespace):
    table, _ = written(client, namespace)
    task = client.submit(table, "compact", {}).json()["task_id"]
    client.wait(table, task)
    for gone in ["drop", "deregister"]:
        on_table(client, table, gone)
        assert refusal(client.get(table, task)) == TABLE_NOT_FOUND
        client.declare(table)
        assert refusal(client.get(table, task)) == TASK_NOT_FOUND
        assert client.list(table, "task_type=lance_compact").json()["tasks"] == []


def register(client, table, location, **more):
    return on_table(client, table, "register", {"location": location} | more)


def test_a_table_is_let_go_and_registered_again(client, namespace):
    table, location = written(client, namespace)
    own_id = on_table(client, table, "describe").json()["properties"]["table_id"]
    let_go = seen(on_table(client, table, "deregister"))
    assert let_go == {"id": [namespace, "t"], "location": location, "properties": {}}
    assert seen(on_table(client, table, "describe")) == TABLE_NOT_FOUND
    time.sleep(0.5)
    assert tables.ids(location) == list(range(30))
    answer = seen(register(client, f"{namespace}$back", location, properties={"a": "b"}))
    assert answer == {"location": location, "properties": {"a": "b"}, "managed_versioning": False}
    described = seen(on_table(client, f"{namespace}$back", "describe", {"load_detailed_metadata": True}))
    assert described["properties"]["table_id"] != own_id
    assert described["version"] == 3
    client.complete(f"{namespace}$back", "compact", {})
    assert tables.ids(location) == list(range(30))
    # A registered table's data goes with a drop too.
    on_table(client, f"{namespace}$back", "drop")
    gone_soon(location)


def test_a_location_is_one_tables(service, client, namespace):
    table, location = written(client, namespace)
    path = str(tables.folder(location))
    for other in [location, path, location + "/"]:
        answer = register(client, f"{namespace}$u", other)
        assert refusal(answer) == TABLE_ALREADY_EXISTS, other
    on_table(client, table, "deregister")
    answers = iter(range(16))
    mine = lambda mine: register(mine, f"{namespace}$u{next(answers)}", location)
    found = outcomes(at_once(service, mine))
    assert found.count("ok") == 1, found
    assert set(found) <= {"ok", "TableAlreadyExists", "ConcurrentModification"}
    (name,) = tables_in(client, namespace)
    assert on_table(client, f"{namespace}${name}", "describe").json()["location"] == location
    # Nor one inside another's.
    for inside in ["data", "_indices/x", "deep/er"]:
        answer = register(client, f"{namespace}$inside", f"{location}/{inside}")
        assert refusal(answer) in (TABLE_ALREADY_EXISTS, INVALID_INPUT), inside


def test_a_location_is_free_once_its_data_is_gone(client, namespace):
    table, location = written(client, namespace)
    on_table(client, table, "drop")
    end = time.monotonic() + SOON_SECONDS
    while True:
        answer = register(client, f"{namespace}$u", location)
        if answer.status_code == 200:
            break
        assert refusal(answer) == (409, "ConcurrentModification", 14)
        assert time.monotonic() < end
        time.sleep(0.1)
    # The new one is not the one whose data was to go.
    tables.append(location, tables.rows(0, 7))
    time.sleep(1)
    assert tables.ids(location) == list(range(7))


# What is not served


@pytest.mark.parametrize("method, path", UNSERVED)
def test_what_is_not_served(client, namespace, method, path):
    client.declare(f"{namespace}$t")
    path = path.replace("{id}", f"{namespace}%24t").replace("{name}", "i")
    for answer in [
        client.request(method, path, {}),
        client.request(method, path, {"id": [namespace, "t"]}),
        # Whoever asks: it is no secret.
        wire.send(client, method, path, {}, b"{}"),
    ]:
        assert refusal(answer) == UNSUPPORTED
    assert "not served" in answer.json()["detail"]


@pytest.mark.parametrize("row", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_every_operation_wants_a_signature_and_its_method(client, namespace, row):
    _, method, path, body, *_ = row
    location = client.declare(f"{namespace}$t")
    path = path.replace("{ns}", namespace).replace("{t}", "t").replace("{key}", "k")
    answer = wire.send(client, method, path, {}, body.encode())
    assert refusal(answer) == (403, "AccessDenied", 15)
    answer = wire.request(client, method, path, body.encode(), {"Content-MD5": "AAAA"})
    assert refusal(answer) == (400, "InvalidDigest", 13)
    assert refusal(client.request("PATCH", path)) == METHOD_NOT_ALLOWED
    assert on_table(client, f"{namespace}$t", "describe").json()["location"] == location
