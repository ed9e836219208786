"""Tables on an S3-compatible store: the worker has the store's credentials, nobody else."""

import time
from pathlib import Path

import boto3
import lance
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

import columns
import maintenance
import tables
from service import Service
from test_effects_restart import kill_worker

KEY, SECRET = "store-key", "store-secret"


def connect(endpoint):
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )


@pytest.fixture(scope="module")
def store():
    """The endpoint of an S3-compatible store with a bucket `lake`."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    connect(endpoint).create_bucket(Bucket="lake")
    yield endpoint
    server.stop()


@pytest.fixture(scope="module")
def options(store):
    return {
        "aws_endpoint": store,
        "aws_region": "us-east-1",
        "aws_access_key_id": KEY,
        "aws_secret_access_key": SECRET,
        "allow_http": "true",
    }


@pytest.fixture(scope="module")
def service(tmp_path_factory, options):
    folder: Path = tmp_path_factory.mktemp("up")
    pairs = ", ".join(f'{name} = "{value}"' for name, value in options.items())
    (folder / "storage.toml").write_text(
        f'[[storage]]\nprefix = "s3://lake/warehouse"\noptions = {{ {pairs} }}\n'
    )
    running = Service(folder, {"warehouse": "s3://lake/warehouse"}).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(service):
    return service.client()


def rows_of(dataset) -> pa.Table:
    return dataset.to_table().sort_by("id")


def test_all_five_tasks(client, options):
    table, location = client.new_table()
    assert location.startswith("s3://lake/warehouse/lance/")
    for start in range(0, 600, 50):
        rows = pa.table({
            "id": pa.array(range(start, start + 50)),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array([float((i * 7 + j) % 13) for i in range(start, start + 50)
                          for j in range(8)], pa.float32()), 8),
        })
        lance.write_dataset(rows, location, mode="append", storage_options=options)
    dataset = lance.dataset(location, storage_options=options)
    dataset.delete("id % 10 = 3")
    before = rows_of(dataset)

    client.complete(table, "create_scalar_index", {"column": "id"})
    client.complete(
        table, "create_vector_index", {"column": "vector", "index_type": "IVF_FLAT"})
    client.complete(table, "optimize_indices")
    assert client.complete(table, "compact")["fragments_removed"] == 12
    assert client.complete(table, "cleanup", {"retain_versions": 1})["old_versions"] > 0

    dataset = lance.dataset(location, storage_options=options)
    assert rows_of(dataset) == before
    assert len(dataset.get_fragments()) == 1
    assert len(dataset.versions()) == 1
    assert "ScalarIndexQuery" in dataset.scanner(filter="id = 42").explain_plan()


def test_a_backfill_that_is_killed_goes_on(service, client, options, store):
    client.create_namespace("columns")
    table, location = client.new_table("columns")
    lance.write_dataset(
        tables.rows(0, 20_000), location, mode="create", max_rows_per_file=5000,
        enable_stable_row_ids=True, storage_options=options,
    )
    # Slow, for its length.
    columns.add(client, table, "computed", c="length(repeat(review, 1000)) + digit")
    sql = "length(review) * 1000 + digit"
    params = {"concurrency": 1, "task_size": 100, "checkpoint_size": 200}
    job_id = columns.submit(client, table, "c", **params)
    s3 = connect(store)
    prefix = location.removeprefix("s3://lake/") + "/"

    def kept() -> list[str]:
        found = s3.list_objects_v2(Bucket="lake", Prefix=prefix + "_maintenance/")
        return [one["Key"] for one in found.get("Contents", []) if "/checkpoints/" in one["Key"]]

    end = time.monotonic() + 60
    while len(kept()) < 10:
        assert time.monotonic() < end, "nothing is kept"
        time.sleep(0.01)
    kill_worker(service)
    task_id = maintenance.wait(client, job_id)["task_id"]
    result = client.get(table, task_id).json()["task_info"]["result"]
    assert columns.filled_and_left(result) == (20_000, 0), result
    assert 0 < result["rows_resumed"] < 20_000
    assert kept() == []

    dataset = lance.dataset(location, storage_options=options)
    dataset.update({"digit": "digit + 100"}, where="id % 100 = 7")
    dataset.delete("id % 100 = 8")
    lance.write_dataset(
        tables.rows(20_000, 20_100), location, mode="append", storage_options=options)
    result = columns.fill(client, table, "c")
    assert columns.filled_and_left(result) == (200 + 100, 0)
    rows = rows_of(lance.dataset(location, storage_options=options))
    found = dict(zip(rows["id"].to_pylist(), rows["c"].to_pylist(), strict=True))
    assert found == columns.duckdb_values(rows, sql)
    assert len(found) == 19_900


def test_a_store_that_refuses_says_nothing_of_the_credentials(tmp_path_factory, options):
    folder: Path = tmp_path_factory.mktemp("up")
    wrong = options | {"aws_endpoint": "http://127.0.0.1:9"}
    pairs = ", ".join(f'{name} = "{value}"' for name, value in wrong.items())
    (folder / "storage.toml").write_text(
        f'[[storage]]\nprefix = "s3://lake/"\noptions = {{ {pairs}, client_max_retries = "1", retry_timeout = "2" }}\n'
    )
    running = Service(folder, {"warehouse": "s3://lake/warehouse"}).start()
    try:
        client = running.client()
        table, _ = client.new_table()
        error = client.fail(table, "compact")
        assert error["error"] == "ServiceUnavailable", error
        assert KEY not in error["detail"] and SECRET not in error["detail"]
    finally:
        running.stop()
