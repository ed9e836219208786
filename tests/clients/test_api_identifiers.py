"""How requests name a table: the id in the path, and its delimiter."""

import pytest

import wire
from acting_worker import ActingWorker
from cases import INVALID_INPUT, SUBMITS, TABLE_NOT_FOUND, rows, table_id
from service import refusal


@pytest.fixture(scope="module")
def prod(idle):
    """A service with the table `documents` in the namespace `prod`."""
    client = idle.client()
    client.create_namespace("prod", mode="exist_ok")
    client.declare("prod$documents")
    return client


def listing(client, segment, query=""):
    """Lists the tasks of the table that this segment of a path names."""
    path = f"/lance/oss/v1/table/{segment}/tasks?task_type=lance_compact{query}"
    return wire.request(client, "GET", path)


@rows(
    "segment,query",
    ("prod$documents", ""),
    ("prod%24documents", ""),
    ("%70rod%24%64ocuments", ""),
    ("prod$documents", "&delimiter"),
    ("prod$documents", "&delimiter="),
    ("prod$documents", "&delimiter=$"),
    ("prod$documents", "&delimiter=%24"),
    ("prod%24documents", "&delimiter=%24"),
    ("prod__documents", "&delimiter=__"),
    ("prod%5F%5Fdocuments", "&delimiter=%5f%5F"),
    ("prod_documents", "&delimiter=_"),
    ("prod.documents", "&delimiter=."),
    ("prod..documents", "&delimiter=.."),
    ("prod$$documents", "&delimiter=$$"),
    ("prod~|~documents", "&delimiter=~%7C~"),
    ("prod%20documents", "&delimiter=+"),
    ("prod%20documents", "&delimiter=%20"),
    ("prod+documents", "&delimiter=%2B"),
    ("prod%2Bdocuments", "&delimiter=%2B"),
    ("prod%25documents", "&delimiter=%25"),
    ("prod%26documents", "&delimiter=%26"),
    ("prod%3Fdocuments", "&delimiter=%3F"),
    ("prod%E2%86%92documents", "&delimiter=%E2%86%92"),
    ("prodXdocuments", "&delimiter=X"),
    ("proddotdocuments", "&delimiter=dot"),
)
def test_names_the_table(prod, segment, query):
    answer = listing(prod, segment, query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-oss-table-id"] == table_id(prod, "prod$documents")


@rows(
    "segment,query",
    ("documents", ""),
    ("$documents", ""),
    ("prod$", ""),
    ("$", ""),
    ("", ""),
    ("$$", ""),
    ("a$b$c", ""),
    ("prod$documents$", ""),
    ("prod$$documents", ""),
    ("prod%2524documents", ""),
    ("prod%2fdocuments", ""),
    ("prod__documents", ""),
    ("prod__documents", "&delimiter="),
    ("prod__documents", "&delimiter=_"),
    ("prod__documents", "&delimiter=%24"),
    ("prod$documents", "&delimiter=__"),
    ("prod%24documents", "&delimiter=%2524"),
    ("prod$documents", "&delimiter=%20"),
    ("prod-documents", "&delimiter=-"),
    ("prod:documents", "&delimiter=:"),
    ("prod:documents", "&delimiter=%3A"),
    ("prod::documents", "&delimiter=::"),
    ("prod%2Fdocuments", "&delimiter=/"),
    ("prod%2Fdocuments", "&delimiter=%2F"),
    ("prod%2Fdocuments", "&delimiter=%2f"),
    ("proda-bdocuments", "&delimiter=a-b"),
    ("prod$documents", "&delimiter=$/"),
    ("a.b$t", ""),
    ("a.b$t", "&delimiter=$"),
    ("Prod$documents", ""),
    ("prod$Documents", ""),
    ("prod$docu-ments", ""),
    ("prod$docu.ments", ""),
    ("prod$docu%20ments", ""),
    ("pr%C3%B6d$documents", ""),
    ("_prod$documents", ""),
    ("prod_$documents", ""),
    ("prod$_documents", ""),
    ("prod$documents_", ""),
    ("oss$t", ""),
    ("oss_1$t", ""),
    ("acs1$t", ""),
    ("aliyun$t", ""),
    ("alibaba_x$t", ""),
    ("aws2$t", ""),
    ("a" * 256 + "$t", ""),
    ("prod$" + "a" * 256, ""),
    ("%00$t", ""),
    ("prod$t%00", ""),
    ("prod$t%0a", ""),
    ("%ff$t", ""),
    ("prod$%c3%28", ""),
    ("prod%", ""),
    ("prod%zz$t", ""),
    ("..$t", ""),
    ("prod$documents", "&delimiter=$&delimiter=$"),
    ("prod$documents", "&delimiter=&delimiter=$"),
    ("prod$documents", "&x=1&x=1"),
)
def test_names_no_table(prod, segment, query):
    assert refusal(listing(prod, segment, query)) == INVALID_INPUT


@rows(
    "segment",
    "prod$other",
    "other$documents",
    "documents$prod",
    "prod$" + "a" * 255,
    "b" * 255 + "$t",
    "prod$oss",
    "prod$aws_t",
    "0$0",
    "a_b$c__d",
    "ossa"[::-1] + "$t",
)
def test_names_a_table_that_is_not_there(prod, segment):
    assert refusal(listing(prod, segment)) == TABLE_NOT_FOUND


def operations():
    for operation, (_, body) in SUBMITS.items():
        yield operation, "POST", operation, body
    yield "list", "GET", "tasks", None
    yield "get", "GET", "tasks/{id}", None
    yield "delete", "DELETE", "tasks/{id}", None


@rows("operation,method,rest,body", *operations())
def test_every_operation_takes_a_delimiter(prod, idle, operation, method, rest, body):
    own_id = table_id(prod, "prod$documents")
    answer = prod.submit("prod$documents", "compact")
    task_id = answer.json()["task_id"]
    ActingWorker(idle).run(own_id, task_id)
    rest = rest.replace("{id}", task_id)
    type_query = "task_type=lance_compact&" if operation == "list" else ""

    def call(segment, query):
        path = f"/lance/oss/v1/table/{segment}/{rest}?{type_query}{query}"
        return prod.request(method, path, body)

    assert refusal(call("prod__documents", "delimiter=")) == INVALID_INPUT
    assert refusal(call("prod-documents", "delimiter=-")) == INVALID_INPUT
    assert refusal(call("prod__other", "delimiter=__")) == TABLE_NOT_FOUND
    answer = call("prod__documents", "delimiter=__")
    assert answer.status_code in (200, 204), answer.text
    assert answer.headers["x-oss-table-id"] == own_id
