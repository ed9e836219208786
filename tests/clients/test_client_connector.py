"""The vendor's own connector with pylance, both as they are: it signs every request, and knows
nothing of this service but where it is."""

import json

import lance_namespace
import osstables_lance_connector  # Registers its name.
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DescribeTableVersionRequest,
    DropNamespaceRequest,
    DropTableRequest,
    InvalidInputError,
    ListNamespacesRequest,
    ListTablesRequest,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    PermissionDeniedError,
    RenameTableRequest,
    TableAlreadyExistsError,
    TableExistsRequest,
    TableNotFoundError,
    TableVersionNotFoundError,
    UnauthenticatedError,
)

import walks
from cases import rows
from catalog import ipc

ALL = {"Version": "1", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
TEMPORARY = {
    "access_key_id": "STS.connector",
    "secret_access_key": "connector-secret",
    "session_token": "connector/token+=",
    "policy": ALL,
}
POWERLESS = {"access_key_id": "powerless", "secret_access_key": "powerless-secret"}

ALIBABA = [
    "ALIBABA_CLOUD_ACCESS_KEY_ID",
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    "ALIBABA_CLOUD_SECURITY_TOKEN",
]
AWS = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]


@pytest.fixture(scope="module")
def catalog_service(start):
    return start({"credentials": [TEMPORARY, POWERLESS]})


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in ALIBABA + AWS:
        monkeypatch.delenv(name, raising=False)


def connect(catalog_service, key=None, secret=None, token=None, **more):
    """The connector, with what is not given left out."""
    options = {
        "osstables.uri": catalog_service.endpoint + "/lance",
        "osstables.region": catalog_service.client().region,
        "osstables.access_key_id": key,
        "osstables.secret_access_key": secret,
        "osstables.session_token": token,
    } | {f"osstables.{name}": value for name, value in more.items()}
    options = {name: value for name, value in options.items() if value is not None}
    return lance_namespace.connect("osstables", options)


@pytest.fixture(
    params=["options", "ALIBABA_CLOUD", "AWS", "options and token", "ALIBABA_CLOUD and token", "AWS and token"]
)
def names(request, catalog_service, monkeypatch):
    source, temporary = request.param.split(" ")[0], request.param.endswith("token")
    keys = json.loads((catalog_service.folder / "credentials.json").read_text())
    keys = TEMPORARY if temporary else keys
    keys = [keys["access_key_id"], keys["secret_access_key"], keys.get("session_token")]
    if source == "options":
        return connect(catalog_service, *keys)
    for name, value in zip({"ALIBABA_CLOUD": ALIBABA, "AWS": AWS}[source], keys):
        if value:
            monkeypatch.setenv(name, value)
    return connect(catalog_service)


def test_is_what_its_package_holds():
    assert osstables_lance_connector.__version__ == "1.0.0rc2"


def test_a_table_is_written_maintained_and_read(names, catalog_service):
    walks.write_and_maintain(names, catalog_service.client())


def test_names_come_and_go(names):
    walks.names_come_and_go(names)


def test_tables_from_rows(names):
    walks.create_from_arrow(names)


def test_lists_all_tables(catalog_service):
    client = catalog_service.client()
    names = connect(catalog_service, client.access_key_id, client.secret_access_key)
    namespace = walks.new_namespace(names)
    for name in ["a", "b", "c", "d"]:
        names.declare_table(DeclareTableRequest(id=[namespace, name]))
    listing = lambda **page: names.list_all_tables(ListTablesRequest(**page))
    found = walks.all_of(listing, "tables")
    assert len(set(found)) == len(found)
    assert {f"{namespace}${name}" for name in "abcd"} <= set(found)


# Not `.`: urllib3 takes the root's path `/./` for `/`, after the connector has signed it.
@rows("delimiter", "__", "@@", "$$")
def test_another_delimiter(catalog_service, delimiter):
    client = catalog_service.client()
    names = connect(catalog_service, client.access_key_id, client.secret_access_key, delimiter=delimiter)
    namespace = walks.new_namespace(names)
    location = names.declare_table(DeclareTableRequest(id=[namespace, "t"])).location
    assert names.describe_table(DescribeTableRequest(id=[namespace, "t"])).location == location
    assert names.list_tables(ListTablesRequest(id=[namespace])).tables == ["t"]
    assert namespace in names.list_namespaces(ListNamespacesRequest(id=[])).namespaces


# Errors


NUMBERS = pa.table({"id": pa.array(range(3), pa.int64())})


@pytest.fixture(scope="module")
def known(catalog_service):
    """The connector, and a namespace with the tables `t`, which is empty, and `full`."""
    client = catalog_service.client()
    names = connect(catalog_service, client.access_key_id, client.secret_access_key)
    namespace = walks.new_namespace(names)
    names.declare_table(DeclareTableRequest(id=[namespace, "t"]))
    return names, namespace


@rows(
    "call,request_,error",
    ("describe_namespace", DescribeNamespaceRequest(id=["missing"]), NamespaceNotFoundError),
    ("drop_namespace", DropNamespaceRequest(id=["missing"]), NamespaceNotFoundError),
    ("list_tables", ListTablesRequest(id=["missing"]), NamespaceNotFoundError),
    ("declare_table", DeclareTableRequest(id=["missing", "t"]), NamespaceNotFoundError),
    ("create_namespace", CreateNamespaceRequest(id=["{ns}"]), NamespaceAlreadyExistsError),
    ("drop_namespace", DropNamespaceRequest(id=["{ns}"]), NamespaceNotEmptyError),
    ("describe_table", DescribeTableRequest(id=["{ns}", "missing"]), TableNotFoundError),
    ("describe_table", DescribeTableRequest(id=["missing", "t"]), TableNotFoundError),
    ("table_exists", TableExistsRequest(id=["{ns}", "missing"]), TableNotFoundError),
    ("drop_table", DropTableRequest(id=["{ns}", "missing"]), TableNotFoundError),
    ("declare_table", DeclareTableRequest(id=["{ns}", "t"]), TableAlreadyExistsError),
    ("rename_table", RenameTableRequest(id=["{ns}", "t"], new_table_name="t"), TableAlreadyExistsError),
    ("rename_table", RenameTableRequest(id=["{ns}", "t"], new_table_name="T"), InvalidInputError),
    ("create_namespace", CreateNamespaceRequest(id=["a", "b"]), InvalidInputError),
    ("create_namespace", CreateNamespaceRequest(id=["aws"]), InvalidInputError),
    ("create_namespace", CreateNamespaceRequest(id=["{ns}"], mode="x"), InvalidInputError),
    ("declare_table", DeclareTableRequest(id=["{ns}", "x", "t"]), InvalidInputError),
    ("declare_table", DeclareTableRequest(id=["{ns}", "u"], location="file:///tmp/u"), InvalidInputError),
    ("list_namespaces", ListNamespacesRequest(id=[], page_token="x"), InvalidInputError),
    ("list_namespaces", ListNamespacesRequest(id=[], limit=0), InvalidInputError),
    ("describe_table_version", DescribeTableVersionRequest(id=["{ns}", "t"], version=7), TableVersionNotFoundError),
)
def test_errors(known, call, request_, error):
    names, namespace = known
    ids = [namespace if part == "{ns}" else part for part in request_.id]
    walks.raises(error, getattr(names, call), request_.model_copy(update={"id": ids}))


@rows(
    "request_,body,error",
    ({"id": ["missing", "t"]}, NUMBERS, NamespaceNotFoundError),
    ({"id": ["{ns}", "t"]}, NUMBERS, TableAlreadyExistsError),
    ({"id": ["{ns}", "u"], "mode": "append"}, NUMBERS, InvalidInputError),
    ({"id": ["{ns}", "u"], "storage_options": {"a": "b"}}, NUMBERS, InvalidInputError),
    ({"id": ["{ns}", "u"]}, b"these are no rows", InvalidInputError),
)
def test_errors_of_creation(known, request_, body, error):
    names, namespace = known
    ids = [namespace if part == "{ns}" else part for part in request_["id"]]
    body = body if isinstance(body, bytes) else ipc(body)
    walks.raises(error, names.create_table, CreateTableRequest(**request_ | {"id": ids}), body)
    tables = names.list_tables(ListTablesRequest(id=[namespace])).tables
    assert tables == ["t"]


@rows(
    "case,options,error",
    ("another secret", ["{key}", "0" * 40], UnauthenticatedError),
    ("an unknown key", ["LMUNKNOWN", "{secret}"], UnauthenticatedError),
    ("a token too many", ["{key}", "{secret}", "token"], UnauthenticatedError),
    ("no token", [TEMPORARY["access_key_id"], TEMPORARY["secret_access_key"]], UnauthenticatedError),
    ("no policy", list(POWERLESS.values()), PermissionDeniedError),
)
def test_who_is_not_let_in(catalog_service, case, options, error):
    client = catalog_service.client()
    values = {"{key}": client.access_key_id, "{secret}": client.secret_access_key}
    names = connect(catalog_service, *[values.get(option, option) for option in options])
    for call, request in [
        (names.list_namespaces, ListNamespacesRequest(id=[])),
        (names.create_namespace, CreateNamespaceRequest(id=["n"])),
        (names.create_namespace, CreateNamespaceRequest(id=["n"], mode="overwrite")),
    ]:
        walks.raises(error, call, request)


def test_another_region(catalog_service):
    client = catalog_service.client()
    names = connect(catalog_service, client.access_key_id, client.secret_access_key, region="cn-hangzhou")
    walks.raises(UnauthenticatedError, names.list_namespaces, ListNamespacesRequest(id=[]))
