"""Computed columns: declared and filled by the service, and looked at with pylance and DuckDB."""

import time
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest

import columns
import maintenance
import tables
from service import TASK_SECONDS, refusal
from test_effects_restart import kill_worker

ROWS, FRAGMENTS = 200, 20
# The column that most tests fill.
SQL = "concat(upper(substr(review, 11, 12)), ': ', digit)"

EXPRESSIONS = {
    "upper(review)": pa.string(),
    "length(review)": pa.int32(),
    "replace(review, 'wines', 'grapes') || '!'": pa.string(),
    r"regexp_replace(review, 'low ([a-z]+)', 'little \1')": pa.string(),
    "substr(review, 11, 12)": pa.string(),
    "review LIKE '%Noir%' AND digit % 3 = 0": pa.bool_(),
    "CASE WHEN ink > 5 THEN 'dark' WHEN ink > 4 THEN 'grey' END": pa.string(),
    "ink * 2 + digit": pa.float64(),
    "nullif(digit, 3)": pa.int64(),
    "cast(digit AS varchar)": pa.string(),
    "words[1]": pa.string(),
}


def write(client, stable=False, rows=ROWS, rows_each=ROWS // FRAGMENTS):
    """A table of many fragments without computed columns."""
    table, location = client.new_table("columns")
    options = {"max_rows_per_file": rows_each, "enable_stable_row_ids": stable}
    lance.write_dataset(tables.rows(0, rows), location, mode="create", **options)
    return table, location


def declare(client, stable=False, sql=SQL, **size):
    """The same with the column `c`, which is null."""
    table, location = write(client, stable, **size)
    columns.add(client, table, "computed", c=sql)
    return table, location


def version(location) -> int:
    return lance.dataset(location).version


both_kinds = pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable row ids"])


# Adding columns


@pytest.mark.parametrize("kind", ["computed", "expression"])
def test_values_are_those_of_another_engine(client, kind):
    table, location = write(client)
    lance.dataset(location).delete("id % 9 = 4")
    rows = columns.rows_of(location)
    named = {f"c{number}": sql for number, sql in enumerate(EXPRESSIONS)}
    added = columns.add(client, table, kind, **named)
    assert added == version(location) == 3
    schema = lance.dataset(location).schema
    for (name, sql), data_type in zip(named.items(), EXPRESSIONS.values(), strict=True):
        field = schema.field(name)
        assert (field.type, field.nullable) == (data_type, True), sql
        kept = (field.metadata or {}).get(columns.EXPRESSION_KEY)
        if kind == "computed":
            assert kept == sql.encode()
            assert set(columns.values(location, name).values()) == {None}
            result = columns.fill(client, table, name)
            assert columns.filled_and_left(result)[0] == rows.num_rows
        else:
            assert kept is None
        assert columns.values(location, name) == columns.duckdb_values(rows, sql), sql
    # Nothing else has changed.
    assert columns.rows_of(location).select(rows.column_names).equals(rows)
    assert tables.unreferenced(location) == set()


PROSE = [
    "lower(text)",
    "length(text)",
    "regexp_replace(text, '[^a-z]+', '-', 'g')",
    "substr(text, 3, 20)",
    "strpos(text, 'the')",
    "text LIKE '%object%'",
    "concat(topic, ': ', trim(text))",
    "CASE WHEN length(text) > 0 THEN left(text, 1) END",
    "split_part(text, ' ', 2)",
    "reverse(topic) || md5(text)",
]


@both_kinds
def test_real_text(client, stable):
    table, location = client.new_table("columns")
    lines = columns.prose()
    first = lines.slice(0, 10_000)
    assert lines.num_rows > 10_500 and not all(text.isascii() for text in lines["text"].to_pylist())
    lance.write_dataset(
        first, location, mode="create", max_rows_per_file=700, enable_stable_row_ids=stable)
    named = {f"c{number}": sql for number, sql in enumerate(PROSE)}
    columns.add(client, table, "computed", **named)
    some = "length(text) % 3 = 0"
    chosen = set(columns.rows_where(first, some))
    for name, sql in named.items():
        result = columns.fill(client, table, name, where=some, commit_granularity=4)
        assert columns.filled_and_left(result) == (len(chosen), 0), sql
        right = columns.duckdb_values(first, sql)
        found = columns.values(location, name)
        assert found == {id: right[id] if id in chosen else None for id in right}, sql
        columns.fill(client, table, name)
        columns.check(location, name, sql)
    lance.dataset(location).delete("id % 10 = 3")
    tables.append(location, lines.slice(10_000))
    if stable:
        lance.dataset(location).update({"text": "concat(text, topic)"}, where="id % 10 = 4")
    for name, sql in named.items():
        assert columns.fill(client, table, name)["rows_left"] == 0, sql
        columns.check(location, name, sql)
    assert tables.unreferenced(location) == set()


@pytest.mark.parametrize("sql", ["coalesce(nullif(digit, 0), -1)", "ifnull(nullif(digit, 3), 7) * 2"])
def test_functions_that_are_others_in_short(client, sql):
    table, location = write(client)
    columns.add(client, table, "expression", e=sql)
    columns.add(client, table, "computed", c=sql)
    columns.fill(client, table, "c")
    columns.check(location, "e", sql)
    columns.check(location, "c", sql)


@both_kinds
def test_an_expression_is_computed_once(client, stable):
    table, location = write(client, stable)
    columns.add(client, table, "expression", c="digit + 1")
    tables.append(location, tables.rows(ROWS, ROWS + 10))
    lance.dataset(location).update({"digit": "digit + 5"}, where="id = 7")
    found = columns.values(location, "c")
    before = dict(zip(range(ROWS), tables.rows(0, ROWS)["digit"].to_pylist()))
    assert found == {id: digit + 1 for id, digit in before.items()} | dict.fromkeys(
        range(ROWS, ROWS + 10)
    )
    assert refusal(columns.ask_to_fill(client, table, "c")) == (400, "InvalidInput", 13)


# Filling them


@both_kinds
def test_a_backfill_in_all_doors(client, stable):
    table, location = declare(client, stable)
    before = version(location)
    job_id = columns.submit(client, table, "c")
    job = maintenance.wait(client, job_id)
    assert (job["state"], job["operation"]) == ("succeeded", "backfill_column")
    assert job["progress"] == {"percent": 100, "message": "done"}
    columns.check(location, "c", SQL)
    # Where rows have versions, another one notes which are filled.
    assert job["version"] == version(location) == before + (2 if stable else 1)
    config = [key for key in lance.dataset(location).config() if key.startswith(columns.FILLED_KEY)]
    assert len(config) == int(stable)

    info = client.get(table, job["task_id"]).json()["task_info"]
    assert (info["task_type"], info["status"]) == ("lance_backfill_column", "completed")
    assert info["task_id"].startswith("6") and job_id.endswith("." + info["task_id"])
    assert (info["params"]["column"], info["params"]["where"]) == ("c", None)
    expected = {"column": "c", "rows_filled": ROWS, "rows_resumed": 0, "fragments_filled": FRAGMENTS}
    expected |= {"fragments_left": 0, "rows_left": 0}
    assert info["result"] == expected | {"version": job["version"]}
    assert job["result"] == expected
    listed = client.list(table, "task_type=lance_backfill_column").json()["tasks"]
    assert listed == [info]
    jobs = client.request("GET", maintenance.path(table, "jobs")).json()["jobs"]
    assert jobs == [job]

    # There is nothing to do for a second one.
    again = columns.fill(client, table, "c")
    assert columns.filled_and_left(again) == (0, 0)
    assert again["version"] == version(location) == job["version"]
    assert client.delete(table, job["task_id"]).status_code == 204
    gone = client.request("GET", f"/maintenance/v1/jobs/{job_id}")
    assert refusal(gone) == (404, "TaskNotFound", 10000)
    assert tables.unreferenced(location) == set()
    assert not list(tables.folder(location).rglob("checkpoints"))


@both_kinds
def test_a_condition_chooses_the_rows(client, stable):
    table, location = declare(client, stable)
    result = columns.fill(client, table, "c", where="digit % 2 = 1 AND review LIKE '%Noir%'")
    rows = columns.rows_of(location)
    all_values = columns.duckdb_values(rows, SQL)
    chosen = columns.duckdb_values(rows, "digit % 2 = 1 AND review LIKE '%Noir%'")
    assert columns.filled_and_left(result) == (sum(chosen.values()), 0)
    found = columns.values(location, "c")
    assert found == {id: all_values[id] if chosen[id] else None for id in all_values}
    # The rest, and nothing twice.
    rest = columns.fill(client, table, "c")
    assert columns.filled_and_left(rest) == (ROWS - sum(chosen.values()), 0)
    columns.check(location, "c", SQL)
    # One that no row meets.
    none = columns.fill(client, table, "c", where="id < 0")
    assert columns.filled_and_left(none) == (0, 0)
    assert none["version"] == rest["version"]


@both_kinds
def test_after_appends_deletions_and_updates(client, stable):
    table, location = declare(client, stable)
    columns.fill(client, table, "c")
    tables.append(location, tables.rows(ROWS, ROWS + 60))
    assert columns.filled_and_left(columns.fill(client, table, "c")) == (60, 0)
    columns.check(location, "c", SQL)

    lance.dataset(location).delete("id % 7 = 2 OR id BETWEEN 30 AND 39")
    before = version(location)
    assert columns.filled_and_left(columns.fill(client, table, "c")) == (0, 0)
    assert version(location) == before

    stale = columns.values(location, "c")
    changed = "id % 10 = 1"
    updated = lance.dataset(location).update({"digit": "digit + 100"}, where=changed)
    updated = updated["num_rows_updated"]
    assert columns.values(location, "c") == stale
    result = columns.fill(client, table, "c")
    if stable:
        assert columns.filled_and_left(result) == (updated, 0)
    else:
        # Nothing tells that they are out of date: a condition has to.
        assert columns.filled_and_left(result) == (0, 0)
        assert columns.values(location, "c") == stale
        result = columns.fill(client, table, "c", where=changed)
        assert columns.filled_and_left(result) == (updated, 0)
    columns.check(location, "c", SQL)
    assert len(columns.values(location, "c")) == lance.dataset(location).count_rows()

    # Compaction carries values over, and they still count as filled.
    maintenance.run(client, table, "compact")
    before = version(location)
    assert columns.fill(client, table, "c")["rows_left"] == 0
    columns.check(location, "c", SQL)
    assert stable or version(location) == before


@pytest.mark.parametrize(
    "params, commits, filled",
    [
        ({"num_frags": 3}, 1, 30),
        ({"num_frags": 100}, 1, ROWS),
        ({"commit_granularity": 3}, 7, ROWS),
        ({"commit_granularity": 1, "concurrency": 1}, FRAGMENTS, ROWS),
        ({"concurrency": 8, "intra_applier_concurrency": 4, "task_size": 1}, 1, ROWS),
        ({"task_size": 3, "checkpoint_size": 2}, 1, ROWS),
        ({"min_checkpoint_size": 2, "max_checkpoint_size": 4}, 1, ROWS),
        ({"batch_checkpoint_flush_interval_seconds": 0.001, "task_size": 4}, 1, ROWS),
        ({"read_version": 1}, 1, ROWS),
    ],
    ids=str,
)
def test_whatever_the_options_the_values_are_the_same(client, params, commits, filled):
    table, location = declare(client)
    tables.append(location, tables.rows(ROWS, ROWS + 10))
    rows = ROWS if "read_version" in params or filled < ROWS else ROWS + 10
    if params.get("commit_granularity") == 1:
        commits += 1
    before = version(location)
    result = columns.fill(client, table, "c", **params)
    expected = filled if filled < ROWS else rows
    assert columns.filled_and_left(result) == (expected, ROWS + 10 - expected)
    assert version(location) - before == commits
    right = columns.duckdb_values(columns.rows_of(location), SQL)
    found = columns.values(location, "c")
    assert sum(found[id] == right[id] for id in right) == expected
    rest = columns.fill(client, table, "c")
    assert columns.filled_and_left(rest) == (ROWS + 10 - expected, 0)
    columns.check(location, "c", SQL)
    assert not list(tables.folder(location).rglob("checkpoints"))
    assert tables.unreferenced(location) == set()


# Beside others

# An expression that takes its time: 100 KB are made for each row.
SLOW, SAME = "length(repeat(review, 1000))", "length(review) * 1000"


def reach(client, job_id, percent) -> dict:
    """The job once it runs and is so far."""
    end = time.monotonic() + TASK_SECONDS
    while True:
        job = client.request("GET", f"/maintenance/v1/jobs/{job_id}").json()
        assert job["state"] in ("queued", "running"), job
        if job.get("progress", {}).get("percent", 0) >= percent:
            return job
        assert time.monotonic() < end, job
        time.sleep(0.02)


@both_kinds
def test_others_write_meanwhile(client, stable):
    table, location = declare(client, stable, SLOW, rows=20_000, rows_each=500)
    appended = range(20_000, 20_500)

    def append():
        tables.append_in_parts(location, tables.rows(appended.start, appended.stop), 50)

    def delete():
        for number in range(10):
            lance.dataset(location).delete(f"id % 100 = {number}")

    job_id = columns.submit(client, table, "c", commit_granularity=2, task_size=100)
    reach(client, job_id, 5)
    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(work) for work in (append, delete)]
        compaction = maintenance.submit(client, table, "compact")
        for writer in writers:
            writer.result()
    for job in (job_id, compaction):
        ended = maintenance.wait(client, job)
        assert ended["state"] == "succeeded", ended
    result = columns.fill(client, table, "c")
    assert result["rows_left"] == 0
    # What was deleted before it was appended is there.
    rows = columns.rows_of(location).sort_by("id")
    ids = rows["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert [id for id in ids if id < 20_000] == [id for id in range(20_000) if id % 100 >= 10]
    kept = {id for id in ids if id >= 20_000}
    assert kept <= set(appended)
    assert {id for id in appended if id % 100 >= 10} <= kept
    written = tables.rows(0, ids[-1] + 1).take(pa.array(ids))
    assert rows.drop_columns("c").equals(written)
    columns.check(location, "c", SAME)
    # Deletions that lost a race leave theirs.
    assert not {path for path in tables.unreferenced(location) if path.startswith("data/")}


def test_a_canceled_one_keeps_what_it_committed(client):
    table, location = declare(client, sql=SLOW, rows=100_000, rows_each=2500)
    job_id = columns.submit(client, table, "c", commit_granularity=1, concurrency=1, task_size=100)
    task_id = reach(client, job_id, 10)["task_id"]
    assert client.delete(table, task_id).status_code == 409
    answer = client.request("POST", f"/maintenance/v1/jobs/{job_id}/cancel")
    assert answer.status_code == 200, answer.text
    ended = maintenance.wait(client, job_id)
    assert (ended["state"], ended["error"]["code"]) == ("canceled", "canceled"), ended
    right = columns.duckdb_values(columns.rows_of(location), SAME)
    found = columns.values(location, "c")
    filled = sum(value is not None for value in found.values())
    assert 0 < filled < 100_000 and filled % 2500 == 0
    assert all(value in (None, right[id]) for id, value in found.items())
    assert not list(tables.folder(location).rglob("checkpoints"))
    assert tables.unreferenced(location) == set()
    rest = columns.fill(client, table, "c")
    assert columns.filled_and_left(rest) == (100_000 - filled, 0)
    columns.check(location, "c", SAME)


def test_another_attempt_goes_on_where_one_was_lost(start):
    service = start()
    client = service.client()
    table, location = declare(client, sql=SLOW, rows=200_000, rows_each=10_000)
    params = {"commit_granularity": 20, "concurrency": 1, "task_size": 100, "checkpoint_size": 200}
    job_id = columns.submit(client, table, "c", **params)
    # Nothing is committed by then, and much of it kept.
    task_id = reach(client, job_id, 30)["task_id"]
    kill_worker(service)
    result = client.wait(table, task_id)["result"]
    assert columns.filled_and_left(result) == (200_000, 0)
    assert result["fragments_filled"] == 20
    assert 0 < result["rows_resumed"] < 200_000
    columns.check(location, "c", SAME)
    assert not list(tables.folder(location).rglob("checkpoints"))
    assert len(tables.unreferenced(location)) <= 1


def test_one_waits_for_the_worker_like_any_task(idle):
    client = idle.client()
    table, _ = client.new_table("columns")
    job_id = columns.submit(client, table, "c", where="digit = 1", num_frags=2)
    waiting = client.request("GET", f"/maintenance/v1/jobs/{job_id}").json()
    assert (waiting["state"], waiting["operation"]) == ("queued", "backfill_column")
    params = client.get(table, waiting["task_id"]).json()["task_info"]["params"]
    given = {name: value for name, value in params.items() if value is not None}
    assert given == {"column": "c", "where": "digit = 1", "num_frags": 2}
    canceled = client.request("POST", f"/maintenance/v1/jobs/{job_id}/cancel").json()
    assert canceled["state"] == "canceled"
    answer = columns.ask_to_add(client, table, {"name": "c", "computed": "1"})
    assert answer.status_code == 503
