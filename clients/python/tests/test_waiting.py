"""Waiting for the end of jobs and tasks."""

import io
import time

import pytest
from fake import Answer, HangUp, refusal

from lance_maintenance_client import MaintenanceError, _waiting

pytestmark = pytest.mark.usefixtures("quick")


def job(state, percent=None, message="", **more):
    progress = {} if percent is None else {"progress": {"percent": percent, "message": message}}
    return Answer(200, {"job_id": "j.1", "state": state, "operation": "compact", **progress, **more})


def task(status, percent=None, message=""):
    progress = {} if percent is None else {"progress": {"percent": percent, "message": message}}
    return Answer(200, {"task_info": {"task_id": "1", "status": status, **progress}})


@pytest.mark.parametrize("state", ["succeeded", "failed", "canceled"])
def test_a_job_at_its_end(fake, client, state):
    end = job(state, error={"code": "conflict", "message": "x"})
    fake.answers(job("queued"), job("running"), job("paused"), end)
    assert client.wait("j.1", progress=False, poll=0.001) == end.body
    assert fake.lines == ["GET /maintenance/v1/jobs/j.1"] * 4


def test_the_bar_of_a_job(fake, client):
    fake.answers(
        job("queued"),
        job("running", 40, "Rewriting\x1b[2J\n fragments"),
        job("running", 90, "Committing"),
        job("succeeded", 90, "Committing"),
    )
    text = io.StringIO()
    client.wait("j.1", progress=text, poll=0.001)
    lines = text.getvalue().split("\r")
    expected = ["  0%", "  0%", " 40%", " 90%", "100%"]
    shown = [line.split(":")[1].split("|")[0].rstrip() for line in lines if "|" in line]
    assert [share.strip() for share in shown[: len(expected)]] == [it.strip() for it in expected]
    assert "queued" in lines[2]
    assert "Rewriting[2J fragments" in lines[3]
    assert "Committing" in lines[4]
    assert "succeeded" in lines[5]
    assert "\x1b[2J" not in text.getvalue()


def test_the_bar_is_on_stderr_or_not_there(fake, client, capsys):
    fake.answers(job("succeeded"))
    client.wait("j.1", poll=0.001)
    seen = capsys.readouterr()
    assert "100%" in seen.err
    assert seen.out == ""
    client.wait("j.1", progress=False, poll=0.001)
    assert capsys.readouterr() == ("", "")


def test_the_bar_of_a_failed_job_stays_where_it_was(fake, client):
    fake.answers(job("running", 40, "Rewriting"), job("failed", 40, "Rewriting"))
    text = io.StringIO()
    client.wait("j.1", progress=text, poll=0.001)
    assert "100%" not in text.getvalue()
    assert "failed" in text.getvalue()


@pytest.mark.parametrize("answer", [job("running"), HangUp, refusal(503, "ServiceUnavailable")])
def test_time_runs_out(fake, client, answer):
    fake.answers(answer)
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"Job j\.1 has not ended within 0\.3 s"):
        client.wait("j.1", timeout=0.3, progress=False, poll=0.01)
    assert 0.3 <= time.monotonic() - start < 2


def test_time_runs_out_while_there_is_no_answer(fake, client):
    fake.answer = lambda _: fake.is_over.wait(20) and job("running")
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        client.wait("j.1", timeout=0.3, progress=False)
    assert time.monotonic() - start < 2


def test_a_service_that_is_away_for_a_while(fake, client):
    fake.answers(job("running"), *[HangUp] * 9, refusal(503, "ServiceUnavailable"), job("succeeded"))
    assert client.wait("j.1", progress=False, poll=0.001)["state"] == "succeeded"


def test_a_service_that_does_not_come_back(fake, client, monkeypatch):
    monkeypatch.setattr(_waiting, "OUTAGE_SECONDS", 0.1)
    fake.answers(job("running"), HangUp)
    with pytest.raises(MaintenanceError) as raised:
        client.wait("j.1", progress=False, poll=0.01)
    assert raised.value.code == "internal"


def test_what_is_wrong_ends_it_at_once(fake, client):
    fake.answers(job("running"), refusal(404, "TaskNotFound"))
    with pytest.raises(MaintenanceError) as raised:
        client.wait("j.1", timeout=5, progress=False, poll=0.001)
    assert raised.value.code == "job_not_found"


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_task_at_its_end(fake, client, status):
    fake.answers(task("submitted"), task("running", 30, "Training"), task("paused"), task(status))
    text = io.StringIO()
    info = client.wait_task("ns$t", "1", progress=text, poll=0.001)
    assert info["status"] == status
    assert "Training" in text.getvalue()
    assert ("100%" in text.getvalue()) == (status == "completed")
    assert all(request.headers["x-lance-task-progress"] == "true" for request in fake.requests)


@pytest.mark.parametrize("job_id", ["", "a/b", None])
def test_what_can_not_be_waited_for(fake, client, job_id):
    with pytest.raises(MaintenanceError) as raised:
        client.wait(job_id, progress=False)
    assert raised.value.code == "job_not_found"
    with pytest.raises(MaintenanceError, match="'poll'"):
        client.wait("j.1", progress=False, poll=0)
    assert fake.requests == []
