"""A door on loopback for clients that can't sign: what comes in goes on to the service, signed."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import wire

PASSED = ["content-type", "x-oss-request-id", "x-oss-table-id"]


class SigningProxy:
    """Signs with a client's key. Everything else stays as the caller sent it."""

    def __init__(self, client):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen.append((self.command, self.path))
                kept = {"content-type": self.headers["content-type"]}
                kept = {name: value for name, value in kept.items() if value}
                answer = wire.request(client, self.command, self.path, body, kept)
                self.send_response(answer.status_code)
                for name in PASSED:
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            do_GET = do_POST = do_PUT = do_DELETE = do

            def log_message(self, *_):
                pass

        # What was asked for.
        self.seen = seen = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
