"""Who may do what: policies of users, of the table bucket and of tables, and who may set them."""

import json
import shutil
import time
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import pytest
import requests

import tables
import wire
from cases import INVALID_INPUT, TABLE_NOT_FOUND, rows
from catalog import NAMESPACE_NOT_FOUND, create_table, on_namespace, on_table
from operations import OPERATIONS
from service import Service, refusal

DENIED = (403, "PermissionDenied", 15)
MALFORMED = (400, "MalformedPolicy", 13)
NO_POLICY = (404, "NoSuchPolicy", 13)
NO_CREDENTIAL = (404, "NoSuchCredential", 13)
UNKNOWN_KEY = (403, "InvalidAccessKeyId", 16)
INVALID_TOKEN = (403, "InvalidSecurityToken", 16)
WRONG_SIGNATURE = (403, "SignatureDoesNotMatch", 16)

# Everything that the tests keep secret, and everything that the service answers.
SECRETS: list[str] = []
ANSWERS: list[str] = []


def secret(word="secret") -> str:
    SECRETS.append(f"{word}-{uuid.uuid4().hex}")
    return SECRETS[-1]


class Recording(requests.Session):
    """Keeps the answers."""

    def send(self, request, **options):
        answer = super().send(request, **options)
        ANSWERS.append(answer.text + str(answer.headers))
        return answer


def recorded(client):
    client.session = Recording()
    return client


def statement(effect="Allow", action="*", resource="*", **more):
    return {"Effect": effect, "Action": action, "Resource": resource} | more


def policy(*statements):
    return {"Version": "1", "Statement": list(statements)}


ALL = policy(statement())
FIXED = {
    "access_key_id": "fixed",
    "secret_access_key": secret("fixed"),
    "user": "fred",
    "policy": policy(statement(action="oss:List*")),
}
FIXED_TEMPORARY = {
    "access_key_id": "fixed.temporary",
    "secret_access_key": secret("fixed"),
    "session_token": secret("token"),
}
# Nobody may drop in the second bucket, from the start.
NO_DROPS = policy(statement("Deny", "oss:DeleteTable", Principal="*"))
ACCESS = {"credentials": [FIXED, FIXED_TEMPORARY], "bucket_policies": {"second": NO_DROPS}}


@pytest.fixture(scope="module")
def guarded(start):
    """A service with credentials and a bucket policy from the start."""
    running = start(ACCESS, table_buckets="lance,second", account_id="1234")
    SECRETS.append(running.client().secret_access_key)
    yield running
    # The secrets are nowhere to be seen.
    running.stop()
    logs = [path.read_text(errors="replace") for path in (running.folder / "logs").rglob("*")]
    logs.append((running.folder / "up.log").read_text(errors="replace"))
    assert len(logs) > 2 and ANSWERS
    for text in ANSWERS + logs:
        assert not any(it in text for it in SECRETS), text


@pytest.fixture
def admin(guarded):
    """The administrator, after whom there is no bucket policy."""
    client = recorded(guarded.client())
    yield client
    client.request("DELETE", "/access/v1/policy")


@pytest.fixture
def table(admin):
    return admin.new_table()[0]


def access(client, method, path, body=None):
    return client.request(method, f"/access/v1/{path}", body)


def credential_path(key):
    return f"credentials/{quote(key, safe='')}"


def new_user(service, admin, identity=None, user=None, token=False):
    """Puts a credential, and returns its holder's client."""
    key = "K" + uuid.uuid4().hex[:12]
    body = {"secret_access_key": secret()}
    if token:
        body["session_token"] = secret("token")
    if identity is not None:
        body["policy"] = identity
    if user:
        body["user"] = user
    answer = access(admin, "PUT", credential_path(key), body)
    assert answer.status_code == 200, answer.text
    return recorded(service.client_of(key, body["secret_access_key"], body.get("session_token")))


def table_policy(client, method, table, body=None):
    return access(client, method, f"table/{quote(table, safe='')}/policy", body)


def put_policy(answer):
    assert (answer.status_code, answer.text) == (204, ""), answer.text


def describe(client, table):
    return on_table(client, table, "describe")


def may(answer) -> bool:
    """Whether the caller was let in; if not, it is said so."""
    if answer.status_code == 403:
        assert refusal(answer) == DENIED
        return False
    return True


def table_arn(client, table) -> str:
    return describe(client, table).json()["properties"]["table_arn"]


# Every operation


def call(client, row, table):
    _, method, path, body, *_ = row
    namespace, name = table.split("$")
    for known, value in {"{ns}": namespace, "{t}": name, "{key}": "K" + uuid.uuid4().hex}.items():
        path, body = path.replace(known, value), body.replace(known, value)
    return client.request(method, path, body.encode())


@pytest.mark.parametrize("row", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_every_operation_has_its_action(guarded, admin, row):
    _, _, _, _, action, _ = row
    # A namespace of its own, because one of them drops it.
    table, _ = admin.new_table("n" + uuid.uuid4().hex[:8])
    nobody = new_user(guarded, admin)
    answer = call(nobody, row, table)
    assert refusal(answer) == DENIED
    assert action in answer.json()["detail"] and "no policy allows it" in answer.json()["detail"]
    others = new_user(guarded, admin, policy(statement(), statement("Deny", action)))
    answer = call(others, row, table)
    assert refusal(answer) == DENIED
    assert "a policy denies it" in answer.json()["detail"]
    this = new_user(guarded, admin, policy(statement(action=action)))
    assert may(call(this, row, table))


@pytest.mark.parametrize("row", OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_every_operation_is_done_to_something(guarded, admin, row):
    *_, subject = row
    table, _ = admin.new_table("n" + uuid.uuid4().hex[:8])
    arns = {
        "bucket": "acs:osstables:local:1234:bucket/lance",
        "table": table_arn(admin, table),
        "user": "acs:ram::1234:user/*",
    }
    other = [arn for kind, arn in arns.items() if kind != subject]
    assert not may(call(new_user(guarded, admin, policy(statement(resource=other))), row, table))
    this = policy(statement(resource=arns[subject]))
    assert may(call(new_user(guarded, admin, this), row, table))


# Policies of users, buckets and tables together


ALLOW, DENY, OTHER = "allow", "deny", "other"


@rows(
    "identity,bucket,table_,allowed",
    (None, None, None, False),
    (ALLOW, None, None, True),
    (None, ALLOW, None, True),
    (None, None, ALLOW, True),
    (OTHER, OTHER, OTHER, False),
    (OTHER, None, ALLOW, True),
    (OTHER, ALLOW, OTHER, True),
    (ALLOW, ALLOW, ALLOW, True),
    (ALLOW, DENY, None, False),
    (ALLOW, None, DENY, False),
    (ALLOW, ALLOW, DENY, False),
    (ALLOW, DENY, ALLOW, False),
    (DENY, ALLOW, ALLOW, False),
    (DENY, None, None, False),
    (None, DENY, ALLOW, False),
    (None, ALLOW, DENY, False),
)
@rows(
    "action,call_",
    ("oss:GetTable", lambda client, table: describe(client, table)),
    ("oss:PutTableMaintenanceConfiguration", lambda client, table: client.submit(table, "compact", {})),
    ("oss:GetTableMaintenanceJobStatus", lambda client, table: client.list(table, "task_type=lance_compact")),
    ("oss:RenameTable", lambda client, table: on_table(client, table, "rename", {"new_table_name": "r" + uuid.uuid4().hex})),
)
def test_policies_together(guarded, admin, table, identity, bucket, table_, allowed, action, call_):
    user = "u" + uuid.uuid4().hex[:8]
    effects = {ALLOW: ("Allow", action), DENY: ("Deny", action), OTHER: ("Allow", "oss:ListTables")}
    said = lambda word, **more: policy(statement(*effects[word], **more))
    caller = new_user(guarded, admin, said(identity) if identity else None, user)
    if bucket:
        put_policy(access(admin, "PUT", "policy", said(bucket, Principal=user)))
    if table_:
        put_policy(table_policy(admin, "PUT", table, said(table_, Principal=user)))
    assert may(call_(caller, table)) == allowed
    # Nobody else is meant.
    bystander = new_user(guarded, admin, said(ALLOW))
    assert may(call_(bystander, table))


@rows(
    "actions,allowed",
    ("*", True),
    ("oss:*", True),
    ("oss:GetTable", True),
    ("OSS:gettable", True),
    ("oss:Get*", True),
    ("oss:???Table", True),
    ("*:GetTable", None),
    (["oss:ListTables", "oss:GetTable"], True),
    ("ram:*", False),
    ("oss:GetTable?*", False),
    ("oss:ListTables", False),
)
def test_wildcards_of_actions(guarded, admin, table, actions, allowed):
    said = policy(statement(action=actions))
    if allowed is None:
        body = {"secret_access_key": secret(), "policy": said}
        assert refusal(access(admin, "PUT", credential_path("k"), body)) == MALFORMED
    else:
        assert may(describe(new_user(guarded, admin, said), table)) == allowed


@rows(
    "resource,allowed",
    ("*", True),
    ("{arn}", True),
    ("acs:osstables:*:*:*", True),
    ("acs:osstables:local:1234:bucket/lance/table/*", True),
    ("acs:*:*:*:bucket/lance/*", True),
    ("acs:osstables:local:1234:bucket/lance*", True),
    ("acs:osstables:local:1234:bucket/lance", False),
    ("acs:osstables:local:1234:bucket/second/*", False),
    ("acs:osstables:elsewhere:*:*", False),
    ("acs:osstables:*:99:*", False),
    ("acs:ram:*:*:*", False),
    ("{arn}x", False),
    (["acs:ram:*:*:*", "{arn}"], True),
)
def test_resources(guarded, admin, table, resource, allowed):
    arn = table_arn(admin, table)
    one = lambda text: text.replace("{arn}", arn)
    resource = [one(it) for it in resource] if isinstance(resource, list) else one(resource)
    caller = new_user(guarded, admin, policy(statement(resource=resource)))
    assert may(describe(caller, table)) == allowed


@rows(
    "principal,allowed",
    ("*", True),
    ("{user}", True),
    ("1234", True),
    ("acs:ram::1234:user/{user}", True),
    ("acs:ram::1234:user/u*", True),
    ("acs:ram::1234:user/*", True),
    (["nobody", "{user}"], True),
    ({"RAM": "{user}"}, True),
    ("nobody", False),
    ("5678", False),
    ("acs:ram::5678:user/*", False),
    ("acs:ram::1234:user/v*", False),
)
def test_principals(guarded, admin, table, principal, allowed):
    user = "u" + uuid.uuid4().hex[:8]
    principal = json.loads(json.dumps(principal).replace("{user}", user))
    caller = new_user(guarded, admin, user=user)
    said = policy(statement(action="oss:GetTable", Principal=principal))
    put_policy(table_policy(admin, "PUT", table, said))
    assert may(describe(caller, table)) == allowed
    put_policy(table_policy(admin, "DELETE", table))
    assert not may(describe(caller, table))
    put_policy(access(admin, "PUT", "policy", said))
    assert may(describe(caller, table)) == allowed


def moment(**offset) -> str:
    return (datetime.now(timezone.utc) + timedelta(**offset)).strftime("%Y-%m-%dT%H:%M:%SZ")


@rows(
    "condition,allowed",
    ({"IpAddress": {"acs:SourceIp": "127.0.0.1"}}, True),
    ({"IpAddress": {"acs:SourceIp": "127.0.0.0/8"}}, True),
    ({"IpAddress": {"acs:SourceIp": ["10.0.0.0/8", "127.0.0.1/32"]}}, True),
    ({"IpAddress": {"acs:SourceIp": "10.0.0.0/8"}}, False),
    ({"IpAddress": {"acs:SourceIp": "::/0"}}, False),
    ({"NotIpAddress": {"acs:SourceIp": "10.0.0.0/8"}}, True),
    ({"NotIpAddress": {"acs:SourceIp": "127.0.0.0/8"}}, False),
    ({"DateLessThan": {"acs:CurrentTime": "{future}"}}, True),
    ({"DateLessThan": {"acs:CurrentTime": "{past}"}}, False),
    ({"DateGreaterThan": {"acs:CurrentTime": "{past}"}}, True),
    ({"DateGreaterThanEquals": {"acs:CurrentTime": "{future}"}}, False),
    ({"DateGreaterThan": {"acs:CurrentTime": "{past}"}, "DateLessThan": {"acs:CurrentTime": "{future}"}}, True),
    ({"IpAddress": {"acs:SourceIp": "127.0.0.1"}, "DateLessThan": {"acs:CurrentTime": "{past}"}}, False),
    ({"Bool": {"acs:SecureTransport": "false"}}, True),
    ({"Bool": {"acs:SecureTransport": True}}, False),
)
@rows("effect", "Allow", "Deny")
def test_conditions(guarded, admin, table, effect, condition, allowed):
    text = json.dumps(condition)
    text = text.replace("{future}", moment(minutes=1)).replace("{past}", moment(minutes=-1))
    said = statement(effect, Condition=json.loads(text))
    # Under a condition that holds, what is allowed is allowed and what is denied is denied.
    said = policy(said) if effect == "Allow" else policy(statement(), said)
    expected = allowed if effect == "Allow" else not allowed
    assert may(describe(new_user(guarded, admin, said), table)) == expected


def test_an_address_can_not_be_claimed(guarded, admin, table):
    office = {"IpAddress": {"acs:SourceIp": "10.0.0.0/8"}}
    caller = new_user(guarded, admin, policy(statement(Condition=office)))
    path = f"/lance/v1/table/{quote(table, safe='')}/describe"
    for name in ["Spin-Client-Addr", "X-Forwarded-For", "Forwarded", "X-Real-IP", "Client-Addr"]:
        for value in ["10.0.0.1", "10.0.0.1:80", "for=10.0.0.1"]:
            # Signed or not: who sets the first in front of the service would not be believed.
            headers = wire.signed(caller, "POST", path, b"{}")
            answer = wire.send(caller, "POST", path, headers | {name: value}, b"{}")
            assert refusal(answer) == DENIED, (name, value)
            headers = wire.signed(caller, "POST", path, b"{}", {name: value})
            answer = wire.send(caller, "POST", path, headers, b"{}")
            assert refusal(answer) in (DENIED, WRONG_SIGNATURE), (name, value)


def test_a_condition_ends_with_its_time(guarded, admin, table):
    soon = {"DateLessThan": {"acs:CurrentTime": moment(seconds=3)}}
    caller = new_user(guarded, admin, policy(statement(Condition=soon)))
    assert may(describe(caller, table))
    time.sleep(4)
    assert not may(describe(caller, table))


def test_a_table_that_is_not_there_is_not_found(guarded, admin):
    nobody = new_user(guarded, admin)
    assert refusal(describe(nobody, "tests$missing")) == TABLE_NOT_FOUND


def test_a_bucket_policy_from_the_start(guarded, admin):
    second = recorded(guarded.client(host="second.oss-tables.localhost"))
    table, _ = second.new_table()
    assert refusal(on_table(second, table, "drop")) == DENIED
    # One that is put stands beside it.
    put_policy(access(second, "PUT", "policy", policy(statement(Principal="*"))))
    assert refusal(on_table(second, table, "drop")) == DENIED
    nobody = new_user(guarded, admin)
    nobody.host = second.host
    assert may(describe(nobody, table))
    put_policy(access(second, "DELETE", "policy"))
    assert not may(describe(nobody, table))
    assert refusal(on_table(second, table, "drop")) == DENIED
    # Of the other bucket it says nothing.
    table, _ = admin.new_table()
    assert on_table(admin, table, "drop").status_code == 200


# Setting policies


def test_the_policy_of_a_bucket(admin):
    assert refusal(access(admin, "GET", "policy")) == NO_POLICY
    for said in [policy(statement(Principal="*")), policy(statement("Deny", "oss:Get*", Principal=["a", "b"]))]:
        put_policy(access(admin, "PUT", "policy", said))
        # A denial of reading does not concern the administrator.
        answer = access(admin, "GET", "policy")
        assert (answer.status_code, answer.json()) == (200, said)
    for _ in range(2):
        put_policy(access(admin, "DELETE", "policy"))
        assert refusal(access(admin, "GET", "policy")) == NO_POLICY


def test_the_policy_of_a_table(admin, table):
    assert refusal(table_policy(admin, "GET", table)) == NO_POLICY
    for said in [policy(statement(Principal="*")), policy(statement("Deny", "oss:Get*", Principal="a"))]:
        put_policy(table_policy(admin, "PUT", table, said))
        answer = table_policy(admin, "GET", table)
        assert (answer.status_code, answer.json()) == (200, said)
        assert answer.headers["x-oss-table-id"]
    for _ in range(2):
        put_policy(table_policy(admin, "DELETE", table))
        assert refusal(table_policy(admin, "GET", table)) == NO_POLICY
    for method in ["GET", "PUT", "DELETE"]:
        answer = table_policy(admin, method, "tests$missing", policy(statement(Principal="*")))
        assert refusal(answer) == TABLE_NOT_FOUND


ONE = '{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}'


@rows(
    "body,place",
    ("", "line 1 column"),
    ("{", "line 1 column"),
    ("[]", None),
    ("{}", "Version"),
    ('{"Version":"1"}', "Statement"),
    ('{"Version":"2","Statement":%s}' % ONE, "Version"),
    ('{"Version":1,"Statement":%s}' % ONE, "Version"),
    ('{"Version":"1","Statement":[]}', "Statement"),
    ('{"Version":"1","Statement":%s,"Id":"x"}' % ONE, "Id"),
    ('{"Version":"1","Statement":[%s,7]}' % ONE, "Statement[1]"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace("Allow", "allow"), "Statement[0].Effect"),
    ('{"Version":"1","Statement":%s}' % ONE.replace("Allow", "allow"), "Statement.Effect"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace('"*","Resource"', '"oss:Gettable2","Resource"'), "Statement[0].Action"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace('"*","Resource"', '["*","s3:Get"],"Resource"'), "Statement[0].Action[1]"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace('"*","Principal"', '"bucket/b","Principal"'), "Statement[0].Resource"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace('"Principal":"*"', '"Principal":"a*"'), "Statement[0].Principal"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace(',"Principal":"*"', ""), "Statement[0].Principal"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace("Principal", "NotPrincipal"), "Statement[0].NotPrincipal"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace("Effect", "Effect\":\"Deny\",\"Effect"), "Effect"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace("}", ',"Condition":{"IpAddress":{"acs:SourceIp":"10.0.0"}}}'), "Statement[0].Condition.IpAddress.acs:SourceIp"),
    ('{"Version":"1","Statement":[%s]}' % ONE.replace("}", ',"Condition":{"StringLike":{"acs:x":"y"}}}'), "Statement[0].Condition.StringLike"),
    ('{"Version":"1","Statement":[%s]}' % ",".join([ONE] * 101), "Statement"),
    ('{"Version":"1","Statement":%s}' % ONE.replace("Allow", "Allow\",\"Sid\":\"" + "x" * 20000), None),
)
def test_a_wrong_policy_is_refused_with_its_place(guarded, admin, table, body, place):
    before = policy(statement("Deny", "oss:RenameTable", Principal="nobody"))
    put_policy(access(admin, "PUT", "policy", before))
    put_policy(table_policy(admin, "PUT", table, before))
    for answer in [
        access(admin, "PUT", "policy", body.encode()),
        table_policy(admin, "PUT", table, body.encode()),
    ]:
        assert refusal(answer) == MALFORMED
        assert (place or "") in answer.json()["detail"], answer.text
    # What was there stays.
    assert access(admin, "GET", "policy").json() == before
    assert table_policy(admin, "GET", table).json() == before


def test_a_users_policy_has_no_principal(guarded, admin):
    key = "K" + uuid.uuid4().hex
    body = {"secret_access_key": secret(), "policy": policy(statement(Principal="*"))}
    answer = access(admin, "PUT", credential_path(key), body)
    assert refusal(answer) == MALFORMED
    assert "policy.Statement[0].Principal" in answer.json()["detail"]
    assert refusal(access(admin, "GET", credential_path(key))) == NO_CREDENTIAL


# Policies and the life of a table


def test_a_policy_follows_its_table(guarded, admin):
    table, _ = admin.new_table()
    said = policy(statement(action="oss:GetTable", Principal="anna"))
    put_policy(table_policy(admin, "PUT", table, said))
    anna = new_user(guarded, admin, user="anna")
    assert may(describe(anna, table))
    other = "n" + uuid.uuid4().hex[:8]
    admin.create_namespace(other)
    renamed = table + "_b"
    for body, name in [
        ({"new_table_name": renamed.split("$")[1]}, renamed),
        ({"new_table_name": "c", "new_namespace_id": [other]}, f"{other}$c"),
    ]:
        assert on_table(admin, table, "rename", body).status_code == 200
        assert refusal(describe(anna, table)) == TABLE_NOT_FOUND
        assert may(describe(anna, name))
        assert table_policy(admin, "GET", name).json() == said
        table = name
    # Another table of its name has none.
    for gone in ["drop", "deregister"]:
        assert on_table(admin, table, gone).status_code == 200
        admin.declare(table)
        assert not may(describe(anna, table))
        assert refusal(table_policy(admin, "GET", table)) == NO_POLICY
        put_policy(table_policy(admin, "PUT", table, said))


def test_maintenance_by_who_is_allowed_to(guarded, admin):
    table, location = admin.new_table()
    tables.append_in_parts(location, tables.rows(0, 60), 10)
    robot = new_user(guarded, admin, token=True, user="robot")
    said = policy(statement(action=["oss:PutTableMaintenance*", "oss:GetTableMaintenance*"], Principal="robot"))
    put_policy(table_policy(admin, "PUT", table, said))
    robot.complete(table, "compact", {})
    assert len(tables.shape(location).fragments) == 1
    for action in ["describe", "drop", "deregister", "exists"]:
        assert refusal(on_table(robot, table, action)) == DENIED


@rows("protected", 0, 1, 2, None)
def test_a_cascade_is_done_as_a_whole_or_not(guarded, admin, protected):
    namespace = "n" + uuid.uuid4().hex[:8]
    held = [admin.new_table(namespace) for _ in range(3)]
    for table, location in held:
        tables.append(location, tables.rows(0, 3))
    owner = new_user(guarded, admin, policy(statement(action=["oss:*"])), "owner")
    if protected is not None:
        said = policy(statement("Deny", "oss:DeleteTable", Principal="*"))
        put_policy(table_policy(admin, "PUT", held[protected][0], said))
    answer = on_namespace(owner, namespace, "drop", {"behavior": "cascade"})
    if protected is None:
        assert answer.status_code == 200, answer.text
        assert refusal(on_namespace(admin, namespace, "describe")) == NAMESPACE_NOT_FOUND
        return
    assert refusal(answer) == DENIED
    assert on_namespace(admin, namespace, "describe").status_code == 200
    for table, location in held:
        assert describe(admin, table).status_code == 200
        assert tables.ids(location) == [0, 1, 2]
    # It goes on as if nothing had been.
    admin.new_table(namespace)
    put_policy(table_policy(admin, "DELETE", held[protected][0]))
    answer = on_namespace(owner, namespace, "drop", {"behavior": "cascade"})
    assert answer.status_code == 200, answer.text


def test_a_cascade_needs_more_than_the_namespace(guarded, admin):
    namespace = "n" + uuid.uuid4().hex[:8]
    table, _ = admin.new_table(namespace)
    owner = new_user(guarded, admin, policy(statement(action="oss:DeleteNamespace")))
    answer = on_namespace(owner, namespace, "drop", {"behavior": "cascade"})
    assert refusal(answer) == DENIED
    assert describe(admin, table).status_code == 200
    on_table(admin, table, "drop")
    assert on_namespace(owner, namespace, "drop", {"behavior": "cascade"}).status_code == 200


def test_overwriting_is_more_than_creating(guarded, admin, table):
    create = new_user(guarded, admin, policy(statement(action=["oss:CreateNamespace", "oss:CreateTable"])))
    namespace = "n" + uuid.uuid4().hex[:8]
    assert on_namespace(create, namespace, "create").status_code == 200
    assert refusal(on_namespace(create, namespace, "create", {"mode": "overwrite"})) == DENIED
    rows = tables.rows(0, 3)
    mine = f"{namespace}$t"
    assert create_table(create, mine, rows).status_code == 200
    assert refusal(create_table(create, mine, rows, "?mode=overwrite")) == DENIED
    assert refusal(create_table(create, mine, rows, "?mode=exist_ok")) == DENIED
    put_policy(table_policy(admin, "PUT", mine, policy(statement(action=["oss:PutTableData", "oss:GetTable"], Principal="*"))))
    assert create_table(create, mine, rows, "?mode=exist_ok").status_code == 200
    assert create_table(create, mine, rows, "?mode=overwrite").json()["version"] == 2


# Credentials by requests


def test_the_life_of_a_credential(guarded, admin, table):
    key = "K" + uuid.uuid4().hex
    path = credential_path(key)
    assert refusal(access(admin, "GET", path)) == NO_CREDENTIAL
    assert refusal(access(admin, "DELETE", path)) == NO_CREDENTIAL
    word = secret()
    info = {
        "access_key_id": key,
        "user": "bob",
        "status": "active",
        "expires_at": None,
        "temporary": False,
        "policy": ALL,
    }
    bob = recorded(guarded.client_of(key, word))
    assert refusal(describe(bob, table)) == UNKNOWN_KEY
    answer = access(admin, "PUT", path, {"secret_access_key": word, "user": "bob", "policy": ALL})
    assert (answer.status_code, answer.json()) == (200, info)
    assert access(admin, "GET", path).json() == info
    assert may(describe(bob, table))

    # Deactivated and activated again, at once; the secret stays.
    for status, expected in [("inactive", UNKNOWN_KEY), ("active", None)]:
        body = {"user": "bob", "policy": ALL, "status": status}
        assert access(admin, "PUT", path, body).json() == info | {"status": status}
        answer = describe(bob, table)
        assert (refusal(answer) if answer.status_code != 200 else None) == expected
    # Another policy.
    fewer = policy(statement(action="oss:List*"))
    access(admin, "PUT", path, {"user": "bob", "policy": fewer})
    assert refusal(describe(bob, table)) == DENIED
    # None: what is left out is not kept, but the secret.
    answer = access(admin, "PUT", path, {})
    assert answer.json() == info | {"user": key, "policy": None}
    assert refusal(describe(bob, table)) == DENIED
    # Another secret.
    other = secret()
    access(admin, "PUT", path, {"secret_access_key": other, "policy": ALL})
    assert refusal(describe(bob, table)) == WRONG_SIGNATURE
    bob.secret_access_key = other
    assert may(describe(bob, table))
    # A token.
    token = secret("token")
    body = {"session_token": token, "policy": ALL, "expires_at": moment(hours=1)}
    answer = access(admin, "PUT", path, body)
    assert answer.json()["temporary"] is True
    assert answer.json()["expires_at"] == body["expires_at"]
    assert refusal(describe(bob, table)) == INVALID_TOKEN
    bob.session_token = token
    assert may(describe(bob, table))
    access(admin, "PUT", path, {"policy": ALL, "expires_at": moment(seconds=-1)})
    assert refusal(describe(bob, table)) == INVALID_TOKEN

    answer = access(admin, "DELETE", path)
    assert (answer.status_code, answer.text) == (204, "")
    assert refusal(describe(bob, table)) == UNKNOWN_KEY
    assert refusal(access(admin, "GET", path)) == NO_CREDENTIAL
    assert refusal(access(admin, "PUT", path, {})) == MALFORMED


@rows(
    "body,expected",
    ({}, MALFORMED),
    (None, INVALID_INPUT),
    ([], INVALID_INPUT),
    (b"{", INVALID_INPUT),
    ({"secret_access_key": "short"}, MALFORMED),
    ({"secret_access_key": "with\ttab88"}, MALFORMED),
    ({"secret_access_key": 12345678}, MALFORMED),
    ({"secret_access_key": "{secret}", "session_token": "a b"}, MALFORMED),
    ({"secret_access_key": "{secret}", "user": "a/b"}, MALFORMED),
    ({"secret_access_key": "{secret}", "status": "Active"}, MALFORMED),
    ({"secret_access_key": "{secret}", "expires_at": "tomorrow"}, MALFORMED),
    ({"secret_access_key": "{secret}", "expires_at": 1}, MALFORMED),
    ({"secret_access_key": "{secret}", "policy": {}}, MALFORMED),
    ({"secret_access_key": "{secret}", "role": "x"}, MALFORMED),
    ({"secret_access_key": "{secret}", "access_key_id": "other"}, INVALID_INPUT),
)
def test_credentials_that_are_not_accepted(admin, body, expected):
    word = secret()
    if isinstance(body, dict):
        body = json.loads(json.dumps(body).replace("{secret}", word))
    key = "K" + uuid.uuid4().hex
    assert refusal(access(admin, "PUT", credential_path(key), body)) == expected
    assert refusal(access(admin, "GET", credential_path(key))) == NO_CREDENTIAL


@rows("key,valid", ("a", True), ("a+b=c:d@e", True), ("k" * 128, True), ("k" * 129, False), ("a b", False), ("a,b", False), ("a/b", False), ("é", False))
def test_access_key_ids(guarded, admin, key, valid):
    path = credential_path(key)
    word = secret()
    answer = access(admin, "PUT", path, {"secret_access_key": word, "policy": ALL})
    if not valid:
        assert refusal(answer) == MALFORMED
        return
    assert answer.json()["access_key_id"] == key
    assert may(access(recorded(guarded.client_of(key, word)), "GET", path))
    assert access(admin, "DELETE", path).status_code == 204


def test_lists_credentials(guarded, admin):
    keys = [new_user(guarded, admin).access_key_id for _ in range(5)]

    def pages(limit):
        found, token = [], ""
        while True:
            page = access(admin, "GET", f"credentials?limit={limit}&page_token={token}").json()
            found += page["credentials"]
            token = page.get("page_token")
            if not token:
                return found

    # Those of the file, then the generated one, then what was put by requests, newest first.
    fixed = ["fixed", "fixed.temporary", admin.access_key_id]
    for limit in [2, 1000]:
        found = pages(limit)
        names = [it["access_key_id"] for it in found]
        assert names[:8] == fixed + keys[::-1], limit
        assert len(set(names)) == len(names)
        for it in found:
            assert set(it) == {"access_key_id", "user", "status", "expires_at", "temporary", "policy"}
    for query in ["page_token=x", "limit=0", "limit=x"]:
        assert refusal(access(admin, "GET", f"credentials?{query}")) == INVALID_INPUT


def test_fixed_credentials_stay(guarded, admin):
    for key in [admin.access_key_id, "fixed", "fixed.temporary"]:
        path = credential_path(key)
        before = access(admin, "GET", path).json()
        body = {"secret_access_key": secret(), "status": "inactive"}
        assert refusal(access(admin, "PUT", path, body)) == DENIED
        assert refusal(access(admin, "PUT", path, {})) == DENIED
        assert refusal(access(admin, "DELETE", path)) == DENIED
        assert access(admin, "GET", path).json() == before
    fred = recorded(guarded.client_of("fixed", FIXED["secret_access_key"]))
    assert fred.request("GET", "/lance/v1/table").status_code == 200
    assert access(admin, "GET", credential_path("fixed")).json()["user"] == "fred"


def test_who_may_not_administer(guarded, admin, table):
    for caller in [new_user(guarded, admin), new_user(guarded, admin, policy(statement(action=["oss:Get*", "oss:List*"])))]:
        body = {"secret_access_key": secret(), "policy": ALL}
        own = credential_path(caller.access_key_id)
        for answer in [
            access(caller, "GET", "credentials"),
            access(caller, "PUT", credential_path("new"), body),
            access(caller, "PUT", own, {"policy": ALL}),
            access(caller, "GET", own),
            access(caller, "DELETE", own),
            access(caller, "GET", credential_path("unknown")),
            access(caller, "DELETE", credential_path("unknown")),
            access(caller, "GET", credential_path("fixed")),
            access(caller, "DELETE", credential_path("fixed")),
            access(caller, "PUT", "policy", policy(statement(Principal="*"))),
            access(caller, "DELETE", "policy"),
            table_policy(caller, "PUT", table, policy(statement(Principal="*"))),
            table_policy(caller, "DELETE", table),
        ]:
            assert refusal(answer) == DENIED, answer.request.url
    assert refusal(access(admin, "GET", credential_path("new"))) == NO_CREDENTIAL


def test_who_may_administer_one_user(guarded, admin):
    mine = statement(action="ram:*", resource="acs:ram::1234:user/team.*")
    manager = new_user(guarded, admin, policy(mine), "team.boss")
    path = credential_path("K" + uuid.uuid4().hex)
    body = {"secret_access_key": secret(), "user": "team.one", "policy": ALL}
    assert refusal(access(manager, "PUT", path, body | {"user": "other"})) == DENIED
    assert access(manager, "PUT", path, body).status_code == 200
    assert access(manager, "GET", path).status_code == 200
    # The key can't be given to somebody else, nor be taken from them.
    assert refusal(access(manager, "PUT", path, {"user": "other"})) == DENIED
    assert access(admin, "PUT", path, {"user": "other"}).status_code == 200
    for method, put in [("GET", None), ("PUT", {"user": "team.one"}), ("DELETE", None)]:
        assert refusal(access(manager, method, path, put)) == DENIED
    assert access(admin, "DELETE", path).status_code == 204


def test_a_bucket_policy_gives_no_keys(guarded, admin):
    put_policy(access(admin, "PUT", "policy", policy(statement(Principal="*"))))
    nobody = new_user(guarded, admin)
    assert refusal(access(nobody, "GET", "credentials")) == DENIED
    body = {"secret_access_key": secret()}
    assert refusal(access(nobody, "PUT", credential_path("new"), body)) == DENIED
    # What it gives is what is in the bucket, its policy too.
    assert access(nobody, "GET", "policy").status_code == 200


# Restarts


def test_what_is_put_survives_a_restart(start, guarded):
    running = start({})
    admin = recorded(running.client())
    SECRETS.append(admin.secret_access_key)
    table, _ = admin.new_table()
    user = new_user(running, admin, user="kept", token=True)
    stopped = new_user(running, admin, ALL)
    access(admin, "PUT", credential_path(stopped.access_key_id), {"policy": ALL, "status": "inactive"})
    deleted = new_user(running, admin, ALL)
    access(admin, "DELETE", credential_path(deleted.access_key_id))
    for_table = policy(statement(action="oss:GetTable", Principal="kept"))
    for_bucket = policy(statement("Deny", "oss:RenameTable", Principal="*"))
    put_policy(table_policy(admin, "PUT", table, for_table))
    put_policy(access(admin, "PUT", "policy", for_bucket))
    running.stop()
    # Somebody has got a key from the start meanwhile.
    more = {"access_key_id": "later", "secret_access_key": secret(), "policy": ALL}
    running.access = {"credentials": [more]}
    running.start()
    for client in (admin, user, stopped, deleted):
        client.endpoint = running.endpoint
    assert may(describe(user, table))
    assert refusal(describe(stopped, table)) == UNKNOWN_KEY
    assert refusal(describe(deleted, table)) == UNKNOWN_KEY
    assert table_policy(admin, "GET", table).json() == for_table
    assert access(admin, "GET", "policy").json() == for_bucket
    assert refusal(on_table(admin, table, "rename", {"new_table_name": "x"})) == DENIED
    later = recorded(running.client_of("later", more["secret_access_key"]))
    assert may(describe(later, table))
    put_policy(access(admin, "DELETE", "policy"))
    running.stop()
    logs = [path.read_text(errors="replace") for path in (running.folder / "logs").rglob("*")]
    assert not any(it in text for text in logs for it in SECRETS)


@rows(
    "text,place",
    ("{", "access.json"),
    ("[1]", "access.json"),
    ('{"credential": []}', "credential"),
    ('{"credentials": {}}', "access.json"),
    ('{"credentials": [{"access_key_id": "a"}]}', "[0].secret_access_key"),
    ('{"credentials": [{"access_key_id": "a", "secret_access_key": "{secret}", "x": 1}]}', "[0].x"),
    ('{"credentials": [{"access_key_id": "a", "secret_access_key": "{secret}", "policy": {"Version": "1", "Statement": [{"Effect": "Allow", "Action": "oss:Nothing", "Resource": "*"}]}}]}', "[0].policy.Statement[0].Action"),
    ('{"credentials": [{"access_key_id": "a", "secret_access_key": "{secret}"}, {"access_key_id": "a", "secret_access_key": "{secret}"}]}', "[1].access_key_id"),
    ('{"bucket_policies": {"lance": {"Version": "1", "Statement": {"Effect": "Deny", "Action": "*", "Resource": "*"}}}}', "Statement.Principal"),
    ('{"bucket_policies": {"lance": 1}}', None),
)
def test_a_wrong_access_file_keeps_it_from_starting(tmp_path, guarded, text, place):
    word = secret()
    folder = tmp_path / "up"
    shutil.copytree(guarded.folder / "state/compiled", folder / "state/compiled")
    (folder / "access.json").write_text(text.replace("{secret}", word))
    service = Service(folder)
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="up did not start"):
        service.start()
    assert time.monotonic() - began < 60
    said = [path.read_text() for path in [folder / "up.log", *(folder / "logs").rglob("*.log")]]
    assert any((place or "policy") in it for it in said), said
    assert not any(word in it for it in said)
