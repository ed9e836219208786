"""Computed columns: declaring and filling them, and what their values must be."""

from pydoc_data.topics import topics
from urllib.parse import quote

import duckdb
import lance
import pyarrow as pa

import maintenance

# Where a computed column keeps its expression, in its field's metadata.
EXPRESSION_KEY = b"lance-maintenance.computed-expression"
# Where a table with stable row ids says which rows of a column are filled, in its config.
FILLED_KEY = "lance-maintenance.filled."


def path(table, what):
    return f"/lance/v1/table/{quote(table, safe='')}/{what}"


def ask_to_add(client, table, *columns, **more):
    body = {"new_columns": list(columns)} | more
    return client.request("POST", path(table, "add_columns"), body)


def add(client, table, kind, **columns) -> int:
    """Adds columns by name and SQL, all `computed` or all `expression`; returns the table's version."""
    entries = [{"name": name, kind: sql} for name, sql in columns.items()]
    answer = ask_to_add(client, table, *entries)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"version"}
    return answer.json()["version"]


def ask_to_fill(client, table, column, **params):
    return client.request("POST", path(table, "backfill_column"), {"column": column} | params)


def submit(client, table, column, **params) -> str:
    """Submits a backfill that is accepted; returns the job's id."""
    answer = ask_to_fill(client, table, column, **params)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"job_id"}
    return answer.json()["job_id"]


def fill(client, table, column, **params) -> dict:
    """Runs a backfill that must succeed; returns the result of the task that it is."""
    job = maintenance.wait(client, submit(client, table, column, **params))
    assert job["state"] == "succeeded" and "error" not in job, job
    info = client.get(table, job["task_id"]).json()["task_info"]
    assert info["status"] == "completed", info
    assert info["result"]["version"] == job["version"]
    return info["result"]


def filled_and_left(result) -> tuple[int, int]:
    return result["rows_filled"], result["rows_left"]


def prose() -> pa.Table:
    """What Python's help() says of the language, by line: eleven thousand of them, not all in ASCII."""
    lines = [(topic, line) for topic, text in sorted(topics.items()) for line in text.splitlines()]
    return pa.table({
        "id": pa.array(range(len(lines)), pa.int64()),
        "topic": [topic for topic, _ in lines],
        "text": [line for _, line in lines],
    })


def duckdb_values(rows: pa.Table, sql: str) -> dict:
    """What DuckDB makes of an expression, by the row's id."""
    with duckdb.connect() as engine:
        engine.register("t", rows)
        return dict(engine.execute(f"SELECT id, {sql} FROM t").fetchall())


def rows_where(rows: pa.Table, condition: str) -> list[int]:
    """The ids of the rows that DuckDB takes the condition to be true of."""
    return [id for id, is_true in duckdb_values(rows, condition).items() if is_true]


def values(location: str, column: str) -> dict:
    """The column's values, by the row's id."""
    found = lance.dataset(location).to_table(columns=["id", column])
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found[column].to_pylist(), strict=True))


def rows_of(location: str) -> pa.Table:
    return lance.dataset(location).to_table()


def check(location: str, column: str, sql: str):
    """Every row has the value that DuckDB computes of its other columns."""
    assert values(location, column) == duckdb_values(rows_of(location), sql)
