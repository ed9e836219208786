"""An HTTP server in this process that keeps what it is sent, checks its signature, and answers as a
test says."""

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

KEY, SECRET, TOKEN, REGION = "AK1", "s3cr3t+of/the=key", "t0ken-of-the-session", "local"


@dataclass(frozen=True)
class Request:
    """A request as it came: `path` is what stood in its first line."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """What is sent back: bytes as they are, anything else as JSON, `None` as nothing."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def content(self) -> bytes:
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(self.body).encode()


def refusal(status: int, name: str, detail: str = "So it is.", **headers: str) -> Answer:
    """An error as the service sends it."""
    body = {"error": name, "code": 18, "detail": detail, "instance": "R1"}
    return Answer(status, body, {key.replace("_", "-"): value for key, value in headers.items()})


class HangUp(Exception):
    """Raised instead of an answer: the connection is closed."""


class Fake:
    """The server. `answer` is called for each request, on a thread of its own."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Answer] = lambda _: Answer(200, {})
        self.token: str | None = None
        self.mistakes: list[str] = []
        # Set at the end: what never answers until then gives up.
        self.is_over = threading.Event()
        # Instead of an answer, a byte each so many seconds.
        self.drip: float | None = None
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.is_over.set()
        self._server.shutdown()
        self._server.server_close()

    def answers(self, *answers: Answer | type[Exception]) -> None:
        """Answers with these in turn, and with the last from there on."""
        left = list(answers)

        def next_one(_: Request) -> Answer:
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, type):
                raise answer
            return answer

        self.answer = next_one

    @property
    def last(self) -> Request:
        return self.requests[-1]

    @property
    def lines(self) -> list[str]:
        return [f"{request.method} {request.path}" for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: Fake

    def _serve(self) -> None:
        size = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, self.rfile.read(size))
        mistake = signature_mistake(request, self.fake.token)
        if mistake:
            self.fake.mistakes.append(mistake)
        self.fake.requests.append(request)
        if self.fake.drip is not None:
            self._drip(self.fake.drip)
            return
        try:
            answer = self.fake.answer(request)
        except HangUp:
            self.close_connection = True
            return
        try:
            self._send(answer)
        except OSError:
            # Nobody waits for it any more.
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        content = answer.content()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _drip(self, seconds: float) -> None:
        self.close_connection = True
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
            while not self.fake.is_over.wait(seconds):
                self.wfile.write(b"x")
                self.wfile.flush()
        except OSError:
            return

    do_GET = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def signature_mistake(request: Request, token: str | None) -> str | None:
    """What is wrong with a request's signature, which is computed anew over what arrived."""
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    parts = dict(part.split("=", 1) for part in rest.split(", ") if "=" in part)
    if scheme != "AWS4-HMAC-SHA256" or set(parts) != {"Credential", "SignedHeaders", "Signature"}:
        return "the request is not signed"
    time = request.headers["x-amz-date"]
    if parts["Credential"] != f"{KEY}/{time[:8]}/{REGION}/osstables/aws4_request":
        return f"the credential is {parts['Credential']}"
    names = parts["SignedHeaders"].split(";")
    needed = {"host", "x-amz-date", "x-amz-content-sha256"}
    needed |= {name for name in ("content-type", "x-lance-task-progress") if name in request.headers}
    needed |= {"x-amz-security-token"} if token else set()
    if set(names) != needed:
        return f"signed are {names}"
    if request.headers["x-amz-content-sha256"] != hashlib.sha256(request.body).hexdigest():
        return "the digest is not the body's"
    if request.headers.get("x-amz-security-token") != token:
        return "the session token is another"
    signed = AWSRequest(
        request.method,
        f"http://{request.headers['host']}{request.path}",
        data=request.body,
        headers={name: request.headers[name] for name in names},
    )
    signed.context["timestamp"] = time
    signer = SigV4Auth(Credentials(KEY, SECRET, token), "osstables", REGION)
    text = signer.string_to_sign(signed, signer.canonical_request(signed))
    if signer.signature(text, signed) != parts["Signature"]:
        return "the signature does not match"
    return None
