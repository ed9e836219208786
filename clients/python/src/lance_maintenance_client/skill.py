"""Hands the jobs of the published maintenance skill to the service.

The skill finds `lance_maintenance_client.skill.Backend` by this path. What it needs to know stands in
the environment:

| variable | |
|---|---|
| `LANCE_MAINTENANCE_URL` | the service's address |
| `LANCE_MAINTENANCE_ACCESS_KEY_ID`, `LANCE_MAINTENANCE_SECRET_ACCESS_KEY` | the access key |
| `LANCE_MAINTENANCE_SESSION_TOKEN` | of a temporary access key |
| `LANCE_MAINTENANCE_REGION` | the region that the service is set to; `local` if left out |
| `LANCE_MAINTENANCE_REGISTER_NAMESPACE` | where tables that are not in the catalog are registered |
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

from .client import MaintenanceClient
from .errors import (
    CANCELED,
    INTERNAL,
    TABLE_NOT_FOUND,
    UNSUPPORTED,
    MaintenanceError,
    invalid,
)
from .types import JobStatus, Operation, Preview

CALL_SECONDS = 55.0
"""For how long a call goes on at the most; the skill waits for 60 seconds."""

_OPERATIONS = ("compact", "optimize_indices", "cleanup")
_FIELDS = ("table", "operation", "options")
_SECRET_WORDS = ("key", "secret", "token", "sig", "pass", "cred", "auth")

# What a registration fails with if somebody else registers the same table at this moment.
_REGISTERED_BY_OTHERS = ("TableAlreadyExists", "ConcurrentModification")

T = TypeVar("T")


class Backend:
    """Runs jobs at the service. Settings are read with every call.

    A job is a mapping of `table` (the URI of the table's folder, or `namespace$table`), `operation`
    and `options`. Every call ends within `CALL_SECONDS`, and raises `MaintenanceError`, whose `code`
    is one of `unsupported`, `invalid_input`, `table_not_found`, `job_not_found`, `permission_denied`,
    `conflict` and `internal`.
    """

    def __init__(self, *, _seconds: float = CALL_SECONDS) -> None:
        self._seconds = _seconds

    def submit(self, job: Mapping[str, Any]) -> JobStatus:
        """Submits a job, and returns its status."""
        table, operation, options = _checked(job)
        return self._on_table(table, lambda client: client.submit(table, operation, options))

    def preview(self, job: Mapping[str, Any]) -> Preview:
        """What the job would do to the table as it is now."""
        table, operation, options = _checked(job)
        return self._on_table(table, lambda client: client.preview(table, operation, options))

    def status(self, job_id: str) -> JobStatus:
        """The status of a job, whoever submitted it."""
        return self._call(lambda client: client.job(job_id))

    def cancel(self, job_id: str) -> JobStatus:
        """Asks for a job to be stopped, and returns its status, which may not be final yet."""
        return self._call(lambda client: client.cancel(job_id))

    def _on_table(self, table: str, call: Callable[[MaintenanceClient], T]) -> T:
        namespace = os.environ.get("LANCE_MAINTENANCE_REGISTER_NAMESPACE")

        def registered_if_need_be(client: MaintenanceClient) -> T:
            try:
                return call(client)
            except MaintenanceError as error:
                # A missing bucket has the same code, and no registration helps.
                if error.name != "TableNotFound" or "/" not in table:
                    raise
                if not namespace:
                    raise _unknown_table(error) from error
            _register(client, namespace, table)
            return call(client)

        return self._call(registered_if_need_be)

    def _call(self, call: Callable[[MaintenanceClient], T]) -> T:
        """Calls with a client, and returns or raises in time whatever the service does: an answer
        that comes byte by byte keeps each single wait short."""
        until = time.monotonic() + self._seconds
        settings = _settings()
        done: list[T] = []
        failed: list[MaintenanceError] = []

        def run() -> None:
            try:
                with MaintenanceClient(**settings, timeout=self._seconds, _until=until) as client:
                    done.append(call(client))
            except MaintenanceError as error:
                failed.append(error)
            except Exception as error:
                failed.append(MaintenanceError(INTERNAL, f"The call failed: {type(error).__name__}."))
                failed[0].__cause__ = error

        # Python waits for no daemon when it ends; one that is late sends nothing any more.
        thread = threading.Thread(target=run, name="lance-maintenance-call", daemon=True)
        thread.start()
        # A wait that the client itself ends has the better text.
        thread.join(self._seconds + min(1.0, self._seconds))
        if done:
            return done[0]
        if not failed:
            raise MaintenanceError(
                INTERNAL,
                f"The service did not answer within {self._seconds:g} s. If this was a submit, look at "
                "the table's jobs before a second try.",
            )
        if failed[0].code == CANCELED:
            failed[0].code = INTERNAL
        raise failed[0]


def _settings() -> dict[str, Any]:
    """The client's arguments, from the environment. Raises what can't be one of them."""
    settings = {
        "url": "LANCE_MAINTENANCE_URL",
        "access_key_id": "LANCE_MAINTENANCE_ACCESS_KEY_ID",
        "secret_access_key": "LANCE_MAINTENANCE_SECRET_ACCESS_KEY",
    }
    for name, variable in settings.items():
        text = os.environ.get(variable)
        if not text:
            raise invalid(
                f"The environment variable {variable} is not set: it is the service's {name}."
            )
        settings[name] = text
    settings["region"] = os.environ.get("LANCE_MAINTENANCE_REGION") or "local"
    token = os.environ.get("LANCE_MAINTENANCE_SESSION_TOKEN")
    return {**settings, "session_token": token or None}


def _checked(job: Mapping[str, Any]) -> tuple[str, Operation, Mapping[str, Any]]:
    """Table, operation and options of a job in which nothing else stands."""
    if not isinstance(job, Mapping):
        raise invalid("A job is a mapping of table, operation and options.")
    for name in job:
        if name not in _FIELDS:
            raise invalid(f"'{name}' is no field of a job: these are table, operation and options.")
    table, operation, options = (job.get(name) for name in _FIELDS)
    if not isinstance(table, str) or not table:
        raise invalid("'table' must be the URI of the table's folder.")
    if _has_credentials(table):
        raise invalid(
            "'table' holds credentials, which do not belong into a job: the service has its own for "
            "the table's storage."
        )
    if not isinstance(operation, str):
        raise invalid("'operation' must be a text.")
    if operation not in _OPERATIONS:
        raise MaintenanceError(UNSUPPORTED, f"The operation is not one of {', '.join(_OPERATIONS)}.")
    if options is not None and not isinstance(options, Mapping):
        raise invalid("'options' must be a mapping of names to values.")
    return table, cast(Operation, operation), options or {}


def _has_credentials(table: str) -> bool:
    """Whether a URI brings a password, or a key or a signature in what follows its path."""
    try:
        parts = urlsplit(table)
    except ValueError:
        return False
    user, at, _ = parts.netloc.rpartition("@")
    # `abfss://container@account/…` names a container, and no user.
    if at and (":" in user or not parts.scheme.lower().startswith(("abfs", "az"))):
        return True
    more = parse_qsl(f"{parts.query}&{parts.fragment}", keep_blank_values=True)
    names = [name.lower() for name, _ in more]
    return any(word in name for name in names for word in _SECRET_WORDS)


def _unknown_table(error: MaintenanceError) -> MaintenanceError:
    return MaintenanceError(
        TABLE_NOT_FOUND,
        f"{error.detail} The catalog of the service may not know the table: register its folder "
        "(MaintenanceClient.register_table), or set LANCE_MAINTENANCE_REGISTER_NAMESPACE to the "
        "namespace in which tables are to be registered.",
        name=error.name,
        status=error.status,
        request_id=error.request_id,
    )


def _register(client: MaintenanceClient, namespace: str, uri: str) -> None:
    """Registers a table's folder under a name of its own, and makes the namespace if there is none."""
    table = f"{namespace}${table_name(uri)}"
    try:
        try:
            client.register_table(table, uri)
        except MaintenanceError as error:
            if error.name != "NamespaceNotFound":
                raise
            client.create_namespace(namespace, mode="exist_ok")
            client.register_table(table, uri)
    except MaintenanceError as error:
        if error.name not in _REGISTERED_BY_OTHERS:
            raise


def table_name(uri: str) -> str:
    """The name under which a table's folder is registered: that of the folder, as far as names allow
    it, and ten digits of a digest of the URI, so that no two tables have one name."""
    location = (f"file://{uri}" if uri.startswith("/") else uri).rstrip("/")
    folder = location.rpartition("/")[2].lower().removesuffix(".lance")
    words = re.sub("[^a-z0-9]+", "_", folder)[:100].strip("_")
    return f"{words or 'table'}_{hashlib.sha256(location.encode()).hexdigest()[:10]}"
