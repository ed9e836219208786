"""The client: the service's calls, one method each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, TextIO, cast

from ._auth import SigV4
from ._transport import Transport, segment
from ._waiting import Bar, wait_for
from .errors import JOB_NOT_FOUND, MaintenanceError, invalid
from .types import (
    FINAL_STATES,
    FINAL_STATUSES,
    HealthReport,
    JobPage,
    JobStatus,
    Operation,
    Preview,
    RegisteredTable,
    TableDescription,
    TaskInfo,
    TaskType,
)

_JOB_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class MaintenanceClient:
    """A client of the service at `url`: scheme, host and port.

    Requests are signed with the access key, for the region that the service is set to; a temporary
    key has a `session_token`. A request may take `timeout` seconds. A GET that finds no service, or
    one that is busy (429, 503), is tried again a few times; nothing else is.

    A table is `namespace$table`, or the URI of its folder where a method says so. Every method raises
    `MaintenanceError`. A client may be used by several threads, and is closed by `close`, or as a
    context manager.
    """

    def __init__(
        self,
        url: str,
        access_key_id: str,
        secret_access_key: str,
        region: str = "local",
        *,
        session_token: str | None = None,
        timeout: float = 30.0,
        _until: float | None = None,
    ) -> None:
        auth = SigV4(access_key_id, secret_access_key, region, session_token)
        self._transport = Transport(url, auth, timeout, _until)

    def __repr__(self) -> str:
        return f"MaintenanceClient({self._transport.origin!r})"

    def __enter__(self) -> MaintenanceClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    # Health and jobs. `table` is `namespace$table`, or the URI of the table's folder.

    def health(self, table: str, check_files: bool = False, reclaim: bool = False) -> HealthReport:
        """The health of a table, and what to do.

        `check_files` looks whether every file of the newest version is there. `reclaim` says that
        space is wanted: then a cleanup may be advised.
        """
        asked = {"check_files": check_files, "reclaim": reclaim}
        query = {name: "true" for name, is_asked in asked.items() if is_asked}
        path = f"/maintenance/v1/table/{segment(table, 'table')}/health"
        answer = self._transport.call("GET", path, query=query)
        return cast(HealthReport, self._object(answer, table=str, errors=dict, advice=list))

    def preview(
        self, table: str, operation: Operation, options: Mapping[str, Any] | None = None
    ) -> Preview:
        """What a job would do to the table as it is now. Changes nothing."""
        path = f"/maintenance/v1/table/{segment(table, 'table')}/preview"
        answer = self._transport.call("POST", path, body=_job(operation, options), changes=False)
        return self._object(answer)

    def submit(
        self, table: str, operation: Operation, options: Mapping[str, Any] | None = None
    ) -> JobStatus:
        """Submits a job. What `options` leave out, the table's configuration decides, else Lance.

        If there is no answer, the job may be there all the same: look at `jobs` before a second try.
        """
        path = f"/maintenance/v1/table/{segment(table, 'table')}/jobs"
        return self._status(self._transport.call("POST", path, body=_job(operation, options)))

    def job(self, job_id: str) -> JobStatus:
        """A job as it is now."""
        return self._job(job_id, None)

    def jobs(self, table: str, page_token: str | None = None, limit: int | None = None) -> JobPage:
        """A page of the table's jobs, newest first: `limit` of them at the most."""
        query = {"page_token": page_token, "limit": None if limit is None else str(limit)}
        path = f"/maintenance/v1/table/{segment(table, 'table')}/jobs"
        answer = self._transport.call("GET", path, query=_given(query))
        return cast(JobPage, self._object(answer, jobs=list))

    def all_jobs(self, table: str, limit: int | None = None) -> Iterator[JobStatus]:
        """All jobs of the table, newest first, asked for page by page."""
        token: str | None = None
        while True:
            page = self.jobs(table, token, limit)
            yield from page["jobs"]
            token = page.get("page_token")
            if not token:
                return

    def cancel(self, job_id: str) -> JobStatus:
        """Asks for a job to be stopped, and returns it as it is then: a job that runs may take a
        while to stop, or end before it does. One that has ended stays as it is."""
        path = f"/maintenance/v1/jobs/{_checked(job_id)}/cancel"
        return self._status(self._transport.call("POST", path, body={}))

    def wait(
        self,
        job_id: str,
        timeout: float | None = None,
        progress: bool | TextIO = True,
        poll: float = 1.0,
    ) -> JobStatus:
        """Waits for a job's end, and returns it as it is then: succeeded, failed or canceled.

        Looks every `poll` seconds. `progress` is whether a bar is shown on stderr, or the file to
        write it to. After `timeout` seconds raises `TimeoutError`; the job goes on.
        """
        bar = Bar(f"job {str(job_id)[-8:]}", progress)
        try:
            return wait_for(
                lambda until: self._job(job_id, until),
                lambda job: job["state"] in FINAL_STATES,
                lambda job: bar.show(job["state"], job.get("progress"), job["state"] == "succeeded"),
                f"Job {job_id}",
                timeout,
                poll,
            )
        finally:
            bar.close()

    # Tasks of the OSS API. `table` is `namespace$table`.

    def compact(self, table: str, **params: Any) -> str:
        """Submits a compaction, and returns the task's id. Without parameters the defaults hold."""
        return self._submit_task(table, "compact", params)

    def create_scalar_index(self, table: str, column: str, **params: Any) -> str:
        """Submits the creation of an index on values or texts, and returns the task's id."""
        return self._submit_task(table, "create_scalar_index", {"column": column, **params})

    def create_vector_index(self, table: str, column: str, **params: Any) -> str:
        """Submits the creation of an index on vectors, and returns the task's id."""
        return self._submit_task(table, "create_vector_index", {"column": column, **params})

    def optimize_indices(self, table: str, **params: Any) -> str:
        """Submits an update of indices, and returns the task's id."""
        return self._submit_task(table, "optimize_indices", params)

    def cleanup(self, table: str, **params: Any) -> str:
        """Submits a cleanup, and returns the task's id. Needs `older_than` (such as `"7d"`) or
        `retain_versions`."""
        return self._submit_task(table, "cleanup", params)

    def get_task(self, table: str, task_id: str, with_progress: bool = False) -> TaskInfo:
        """A task as it is now; `with_progress` tells also how far it is."""
        return self._task(table, task_id, with_progress, None)

    def list_tasks(
        self, table: str, task_type: TaskType, max_results: int | None = None
    ) -> Iterator[TaskInfo]:
        """All tasks of one type, newest first, asked for in pages of `max_results` (1 to 1000)."""
        path = f"{_task_path(table)}/tasks"
        query: dict[str, str | None] = {
            "task_type": task_type,
            "max_results": None if max_results is None else str(max_results),
        }
        while True:
            answer = self._transport.call("GET", path, query=_given(query))
            page = self._object(answer, tasks=list, next_marker=str)
            yield from page["tasks"]
            query["marker"] = page["next_marker"]
            if not query["marker"]:
                return

    def delete_task(self, table: str, task_id: str) -> None:
        """Removes the record of a task that has ended."""
        self._transport.call("DELETE", f"{_task_path(table)}/tasks/{segment(task_id, 'task id')}")

    def wait_task(
        self,
        table: str,
        task_id: str,
        timeout: float | None = None,
        progress: bool | TextIO = True,
        poll: float = 1.0,
    ) -> TaskInfo:
        """Waits for a task's end, and returns it as it is then: completed or failed. The rest is as
        with `wait`."""
        bar = Bar(f"task {str(task_id)[-8:]}", progress)
        try:
            return wait_for(
                lambda until: self._task(table, task_id, True, until),
                lambda task: task["status"] in FINAL_STATUSES,
                lambda task: bar.show(
                    task["status"], task.get("progress"), task["status"] == "completed"
                ),
                f"Task {task_id}",
                timeout,
                poll,
            )
        finally:
            bar.close()

    # Columns that SQL computes. `table` is `namespace$table`.

    def add_columns(
        self, table: str, columns: Mapping[str, str], computed: bool = True, branch: str | None = None
    ) -> int:
        """Adds columns, whose SQL `columns` has by name, and returns the version that has them.

        Those that are `computed` are null until a backfill fills them; others get their values at once,
        which may take 20 seconds at the most.
        """
        kind = "computed" if computed else "expression"
        entries = [{"name": name, kind: sql} for name, sql in columns.items()]
        body = {"new_columns": entries} | ({} if branch is None else {"branch": branch})
        path = f"/lance/v1/table/{segment(table, 'table')}/add_columns"
        answer = self._transport.call("POST", path, body=body)
        return cast(int, self._object(answer, version=int)["version"])

    def backfill_column(self, table: str, column: str, **params: Any) -> str:
        """Submits a backfill of a computed column, and returns the job's id."""
        path = f"/lance/v1/table/{segment(table, 'table')}/backfill_column"
        answer = self._transport.call("POST", path, body={"column": column, **params})
        return cast(str, self._object(answer, job_id=str)["job_id"])

    # The catalog.

    def create_namespace(self, name: str, mode: str = "create") -> None:
        """Creates a namespace; with mode `exist_ok` one that exists is left as it is."""
        path = f"/lance/v1/namespace/{segment(name, 'namespace')}/create"
        self._transport.call("POST", path, body={"mode": mode})

    def register_table(self, table: str, location: str) -> RegisteredTable:
        """Registers the table in the folder `location` (a URI) under the name `namespace$table`."""
        path = f"/lance/v1/table/{segment(table, 'table')}/register"
        answer = self._transport.call("POST", path, body={"location": location})
        return cast(RegisteredTable, self._object(answer))

    def describe_table(self, table: str) -> TableDescription:
        """A table of the catalog: where it lies, and its properties."""
        path = f"/lance/v1/table/{segment(table, 'table')}/describe"
        answer = self._transport.call("POST", path, body={}, changes=False)
        return cast(TableDescription, self._object(answer))

    # Parts of the above.

    def _job(self, job_id: str, until: float | None) -> JobStatus:
        path = f"/maintenance/v1/jobs/{_checked(job_id)}"
        return self._status(self._transport.call("GET", path, until=until))

    def _task(self, table: str, task_id: str, with_progress: bool, until: float | None) -> TaskInfo:
        path = f"{_task_path(table)}/tasks/{segment(task_id, 'task id')}"
        headers = {"x-lance-task-progress": "true"} if with_progress else None
        answer = self._transport.call("GET", path, headers=headers, until=until)
        info = self._object(answer, task_info=dict)["task_info"]
        return cast(TaskInfo, self._object(info, task_id=str, status=str))

    def _submit_task(self, table: str, operation: str, params: Mapping[str, Any]) -> str:
        answer = self._transport.call("POST", f"{_task_path(table)}/{operation}", body=params)
        return cast(str, self._object(answer, task_id=str)["task_id"])

    def _status(self, answer: Any) -> JobStatus:
        return cast(JobStatus, self._object(answer, job_id=str, state=str))

    def _object(self, answer: Any, **fields: type) -> dict[str, Any]:
        """An answer that is an object with these fields."""
        if not isinstance(answer, dict):
            raise self._transport.not_understood()
        if not all(isinstance(answer.get(name), kind) for name, kind in fields.items()):
            raise self._transport.not_understood()
        return answer


def _checked(job_id: str) -> str:
    """A job's id as a segment of a path. What can be none is not asked for."""
    is_id = isinstance(job_id, str) and _JOB_ID.fullmatch(job_id) and job_id.strip(".")
    if not is_id:
        raise MaintenanceError(
            JOB_NOT_FOUND,
            "There is no job with this id: an id has 1 to 128 letters, digits, '.', '_' and '-'.",
        )
    return job_id


def _job(operation: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(options, Mapping | None):
        raise invalid("The options must be a mapping of names to values.")
    return {"operation": operation, "options": dict(options or {})}


def _task_path(table: str) -> str:
    return f"/lance/oss/v1/table/{segment(table, 'table')}"


def _given(query: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in query.items() if text is not None}
