"""What the tests of the API's tables share."""

import pytest

# The five submits: the word in the path, the type of the task, and a body that is accepted.
SUBMITS = {
    "compact": ("lance_compact", {}),
    "create_scalar_index": ("lance_scalar_index", {"column": "c"}),
    "create_vector_index": ("lance_vector_index", {"column": "v"}),
    "optimize_indices": ("lance_optimize_indices", {}),
    "cleanup": ("lance_cleanup", {"retain_versions": 2}),
}

INVALID_INPUT = (400, "InvalidInput", 13)
TABLE_NOT_FOUND = (404, "TableNotFound", 4)
TASK_NOT_FOUND = (404, "TaskNotFound", 10000)
TASK_STATE_CONFLICT = (409, "TaskStateConflict", 10001)
TASK_QUOTA_EXCEEDED = (429, "TaskQuotaExceeded", 10002)
NO_SUCH_OPERATION = (404, "NoSuchOperation", 0)
METHOD_NOT_ALLOWED = (405, "MethodNotAllowed", 0)
ACCESS_DENIED = (403, "AccessDenied", 15)
SIGNATURE_DOES_NOT_MATCH = (403, "SignatureDoesNotMatch", 16)
INVALID_DIGEST = (400, "InvalidDigest", 13)

# The nine fields of a task, in their order.
FIELDS = [
    "task_id",
    "task_type",
    "params",
    "status",
    "created_at",
    "started_at",
    "completed_at",
    "result",
    "error",
]


def rows(names, *table):
    """Parametrizes a test with a table, a case a line; the first two columns name the case."""
    columns = len(names.split(","))
    cases = []
    for row in table:
        row = row if columns > 1 else (row,)
        name = " ".join(str(cell)[:80] for cell in row[:2] if not callable(cell))
        cases.append(pytest.param(*row, id=name or "empty"))
    return pytest.mark.parametrize(names, cases)


def table_id(client, table) -> str:
    """The table's own id, which no name says."""
    answer = client.request("POST", f"/lance/v1/table/{table}/describe", {})
    assert answer.status_code == 200, answer.text
    return answer.json()["properties"]["table_id"]


def task_ids(client, table, task_type, max_results=1000) -> list[str]:
    """Every task of the type, page by page."""
    found, marker = [], ""
    while True:
        query = f"task_type={task_type}&max_results={max_results}&marker={marker}"
        answer = client.list(table, query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["tasks"]) <= max_results
        found += [task["task_id"] for task in page["tasks"]]
        marker = page["next_marker"]
        if not marker:
            return found


def submitted(client, table, operation, body=None) -> str:
    """Submits a task that is accepted; returns its id."""
    answer = client.submit(table, operation, SUBMITS[operation][1] if body is None else body)
    assert answer.status_code == 200, answer.text
    return answer.json()["task_id"]
