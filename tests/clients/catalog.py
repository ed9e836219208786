"""Calls of the Lance REST namespace, and its errors."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pyarrow as pa

from service import refusal

NAMESPACE_NOT_FOUND = (404, "NamespaceNotFound", 1)
NAMESPACE_ALREADY_EXISTS = (409, "NamespaceAlreadyExists", 2)
NAMESPACE_NOT_EMPTY = (409, "NamespaceNotEmpty", 3)
TABLE_ALREADY_EXISTS = (409, "TableAlreadyExists", 5)
TABLE_TAG_NOT_FOUND = (404, "TableTagNotFound", 8)
TABLE_VERSION_NOT_FOUND = (404, "TableVersionNotFound", 11)
TABLE_BRANCH_NOT_FOUND = (404, "TableBranchNotFound", 22)
UNSUPPORTED = (406, "Unsupported", 0)

ARROW_STREAM = "application/vnd.apache.arrow.stream"


def on_namespace(client, name, action, body=None, query=""):
    return client.request("POST", f"/lance/v1/namespace/{name}/{action}{query}", body)


def on_table(client, table, action, body=None, query=""):
    return client.request("POST", f"/lance/v1/table/{quote(table, safe='')}/{action}{query}", body)


def create_table(client, table, rows: pa.Table | bytes, query=""):
    """Creates a table with rows."""
    path = f"/lance/v1/table/{quote(table, safe='')}/create{query}"
    body = rows if isinstance(rows, bytes) else ipc(rows)
    return client.request("POST", path, body, {"Content-Type": ARROW_STREAM})


def ipc(rows: pa.Table) -> bytes:
    """Rows as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return sink.getvalue().to_pybytes()


def listed(client, path, kind, limit, query=""):
    """Everything that a listing shows, page by page."""
    found, token = [], ""
    while True:
        page = client.request("GET", f"{path}?limit={limit}&page_token={token}{query}")
        assert page.status_code == 200, page.text
        page = page.json()
        assert set(page) <= {kind, "page_token"}
        assert len(page[kind]) <= limit
        found += page[kind]
        token = page.get("page_token")
        if not token:
            return found


def tables(client, namespace, limit=1000, query=""):
    return listed(client, f"/lance/v1/namespace/{namespace}/table/list", "tables", limit, query)


def namespaces(client, limit=1000):
    return listed(client, "/lance/v1/namespace/%24/list", "namespaces", limit)


def at_once(service, call, count=16):
    """The answers to as many calls at once, each by a client of its own."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: call(service.client()), range(count)))


def outcomes(answers):
    return sorted({200: "ok"}.get(it.status_code) or refusal(it)[1] for it in answers)
