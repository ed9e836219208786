"""The REST client of pylance itself, written in Rust, as it is. It can't sign: a proxy does."""

import lance_namespace
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    ListTablesRequest,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    RegisterTableRequest,
    RenameTableRequest,
    TableAlreadyExistsError,
    TableExistsRequest,
    TableNotFoundError,
)

import tables
import walks
from cases import rows
from signing_proxy import SigningProxy


@pytest.fixture(scope="module")
def proxy(service):
    running = SigningProxy(service.client())
    yield running
    running.close()


@pytest.fixture(scope="module")
def names(proxy):
    return lance_namespace.connect("rest", {"uri": proxy.url + "/lance"})


def test_a_table_is_written_maintained_and_read(names, client):
    walks.write_and_maintain(names, client)


def test_names_come_and_go(names):
    walks.names_come_and_go(names)


def test_tables_from_rows(names):
    walks.create_from_arrow(names)


def test_a_table_is_let_go_and_registered_again(service, names, client):
    namespace = walks.new_namespace(names)
    table_id = [namespace, "t"]
    location = names.declare_table(DeclareTableRequest(id=table_id)).location
    tables.append_in_parts(location, tables.rows(0, 60), 10)
    names.deregister_table(lance_namespace.DeregisterTableRequest(id=table_id))
    again = RegisterTableRequest(id=[namespace, "again"], location=location)
    assert names.register_table(again).location == location
    assert walks.rows_of(names, [namespace, "again"]).equals(tables.rows(0, 60))
    client.complete(f"{namespace}$again", "compact", {})
    assert len(tables.shape(location).fragments) == 1
    assert walks.rows_of(names, [namespace, "again"]).equals(tables.rows(0, 60))


def test_another_delimiter(proxy):
    names = lance_namespace.connect("rest", {"uri": proxy.url + "/lance", "delimiter": "@@"})
    namespace = walks.new_namespace(names)
    names.declare_table(DeclareTableRequest(id=[namespace, "t"]))
    assert names.list_tables(ListTablesRequest(id=[namespace])).tables == ["t"]
    assert any("%40%40t" in path for _, path in proxy.seen)


@pytest.fixture(scope="module")
def namespace(names):
    name = walks.new_namespace(names)
    names.declare_table(DeclareTableRequest(id=[name, "t"]))
    return name


@rows(
    "call,request_,error",
    ("describe_namespace", DescribeNamespaceRequest(id=["missing"]), NamespaceNotFoundError),
    ("create_namespace", CreateNamespaceRequest(id=["{ns}"]), NamespaceAlreadyExistsError),
    ("drop_namespace", DropNamespaceRequest(id=["{ns}"]), NamespaceNotEmptyError),
    ("describe_table", DescribeTableRequest(id=["{ns}", "missing"]), TableNotFoundError),
    ("table_exists", TableExistsRequest(id=["{ns}", "missing"]), TableNotFoundError),
    ("declare_table", DeclareTableRequest(id=["{ns}", "t"]), TableAlreadyExistsError),
    ("rename_table", RenameTableRequest(id=["{ns}", "t"], new_table_name="t"), TableAlreadyExistsError),
)
def test_errors(names, namespace, call, request_, error):
    ids = [namespace if part == "{ns}" else part for part in request_.id]
    walks.raises(error, getattr(names, call), request_.model_copy(update={"id": ids}))
