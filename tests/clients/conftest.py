import shutil

import pytest

from service import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The service that most tests share."""
    running = Service(tmp_path_factory.mktemp("up")).start()
    yield running
    running.stop()


@pytest.fixture
def client(service):
    return service.client()


@pytest.fixture(scope="session")
def start(tmp_path_factory, service):
    """Starts services of a test's own; they end with the session."""
    started = []

    def start_one(access=None, **variables):
        folder = tmp_path_factory.mktemp("up")
        # Compiling the components anew would take seconds.
        shutil.copytree(service.folder / "state/compiled", folder / "state/compiled")
        running = Service(folder, variables, access).start()
        started.append(running)
        return running

    yield start_one
    for running in started:
        running.stop()


@pytest.fixture(scope="session")
def strict(start):
    """A service with other settings: little quota, a compaction mode that is none, two buckets."""
    return start(
        task_quota="3",
        compaction_mode="fast",
        table_buckets="lance,other",
        default_bucket="",
        account_id="1234567890",
    )


@pytest.fixture(scope="session")
def idle(start):
    """A service without its worker: tasks stay as they are, unless a test plays the worker."""
    running = start()
    running.lose_worker()
    return running
