"""The door `/maintenance/v1`: health reports, previews and jobs."""

import time
from urllib.parse import quote

from service import TASK_SECONDS

FINAL = ("succeeded", "failed", "canceled")


def path(table, what):
    return f"/maintenance/v1/table/{quote(table, safe='')}/{what}"


def health(client, table, query="") -> dict:
    """The report of a table."""
    answer = client.request("GET", path(table, "health") + (f"?{query}" if query else ""))
    assert answer.status_code == 200, answer.text
    return answer.json()


def ask_preview(client, table, operation, options=None):
    body = {"operation": operation} | ({} if options is None else {"options": options})
    return client.request("POST", path(table, "preview"), body)


def preview(client, table, operation, options=None) -> dict:
    answer = ask_preview(client, table, operation, options)
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(client, table, operation, options=None) -> str:
    """Submits a job that is accepted; returns its id."""
    body = {"operation": operation} | ({} if options is None else {"options": options})
    answer = client.request("POST", path(table, "jobs"), body)
    assert answer.status_code == 200, answer.text
    return answer.json()["job_id"]


def wait(client, job_id) -> dict:
    """The job once it has ended."""
    end = time.monotonic() + TASK_SECONDS
    while True:
        answer = client.request("GET", f"/maintenance/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        job = answer.json()
        assert job["job_id"] == job_id
        if job["state"] in FINAL:
            return job
        assert time.monotonic() < end, f"the job does not end: {job}"
        time.sleep(0.05)


def run(client, table, operation, options=None) -> dict:
    """Runs a job that must succeed; returns its result."""
    job = wait(client, submit(client, table, operation, options))
    assert job["state"] == "succeeded" and "error" not in job, job
    return job["result"]


def fail(client, table, operation, options=None) -> dict:
    """Runs a job that must fail; returns its error."""
    job = wait(client, submit(client, table, operation, options))
    assert job["state"] == "failed" and "result" not in job, job
    assert set(job["error"]) == {"code", "message"}
    return job["error"]


def jobs_of(report) -> list:
    """What a report advises: rules, jobs, and the jobs that follow them."""
    return [
        tuple(filter(None, [advice["rule"], pair(advice["job"]), pair(advice.get("then"))]))
        for advice in report["advice"]
    ]


def pair(job):
    return job and (job["operation"], job["options"])
