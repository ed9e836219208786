"""The service as far as the skill's backend needs it, with jobs that pylance runs: a job waits until it
is looked at, runs until it is looked at again, and then is done."""

import re
import uuid
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

import lance
from fake import Answer, Request, refusal
from lance.optimize import Compaction


class LanceFake:
    """What to give a `Fake` as its `answer`."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.namespaces = set(namespaces)
        # By `namespace$table`.
        self.tables: dict[str, str] = {}
        self.jobs: dict[str, tuple[str, dict[str, Any]]] = {}

    def __call__(self, request: Request) -> Answer:
        for pattern, answer in [
            (r"POST /lance/v1/namespace/(.+)/create", self.create_namespace),
            (r"POST /lance/v1/table/(.+)/register", self.register),
            (r"POST /maintenance/v1/table/(.+)/preview", self.preview),
            (r"POST /maintenance/v1/table/(.+)/jobs", self.submit),
            (r"GET /maintenance/v1/jobs/([^/]+)", self.job),
            (r"POST /maintenance/v1/jobs/([^/]+)/cancel", self.cancel),
        ]:
            found = re.fullmatch(pattern, f"{request.method} {request.path}")
            if found:
                return answer(unquote(found[1]), request)
        return refusal(404, "NoSuchOperation")

    def create_namespace(self, name: str, request: Request) -> Answer:
        if name in self.namespaces and request.json().get("mode") != "exist_ok":
            return refusal(409, "NamespaceAlreadyExists")
        self.namespaces.add(name)
        return Answer(200, {"properties": {}})

    def register(self, table: str, request: Request) -> Answer:
        location = request.json()["location"]
        if table.split("$")[0] not in self.namespaces:
            return refusal(404, "NamespaceNotFound")
        if table in self.tables or location in self.tables.values():
            return refusal(409, "TableAlreadyExists")
        self.tables[table] = location
        return Answer(200, {"location": location, "properties": {}})

    def _location(self, table: str) -> str | None:
        return self.tables.get(table) or (table if table in self.tables.values() else None)

    def preview(self, table: str, request: Request) -> Answer:
        location = self._location(table)
        if not location:
            return refusal(404, "TableNotFound", "The catalog has no such table.")
        tasks = Compaction.plan(lance.dataset(location), options={}).tasks
        fragments = [fragment for task in tasks for fragment in task.fragments]
        rows = sum(fragment.physical_rows for fragment in fragments)
        return Answer(
            200,
            {"tasks": len(tasks), "fragments_rewritten": len(fragments), "rows_rewritten": rows},
        )

    def submit(self, table: str, request: Request) -> Answer:
        location = self._location(table)
        if not location:
            return refusal(404, "TableNotFound", "The catalog has no such table.")
        task_id = uuid.uuid4().hex
        job_id = f"{uuid.uuid4()}.{task_id}"
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        more = {"task_id": task_id, "created_at": now, "started_at": "", "completed_at": ""}
        self.jobs[job_id] = (location, {"job_id": job_id, "state": "queued", **request.json(), **more})
        return Answer(200, self.jobs[job_id][1])

    def job(self, job_id: str, request: Request) -> Answer:
        if job_id not in self.jobs:
            return refusal(404, "TaskNotFound", "There is no job with this id.")
        location, job = self.jobs[job_id]
        if job["state"] == "running":
            job |= {"state": "succeeded", "result": run(location, job["operation"], job["options"])}
        elif job["state"] == "queued":
            job["state"] = "running"
        return Answer(200, job)

    def cancel(self, job_id: str, request: Request) -> Answer:
        if job_id not in self.jobs:
            return refusal(404, "TaskNotFound", "There is no job with this id.")
        _, job = self.jobs[job_id]
        if job["state"] == "queued":
            job |= {"state": "canceled", "error": {"code": "canceled", "message": "On request."}}
        return Answer(200, job)


def run(location: str, operation: str, options: dict[str, Any]) -> dict[str, Any]:
    table = lance.dataset(location)
    if operation == "compact":
        metrics = table.optimize.compact_files()
        names = ("files_added", "files_removed", "fragments_added", "fragments_removed")
        return {name: getattr(metrics, name) for name in names}
    if operation == "optimize_indices":
        table.optimize.optimize_indices()
        return {}
    stats = table.cleanup_old_versions(retain_versions=options["retain_versions"])
    return {"bytes_removed": stats.bytes_removed, "old_versions": stats.old_versions}
