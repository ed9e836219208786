"""Real tables, written by pylance and looked at with it.

Each row is an image of a handwritten digit and a wine, both from scikit-learn's own data sets, side
by side: images give vectors, wines give texts and words. The same calls write the same rows.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import lance
import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits, load_wine

IMAGES = 1797
DIMENSION = 64


# Rows


@cache
def images() -> tuple[np.ndarray, np.ndarray]:
    """All images as 64 grey values from 0 to 16 each, and the digits that they show."""
    loaded = load_digits()
    return loaded.data.astype(np.float32), loaded.target.astype(np.int64)


@cache
def wines() -> tuple[list[str], list[list[str]]]:
    """A review and a few words for each of 178 wines: where it is far from the mean."""
    loaded = load_wine()
    features = [name.split("/")[0].replace("_", " ") for name in loaded.feature_names]
    scores = (loaded.data - loaded.data.mean(axis=0)) / loaded.data.std(axis=0)
    reviews, words = [], []
    for label, row in zip(loaded.target, scores):
        notes = [f"{'high' if z > 0 else 'low'} {name}" for name, z in zip(features, row) if abs(z) > 1]
        house = ["Château Noir", "Cantina Bianca", "Weingut Grün"][label]
        reviews.append(f"A wine of {house} with {' and '.join(notes) or 'no surprises'}, tasting of wines")
        words.append([house.split()[0]] + [note.split()[-1] for note in notes])
    return reviews, words


def rows(start: int, stop: int) -> pa.Table:
    """The rows with these ids; ids beyond the data sets start over in them."""
    ids = np.arange(start, stop)
    pixels, labels = images()
    picked = pixels[ids % IMAGES]
    reviews, words = wines()
    numbers = ids % len(reviews)
    columns = {
        "id": pa.array(ids, pa.int64()),
        "digit": pa.array(labels[ids % IMAGES], pa.int64()),
        "ink": pa.array(picked.mean(axis=1), pa.float64()),
        "review": pa.array([reviews[n] for n in numbers], pa.string()),
        "words": pa.array([words[n] for n in numbers], pa.list_(pa.string())),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(picked.ravel()), DIMENSION),
        "bits": pa.FixedSizeListArray.from_arrays(pa.array(np.packbits(picked > 8, axis=1).ravel()), 8),
    }
    return pa.table(columns)


# Writers


def append(location: str, table: pa.Table, **options) -> lance.LanceDataset:
    """Appends rows in one commit; makes the table if there is none."""
    return lance.write_dataset(table, location, mode="append", **options)


def append_in_parts(location: str, table: pa.Table, rows_each: int, **options):
    """Appends rows in many commits, each a fragment."""
    for start in range(0, table.num_rows, rows_each):
        append(location, table.slice(start, rows_each), **options)


def fragments_at_once(location: str, table: pa.Table, rows_each: int):
    """Writes a new table of many fragments in one commit, which takes less time."""
    lance.write_dataset(table, location, mode="create", max_rows_per_file=rows_each)


def busy(location: str, count: int = IMAGES, rows_each: int = 60, **options):
    """A table the way a busy writer leaves it: many small appends, and now and then a delete, an
    update and an upsert."""
    for number, start in enumerate(range(0, count, rows_each)):
        stop = min(start + rows_each, count)
        table = append(location, rows(start, stop), **options)
        if number % 8 == 7:
            table.delete(f"id % 13 = {number % 13}")
            table.update({"ink": "ink + 1"}, where=f"id % 17 = {number % 17}")
            upsert(location, rows(stop - 5, stop).set_column(2, "ink", pa.array([0.5] * 5)))


def upsert(location: str, table: pa.Table):
    merge = lance.dataset(location).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(table)


# Readers


@dataclass(frozen=True)
class Shape:
    """What maintenance is about: how a table is stored, and not what is in it."""

    rows: int
    deleted: int
    fragments: frozenset[int]
    data_files: int
    deletion_files: int
    version: int


def shape(location: str) -> Shape:
    table = lance.dataset(location)
    fragments = [fragment.metadata for fragment in table.get_fragments()]
    return Shape(
        rows=table.count_rows(),
        deleted=table.stats.dataset_stats()["num_deleted_rows"],
        fragments=frozenset(fragment.id for fragment in fragments),
        data_files=sum(len(fragment.files) for fragment in fragments),
        deletion_files=sum(fragment.deletion_file is not None for fragment in fragments),
        version=table.version,
    )


def versions(location: str) -> list[int]:
    return [version["version"] for version in lance.dataset(location).versions()]


def digest(location: str) -> str:
    """Of the values of all rows, whatever their order."""
    table = lance.dataset(location).to_table()
    lines = sorted(repr(row) for row in table.to_pylist())
    return hashlib.sha256("\n".join([str(table.schema), *lines]).encode()).hexdigest()


def ids(location: str, **query) -> list[int]:
    return sorted(lance.dataset(location).to_table(columns=["id"], **query)["id"].to_pylist())


def plan(location: str, **query) -> str:
    """How Lance would answer a query, as text."""
    return lance.dataset(location).scanner(columns=["id"], **query).explain_plan(verbose=True)


def index_names(location: str) -> list[str]:
    return [index.name for index in lance.dataset(location).describe_indices()]


def index(location: str, name: str):
    """pylance's description of the only index of this name."""
    (found,) = (i for i in lance.dataset(location).describe_indices() if i.name == name)
    return found


def unindexed(location: str, name: str) -> int:
    return lance.dataset(location).stats.index_stats(name)["num_unindexed_rows"]


# Files


def folder(location: str) -> Path:
    return Path(unquote(urlsplit(location).path))


def files(location: str) -> dict[str, int]:
    """Path and size of every file under a folder, out of which the service may be removing files."""
    root = folder(location)
    sizes = {}
    for directory, _, names in os.walk(root):
        for path in (Path(directory, name) for name in names):
            with suppress(FileNotFoundError):
                sizes[str(path.relative_to(root))] = path.stat().st_size
    return sizes


def unreferenced(location: str) -> set[str]:
    """The data and index files that no version refers to."""
    referenced = set(lance.dataset(location).tracked_files().read_all()["path"].to_pylist())
    return {
        path
        for path in files(location)
        if path.startswith(("data/", "_indices/", "_deletions/")) and path not in referenced
    }


def data_file(location: str, fragment: int) -> Path:
    """The only data file of a fragment, counted from the oldest."""
    (file,) = lance.dataset(location).get_fragments()[fragment].metadata.files
    return folder(location) / "data" / file.path
