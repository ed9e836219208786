"""The table bucket, which only the host names."""

import pytest

import wire
from cases import TABLE_NOT_FOUND, TASK_NOT_FOUND, rows, submitted, table_id, task_ids
from service import refusal

NO_SUCH_BUCKET = (404, "NoSuchTableBucket", 1)
NO_BUCKET = (400, "LanceThirdLevelDomainRequired", 13)
DOMAIN = "oss-tables.localhost"


@pytest.fixture(scope="module")
def documents(strict):
    """Tables of the same name in two buckets; their ids by bucket."""
    ids = {}
    for bucket in ["lance", "other"]:
        client = strict.client(f"{bucket}.{DOMAIN}")
        client.create_namespace("buckets", mode="exist_ok")
        client.declare("buckets$documents")
        ids[bucket] = table_id(client, "buckets$documents")
    assert ids["lance"] != ids["other"]
    return ids


@rows(
    "host,expected",
    (f"lance.{DOMAIN}", "lance"),
    (f"lance.{DOMAIN}:3000", "lance"),
    ("LANCE.OSS-Tables.localhost", "lance"),
    (f"lance.{DOMAIN}.", "lance"),
    (f"lance-1234567890.{DOMAIN}", "lance"),
    (f"lance-1234567890.{DOMAIN}:80", "lance"),
    (f"other.{DOMAIN}", "other"),
    (f"other-1234567890.{DOMAIN}", "other"),
    (f"lance-123456789.{DOMAIN}", NO_SUCH_BUCKET),
    (f"lance-.{DOMAIN}", NO_SUCH_BUCKET),
    (f"-1234567890.{DOMAIN}", NO_SUCH_BUCKET),
    (f"1234567890.{DOMAIN}", NO_SUCH_BUCKET),
    (f"third.{DOMAIN}", NO_SUCH_BUCKET),
    (f"a.lance.{DOMAIN}", NO_SUCH_BUCKET),
    (f"lance,other.{DOMAIN}", NO_SUCH_BUCKET),
    (f".{DOMAIN}", NO_SUCH_BUCKET),
    (DOMAIN, NO_BUCKET),
    (f"{DOMAIN}:3000", NO_BUCKET),
    (None, NO_BUCKET),
    ("localhost", NO_BUCKET),
    (f"x{DOMAIN}", NO_BUCKET),
    (f"lance.{DOMAIN}.example", NO_BUCKET),
    ("[::1]:3000", NO_BUCKET),
)
def test_the_bucket_of_a_host(strict, documents, host, expected):
    client = strict.client()
    path = "/lance/oss/v1/table/buckets%24documents/tasks?task_type=lance_compact"
    # What is signed is lower case and without the default port.
    canonical = {"Host": host.lower().removesuffix(":80")} if host else {}
    headers = wire.signed(client, "GET", path, headers=canonical)
    answer = wire.send(client, "GET", path, headers | ({"Host": host} if host else {}))
    if isinstance(expected, tuple):
        assert refusal(answer) == expected
    else:
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-oss-table-id"] == documents[expected]


@rows(
    "host,expected",
    (None, None),
    ("localhost", None),
    ("example.com", None),
    (f"lance.{DOMAIN}", None),
    (f"lance-0.{DOMAIN}", None),
    (DOMAIN, NO_BUCKET),
    (f"other.{DOMAIN}", NO_SUCH_BUCKET),
    (f"lance-1.{DOMAIN}", NO_SUCH_BUCKET),
)
def test_hosts_where_there_is_a_default_bucket(service, client, host, expected):
    table, _ = client.new_table()
    answer = service.client(host).list(table, "task_type=lance_compact")
    if expected:
        assert refusal(answer) == expected
    else:
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-oss-table-id"] == table_id(client, table)


def test_buckets_are_separate_worlds(strict, documents):
    lance, other = (strict.client(f"{bucket}.{DOMAIN}") for bucket in ["lance", "other"])
    table = "buckets$documents"
    task_id = submitted(lance, table, "cleanup")
    assert task_ids(other, table, "lance_cleanup") == []
    for answer in [other.get(table, task_id), other.delete(table, task_id)]:
        assert refusal(answer) == TASK_NOT_FOUND
    assert task_ids(lance, table, "lance_cleanup") == [task_id]

    lance.create_namespace("only_here")
    lance.declare("only_here$t")
    assert refusal(other.list("only_here$t", "task_type=lance_cleanup")) == TABLE_NOT_FOUND
    answer = other.request("POST", "/lance/v1/namespace/only_here/describe")
    assert refusal(answer) == (404, "NamespaceNotFound", 1)
    for client, expected in [(lance, True), (other, False)]:
        names = client.request("GET", "/lance/v1/namespace/%24/list").json()["namespaces"]
        assert ("only_here" in names) == expected


def test_a_tables_arn_names_account_and_bucket(strict, documents):
    for bucket, own_id in documents.items():
        client = strict.client(f"{bucket}.{DOMAIN}")
        answer = client.request("POST", "/lance/v1/table/buckets%24documents/describe", {})
        arn = f"acs:osstables:local:1234567890:bucket/{bucket}/table/{own_id}"
        assert answer.json()["properties"]["table_arn"] == arn
        assert f"/{bucket}/" in answer.json()["location"]
