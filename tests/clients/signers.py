"""The forms of signatures, each made by signers that others wrote: botocore's and the connector's
for AWS4, the vendor's SDK's for OSS4."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from alibabacloud_oss_v2.signer.tables_v4 import TablesSignerV4
from alibabacloud_oss_v2.types import Credentials as OssCredentials
from alibabacloud_oss_v2.types import HttpRequest, SigningContext
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from osstables_lance_connector import Credentials as ConnectorCredentials
from osstables_lance_connector import SigV4Signer

import wire

FORMS = ["AWS4 header", "AWS4 query", "AWS4 connector", "OSS4 header", "OSS4 query"]
EXPIRES = 600


@dataclass(frozen=True)
class Signature:
    """How a request is signed. What is not said is right."""

    form: str
    key: str | None = None
    secret: str | None = None
    token: str | None = None
    region: str | None = None
    service: str = "osstables"
    bucket: str = "lance"
    account: str = "0"
    minutes: float = 0.0
    expires: int = EXPIRES
    host_is_signed: bool = False

    @property
    def is_oss(self) -> bool:
        return self.form.startswith("OSS4")

    @property
    def is_presigned(self) -> bool:
        return self.form.endswith("query")

    def sign(self, client, method, path, body=b"", headers=None) -> tuple[str, dict[str, str]]:
        """The path and the headers of the signed request."""
        keys = (
            self.key or client.access_key_id,
            self.secret or client.secret_access_key,
            self.token,
        )
        region = self.region or client.region
        time = datetime.now(timezone.utc) + timedelta(minutes=self.minutes)
        url = client.endpoint + path
        headers = dict(headers or {})
        match self.form:
            case "AWS4 header":
                key, secret, token = keys
                more = {"service": self.service, "region": region, "minutes": self.minutes}
                signed = wire.signed(
                    client, method, path, body, headers, key, secret, token, **more
                )
                return path, signed
            case "AWS4 query":
                request = AWSRequest(method, url, headers=headers)
                signer = _Presigner(Credentials(*keys), self.service, region, self.expires)
                signer.time, signer.body = time, body
                signer.add_auth(request)
                return request.url.removeprefix(client.endpoint), dict(request.headers)
            case "AWS4 connector":
                signer = SigV4Signer(region, self.service, ConnectorCredentials(*keys))
                return path, headers | signer.sign(method, url, headers, body, time)
            case "OSS4 header" | "OSS4 query":
                return self._sign_oss(client, method, path, headers, keys, region, time)
        raise ValueError(self.form)

    def _sign_oss(self, client, method, path, headers, keys, region, time):
        if self.host_is_signed:
            headers = {"host": client.endpoint.removeprefix("http://")} | headers
        request = HttpRequest(method, client.endpoint + path, headers)
        arn = f"acs:osstables:{region}:{self.account}:bucket/{self.bucket}"
        context = SigningContext(
            self.service,
            region,
            arn if self.bucket else None,
            path.split("?")[0].removeprefix("/"),
            request,
            OssCredentials(*keys),
            time,
            additional_headers={"host"} if self.host_is_signed else None,
        )
        context.auth_method_query = self.is_presigned
        # The signer cuts off fractions of a second.
        context.expiration_time = time + timedelta(seconds=self.expires)
        TablesSignerV4().sign(context)
        return request.url.removeprefix(client.endpoint), dict(request.headers)

    def send(self, client, method, path, body=b"", headers=None) -> wire.Answer:
        """Signs and sends."""
        path, headers = self.sign(client, method, path, body, headers)
        return wire.send(client, method, path, headers, body or None)


class _Presigner(SigV4QueryAuth):
    """botocore's, with a clock to set and a body to sign: its own wants bodies to be forms."""

    time: datetime
    body: bytes

    def _modify_request_before_signing(self, request):
        request.context["timestamp"] = self.time.strftime("%Y%m%dT%H%M%SZ")
        super()._modify_request_before_signing(request)

    def payload(self, request):
        return hashlib.sha256(self.body).hexdigest()
