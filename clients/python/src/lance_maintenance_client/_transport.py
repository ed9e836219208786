"""One request after the other to the service: sent, tried again where that can do no harm, and its
answer read as JSON or raised."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx

from ._auth import SigV4
from .errors import INTERNAL, MaintenanceError, code_of, invalid

ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
MOST_WAIT_SECONDS = 30.0
MOST_BYTES = 64 * 1024 * 1024

_LATER = (429, 503)
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_CONNECTION = (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ConnectTimeout)


@dataclass(frozen=True)
class Answer:
    """An answer that was read as a whole."""

    status: int
    headers: httpx.Headers
    content: bytes


class Transport:
    """The connection to one service.

    A request may take `timeout` seconds. `until` is a moment of `time.monotonic()` after which nothing
    is sent or awaited.
    """

    def __init__(self, url: str, auth: SigV4, timeout: float, until: float | None = None) -> None:
        self.origin = _origin(url)
        if not timeout > 0:
            raise invalid("'timeout' must be a number of seconds above 0.")
        self._timeout = timeout
        self._until = until
        self._auth = auth
        self._http = httpx.Client(auth=auth, verify=_tls(), follow_redirects=False)

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        changes: bool = True,
        until: float | None = None,
    ) -> Any:
        """The JSON of the answer; `None` if it has no body.

        `path` and the values of `query` are sent as they are encoded here. `changes` says whether the
        request changes anything, if it is no GET. Only a GET is tried again.
        """
        url = self.origin + path
        if query:
            url += "?" + "&".join(f"{name}={quote(text, safe='')}" for name, text in query.items())
        sent = dict(headers or {})
        content = b""
        if body is not None:
            content = _as_json(body)
            sent["Content-Type"] = "application/json"
        moments = [moment for moment in (until, self._until) if moment is not None]
        last = min(moments, default=None)
        try:
            request = self._http.build_request(method, url, content=content, headers=sent)
        except httpx.InvalidURL:
            raise invalid("An argument is too long.") from None
        attempt = 1
        while True:
            try:
                return self._read(self._exchange(request, changes and method != "GET", last))
            except MaintenanceError as error:
                if method != "GET" or attempt == ATTEMPTS or error._retry_after is None:
                    raise
                wait = max(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), error._retry_after)
                is_too_long = last is not None and time.monotonic() + wait > last
                if wait > MOST_WAIT_SECONDS or is_too_long:
                    raise
            time.sleep(wait)
            attempt += 1

    def _exchange(self, request: httpx.Request, changes: bool, last: float | None) -> Answer:
        """Sends a request once, and reads the whole answer."""
        now = time.monotonic()
        end = now + self._timeout if last is None else min(now + self._timeout, last)
        seconds = end - now
        if seconds <= 0:
            raise self._unanswered("the time for the whole call is over", is_sent=False)
        request.extensions = {"timeout": httpx.Timeout(seconds).as_dict()}
        late = f"it was not there within {seconds:.3g} s"
        try:
            response = self._http.send(request, stream=True)
            try:
                content = bytearray()
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > MOST_BYTES:
                        raise self.not_understood(response.status_code)
                    if time.monotonic() > end:
                        raise self._unanswered(late, is_sent=changes)
                return Answer(response.status_code, response.headers, bytes(content))
            finally:
                response.close()
        except httpx.HTTPError as error:
            is_sent = changes and not isinstance(error, _NEVER_SENT)
            why = late if isinstance(error, httpx.TimeoutException) else str(error)
            may_retry = isinstance(error, _CONNECTION)
            raise self._unanswered(why or type(error).__name__, is_sent, may_retry) from error

    def _unanswered(self, why: str, is_sent: bool, may_retry: bool = False) -> MaintenanceError:
        """The error for a request without an answer. `is_sent`: it may have changed something."""
        what_to_do = (
            "Whether the request had an effect is not known: look, at the table's jobs for example, "
            "before it is sent again."
            if is_sent
            else "Check the address and that the service runs, then try again."
        )
        error = MaintenanceError(
            INTERNAL,
            self._auth.redacted(f"There is no answer from {self.origin}: {why}. {what_to_do}"),
            is_temporary=True,
        )
        error._retry_after = 0.0 if may_retry else None
        return error

    def _read(self, answer: Answer) -> Any:
        """The JSON of a success; raises what the service says otherwise."""
        is_success = 200 <= answer.status < 300
        if is_success and not answer.content:
            return None
        try:
            body = json.loads(answer.content)
        except (ValueError, RecursionError):
            body = None
        if is_success and body is not None:
            return body
        is_refusal = isinstance(body, dict) and isinstance(body.get("error"), str)
        error = self._refusal(answer, body) if is_refusal else self.not_understood(answer.status)
        if answer.status in _LATER:
            error.is_temporary = True
            error._retry_after = _retry_after(answer.headers)
        raise error

    def _refusal(self, answer: Answer, body: dict[str, Any]) -> MaintenanceError:
        """The error that the service answered with."""
        clean = self._auth.redacted
        request_id = body.get("instance") or answer.headers.get("x-oss-request-id")
        return MaintenanceError(
            code_of(body["error"]),
            clean(str(body.get("detail") or "The service gives no reason.")),
            name=clean(body["error"]),
            status=answer.status,
            request_id=clean(str(request_id)) if request_id else None,
        )

    def not_understood(self, status: int | None = None) -> MaintenanceError:
        """The error for an answer that is not the service's."""
        return MaintenanceError(
            INTERNAL,
            f"The answer of {self.origin} is none that the service gives. Check that this is the "
            "address of lance-maintenance, and that nothing between changes its answers.",
            status=status,
        )


@cache
def _tls() -> ssl.SSLContext:
    # Reading the certificates takes a good part of a second, and some callers make many clients.
    return httpx.create_ssl_context()


def segment(text: str, what: str) -> str:
    """A text as one segment of a path: everything but letters, digits and `_.-~` is encoded."""
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise invalid(f"The {what} is missing.")
    try:
        encoded = quote(text, safe="")
    except UnicodeEncodeError:
        raise invalid(f"The {what} is not a text that can be written in UTF-8.") from None
    if len(encoded) > 8192:
        raise invalid(f"The {what} is too long.")
    return encoded


def _origin(url: str) -> str:
    """Scheme, host and port of the service."""
    # A wrong address is not repeated: who puts a password there shall not find it in a log.
    what = "'url' must be the service's address, such as https://maintenance.example.com:3000"
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        raise invalid(f"{what}.") from None
    if parsed.userinfo:
        raise invalid(f"{what}, without credentials: these are arguments of their own.")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise invalid(f"{what}.")
    if parsed.raw_path not in (b"", b"/") or parsed.fragment:
        raise invalid(f"{what}, without a path or a query.")
    return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}"


def _as_json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise invalid("The options must be values that JSON can hold.") from None


def _retry_after(headers: httpx.Headers) -> float:
    """For how many seconds an answer asks to wait: a number, or a moment; 0 if it does not."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return max(0.0, (moment - datetime.now(timezone.utc)).total_seconds())
