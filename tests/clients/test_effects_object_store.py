"""Tables on an S3-compatible store: the worker has the store's credentials, nobody else."""

from pathlib import Path

import boto3
import lance
import pyarrow as pa
import pytest
from moto.server import ThreadedMotoServer

from service import Service

KEY, SECRET = "store-key", "store-secret"


@pytest.fixture(scope="module")
def store():
    """The endpoint of an S3-compatible store with a bucket `lake`."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    s3 = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1",
        aws_access_key_id=KEY, aws_secret_access_key=SECRET,
    )
    s3.create_bucket(Bucket="lake")
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
def client(tmp_path_factory, options):
    folder: Path = tmp_path_factory.mktemp("up")
    pairs = ", ".join(f'{name} = "{value}"' for name, value in options.items())
    (folder / "storage.toml").write_text(
        f'[[storage]]\nprefix = "s3://lake/warehouse"\noptions = {{ {pairs} }}\n'
    )
    running = Service(folder, {"warehouse": "s3://lake/warehouse"}).start()
    yield running.client()
    running.stop()


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
