"""The worker's side of its contract with the application, for tests to play."""

import hashlib
import hmac
import json
import time

import wire


class ActingWorker:
    """Signs with the secret that application and worker share."""

    def __init__(self, service, name="acting"):
        self.service = service
        self.name = name
        variables = json.loads((service.folder / "variables.json").read_text())
        self.secret = variables["worker_secret"]

    def headers(self, path, body: bytes, method="POST", secret=None, seconds=0) -> dict[str, str]:
        """The headers of a message signed that many seconds from now."""
        timestamp = str(int(time.time()) + seconds)
        text = "\n".join([method, path, timestamp, hashlib.sha256(body).hexdigest()])
        key = hashlib.sha256((secret or self.secret).encode()).digest()
        return {
            "Content-Type": "application/json",
            "x-lance-timestamp": timestamp,
            "x-lance-signature": hmac.new(key, text.encode(), hashlib.sha256).hexdigest(),
        }

    def send(self, path, message, method="POST", **signature) -> wire.Answer:
        body = json.dumps(message).encode()
        headers = self.headers(path, body, method, **signature)
        return wire.send(self.service.client(), method, path, headers, body)

    def _say(self, what, table_id, task_id, **more):
        claim = {"worker_id": self.name, "table_id": table_id, "task_id": task_id, "attempt": 1}
        answer = self.send(f"/worker/v1/{what}", claim | more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def may_begin(self, table_id, task_id) -> bool:
        """Claims a task: whether it is the table's turn."""
        return not self._say("claim", table_id, task_id).get("wait", False)

    def claim(self, table_id, task_id):
        assert self.may_begin(table_id, task_id), "another task of the table has its turn"

    def progress(self, table_id, task_id, percent, message):
        self._say("progress", table_id, task_id, percent=percent, message=message)

    def complete(self, table_id, task_id, result):
        self._say("finish", table_id, task_id, outcome={"completed": result})

    def fail(self, table_id, task_id, error):
        self._say("finish", table_id, task_id, outcome={"failed": error})

    def run(self, table_id, task_id):
        """Claims a task and completes it, with nothing to report."""
        self.claim(table_id, task_id)
        self.complete(table_id, task_id, {})
