"""What comes back when something is wrong, and what is tried again."""

import pickle
import re
import socket
import time
from pathlib import Path

import pytest
from fake import KEY, SECRET, Answer, HangUp, refusal

from lance_maintenance_client import MaintenanceClient, MaintenanceError
from lance_maintenance_client.errors import CODES

JOB = {"job_id": "j.1", "state": "queued"}
API = Path(__file__).parents[3] / "crates/api/src"


def failure(call, *arguments) -> MaintenanceError:
    with pytest.raises(MaintenanceError) as raised:
        call(*arguments)
    return raised.value


@pytest.mark.parametrize("name", CODES)
def test_names_and_codes(fake, client, name):
    fake.answers(refusal(409, name, "Do that.", x_oss_request_id="R1"))
    error = failure(client.submit, "ns$t", "compact")
    assert (error.code, error.name, error.status) == (CODES[name], name, 409)
    assert (error.detail, error.request_id) == ("Do that.", "R1")
    assert str(error) == f"Do that. ({name}, HTTP 409, request R1)"


@pytest.mark.skipif(not API.exists(), reason="the service's source is not here")
def test_the_codes_are_those_of_the_service():
    names = re.findall(r'^    (\w+) = \("(\w+)", \d+, \d+\),$', (API / "error.rs").read_text(), re.M)
    assert len(names) > 30
    source = (API / "jobs/status.rs").read_text()
    arms = re.findall(r"((?:Name::\w+[\s|]*)+)=>\s*Self::(\w+)", source)
    codes = {}
    for arm, code in arms:
        code = re.sub("(?<!^)(?=[A-Z])", "_", code).lower()
        codes |= dict.fromkeys(re.findall(r"Name::(\w+)", arm), code)
    assert {text: codes[variant] for variant, text in names} == CODES


def test_names_of_later_services_are_internal(fake, client):
    fake.answers(refusal(418, "Teapot"))
    assert failure(client.job, "j.1").code == "internal"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(502, b"<html>Bad Gateway</html>"),
        Answer(404, b""),
        Answer(404, {"message": "x"}),
        Answer(404, {"error": 7}),
        Answer(302, b"", {"Location": "http://127.0.0.1:1/"}),
        Answer(200, b"<html></html>"),
        Answer(200, b"{"),
        Answer(200, b"[" * 100_000),
        Answer(200, b""),
        Answer(204),
        Answer(200, []),
        Answer(200, {"state": "queued"}),
        Answer(200, {"job_id": "j.1", "state": 7}),
        Answer(200, b"\x00", {"Content-Encoding": "gzip"}),
    ],
)
def test_answers_that_are_not_the_services(fake, client, answer):
    fake.answers(answer)
    for call, arguments in [(client.job, ("j.1",)), (client.submit, ("ns$t", "compact"))]:
        error = failure(call, *arguments)
        assert (error.code, error.name) == ("internal", None)
        assert "address" in error.detail or "jobs" in error.detail
    assert len(fake.requests) == 2


def test_an_answer_that_is_too_large(fake, client, monkeypatch):
    monkeypatch.setattr("lance_maintenance_client._transport.MOST_BYTES", 1000)
    fake.answers(Answer(200, {**JOB, "more": "x" * 2000}))
    assert failure(client.job, "j.1").code == "internal"


def test_errors_can_be_pickled(fake, client):
    fake.answers(refusal(404, "TaskNotFound"))
    error = failure(client.job, "j.1")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), vars(again)) == (str(error), vars(error))


# What is tried again


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "bad",
    [refusal(429, "Throttling"), refusal(503, "ServiceUnavailable"), Answer(503, b"<html>"), HangUp],
)
class TestSecondTries:
    def test_of_a_get(self, fake, client, bad):
        fake.answers(bad, bad, bad, Answer(200, JOB))
        assert client.job("j.1") == JOB
        assert fake.lines == ["GET /maintenance/v1/jobs/j.1"] * 4

    def test_have_an_end(self, fake, client, bad):
        fake.answers(bad)
        error = failure(client.job, "j.1")
        assert (error.code, error.is_temporary, len(fake.requests)) == ("internal", True, 4)

    @pytest.mark.parametrize(
        "call",
        [
            lambda c: c.submit("ns$t", "compact"),
            lambda c: c.preview("ns$t", "compact"),
            lambda c: c.cancel("j.1"),
            lambda c: c.compact("ns$t"),
            lambda c: c.add_columns("ns$t", {"a": "x"}),
            lambda c: c.backfill_column("ns$t", "a"),
            lambda c: c.delete_task("ns$t", "1"),
            lambda c: c.register_table("ns$t", "file:///w"),
        ],
    )
    def test_of_nothing_else(self, fake, client, bad, call):
        fake.answers(bad, Answer(200, JOB))
        assert failure(call, client).code == "internal"
        assert len(fake.requests) == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", [refusal(500, "InternalError"), refusal(404, "TaskNotFound")])
def test_other_refusals_are_not_tried_again(fake, client, answer):
    fake.answers(answer, Answer(200, JOB))
    failure(client.job, "j.1")
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("text", "requests", "seconds"),
    [
        ("1", 2, (1.0, 3.0)),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 2, (0.0, 0.9)),
        ("soon", 2, (0.0, 0.9)),
        ("31", 1, (0.0, 0.9)),
        ("Wed, 21 Oct 2115 07:28:00 GMT", 1, (0.0, 0.9)),
        ("9" * 400, 1, (0.0, 0.9)),
    ],
)
@pytest.mark.usefixtures("quick")
def test_retry_after(fake, client, text, requests, seconds):
    fake.answers(refusal(503, "ServiceUnavailable", Retry_After=text), Answer(200, JOB))
    start = time.monotonic()
    if requests == 1:
        failure(client.job, "j.1")
    else:
        client.job("j.1")
    assert len(fake.requests) == requests
    assert seconds[0] <= time.monotonic() - start < seconds[1]


@pytest.mark.usefixtures("quick")
def test_a_service_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with MaintenanceClient(url, KEY, SECRET) as client:
            for call in (client.job, client.cancel):
                error = failure(call, "j.1")
                assert (error.code, error.status, error.is_temporary) == ("internal", None, True)
                assert url in error.detail
                # It was never sent, so there is nothing to look for.
                assert "Check the address" in error.detail


def test_a_service_that_does_not_answer(fake):
    fake.answer = lambda _: fake.is_over.wait(20) and Answer(200, JOB)
    with MaintenanceClient(fake.url, KEY, SECRET, timeout=0.3) as client:
        start = time.monotonic()
        error = failure(client.submit, "ns$t", "compact")
        assert (error.code, error.is_temporary) == ("internal", True)
        assert "look, at the table's jobs" in error.detail
        assert "had an effect" not in failure(client.preview, "ns$t", "compact").detail
        failure(client.job, "j.1")
        assert time.monotonic() - start < 3
        # What has taken long once is not tried again.
        assert len(fake.requests) == 3
