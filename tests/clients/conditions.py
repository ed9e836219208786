"""Tables in the conditions that maintenance is for. Each writes a table to a location."""

import shutil

import lance
import numpy as np
import pyarrow as pa

import tables

WIDE = 200_000


def made(client, condition) -> tuple[str, str]:
    """The id and the location of a new table in this condition."""
    table, location = client.new_table()
    condition(location)
    return table, location


def narrow(start: int, stop: int) -> pa.Table:
    return tables.rows(start, stop).select(["id", "ink"])


def parts(location, count, rows_each, rows=narrow, **config):
    """A table of so many fragments of so many rows, with this configuration."""
    tables.fragments_at_once(location, rows(0, count * rows_each), rows_each)
    configure(location, **config)


def configure(location, **config):
    if config:
        keys = {f"lance.{key.replace('__', '.')}": str(value) for key, value in config.items()}
        lance.dataset(location).update_config(keys)


def scalar(location, column="id", index_type="BTREE"):
    lance.dataset(location).create_scalar_index(column, index_type)


def fresh(location):
    parts(location, 1, 100)


def example(location):
    """The example of the published health check."""
    parts(location, 16, 100)
    scalar(location)
    tables.append(location, narrow(1600, 2000), max_rows_per_file=100)
    lance.dataset(location).delete("id % 7 = 0")
    lance.dataset(location).tags.create("keep", 1)


def many_deletes(location):
    parts(location, 1, 1000)
    lance.dataset(location).delete("id % 2 = 0")


def few_deletes(location):
    parts(location, 1, 1000)
    lance.dataset(location).delete("id % 20 = 0")


def all_deleted(location):
    parts(location, 3, 100)
    scalar(location)
    lance.dataset(location).delete("true")


def wide_rows(start, stop):
    values = [np.random.default_rng(row).bytes(WIDE) for row in range(start, stop)]
    return pa.table({"id": range(start, stop), "value": values})


def wide(location, appends=5):
    for start in range(0, appends * 20, 20):
        tables.append(location, wide_rows(start, start + 20))


def heavy(location):
    """A fragment of 70 MB, and one of a single row: little is gained for what would be rewritten."""
    values = np.random.default_rng(1).bytes(41 * 1_750_000)
    values = [values[row * 1_750_000 : (row + 1) * 1_750_000] for row in range(41)]
    for start, stop in [(0, 40), (40, 41)]:
        tables.append(location, pa.table({"id": range(start, stop), "value": values[start:stop]}))


def columns(location, **config):
    """Two fragments to which ten columns were added one by one."""
    parts(location, 2, 500, **config)
    for number in range(10):
        lance.dataset(location).add_columns({f"c{number}": f"id + {number}"})


def columns_of_full_fragments(location):
    columns(location, compaction__target_rows_per_fragment=500)


def indexed(location, rows=600):
    """One fragment with an index on values, one on texts and one on vectors."""
    parts(location, 1, rows, tables.rows)
    scalar(location, "digit")
    scalar(location, "review", "INVERTED")
    vector(location)


def vector(location):
    lance.dataset(location).create_index("vector", "IVF_FLAT", num_partitions=2)


def unindexed(location):
    indexed(location)
    tables.append(location, tables.rows(600, 1600))


def few_new(location):
    """Too few new rows to be merged into the segment of vectors."""
    indexed(location)
    tables.append(location, tables.rows(600, 700))


def piled_up(location, segments=5):
    """An index of several segments: a public client updated it after every append, and merged nothing."""
    parts(location, 1, 300, tables.rows)
    vector(location)
    for number in range(segments - 1):
        start = 300 + 50 * number
        tables.append(location, tables.rows(start, start + 50))
        lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)


def piled_up_and_behind(location):
    piled_up(location, 3)
    scalar(location, "id")
    tables.append(location, tables.rows(400, 420))


def zone_map(location):
    parts(location, 3, 100)
    scalar(location, "id", "ZONEMAP")


def zone_map_behind(location):
    zone_map(location)
    tables.append(location, narrow(300, 400))


def tagged(location):
    parts(location, 1, 100)
    tables.append(location, narrow(100, 200))
    lance.dataset(location).delete("id < 60")
    lance.dataset(location).tags.create("old", 1)
    lance.dataset(location).tags.create("new", 3)


def branched(location):
    parts(location, 2, 100)
    branch = lance.dataset(location).create_branch("trial")
    lance.write_dataset(narrow(0, 50), branch, mode="append")
    tables.append(location, narrow(200, 300))


def branch_alone(location):
    """Only the branch still needs what it began with."""
    branched(location)
    lance.dataset(location).delete("id < 250")
    lance.dataset(location).optimize.compact_files()


def target(location):
    parts(location, 10, 200, compaction__target_rows_per_fragment=500)


def budgets(location):
    """One run takes on two of three groups."""
    target(location)
    configure(location, compaction__max_source_fragments=6, compaction__max_source_rows=100_000)


def auto_cleanup(location):
    parts(location, 1, 100, auto_cleanup__interval=20, auto_cleanup__older_than="14d")


def empty(location):
    tables.append(location, tables.rows(0, 0))


def empty_indexed(location):
    empty(location)
    scalar(location)


def corrupt(location):
    parts(location, 3, 100)
    file = tables.data_file(location, 1)
    file.write_bytes(b"\x00" * file.stat().st_size)


def missing_data(location):
    parts(location, 3, 100, compaction__target_rows_per_fragment=100)
    lance.dataset(location).delete("id = 150")
    tables.data_file(location, 2).unlink()


def missing_deletions(location):
    parts(location, 1, 100)
    lance.dataset(location).delete("id = 50")
    (file,) = (tables.folder(location) / "_deletions").iterdir()
    file.unlink()


def missing_indices(location):
    parts(location, 1, 100)
    scalar(location)
    scalar(location, "ink", "BITMAP")
    shutil.rmtree(tables.folder(location) / "_indices")


FOREIGN = ["media/a.lance", "notes.txt", "data/readme.md"]


def foreign(location):
    parts(location, 2, 100)
    for name in FOREIGN:
        path = tables.folder(location) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine" * 1000)
