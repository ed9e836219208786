"""Requests that usual clients do not send: signed otherwise, or as they are on the wire."""

import http.client
import json
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, quote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


class Answer:
    """As much of an answer as the tests look at."""

    def __init__(self, response: http.client.HTTPResponse):
        self.status_code = response.status
        self.headers = response.headers
        self.content = response.read()

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Signer(SigV4Auth):
    """botocore's, with a clock to set, the path as it is sent, and the query in canonical form."""

    def __init__(self, credentials, service, region, minutes=0.0):
        super().__init__(credentials, service, region)
        self.minutes = minutes

    def _modify_request_before_signing(self, request):
        time = datetime.now(timezone.utc) + timedelta(minutes=self.minutes)
        request.context["timestamp"] = time.strftime("%Y%m%dT%H%M%SZ")
        super()._modify_request_before_signing(request)

    def _normalize_url_path(self, path):
        return quote(path, safe="/~")

    def canonical_query_string(self, request):
        query = urlsplit(request.url).query
        pairs = parse_qsl(query, keep_blank_values=True, encoding="latin-1")
        encode = lambda text: quote(text.encode("latin-1"), safe="~")
        encoded = sorted((encode(name), encode(value)) for name, value in pairs)
        return "&".join(f"{name}={value}" for name, value in encoded)


def signed(
    client,
    method,
    path,
    body=b"",
    headers=None,
    key=None,
    secret=None,
    token=None,
    service="osstables",
    region=None,
    minutes=0.0,
) -> dict[str, str]:
    """The headers of a signed request, among them `headers`."""
    request = AWSRequest(method, client.endpoint + path, data=body, headers=headers or {})
    key, secret = key or client.access_key_id, secret or client.secret_access_key
    signer = Signer(Credentials(key, secret, token), service, region or client.region, minutes)
    signer.add_auth(request)
    return dict(request.headers)


def send(client, method, path, headers=(), body=None) -> Answer:
    """Sends a request as it is: headers may be pairs, and a body in pieces goes out in chunks."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    names = {name.lower() for name, _ in pairs}
    chunked = body is not None and not isinstance(body, bytes)
    if chunked:
        pairs.append(("Transfer-Encoding", "chunked"))
    elif body is not None and "content-length" not in names:
        pairs.append(("Content-Length", str(len(body))))
    connection = http.client.HTTPConnection(urlsplit(client.endpoint).netloc, timeout=60)
    try:
        connection.putrequest(
            method, path, skip_host="host" in names, skip_accept_encoding=True
        )
        for name, value in pairs:
            connection.putheader(name, value)
        connection.endheaders(body, encode_chunked=chunked)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def request(client, method, path, body=b"", headers=None, **signature) -> Answer:
    """Signs and sends, and leaves the path as it is."""
    return send(client, method, path, signed(client, method, path, body, headers, **signature), body)
