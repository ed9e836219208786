"""The steps through which the maintenance skill's checker takes a backend, as a function: for any
backend, and with effects that are looked up in the table itself.

`walk(backend, table_uri, append)` makes the table; there must be none. What a step expects and does
not see is an `AssertionError`.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lance
from lance.optimize import Compaction

CALL_SECONDS = 60.0
JOB_SECONDS = 300.0
ROWS = 2000
ROWS_PER_FILE = 20
INDEX = "id_idx"

STATES = {"queued", "running", "succeeded", "failed", "canceled"}
FINAL = {"succeeded", "failed", "canceled"}
CODES = {
    "unsupported",
    "invalid_input",
    "table_not_found",
    "job_not_found",
    "permission_denied",
    "conflict",
    "internal",
}

Append = Callable[[str, int, int], Any]
"""Appends rows to the table at a URI, made if it is not there: the `id`s (int64) from the first number
to before the second, in files of `ROWS_PER_FILE` rows."""


# How a table is looked at: with pylance.


def create_index(uri: str) -> None:
    lance.dataset(uri).create_scalar_index("id", "BTREE", name=INDEX)


def planned_tasks(uri: str) -> int:
    """What Lance's own planner would compact."""
    return Compaction.plan(lance.dataset(uri), options={}).num_tasks()


def unindexed_rows(uri: str) -> int:
    return lance.dataset(uri).stats.index_stats(INDEX)["num_unindexed_rows"]


def num_versions(uri: str) -> int:
    return len(lance.dataset(uri).versions())


def ids(uri: str) -> list[int]:
    return sorted(lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist())


@dataclass(frozen=True)
class Effects:
    """How to see what jobs did. Whoever can't read the table with pylance brings other functions."""

    create_index: Callable[[str], None] = create_index
    planned_tasks: Callable[[str], int] = planned_tasks
    unindexed_rows: Callable[[str], int] = unindexed_rows
    num_versions: Callable[[str], int] = num_versions
    ids: Callable[[str], list[int]] = ids


class Timed:
    """A backend each of whose calls is made by a new instance, as another process would, and has to
    end in time."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.slowest = 0.0

    def call(self, name: str, argument: Any) -> Any:
        start = time.monotonic()
        try:
            return getattr(self._make(), name)(argument)
        finally:
            seconds = time.monotonic() - start
            self.slowest = max(self.slowest, seconds)
            assert seconds < CALL_SECONDS, f"{name} took {seconds:.1f} s"

    def refused(self, name: str, argument: Any) -> str:
        """The code with which a call fails that has to."""
        try:
            answer = self.call(name, argument)
        except Exception as error:
            code, text = getattr(error, "code", None), repr(error)
        else:
            raise AssertionError(f"{name} of {argument!r} did not fail, but returned {answer!r}")
        assert code in CODES, f"{name}: {text} has the code {code!r}"
        return code

    def state_of(self, status: Any, job_id: str | None = None) -> tuple[str, str]:
        """Id and state of a status, which must be one."""
        assert isinstance(status, dict), status
        found, state = status["job_id"], status["state"]
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", found), status
        assert job_id in (None, found), f"{found} is not {job_id}"
        assert state in STATES, status
        if state == "failed":
            assert status["error"]["code"] in CODES, status
            assert status["error"]["message"], status
        return found, state

    def at_its_end(self, job_id: str) -> dict[str, Any]:
        """The status of a job, found by its id, once that is final."""
        end = time.monotonic() + JOB_SECONDS
        while True:
            status = self.call("status", job_id)
            if self.state_of(status, job_id)[1] in FINAL:
                return status
            assert time.monotonic() < end, f"the job does not end: {status}"
            time.sleep(0.1)

    def stays(self, status: dict[str, Any]) -> None:
        """A job that has ended stays as it is, whoever looks and whoever cancels."""
        expected = (status["job_id"], status["state"])
        for name in ("status", "cancel", "status"):
            later = self.call(name, status["job_id"])
            assert self.state_of(later) == expected, f"after {name}: {later}"
            assert later.get("result") == status.get("result"), f"after {name}: {later}"


def walk(
    backend: Any,
    table_uri: str,
    append: Append,
    effects: Effects | None = None,
    make: Callable[[], Any] | None = None,
) -> float:
    """Takes a backend through all steps on a new table, and returns how many seconds the slowest call
    took. Every call is made by a backend that `make` makes, by default one of the same class."""
    timed = Timed(make or type(backend))
    effects = effects or Effects()

    # Nobody issued these ids.
    for name in ("status", "cancel"):
        assert timed.refused(name, "no-such-job-0000") == "job_not_found"

    append(table_uri, 0, ROWS)
    effects.create_index(table_uri)
    append(table_uri, ROWS, 2 * ROWS)
    assert effects.planned_tasks(table_uri) > 0
    assert effects.unindexed_rows(table_uri) == ROWS

    def job(operation: str, options: dict[str, Any]) -> dict[str, Any]:
        return {"table": table_uri, "operation": operation, "options": options}

    if hasattr(backend, "preview"):
        versions = effects.num_versions(table_uri)
        preview = timed.call("preview", job("compact", {}))
        assert isinstance(preview, dict), preview
        assert preview["tasks"] == effects.planned_tasks(table_uri), preview
        assert preview["fragments_rewritten"] == 2 * ROWS // ROWS_PER_FILE, preview
        assert preview["rows_rewritten"] == 2 * ROWS, preview
        assert effects.num_versions(table_uri) == versions, "a preview changed the table"

    steps: list[tuple[str, dict[str, Any], Callable[[str], int], int]] = [
        ("compact", {}, effects.planned_tasks, 0),
        ("optimize_indices", {}, effects.unindexed_rows, 0),
        ("cleanup", {"retain_versions": 1}, effects.num_versions, 1),
    ]
    for operation, options, measure, expected in steps:
        before = measure(table_uri)
        assert before != expected, f"{operation} has nothing to do"
        job_id, _ = timed.state_of(timed.call("submit", job(operation, options)))
        status = timed.at_its_end(job_id)
        assert status["state"] == "succeeded", status
        after = measure(table_uri)
        assert after == expected, f"{operation}: {before} before, {after} after, not {expected}"
        timed.stays(status)

    # A cancel is a request: the job may be done, or stopped, but not left in between.
    append(table_uri, 2 * ROWS, 3 * ROWS)
    job_id, _ = timed.state_of(timed.call("submit", job("compact", {})))
    timed.state_of(timed.call("cancel", job_id), job_id)
    timed.stays(timed.at_its_end(job_id))

    assert effects.ids(table_uri) == list(range(3 * ROWS)), "rows were lost or changed"
    return timed.slowest
