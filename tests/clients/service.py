"""The service as `cargo xtask up` runs it, and a client that signs with botocore."""

import hashlib
import json
import os
import signal
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import requests
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

START_SECONDS = 120
TASK_SECONDS = 120


class Service:
    """One `up` on a folder of its own. `start` may be called again after `stop`."""

    def __init__(self, folder: Path, variables: dict[str, str] | None = None, access=None):
        self.folder = folder
        self.variables = variables or {}
        self.access = access
        self.process = None
        self.state = {}

    def start(self) -> "Service":
        command = [os.environ["XTASK"], "up", "--no-build", "--listen", "127.0.0.1:0"]
        command += ["--data", str(self.folder)]
        for name, value in self.variables.items():
            command += ["--variable", f"{name}={value}"]
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.access is not None:
            (self.folder / "access.json").write_text(json.dumps(self.access))
        self.log = open(self.folder / "up.log", "ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        ready = self.folder / "up.json"
        end = time.monotonic() + START_SECONDS
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError("up did not start:\n" + (self.folder / "up.log").read_text())
            time.sleep(0.05)
        self.state = json.loads(ready.read_text())
        return self

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)
        self.log.close()

    @property
    def endpoint(self) -> str:
        return self.state["endpoint"]

    def read_state(self) -> dict:
        """What `up` says of its processes now; they change when one is started again."""
        return json.loads((self.folder / "up.json").read_text())

    def client(self, host: str | None = None) -> "Client":
        keys = json.loads(Path(self.state["credentials"]).read_text())
        return Client(self.endpoint, **keys, host=host)

    def client_of(self, access_key_id, secret_access_key, session_token=None, **more) -> "Client":
        """The client of somebody else than the administrator."""
        region = self.client().region
        return Client(
            self.endpoint,
            access_key_id,
            secret_access_key,
            region,
            session_token=session_token,
            **more,
        )

    def lose_worker(self):
        """Ends the worker for good: until `stop`, tasks stay as they are."""
        # Who would start it again is stopped first.
        self.process.send_signal(signal.SIGSTOP)
        os.kill(self.read_state()["worker_pid"], signal.SIGKILL)
        end = time.monotonic() + START_SECONDS
        while self._worker_answers():
            assert time.monotonic() < end, "the worker does not end"
            time.sleep(0.01)

    def _worker_answers(self) -> bool:
        try:
            requests.get(self.state["worker"] + "/readyz", timeout=5)
            return True
        except requests.RequestException:
            return False


@dataclass
class Client:
    """Signs with AWS SigV4, service `osstables`."""

    endpoint: str
    access_key_id: str
    secret_access_key: str
    region: str
    host: str | None = None
    session_token: str | None = None
    session: requests.Session = field(default_factory=requests.Session)

    def request(self, method, path, body=None, headers=None, host=None, **options):
        """Sends a signed request. `body` is bytes, or anything that JSON can hold."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = dict(headers or {})
        if host or self.host:
            headers["Host"] = host or self.host
        if data:
            headers.setdefault("Content-Type", "application/json")
        signed = AWSRequest(method, self.endpoint + path, data=data, headers=headers)
        credentials = Credentials(self.access_key_id, self.secret_access_key, self.session_token)
        SigV4Auth(credentials, "osstables", self.region).add_auth(signed)
        return self.send(method, path, data, dict(signed.headers), **options)

    def send(self, method, path, data=b"", headers=None, **options):
        """Sends a request as it is: no signature, and the path untouched on the wire."""
        prepared = requests.Request(method, self.endpoint, data=data, headers=headers).prepare()
        prepared.url = self.endpoint + path
        options.setdefault("timeout", 60)
        return self.session.send(prepared, **options)

    # Namespaces and tables

    def create_namespace(self, name, **body):
        return self.request("POST", f"/lance/v1/namespace/{name}/create", body)

    def declare(self, table) -> str:
        """Declares a table and returns its location."""
        answer = self.request("POST", f"/lance/v1/table/{quote(table, safe='')}/declare", {})
        assert answer.status_code == 200, answer.text
        return answer.json()["location"]

    def new_table(self, namespace="tests") -> tuple[str, str]:
        """Declares a table of a name that was never used; returns its id and location."""
        self.create_namespace(namespace, mode="exist_ok")
        table = f"{namespace}${'t' + uuid.uuid4().hex[:12]}"
        return table, self.declare(table)

    # Tasks

    def submit(self, table, operation, body=None, **options):
        path = f"/lance/oss/v1/table/{quote(table, safe='')}/{operation}"
        return self.request("POST", path, body, **options)

    def get(self, table, task_id, query="", **options):
        path = f"/lance/oss/v1/table/{quote(table, safe='')}/tasks/{task_id}{query}"
        return self.request("GET", path, **options)

    def list(self, table, query):
        return self.request("GET", f"/lance/oss/v1/table/{quote(table, safe='')}/tasks?{query}")

    def delete(self, table, task_id):
        path = f"/lance/oss/v1/table/{quote(table, safe='')}/tasks/{task_id}"
        return self.request("DELETE", path)

    def wait(self, table, task_id) -> dict:
        """The task's info once it has ended."""
        end = time.monotonic() + TASK_SECONDS
        while True:
            answer = self.get(table, task_id)
            assert answer.status_code == 200, answer.text
            info = answer.json()["task_info"]
            if info["status"] in ("completed", "failed"):
                return info
            assert time.monotonic() < end, f"the task does not end: {info}"
            time.sleep(0.1)

    def run(self, table, operation, body=None) -> dict:
        """Submits a task, waits for its end, and returns its info."""
        answer = self.submit(table, operation, body)
        assert answer.status_code == 200, answer.text
        return self.wait(table, answer.json()["task_id"])

    def complete(self, table, operation, body=None) -> dict:
        """Runs a task that must complete, and returns its result."""
        info = self.run(table, operation, body)
        assert info["status"] == "completed", info
        assert info["error"] is None
        return info["result"]

    def fail(self, table, operation, body=None) -> dict:
        """Runs a task that must fail, and returns its error."""
        info = self.run(table, operation, body)
        assert info["status"] == "failed", info
        assert info["result"] == {}
        return info["error"]


def refusal(answer) -> tuple[int, str, int]:
    """Status, name and code of an error answer, whose form is checked."""
    body = answer.json()
    assert set(body) == {"error", "code", "detail", "instance"}, body
    assert answer.headers["content-type"] == "application/json"
    assert body["instance"] == answer.headers["x-oss-request-id"]
    assert body["detail"] and ".rs" not in body["detail"], body
    return answer.status_code, body["error"], body["code"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
