"""What every failed call raises, and the few kinds of failure that the skill tells apart."""

from __future__ import annotations

from typing import Final

UNSUPPORTED: Final = "unsupported"
INVALID_INPUT: Final = "invalid_input"
TABLE_NOT_FOUND: Final = "table_not_found"
JOB_NOT_FOUND: Final = "job_not_found"
PERMISSION_DENIED: Final = "permission_denied"
CONFLICT: Final = "conflict"
CANCELED: Final = "canceled"
INTERNAL: Final = "internal"

CODES: Final = {
    "Unsupported": UNSUPPORTED,
    "NoSuchOperation": UNSUPPORTED,
    "MethodNotAllowed": UNSUPPORTED,
    "TableNotFound": TABLE_NOT_FOUND,
    "NamespaceNotFound": TABLE_NOT_FOUND,
    "NoSuchTableBucket": TABLE_NOT_FOUND,
    "LanceThirdLevelDomainRequired": TABLE_NOT_FOUND,
    "TaskNotFound": JOB_NOT_FOUND,
    "PermissionDenied": PERMISSION_DENIED,
    "AccessDenied": PERMISSION_DENIED,
    "SignatureDoesNotMatch": PERMISSION_DENIED,
    "InvalidAccessKeyId": PERMISSION_DENIED,
    "RequestTimeTooSkewed": PERMISSION_DENIED,
    "InvalidSecurityToken": PERMISSION_DENIED,
    "ConcurrentModification": CONFLICT,
    "Canceled": CANCELED,
    # What is named in the job and is not there is a mistake in the job.
    "TableIndexNotFound": INVALID_INPUT,
    "TableIndexAlreadyExists": INVALID_INPUT,
    "TableTagNotFound": INVALID_INPUT,
    "TableVersionNotFound": INVALID_INPUT,
    "TableBranchNotFound": INVALID_INPUT,
    "TableColumnNotFound": INVALID_INPUT,
    "TableSchemaValidationError": INVALID_INPUT,
    "InvalidInput": INVALID_INPUT,
    "InvalidDigest": INVALID_INPUT,
    "RequestTooLarge": INVALID_INPUT,
    "MalformedPolicy": INVALID_INPUT,
    "NamespaceAlreadyExists": INTERNAL,
    "NamespaceNotEmpty": INTERNAL,
    "TableAlreadyExists": INTERNAL,
    "ServiceUnavailable": INTERNAL,
    "InternalError": INTERNAL,
    "InvalidTableState": INTERNAL,
    "TaskStateConflict": INTERNAL,
    "TaskQuotaExceeded": INTERNAL,
    "NoSuchPolicy": INTERNAL,
    "NoSuchCredential": INTERNAL,
}
"""The kind of failure that each of the service's error names is; the service's own table of failed
jobs says the same. A name that is not here is `internal`."""


class MaintenanceError(Exception):
    """A call that failed.

    - `code`: the kind of failure, one of the constants of this module
    - `detail`: what is wrong and what to do
    - `name`: the service's name for it, such as `TableNotFound`; `None` if the service did not say so
    - `status`: the HTTP status; `None` if there was no answer
    - `request_id`: the id under which the service logged the request; `None` if there is none
    - `is_temporary`: whether the same call may well succeed later
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        name: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        is_temporary: bool = False,
    ) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.name = name
        self.status = status
        self.request_id = request_id
        self.is_temporary = is_temporary
        # Seconds after which a call that changes nothing may be tried again; `None`: no use.
        self._retry_after: float | None = None

    def __str__(self) -> str:
        facts = [self.name or self.code]
        if self.status is not None:
            facts.append(f"HTTP {self.status}")
        if self.request_id:
            facts.append(f"request {self.request_id}")
        return f"{self.detail} ({', '.join(facts)})"


def code_of(name: str) -> str:
    """The kind of failure that an error of this name is."""
    return CODES.get(name, INTERNAL)


def invalid(detail: str) -> MaintenanceError:
    """An argument that can't be sent."""
    return MaintenanceError(INVALID_INPUT, detail)
