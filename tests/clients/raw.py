"""Requests as bytes on a socket, for what no client library would send."""

import json
import socket
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

import wire

WAIT_SECONDS = 20


class Answer:
    """An answer as it came."""

    def __init__(self, head: bytes, body: bytes):
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status_code = int(first.split()[1])
        self.headers = {}
        for line in lines:
            name, value = line.split(":", 1)
            self.headers[name.strip().lower()] = value.strip()
        self.content = body

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def closes(self) -> bool:
        return self.headers.get("connection") == "close"

    def json(self):
        return json.loads(self.content)


class Connection:
    """One connection; a request goes out as it is given."""

    def __init__(self, client, wait=WAIT_SECONDS):
        address = urlsplit(client.endpoint)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=wait)
        self.unread = b""

    def send(self, data: bytes):
        self.socket.sendall(data)

    def send_while_open(self, data: bytes) -> bool:
        """Whether the other side still took it."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def answer(self, to_head=False) -> Answer | None:
        """The next answer; `None` once the other side has closed."""
        while b"\r\n\r\n" not in self.unread:
            if not self._more():
                assert self.unread == b"", self.unread
                return None
        head, self.unread = self.unread.split(b"\r\n\r\n", 1)
        answer = Answer(head, b"")
        size = int(answer.headers.get("content-length", 0))
        if to_head or answer.status_code < 200:
            return answer
        while len(self.unread) < size:
            assert self._more(), "the answer was cut short"
        answer.content, self.unread = self.unread[:size], self.unread[size:]
        return answer

    def is_closed(self) -> bool:
        """Waits for the other side to close; what it says until then counts as no."""
        return self.unread == b"" and not self._more()

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.unread += data
        return data != b""

    def close(self):
        self.socket.close()


@contextmanager
def connect(client, wait=WAIT_SECONDS):
    connection = Connection(client, wait)
    try:
        yield connection
    finally:
        connection.close()


def exchange(client, data: bytes, count=1) -> list[Answer]:
    """Sends the bytes, and returns all answers: `count`, unless the other side closes before, and
    those that should not be there."""
    answers = []
    with connect(client) as connection:
        connection.send_while_open(data)
        try:
            while answer := connection.answer():
                answers.append(answer)
                if len(answers) >= count and not answer.closes:
                    connection.socket.settimeout(0.1)
        except TimeoutError:
            assert connection.socket.gettimeout() < 1, "there is no answer"
    return answers


def message(first: str | bytes, headers=(), body=b"", host: str | bytes | None = "localhost") -> bytes:
    """A request from its first line. Texts are in latin-1, so that every byte can be written."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    names = {name.lower() for name, _ in pairs if isinstance(name, str)}
    if host is not None and "host" not in names:
        pairs.insert(0, ("Host", host))
    if body and not names & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body))))
    lines = [as_bytes(first)]
    lines += [as_bytes(name) + b": " + as_bytes(value) for name, value in pairs]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def signed(client, method, path, body=b"", headers=None, more=(), **signature) -> bytes:
    """A signed request; `more` is added to its headers after signing."""
    pairs = list(wire.signed(client, method, path, body, headers, **signature).items())
    host = urlsplit(client.endpoint).netloc
    # The path goes out in UTF-8, which is what is signed.
    first = f"{method} {path} HTTP/1.1".encode()
    return message(first, [*pairs, *more], body, host)


def statuses(answers) -> list[int]:
    return [answer.status_code for answer in answers]


def as_bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def seconds_since(start: float) -> float:
    return time.monotonic() - start
