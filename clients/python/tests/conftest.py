from collections.abc import Iterator

import pytest
from fake import KEY, REGION, SECRET, Fake

from lance_maintenance_client import MaintenanceClient, _transport


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent to this machine stays on it."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def fake() -> Iterator[Fake]:
    """A server; whatever it was sent has to be signed."""
    server = Fake()
    yield server
    server.stop()
    assert server.mistakes == []


@pytest.fixture
def client(fake: Fake) -> Iterator[MaintenanceClient]:
    with MaintenanceClient(fake.url, KEY, SECRET, REGION, timeout=5) as made:
        yield made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second tries come at once."""
    monkeypatch.setattr(_transport, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def settings(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the skill's backend."""
    for name in ("REGION", "SESSION_TOKEN", "REGISTER_NAMESPACE"):
        monkeypatch.delenv(f"LANCE_MAINTENANCE_{name}", raising=False)
    monkeypatch.setenv("LANCE_MAINTENANCE_URL", fake.url)
    monkeypatch.setenv("LANCE_MAINTENANCE_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("LANCE_MAINTENANCE_SECRET_ACCESS_KEY", SECRET)
