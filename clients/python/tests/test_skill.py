"""The skill's backend."""

import inspect
import threading
import time

import pytest
from fake import SECRET, TOKEN, Answer, HangUp, refusal

from lance_maintenance_client import MaintenanceError, skill
from lance_maintenance_client.skill import Backend, table_name

pytestmark = pytest.mark.usefixtures("settings")

URI = "file:///w/Wide Table.lance"
JOB = {"table": URI, "operation": "compact", "options": {}}
STATUS = {
    "job_id": "5d0e6c0e-6f0b-4c7e-9b0a-0123456789ab.1" + "0" * 31,
    "state": "failed",
    "operation": "compact",
    "options": {},
    "task_id": "1" + "0" * 31,
    "created_at": "2026-09-18T04:00:00.000000+00:00",
    "started_at": "",
    "completed_at": "",
    "error": {"code": "conflict", "message": "Another writer changed the table."},
    "of_a_later_version": [1],
}
IN_PATH = "file%3A%2F%2F%2Fw%2FWide%20Table.lance"
CODES = {
    "unsupported",
    "invalid_input",
    "table_not_found",
    "job_not_found",
    "permission_denied",
    "conflict",
    "internal",
}


def failure(call, *arguments) -> MaintenanceError:
    with pytest.raises(MaintenanceError) as raised:
        call(*arguments)
    assert raised.value.code in CODES
    return raised.value


def test_it_is_made_without_arguments():
    needed = [
        parameter
        for parameter in inspect.signature(Backend).parameters.values()
        if parameter.default is parameter.empty
    ]
    assert needed == []


@pytest.mark.parametrize("table", [URI, "ns$t", "/w/t", "abfss://box@account.dfs.core.windows.net/t"])
def test_a_job_goes_to_the_service_and_its_status_comes_back_as_it_is(fake, table):
    fake.answers(Answer(200, STATUS))
    options = {"target_rows_per_fragment": 5}
    assert Backend().submit({"table": table, "operation": "compact", "options": options}) == STATUS
    assert fake.last.json() == {"operation": "compact", "options": options}
    assert Backend().status(STATUS["job_id"]) == STATUS
    assert Backend().cancel(STATUS["job_id"]) == STATUS
    fake.answers(Answer(200, {"tasks": 2, "more": None}))
    assert Backend().preview(JOB) == {"tasks": 2, "more": None}
    assert fake.lines[1:] == [
        f"GET /maintenance/v1/jobs/{STATUS['job_id']}",
        f"POST /maintenance/v1/jobs/{STATUS['job_id']}/cancel",
        f"POST /maintenance/v1/table/{IN_PATH}/preview",
    ]


@pytest.mark.parametrize(
    ("job", "code"),
    [
        ({**JOB, "operation": "create_scalar_index"}, "unsupported"),
        ({**JOB, "operation": "Compact"}, "unsupported"),
        ({**JOB, "operation": ""}, "unsupported"),
        ({**JOB, "operation": None}, "invalid_input"),
        ({**JOB, "operation": ["compact"]}, "invalid_input"),
        ({"table": URI}, "invalid_input"),
        ({**JOB, "storage_options": {}}, "invalid_input"),
        ({**JOB, 7: 8}, "invalid_input"),
        ({**JOB, "table": ""}, "invalid_input"),
        ({**JOB, "table": None}, "invalid_input"),
        ({**JOB, "table": 7}, "invalid_input"),
        ({**JOB, "options": []}, "invalid_input"),
        ({**JOB, "options": "{}"}, "invalid_input"),
        ({**JOB, "options": {"a": {1}}}, "invalid_input"),
        ({"operation": "compact", "options": {}}, "invalid_input"),
        (None, "invalid_input"),
        ("compact", "invalid_input"),
        ([], "invalid_input"),
    ],
)
def test_jobs_that_are_not_sent(fake, job, code):
    for call in (Backend().submit, Backend().preview):
        assert failure(call, job).code == code
    assert fake.requests == []


@pytest.mark.parametrize(
    "table",
    [
        "s3://AK:hidden@bucket/t",
        "s3://hidden@bucket/t",
        "abfss://box:hidden@account/t",
        "s3://bucket/t?aws_secret_access_key=hidden",
        "s3://bucket/t?X-Amz-Signature=hidden",
        "s3://bucket/t?ddbTableName=x&TOKEN=hidden",
        "az://box/t?sig=hidden",
        "s3://bucket/t#password=hidden",
    ],
)
def test_credentials_do_not_travel(fake, table):
    error = failure(Backend().submit, {**JOB, "table": table})
    assert (error.code, fake.requests) == ("invalid_input", [])
    assert "credentials" in error.detail
    assert "hidden" not in str(error)


def test_other_queries_do(fake):
    fake.answers(Answer(200, STATUS))
    Backend().submit({**JOB, "table": "s3+ddb://bucket/t?ddbTableName=commits"})
    assert len(fake.requests) == 1


@pytest.mark.parametrize("job_id", ["", "..", "a/b", "a b", "x" * 129, None, 7])
def test_ids_that_are_none(fake, job_id):
    for call in (Backend().status, Backend().cancel):
        assert failure(call, job_id).code == "job_not_found"
    assert fake.requests == []


def test_ids_that_the_service_does_not_know(fake):
    fake.answers(refusal(404, "TaskNotFound"))
    for call in (Backend().status, Backend().cancel):
        assert failure(call, "no-such-job-0000").code == "job_not_found"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Unsupported", "unsupported"),
        ("InvalidInput", "invalid_input"),
        ("TableIndexNotFound", "invalid_input"),
        ("NoSuchTableBucket", "table_not_found"),
        ("TaskNotFound", "job_not_found"),
        ("SignatureDoesNotMatch", "permission_denied"),
        ("ConcurrentModification", "conflict"),
        ("TaskQuotaExceeded", "internal"),
        ("Canceled", "internal"),
        ("OfALaterVersion", "internal"),
    ],
)
def test_what_the_service_refuses(fake, name, code):
    fake.answers(refusal(400, name, "Do that."))
    error = failure(Backend().submit, JOB)
    assert (error.code, error.detail, len(fake.requests)) == (code, "Do that.", 1)


# Settings


@pytest.mark.parametrize("name", ["URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"])
@pytest.mark.parametrize("value", [None, ""])
def test_settings_that_are_missing(fake, monkeypatch, name, value):
    variable = f"LANCE_MAINTENANCE_{name}"
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    backend = Backend()
    for call, argument in [(backend.submit, JOB), (backend.preview, JOB), (backend.status, "j")]:
        error = failure(call, argument)
        assert error.code == "invalid_input"
        assert variable in error.detail
        assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [("URL", "hidden"), ("SECRET_ACCESS_KEY", "hidden\n"), ("SESSION_TOKEN", "hid den")],
)
def test_settings_that_can_not_be(monkeypatch, name, value):
    monkeypatch.setenv(f"LANCE_MAINTENANCE_{name}", value)
    error = failure(Backend().submit, JOB)
    assert error.code == "invalid_input"
    assert f"'{name.lower()}'" in error.detail
    assert "hid" not in str(error)


def test_region_and_session_token(fake, monkeypatch):
    fake.answers(Answer(200, STATUS))
    monkeypatch.setenv("LANCE_MAINTENANCE_SESSION_TOKEN", TOKEN)
    fake.token = TOKEN
    Backend().status("j")
    monkeypatch.setenv("LANCE_MAINTENANCE_REGION", "cn-hangzhou")
    Backend().status("j")
    assert "/cn-hangzhou/osstables/" in fake.last.headers["authorization"]
    assert len(fake.mistakes) == 1
    assert "/cn-hangzhou/" in fake.mistakes.pop()


# Tables that the catalog does not know


def test_without_a_namespace_it_is_said_how_to_register(fake):
    fake.answers(refusal(404, "TableNotFound", "The catalog has no such table."))
    for call in (Backend().submit, Backend().preview):
        error = failure(call, JOB)
        assert (error.code, error.name, error.request_id) == ("table_not_found", "TableNotFound", "R1")
        assert "LANCE_MAINTENANCE_REGISTER_NAMESPACE" in error.detail
        assert "The catalog has no such table." in error.detail
    assert len(fake.requests) == 2


UNKNOWN = refusal(404, "TableNotFound")
NO_NAMESPACE = refusal(404, "NamespaceNotFound")
REGISTERED = Answer(200, {"location": URI})
SUBMIT = f"POST /maintenance/v1/table/{IN_PATH}/jobs"
REGISTER = f"POST /lance/v1/table/skill%24{table_name(URI)}/register"
CREATE = "POST /lance/v1/namespace/skill/create"


@pytest.mark.parametrize(
    ("answers", "lines", "code"),
    [
        ([Answer(200, STATUS)], [SUBMIT], None),
        ([UNKNOWN, REGISTERED, Answer(200, STATUS)], [SUBMIT, REGISTER, SUBMIT], None),
        (
            [UNKNOWN, NO_NAMESPACE, Answer(200, {}), REGISTERED, Answer(200, STATUS)],
            [SUBMIT, REGISTER, CREATE, REGISTER, SUBMIT],
            None,
        ),
        # Somebody else does the same.
        (
            [UNKNOWN, refusal(409, "TableAlreadyExists"), Answer(200, STATUS)],
            [SUBMIT, REGISTER, SUBMIT],
            None,
        ),
        (
            [UNKNOWN, refusal(409, "ConcurrentModification"), Answer(200, STATUS)],
            [SUBMIT, REGISTER, SUBMIT],
            None,
        ),
        # The location is not allowed, or the caller may not.
        ([UNKNOWN, refusal(400, "InvalidInput")], [SUBMIT, REGISTER], "invalid_input"),
        ([UNKNOWN, refusal(403, "PermissionDenied")], [SUBMIT, REGISTER], "permission_denied"),
        (
            [UNKNOWN, NO_NAMESPACE, refusal(403, "PermissionDenied")],
            [SUBMIT, REGISTER, CREATE],
            "permission_denied",
        ),
        # Once is enough.
        ([UNKNOWN, REGISTERED, UNKNOWN], [SUBMIT, REGISTER, SUBMIT], "table_not_found"),
        ([UNKNOWN, HangUp], [SUBMIT, REGISTER], "internal"),
        ([refusal(404, "NoSuchTableBucket")], [SUBMIT], "table_not_found"),
    ],
)
def test_registering(fake, monkeypatch, answers, lines, code):
    monkeypatch.setenv("LANCE_MAINTENANCE_REGISTER_NAMESPACE", "skill")
    fake.answers(*answers)
    if code is None:
        assert Backend().submit(JOB) == STATUS
    else:
        assert failure(Backend().submit, JOB).code == code
    assert fake.lines == lines
    for request, line in zip(fake.requests, lines, strict=True):
        if line == REGISTER:
            assert request.json() == {"location": URI}
        if line == CREATE:
            assert request.json() == {"mode": "exist_ok"}


def test_a_name_is_not_registered(fake, monkeypatch):
    monkeypatch.setenv("LANCE_MAINTENANCE_REGISTER_NAMESPACE", "skill")
    fake.answers(UNKNOWN)
    assert failure(Backend().submit, {**JOB, "table": "ns$t"}).code == "table_not_found"
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///w/t.lance", "t"),
        ("s3://b/Wide Table (2).lance/", "wide_table_2"),
        ("/w/_x_", "x"),
        ("/w/é/日本", "table"),
        ("s3://b/" + "n" * 500, "n" * 100),
        ("s3://b/" + "_n" * 500, "n" + "_n" * 49),
        ("s3://b", "b"),
    ],
)
def test_names_of_registered_tables(uri, name):
    made = table_name(uri)
    start, _, digits = made.rpartition("_")
    assert start == name
    assert len(digits) == 10
    assert int(digits, 16) >= 0


def test_no_two_tables_have_one_name_and_no_table_two():
    uris = ["file:///a/t.lance", "file:///b/t.lance", "file:///a/t", "s3://a/t.lance", "s3://a/T.lance"]
    assert len({table_name(uri) for uri in uris}) == len(uris)
    assert len({table_name(uri) for uri in ("/a/t", "file:///a/t", "file:///a/t//")}) == 1


# Time


@pytest.mark.parametrize("drip", [None, 0.02])
@pytest.mark.parametrize("name", ["submit", "preview", "status", "cancel"])
def test_a_call_ends_in_time(fake, name, drip):
    fake.drip = drip
    fake.answer = lambda _: fake.is_over.wait(20) and Answer(200, STATUS)
    backend = Backend(_seconds=0.3)
    start = time.monotonic()
    error = failure(getattr(backend, name), "j" if name in ("status", "cancel") else JOB)
    assert time.monotonic() - start < 2
    assert error.code == "internal"
    assert error.detail


def test_all_requests_of_a_call_share_its_time(fake, monkeypatch):
    monkeypatch.setenv("LANCE_MAINTENANCE_REGISTER_NAMESPACE", "skill")
    answers = iter([UNKNOWN, NO_NAMESPACE, Answer(200, {}), REGISTERED, Answer(200, STATUS)])

    def slowly(_):
        time.sleep(0.4)
        return next(answers)

    fake.answer = slowly
    start = time.monotonic()
    assert failure(Backend(_seconds=1.0).submit, JOB).code == "internal"
    assert time.monotonic() - start < 2
    sent = fake.lines
    assert sent == [SUBMIT, REGISTER, CREATE][: len(sent)]
    time.sleep(1.0)
    # What is late is not sent any more.
    assert fake.lines == sent


@pytest.mark.parametrize("answer", [refusal(503, "ServiceUnavailable", Retry_After="20"), HangUp])
def test_second_tries_share_it_too(fake, answer):
    fake.answers(answer)
    start = time.monotonic()
    assert failure(Backend(_seconds=1.0).status, "j").code == "internal"
    assert time.monotonic() - start < 2


def test_the_time_of_a_call_is_less_than_the_skill_waits():
    assert skill.CALL_SECONDS + 1 < 60


def test_what_is_late_keeps_nobody_from_ending(fake):
    fake.drip = 0.02
    failure(Backend(_seconds=0.1).status, "j")
    late = [it for it in threading.enumerate() if it.name == "lance-maintenance-call"]
    assert all(thread.daemon for thread in late)


def test_mistakes_of_the_client_have_a_code_as_well(monkeypatch):
    def broken(*arguments, **more):
        raise KeyError("x")

    monkeypatch.setattr(skill, "MaintenanceClient", broken)
    error = failure(Backend().status, "j")
    assert (error.code, type(error.__cause__)) == ("internal", KeyError)
