"""Schemathesis, unmodified: requests made of the OpenAPI document, good and bad, are answered as the
document says.

Each is signed as it goes over the wire. What they name exists more often than not, so that they get
behind the 404; what they destroy is made for them.
"""

import json
import random
from itertools import count
from pathlib import Path
from urllib.parse import quote

import columns
import pyarrow as pa
import pytest
import requests
import schemathesis
import tables
import wire
from cases import submitted
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

DOCUMENT = Path(__file__).parents[2] / "docs/openapi.json"
NAMESPACE = "openapi"
# How often a part of a request is left as it was made, although it leads nowhere.
AS_MADE = 0.1

POLICY_PUTS = ["PutTableBucketPolicy", "PutTablePolicy", "PutCredential"]
CONFIG = {
    # Always the same requests.
    "seed": 7,
    "generation": {"deterministic": True, "database": "none", "max-examples": 25},
    # Answers must not change what is sent next.
    "phases": {
        "coverage": {"extra-data-sources": {"responses": False}},
        "fuzzing": {
            "extra-data-sources": {"responses": False},
            "error-feedback": {"enabled": False},
        },
    },
    "operations": [
        # The many ways in which a policy can be wrong would be half of all requests.
        {"include-operation-id": POLICY_PUTS, "phases": {"coverage": {"enabled": False}}},
    ],
}
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
]

schema = schemathesis.openapi.from_path(DOCUMENT, config=SchemathesisConfig.from_dict(CONFIG))


def stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


ROWS = stream(pa.table({"id": [1, 2, 3]}))
schemathesis.openapi.media_type(
    "application/vnd.apache.arrow.stream",
    st.sampled_from([ROWS, ROWS, ROWS[: len(ROWS) // 2], b"", b"no rows"]),
)


class Signature(requests.auth.AuthBase):
    """Signs what `requests` is about to send."""

    def __init__(self, client):
        self.client = client

    def __call__(self, request):
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        kept = ("content-type", "content-md5")
        headers = {name: text for name, text in request.headers.items() if name.lower() in kept}
        request.headers.update(
            wire.signed(self.client, request.method, request.path_url, body, headers)
        )
        return request


class Stage:
    """What requests are led to: a table with rows and tasks, and things to destroy."""

    def __init__(self, client):
        self.client = client
        self.numbers = count()
        client.create_namespace(NAMESPACE)
        self.table = self.new_table()
        location = client.declare(f"{NAMESPACE}$rows")
        tables.append(location, tables.rows(0, 10))
        tables.append(location, tables.rows(10, 20))
        columns.add(client, f"{NAMESPACE}$rows", "computed", filled="id + 1")
        self.tables = [self.table, "rows"]
        table = f"{NAMESPACE}${self.table}"
        self.tasks = [submitted(client, table, "cleanup") for _ in range(30)]
        for task in self.tasks:
            client.wait(table, task)
        listed = client.request("GET", f"/maintenance/v1/table/{quote(table)}/jobs")
        self.jobs = [job["job_id"] for job in listed.json()["jobs"]]
        self.put_credential("openapi")

    def new_name(self) -> str:
        return f"n{next(self.numbers)}"

    def new_table(self) -> str:
        name = self.new_name()
        self.client.declare(f"{NAMESPACE}${name}")
        return name

    def new_namespace(self) -> str:
        name = self.new_name()
        self.client.create_namespace(name)
        return name

    def put_credential(self, key) -> str:
        path = f"/access/v1/credentials/{key}"
        answer = self.client.request("PUT", path, {"secret_access_key": "12345678"})
        assert answer.status_code == 200, answer.text
        return key

    def lead(self, case):
        """Has a request name what exists, in most of its parts."""
        operation = case.operation.definition.raw["operationId"]
        chance = random.Random(repr((case.path_parameters, case.query, case.headers, case.body)))
        as_made = lambda: chance.random() < AS_MADE
        path, body = case.path_parameters or {}, case.body
        names = self.names(operation, case.path, chance)
        if isinstance(body, dict):
            for name in ("branch", "tag"):
                if name in body and not as_made():
                    del body[name]
            if type(body.get("version")) is int and not as_made():
                body["version"] = chance.choice([1, 2])
        for name in ("page_token", "marker", "delimiter"):
            if case.query and name in case.query and not as_made():
                del case.query[name]
        if "id" in path and not as_made():
            delimiter = (case.query or {}).get("delimiter") or "$"
            id = (delimiter if isinstance(delimiter, str) else "$").join(names)
            path["id"] = quote(id, safe="")
            if isinstance(body, dict) and isinstance(body.get("id"), list):
                body["id"] = names
        if "task_id" in path and not as_made():
            path["task_id"] = chance.choice(self.tasks)
            path["id"] = path["id"].replace("rows", self.table)
        if "job_id" in path and not as_made():
            path["job_id"] = chance.choice(self.jobs)
        if "MaintenanceJob" in operation and isinstance(body, dict) and not as_made():
            # The table's name, which may stand in the body once more.
            body.pop("table", None)
        if "Columns" in operation and isinstance(body, dict) and not as_made():
            self.lead_columns(body)
        if "access_key_id" in path and not as_made():
            fresh = operation == "DeleteCredential"
            key = self.put_credential(self.new_name()) if fresh else "openapi"
            path["access_key_id"] = key
            if isinstance(body, dict) and "access_key_id" in body:
                body["access_key_id"] = key
        for name in [name for name in case.headers or {} if name.lower() == "content-md5"]:
            if not as_made():
                del case.headers[name]
        if "Policy" in operation and isinstance(body, dict):
            # One that denies everything would be the end of this test.
            case.body = json.loads(json.dumps(body).replace('"Deny"', '"Allow"'))

    def lead_columns(self, body):
        """Gives SQL, where there is text, and columns that are new, or can be filled."""
        new = body.get("new_columns")
        entries = [entry for entry in new if isinstance(entry, dict)] if isinstance(new, list) else []
        for entry in entries:
            if isinstance(entry.get("name"), str):
                entry["name"] = self.new_name()
            for name in ("expression", "computed"):
                if isinstance(entry.get(name), str) and entry[name]:
                    entry[name] = "id + 1"
        for name, text in [("column", "filled"), ("where", "id > 5")]:
            if isinstance(body.get(name), str):
                body[name] = text
        if type(body.get("read_version")) is int:
            body["read_version"] = 1

    def names(self, operation, path, chance) -> list[str]:
        if "/namespace/" in path:
            match operation:
                case "CreateNamespace":
                    return [chance.choice([self.new_name(), NAMESPACE])]
                case "DropNamespace":
                    name = self.new_namespace()
                    if chance.random() < 0.5:
                        self.client.declare(f"{name}$t")
                    return [name]
            return [NAMESPACE]
        match operation:
            case "CreateTable" | "DeclareTable" | "RegisterTable":
                return [NAMESPACE, chance.choice([self.new_name(), self.new_name(), self.table])]
            case "DropTable" | "DeregisterTable" | "RenameTable":
                return [NAMESPACE, self.new_table()]
        return [NAMESPACE, chance.choice(self.tables)]


@pytest.fixture(scope="module")
def stage(start):
    return Stage(start().client())


@schema.parametrize()
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_answers_are_as_the_document_says(case, stage):
    stage.lead(case)
    answer = case.call(base_url=stage.client.endpoint, auth=Signature(stage.client))
    case.validate_response(answer, checks=CHECKS)
