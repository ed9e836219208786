"""Columns that are added and filled: what is refused, and who may do it."""

import lance
import pytest

import columns
import maintenance
import tables
from service import refusal

INVALID = (400, "InvalidInput", 13)
NO_COLUMN = (404, "TableColumnNotFound", 12)


@pytest.fixture
def written(client):
    table, location = client.new_table("columns")
    tables.append(location, tables.rows(0, 200))
    return table, location


@pytest.mark.parametrize(
    "entries, expected, text",
    [
        ([{"name": "c", "virtual_column": {"udf": "f"}}], (406, "Unsupported", 0), "'c' is virtual"),
        ([{"name": "review", "computed": "digit"}], INVALID, "'review'"),
        ([{"name": "c.d", "computed": "digit"}], INVALID, "'c.d'"),
        ([{"name": "_rowid", "expression": "digit"}], INVALID, "'_rowid'"),
        ([{"name": "c", "computed": "digit + "}], INVALID, "at its end"),
        ([{"name": "c", "computed": "digit +\n ) 1"}], INVALID, "line 2, column 2"),
        ([{"name": "c", "computed": "1 + nope(id)"}], INVALID, "line 1, column 5"),
        ([{"name": "c", "computed": "1 + gone"}], NO_COLUMN, "line 1, column 5"),
        ([{"name": "c", "computed": "NULL"}], INVALID, "type"),
        ([{"name": "c", "computed": "sum(digit)"}], INVALID, "'sum', a function of many rows"),
        ([{"name": "c", "computed": "(SELECT 1)"}], INVALID, "query"),
        ([{"name": "c", "computed": "random() + id"}], INVALID, "'random'"),
        ([{"name": "c", "expression": "interval '1 day'"}], INVALID, "Lance does not store"),
        ([{"name": "c", "expression": "digit / 0"}], INVALID, "zero"),
        ([{"name": "c", "expression": "cast(review AS bigint)"}], INVALID, "A wine"),
        (
            [{"name": "c", "expression": "1"}, {"name": "d", "computed": "1"}],
            INVALID,
            "one after the other",
        ),
        ([{"name": "c", "computed": "1"}] * 2, INVALID, "twice"),
        ([{"name": "c"}], INVALID, "'computed'"),
        ([{"name": "c", "expression": "1", "computed": "1"}], INVALID, "either"),
        ([{"name": "c", "computed": 1}], INVALID, "'computed'"),
        ([{"name": 5, "computed": "1"}], INVALID, "'name'"),
        (["c"], INVALID, "'new_columns'"),
        ([], INVALID, "'new_columns'"),
    ],
)
def test_what_is_not_added(client, written, entries, expected, text):
    table, location = written
    answer = columns.ask_to_add(client, table, *entries)
    assert refusal(answer) == expected, answer.text
    assert text in answer.json()["detail"], answer.text
    assert lance.dataset(location).version == 1 and tables.unreferenced(location) == set()


def test_a_branch_gets_columns_of_its_own(client, written):
    table, location = written
    branch = lance.dataset(location).create_branch("dev")
    entry = {"name": "c", "expression": "digit + 1"}
    answer = columns.ask_to_add(client, table, entry, branch="dev")
    assert answer.status_code == 200, answer.text
    branch.checkout_latest()
    assert "c" in branch.schema.names
    assert "c" not in lance.dataset(location).schema.names
    answer = columns.ask_to_add(client, table, entry, branch="none")
    assert refusal(answer) == (404, "TableBranchNotFound", 22)


@pytest.mark.parametrize(
    "params, expected, text",
    [
        ({"column": "gone"}, NO_COLUMN, "'gone'"),
        ({"column": "review"}, INVALID, "'review'"),
        ({"column": ""}, INVALID, "'column'"),
        ({"column": None}, INVALID, "'column'"),
        ({"column": ["c"]}, INVALID, "'column'"),
        ({"column": "c", "where": "digit >"}, INVALID, "at its end"),
        ({"column": "c", "where": "digit > )"}, INVALID, "line 1, column 9"),
        ({"column": "c", "where": "digit + 1"}, INVALID, "condition"),
        ({"column": "c", "where": "gone = 1"}, NO_COLUMN, "line 1, column 1"),
        ({"column": "c", "where": 5}, INVALID, "'where'"),
        ({"column": "c", "cluster": "gpu"}, INVALID, "'cluster'"),
        ({"column": "c", "manifest": "m"}, INVALID, "'manifest'"),
        ({"column": "c", "branch": "dev"}, INVALID, "'branch'"),
        ({"column": "c", "read_version": 99}, (404, "TableVersionNotFound", 11), "99"),
        ({"column": "c", "read_version": 0}, INVALID, "'read_version'"),
        ({"column": "c", "num_frags": 0}, INVALID, "'num_frags'"),
        ({"column": "c", "concurrency": "2"}, INVALID, "'concurrency'"),
        ({"column": "c", "intra_applier_concurrency": -1}, INVALID, "'intra_applier_concurrency'"),
        ({"column": "c", "task_size": 1.5}, INVALID, "'task_size'"),
        ({"column": "c", "commit_granularity": []}, INVALID, "'commit_granularity'"),
        (
            {"column": "c", "min_checkpoint_size": 5, "max_checkpoint_size": 4},
            INVALID,
            "'min_checkpoint_size'",
        ),
        (
            {"column": "c", "batch_checkpoint_flush_interval_seconds": 0},
            INVALID,
            "'batch_checkpoint_flush_interval_seconds'",
        ),
        ({"column": "c", "id": ["columns", "other"]}, INVALID, "'id'"),
    ],
    ids=str,
)
def test_what_is_not_filled(client, written, params, expected, text):
    table, location = written
    columns.add(client, table, "computed", c="upper(review)")
    before = lance.dataset(location).version
    answer = client.request("POST", columns.path(table, "backfill_column"), params)
    assert refusal(answer) == expected, answer.text
    assert text in answer.json()["detail"], answer.text
    # No task is left.
    assert client.list(table, "task_type=lance_backfill_column").json()["tasks"] == []
    assert lance.dataset(location).version == before


def test_what_says_nothing_is_as_left_out(client, written):
    table, location = written
    columns.add(client, table, "computed", c="upper(review)")
    nothing = {"branch": "main", "cluster": "", "manifest": None, "where": None, "unknown": 1}
    result = columns.fill(client, table, "c", id=table.split("$"), **nothing)
    assert columns.filled_and_left(result) == (200, 0)
    columns.check(location, "c", "upper(review)")


def test_one_whose_expression_lost_its_column(client, written):
    table, location = written
    columns.add(client, table, "computed", c="upper(review)")
    lance.dataset(location).drop_columns(["review"])
    assert refusal(columns.ask_to_fill(client, table, "c")) == NO_COLUMN


def test_one_that_can_t_be_computed_fails_and_says_where(client, written):
    table, location = written
    columns.add(client, table, "computed", c="cast(substr(review, 11, 4) AS bigint)")
    error = maintenance.wait(client, columns.submit(client, table, "c"))["error"]
    assert error["code"] == "invalid_input"
    assert "fragment 0" in error["message"] and "'c'" in error["message"]
    assert set(columns.values(location, "c").values()) == {None}
    assert tables.unreferenced(location) == set()


def test_tables_without_rows_or_without_a_name(client):
    table, _ = client.new_table("columns")
    answer = columns.ask_to_add(client, table, {"name": "c", "computed": "1"})
    assert refusal(answer) == (409, "InvalidTableState", 19)
    for answer in (
        columns.ask_to_add(client, "columns$none", {"name": "c", "computed": "1"}),
        columns.ask_to_fill(client, "columns$none", "c"),
    ):
        assert refusal(answer) == (404, "TableNotFound", 4)


def test_the_other_doors_show_backfills_and_take_none(client, written):
    table, _ = written
    columns.add(client, table, "computed", c="upper(review)")
    body = {"operation": "backfill_column", "options": {"column": "c"}}
    for door in ("jobs", "preview"):
        assert refusal(client.request("POST", maintenance.path(table, door), body)) == INVALID
    answer = client.submit(table, "backfill_column", {"column": "c"})
    assert refusal(answer)[:2] == (404, "NoSuchOperation")


def test_who_may_do_it(service, client, written):
    table, _ = written

    def user(name, action):
        statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
        body = {"secret_access_key": "s" * 40, "policy": {"Version": "1", "Statement": statement}}
        answer = client.request("PUT", f"/access/v1/credentials/{name}", body)
        assert answer.status_code == 200, answer.text
        return service.client_of(name, "s" * 40)

    writer = user("columns-writer", "oss:PutTableData")
    reader = user("columns-reader", "oss:GetTable*")
    keeper = user("columns-keeper", "oss:PutTableMaintenanceConfiguration")
    add = ("add_columns", {"new_columns": [{"name": "c", "computed": "upper(review)"}]})
    fill = ("backfill_column", {"column": "c"})
    for what, body in (add, fill):
        target = columns.path(table, what)
        for denied in (reader, keeper):
            answer = denied.request("POST", target, body)
            assert refusal(answer) == (403, "PermissionDenied", 15), what
        assert refusal(client.send("POST", target)) == (403, "AccessDenied", 15), what
        allowed = writer.request("POST", target, body)
        assert allowed.status_code == 200, allowed.text
    # Who may submit one may not look at it, unless that is allowed, too.
    job = f"/maintenance/v1/jobs/{allowed.json()['job_id']}"
    assert refusal(writer.request("GET", job)) == (403, "PermissionDenied", 15)
    assert maintenance.wait(client, allowed.json()["job_id"])["state"] == "succeeded"
