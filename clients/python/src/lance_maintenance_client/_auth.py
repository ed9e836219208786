"""Signs requests with AWS Signature Version 4, service `osstables`."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from datetime import datetime, timezone

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from .errors import invalid

SERVICE = "osstables"

# What is signed if the request has it. The host binds the request to one service; whatever is added
# on the way (connection, encoding, user agent) stays out.
_SIGNED = ("host", "content-type", "x-lance-task-progress")


class SigV4(httpx.Auth):
    """Signs method, path, query, host and the whole body, each time a request is sent.

    The path is signed as it goes out: what is encoded in it stays so.
    """

    requires_request_body = True

    def __init__(
        self,
        access_key_id: str,
        secret_access_key: str,
        region: str,
        session_token: str | None = None,
    ) -> None:
        values = {
            "access_key_id": access_key_id,
            "secret_access_key": secret_access_key,
            "region": region,
            "session_token": session_token,
        }
        for name, value in values.items():
            # An end of line, from a file for example, would show up in errors about headers.
            is_token = name == "session_token" and value is None
            if not is_token and not _is_plain(value):
                raise invalid(f"'{name}' must be a text of ASCII characters without spaces.")
        self._access_key_id = access_key_id
        self._region = region
        self._session_token = session_token
        self._signer = SigV4Auth(
            Credentials(access_key_id, secret_access_key, session_token), SERVICE, region
        )
        self._secrets = [text for text in (session_token, secret_access_key) if text]

    def __repr__(self) -> str:
        return f"SigV4(access_key_id={self._access_key_id!r}, region={self._region!r})"

    def redacted(self, text: str) -> str:
        """A text from outside without the secrets, should it repeat them."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["X-Amz-Date"] = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(request.content).hexdigest()
        if self._session_token is not None:
            request.headers["X-Amz-Security-Token"] = self._session_token
        request.headers["Authorization"] = self._authorization(request)
        yield request

    def _authorization(self, request: httpx.Request) -> str:
        # botocore's `add_auth` does the same, but logs what it signs, the session token with it.
        path = request.url.raw_path.decode("ascii")
        headers = {
            name: value
            for name, value in request.headers.items()
            if name in _SIGNED or name.startswith("x-amz-")
        }
        signed = AWSRequest(
            request.method, f"{request.url.scheme}://{headers['host']}{path}", headers=headers
        )
        signed.context["timestamp"] = headers["x-amz-date"]
        text = self._signer.string_to_sign(signed, self._signer.canonical_request(signed))
        names = self._signer.signed_headers(self._signer.headers_to_sign(signed))
        return (
            f"AWS4-HMAC-SHA256 Credential={self._signer.scope(signed)}, "
            f"SignedHeaders={names}, Signature={self._signer.signature(text, signed)}"
        )


def _is_plain(value: object) -> bool:
    return isinstance(value, str) and value != "" and all("!" <= char <= "~" for char in value)
