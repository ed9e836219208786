"""What a user does with a Lance namespace and pylance, whichever client it is reached with."""

import uuid

import lance
import pyarrow as pa
from lance_namespace import (
    CreateNamespaceRequest,
    CreateTableRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    LanceNamespace,
    ListNamespacesRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    NamespaceExistsRequest,
    NamespaceNotFoundError,
    RenameTableRequest,
    TableExistsRequest,
    TableNotFoundError,
)

import tables
from catalog import ipc


def new_namespace(names: LanceNamespace, **properties) -> str:
    name = "n" + uuid.uuid4().hex[:12]
    names.create_namespace(CreateNamespaceRequest(id=[name], properties=properties or None))
    return name


def rows_of(names, table_id) -> pa.Table:
    """All rows, by their ids."""
    return lance.dataset(namespace_client=names, table_id=table_id).to_table().sort_by("id")


def all_of(call, kind, **request) -> list:
    """Everything that a listing shows, a few entries a page."""
    found, token = [], None
    while True:
        page = call(page_token=token, limit=3, **request)
        found += getattr(page, kind)
        token = page.page_token
        if not token:
            return found


def raises(error, call, *arguments):
    """Calls what must fail with this class of error exactly."""
    try:
        call(*arguments)
    except Exception as raised:
        assert type(raised) is error, repr(raised)
        return raised
    raise AssertionError(f"there is no {error.__name__}")


def write_and_maintain(names: LanceNamespace, client):
    """A table that is written and read through the namespace, and maintained by name."""
    namespace = new_namespace(names)
    table_id = [namespace, "digits"]
    rows = tables.rows(0, 600)
    here = {"namespace_client": names, "table_id": table_id}
    lance.write_dataset(rows.slice(0, 200), mode="create", **here)
    for start in range(200, 600, 20):
        lance.write_dataset(rows.slice(start, 20), mode="append", **here)
    assert rows_of(names, table_id).equals(rows)
    lance.dataset(**here).delete("id % 7 = 3")
    expected = rows_of(names, table_id)
    assert expected.num_rows == 600 - len(range(3, 600, 7))
    location = names.describe_table(DescribeTableRequest(id=table_id)).location
    assert len(tables.shape(location).fragments) == 21

    table = "$".join(table_id)
    client.complete(table, "compact", {})
    assert len(tables.shape(location).fragments) == 1
    index = {"column": "id", "index_type": "BTREE"}
    assert client.complete(table, "create_scalar_index", index)["num_indexed_rows"] == expected.num_rows
    index = {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": 2}
    client.complete(table, "create_vector_index", index)
    lance.write_dataset(tables.rows(600, 620), mode="append", **here)
    assert tables.unindexed(location, "id_idx") == 20
    client.complete(table, "optimize_indices", {})
    assert tables.unindexed(location, "id_idx") == 0
    client.complete(table, "cleanup", {"retain_versions": 1})
    assert len(tables.versions(location)) == 1

    expected = pa.concat_tables([expected, tables.rows(600, 620)])
    assert rows_of(names, table_id).equals(expected)
    dataset = lance.dataset(**here)
    assert "id_idx" in dataset.scanner(filter="id = 610").explain_plan()
    assert dataset.to_table(columns=["id"], filter="id IN (3, 4, 610)")["id"].to_pylist() == [4, 610]
    nearest = {"column": "vector", "q": tables.rows(18, 19)["vector"][0].as_py(), "k": 1}
    assert dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist() == [18]
    lance.write_dataset(tables.rows(0, 9), mode="overwrite", **here)
    assert rows_of(names, table_id).equals(tables.rows(0, 9))


def names_come_and_go(names: LanceNamespace):
    """Namespaces and tables from creation to drop."""
    namespace = new_namespace(names, owner="me")
    described = names.describe_namespace(DescribeNamespaceRequest(id=[namespace]))
    assert described.properties == {"owner": "me"}
    names.namespace_exists(NamespaceExistsRequest(id=[namespace]))
    listing = lambda **page: names.list_namespaces(ListNamespacesRequest(id=[], **page))
    assert listing(limit=1).namespaces == [namespace]
    assert namespace in all_of(listing, "namespaces")

    table_ids = [[namespace, f"t{number}"] for number in range(8)]
    for table_id in table_ids:
        declared = names.declare_table(DeclareTableRequest(id=table_id, properties={"a": table_id[1]}))
        assert declared.location.startswith("file:///") and not declared.managed_versioning
    listing = lambda **page: names.list_tables(ListTablesRequest(id=[namespace], **page))
    assert sorted(all_of(listing, "tables")) == [name for _, name in table_ids]

    first, second, third = table_ids[:3]
    described = names.describe_table(DescribeTableRequest(id=first, with_table_uri=True))
    assert described.table == "t0"
    assert described.properties["a"] == "t0"
    assert described.table_uri == described.location
    names.table_exists(TableExistsRequest(id=first))
    names.rename_table(RenameTableRequest(id=first, new_table_name="renamed"))
    raises(TableNotFoundError, names.table_exists, TableExistsRequest(id=first))
    renamed = names.describe_table(DescribeTableRequest(id=[namespace, "renamed"]))
    assert renamed.location == described.location
    assert renamed.properties["table_id"] == described.properties["table_id"]

    other = new_namespace(names)
    names.rename_table(RenameTableRequest(id=second, new_table_name="moved", new_namespace_id=[other]))
    names.table_exists(TableExistsRequest(id=[other, "moved"]))
    raises(TableNotFoundError, names.table_exists, TableExistsRequest(id=second))

    lance.write_dataset(tables.rows(0, 5), described.location)
    kept = names.deregister_table(DeregisterTableRequest(id=[namespace, "renamed"]))
    assert kept.location == described.location
    assert tables.ids(kept.location) == [0, 1, 2, 3, 4]
    dropped = names.drop_table(DropTableRequest(id=third))
    assert dropped.id == third
    for gone in (first, second, third):
        raises(TableNotFoundError, names.describe_table, DescribeTableRequest(id=gone))
    assert sorted(all_of(listing, "tables")) == [name for _, name in table_ids[3:]]

    request = DropNamespaceRequest(id=[namespace], behavior="Cascade")
    names.drop_namespace(request)
    raises(NamespaceNotFoundError, names.namespace_exists, NamespaceExistsRequest(id=[namespace]))
    names.drop_namespace(DropNamespaceRequest(id=[namespace], mode="Skip"))


def create_from_arrow(names: LanceNamespace):
    """Tables from rows in requests, and their versions."""
    namespace = new_namespace(names)
    table_id = [namespace, "t"]
    rows = tables.rows(0, 100)
    create = lambda rows, **request: names.create_table(
        CreateTableRequest(id=table_id, **request), ipc(rows)
    )
    created = create(rows, mode="create", properties={"owner": "me"})
    assert created.version == 1
    assert rows_of(names, table_id).equals(rows)
    described = names.describe_table(DescribeTableRequest(id=table_id, load_detailed_metadata=True))
    assert described.location == created.location
    assert described.properties["owner"] == "me"
    assert described.version == 1
    assert [field.name for field in described.var_schema.fields] == rows.column_names
    assert (described.stats.num_fragments, described.stats.num_deleted_rows) == (1, 0)

    create(tables.rows(7, 9), mode="exist_ok")
    assert rows_of(names, table_id).equals(rows)
    assert create(tables.rows(5, 50), mode="overwrite").version == 2
    assert rows_of(names, table_id).equals(tables.rows(5, 50))
    for start in range(50, 60):
        here = {"namespace_client": names, "table_id": table_id}
        lance.write_dataset(tables.rows(start, start + 1), mode="append", **here)
    listing = lambda **page: names.list_table_versions(ListTableVersionsRequest(id=table_id, **page))
    versions = [it.version for it in all_of(listing, "versions", descending=True)]
    assert versions == list(range(12, 0, -1))
    assert all(it.timestamp_millis and it.manifest_path for it in listing().versions)
    names.table_exists(TableExistsRequest(id=table_id, version=12))
