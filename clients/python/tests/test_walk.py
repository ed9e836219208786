"""The steps of the skill's checker, through the backend and over HTTP, on a table of pylance."""

import pytest

lance = pytest.importorskip("lance")

import pyarrow as pa  # noqa: E402
from lance_fake import LanceFake  # noqa: E402
from walk import ROWS_PER_FILE, walk  # noqa: E402

from lance_maintenance_client.skill import Backend, table_name  # noqa: E402


def append(uri: str, start: int, stop: int) -> None:
    rows = pa.table({"id": pa.array(range(start, stop), pa.int64())})
    lance.write_dataset(rows, uri, mode="append", max_rows_per_file=ROWS_PER_FILE)


@pytest.mark.usefixtures("settings")
def test_walk(fake, monkeypatch, tmp_path):
    service = LanceFake()
    fake.answer = service
    monkeypatch.setenv("LANCE_MAINTENANCE_REGISTER_NAMESPACE", "skill")
    uri = f"file://{tmp_path}/busy table.lance"
    assert walk(Backend(), uri, append) < 20
    assert service.tables == {f"skill${table_name(uri)}": uri}
    states = [job["state"] for _, job in service.jobs.values()]
    assert states == ["succeeded"] * 3 + ["canceled"]


class Idle:
    """A backend that says that all is done, and does nothing."""

    jobs: dict[str, dict] = {}  # noqa: RUF012

    def submit(self, job):
        status = {"job_id": f"j{len(self.jobs)}", "state": "succeeded", "result": {}}
        self.jobs[status["job_id"]] = status
        return status

    def status(self, job_id):
        if job_id not in self.jobs:
            error = Exception("There is none.")
            error.code = "job_not_found"
            raise error
        return self.jobs[job_id]

    cancel = status


class Forgetful(Idle):
    """A backend that knows what it did as long as the process goes on."""

    def __init__(self):
        self.jobs = {}


@pytest.mark.parametrize(
    ("backend", "mistake"),
    [(Idle, "compact: 2 before, 2 after, not 0"), (Forgetful, "There is none")],
)
def test_a_walk_sees_who_does_nothing(tmp_path, backend, mistake):
    with pytest.raises(Exception, match=mistake):
        walk(backend(), str(tmp_path / "t.lance"), append)
