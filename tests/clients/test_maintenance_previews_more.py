"""Previews of index updates and cleanups, and of jobs that are refused."""

import lance
import pytest

import conditions
import maintenance
import tables
from cases import INVALID_INPUT
from service import refusal
from test_maintenance_previews import foreseen

NUMBERS = [
    "bytes_removed",
    "old_versions",
    "data_files_removed",
    "transaction_files_removed",
    "index_files_removed",
    "deletion_files_removed",
    "failed_deletes",
]


# Index updates


def segments(location) -> dict[str, dict]:
    """The rows of each segment, by index and segment."""
    table = lance.dataset(location)
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in table.get_fragments()}
    return {
        index.name: {
            segment.uuid: sum(rows.get(fragment, 0) for fragment in segment.fragment_ids)
            for segment in index.segments
        }
        for index in table.describe_indices()
    }


def unequal(location):
    """Index segments of 900, 50 and 50 rows; the newer two are merged by themselves."""
    conditions.parts(location, 1, 900, tables.rows)
    conditions.vector(location)
    for start in [900, 950]:
        tables.append(location, tables.rows(start, start + 50))
        lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)


def scattered(location):
    """All three indices have four segments, and rows are outside."""
    conditions.indexed(location)
    for start in [600, 700, 800]:
        tables.append(location, tables.rows(start, start + 100))
        lance.dataset(location).optimize.optimize_indices(num_indices_to_merge=0)
    tables.append(location, tables.rows(900, 910))


def no_index(location):
    conditions.parts(location, 1, 100)


UPDATES = [
    # Segments afterwards, in the indices' order.
    (no_index, {}, []),
    (conditions.indexed, {}, [1, 1, 1]),
    (conditions.indexed, {"num_indices_to_merge": 1}, [1, 1, 1]),
    (conditions.unindexed, {}, [1, 1, 1]),
    (conditions.few_new, {}, [1, 1, 2]),
    (conditions.few_new, {"num_indices_to_merge": 0}, [2, 2, 2]),
    (conditions.few_new, {"num_indices_to_merge": 1}, [1, 1, 1]),
    (conditions.few_new, {"retrain": True}, [1, 1, 1]),
    (conditions.few_new, {"index_names": ["vector_idx", "digit_idx"]}, [2, 1]),
    (scattered, {"num_indices_to_merge": 0}, [5, 5, 5]),
    (scattered, {"num_indices_to_merge": 1}, [4, 4, 4]),
    (scattered, {"num_indices_to_merge": 2}, [3, 3, 3]),
    (scattered, {"num_indices_to_merge": 4}, [1, 1, 1]),
    (scattered, {"num_indices_to_merge": 99}, [1, 1, 1]),
    (scattered, {"retrain": True, "num_indices_to_merge": 0}, [1, 1, 1]),
    (scattered, {}, None),
    (conditions.piled_up, {}, [1]),
    (conditions.piled_up, {"num_indices_to_merge": 0}, [5]),
    (conditions.piled_up, {"num_indices_to_merge": 3}, [3]),
    (conditions.piled_up, {"num_indices_to_merge": 5}, [1]),
    (conditions.piled_up, {"retrain": True}, [1]),
    (unequal, {}, [2]),
    (conditions.piled_up_and_behind, {}, None),
    (conditions.zone_map_behind, {}, [1]),
    (conditions.all_deleted, {}, None),
    (conditions.empty_indexed, {}, None),
    (conditions.columns_of_full_fragments, {}, []),
]


@pytest.mark.parametrize("condition, options, left", UPDATES)
def test_optimize_indices(client, condition, options, left):
    table, location = conditions.made(client, condition)
    before, version = segments(location), lance.dataset(location).version
    rows = lance.dataset(location).count_rows()
    preview, result = foreseen(client, table, location, "optimize_indices", options)
    after = segments(location)
    names = options.get("index_names", list(before))
    assert [index["name"] for index in preview["indices"]] == names
    assert preview["indices"] == [
        {
            "name": name,
            "num_segments": len(before[name]),
            "num_unindexed_rows": rows - sum(before[name].values()),
            "num_segments_after": len(after[name]),
            "rows_written": sum(n for uuid, n in after[name].items() if uuid not in before[name]),
        }
        for name in names
    ]
    assert left in (None, [index["num_segments_after"] for index in preview["indices"]])
    coverage = [{"name": name, "num_indexed_rows": rows, "num_unindexed_rows": 0} for name in names]
    assert result == {"indices": coverage}
    assert all(after[name] == before[name] for name in before if name not in names)
    if before == after:
        assert lance.dataset(location).version == version
    # Once more there is nothing to do, and no version for it.
    version = lance.dataset(location).version
    if options.get("num_indices_to_merge") in (0, 1) and not options.get("retrain"):
        preview, _ = foreseen(client, table, location, "optimize_indices", options)
        assert [index["rows_written"] for index in preview["indices"]] == [0] * len(names)
        assert lance.dataset(location).version == version


def test_segments_that_pile_up_get_options(client):
    table, location = conditions.made(client, unequal)
    preview = maintenance.preview(client, table, "optimize_indices")
    assert preview["options"] == {"num_indices_to_merge": 3}
    # Whoever said what to merge is told nothing else.
    for options in [{"num_indices_to_merge": 0}, {"retrain": True}]:
        assert "options" not in maintenance.preview(client, table, "optimize_indices", options)
    options = maintenance.preview(client, table, "optimize_indices", {"index_names": ["vector_idx"]})["options"]
    assert options == {"index_names": ["vector_idx"], "num_indices_to_merge": 3}
    preview, _ = foreseen(client, table, location, "optimize_indices", options)
    assert "options" not in preview
    assert len(segments(location)["vector_idx"]) == 1
    assert maintenance.health(client, table)["indices"][0]["num_segments"] == 1


def test_segments_stay_few(client):
    table, location = conditions.made(client, conditions.indexed)
    for start in range(600, 1100, 100):
        tables.append(location, tables.rows(start, start + 100))
        preview, _ = foreseen(client, table, location, "optimize_indices")
        after = [len(found) for found in segments(location).values()]
        assert [index["num_segments_after"] for index in preview["indices"]] == after
        assert max(after) <= 4
        assert [index["num_unindexed_rows"] for index in maintenance.health(client, table)["indices"]] == [0] * 3


def test_an_index_that_is_not_there(client):
    table, location = conditions.made(client, conditions.unindexed)
    before = tables.files(location)
    options = {"index_names": ["digit_idx", "nope"]}
    answer = maintenance.ask_preview(client, table, "optimize_indices", options)
    assert refusal(answer) == (404, "TableIndexNotFound", 6)
    assert "'nope'" in answer.json()["detail"] and "'vector_idx'" in answer.json()["detail"]
    error = maintenance.fail(client, table, "optimize_indices", options)
    assert error["code"] == "invalid_input" and "'nope'" in error["message"]
    assert tables.files(location) == before


# Cleanups


def ten_versions(location):
    tables.append_in_parts(location, conditions.narrow(0, 300), 30)


def busy(location):
    tables.busy(location, 600)
    conditions.scalar(location, "digit", "BITMAP")
    lance.dataset(location).optimize.compact_files()
    conditions.scalar(location, "digit", "BITMAP")


KEEP_TAGGED = {"error_if_tagged_old_versions": False}
CLEANUPS = [
    (conditions.fresh, {"retain_versions": 1}, 0, 1),
    (ten_versions, {"retain_versions": 1}, 9, 1),
    (ten_versions, {"retain_versions": 3}, 7, 3),
    (ten_versions, {"retain_versions": 99}, 0, 10),
    (ten_versions, {"older_than_seconds": 0}, 9, 1),
    (ten_versions, {"older_than_seconds": 3600}, 0, 10),
    (ten_versions, {"older_than_seconds": 0, "retain_versions": 4}, 6, 4),
    (ten_versions, {"older_than_seconds": 3600.5, "retain_versions": 1}, 0, 10),
    (busy, {"retain_versions": 1}, None, 1),
    (busy, {"retain_versions": 5} | KEEP_TAGGED, None, 5),
    (conditions.example, {"retain_versions": 1} | KEEP_TAGGED, 2, 2),
    (conditions.tagged, {"retain_versions": 1} | KEEP_TAGGED, 1, 2),
    (conditions.piled_up, {"older_than_seconds": 0}, 9, 1),
    (conditions.branched, {"retain_versions": 1}, 0, 2),
    (conditions.branch_alone, {"retain_versions": 1}, 3, 2),
    (conditions.columns, {"retain_versions": 1}, 10, 1),
    (conditions.missing_data, {"retain_versions": 1}, 2, 1),
    (conditions.foreign, {"retain_versions": 1}, 0, 1),
]


@pytest.mark.parametrize("condition, options, removed, kept", CLEANUPS)
def test_cleanup(client, condition, options, removed, kept):
    table, location = conditions.made(client, condition)
    digest = condition != conditions.missing_data and tables.digest(location)
    held = maintenance.health(client, table)["bytes"]
    before, tags = tables.files(location), lance.dataset(location).tags.list()
    preview, result = foreseen(client, table, location, "cleanup", options)
    assert {key: preview[key] for key in NUMBERS} == result
    assert set(result) == set(NUMBERS) and result["failed_deletes"] == 0
    assert preview["versions_kept"] == len(tables.versions(location))
    gone = {path: size for path, size in before.items() if path not in tables.files(location)}
    assert result["bytes_removed"] == sum(gone.values())
    assert result["old_versions"] == sum(path.startswith("_versions/") for path in gone)
    assert removed in (None, result["old_versions"]) and kept in (None, preview["versions_kept"])
    newest = preview["version"]
    expected = {name: tag["version"] for name, tag in tags.items() if tag["version"] != newest}
    assert preview["tags_kept"] == expected and "options" not in preview
    if options in ({"retain_versions": 1}, {"retain_versions": 1} | KEEP_TAGGED):
        assert result["bytes_removed"] == held["reclaimable"]
    if digest:
        assert tables.digest(location) == digest
    if condition in (conditions.branched, conditions.branch_alone):
        branch = lance.dataset(location).checkout_version(("trial", None))
        assert branch.to_table().num_rows == 250
    again, result = foreseen(client, table, location, "cleanup", options)
    assert set(result.values()) == {0} == {again[key] for key in NUMBERS}


@pytest.mark.parametrize("asked", [{}, {"error_if_tagged_old_versions": True}])
def test_tags_in_the_way(client, asked):
    table, location = conditions.made(client, ten_versions)
    lance.dataset(location).tags.create("kept", 3)
    lance.dataset(location).tags.create("newer", 9)
    before = tables.files(location)
    options = {"retain_versions": 2} | asked
    answer = maintenance.ask_preview(client, table, "cleanup", options)
    assert refusal(answer) == INVALID_INPUT
    error = maintenance.fail(client, table, "cleanup", options)
    assert error["code"] == "invalid_input"
    for text in [answer.json()["detail"], error["message"]]:
        assert "'kept' (version 3)" in text and "newer" not in text
        assert "error_if_tagged_old_versions" in text
    assert tables.files(location) == before
    # One that is no version to be removed stops nothing.
    assert maintenance.preview(client, table, "cleanup", {"retain_versions": 9} | asked)["tags_kept"] == {}
    preview, _ = foreseen(client, table, location, "cleanup", {"retain_versions": 2} | KEEP_TAGGED)
    assert preview["tags_kept"] == {"kept": 3}
    assert tables.versions(location) == [3, 9, 10]


def test_damage_stops_only_what_it_is_in(client):
    table, location = conditions.made(client, conditions.corrupt)
    # What is planned reads no data.
    assert maintenance.preview(client, table, "compact")["fragments_rewritten"] == 3
    tables.append(location, conditions.narrow(300, 310))
    _, result = foreseen(client, table, location, "cleanup", {"retain_versions": 1})
    assert result["old_versions"] == 1
    assert maintenance.preview(client, table, "optimize_indices")["indices"] == []


# Jobs that are refused

REFUSED = [
    ("compact", {"target_rows": 5}, "target_rows"),
    ("compact", {"target_rows_per_fragment": 0}, "target_rows_per_fragment"),
    ("compact", {"target_rows_per_fragment": "500"}, "target_rows_per_fragment"),
    ("compact", {"target_rows_per_fragment": 1.5}, "target_rows_per_fragment"),
    ("compact", {"target_rows_per_fragment": 2**63}, "target_rows_per_fragment"),
    ("compact", {"max_bytes_per_file": 0}, "max_bytes_per_file"),
    ("compact", {"max_rows_per_group": 5}, "max_rows_per_group"),
    ("compact", {"materialize_deletions": 1}, "materialize_deletions"),
    ("compact", {"materialize_deletions_threshold": "0.1"}, "materialize_deletions_threshold"),
    ("compact", {"retain_versions": 1}, "retain_versions"),
    ("compact", [], "options"),
    ("compact", "{}", "options"),
    ("optimize_indices", {"index_names": "id_idx"}, "index_names"),
    ("optimize_indices", {"index_names": [1]}, "index_names"),
    ("optimize_indices", {"index_names": [""]}, "index_names"),
    ("optimize_indices", {"num_indices_to_merge": -1}, "num_indices_to_merge"),
    ("optimize_indices", {"num_indices_to_merge": True}, "num_indices_to_merge"),
    ("optimize_indices", {"retrain": "yes"}, "retrain"),
    ("optimize_indices", {"names": []}, "names"),
    ("cleanup", {}, "retain_versions"),
    ("cleanup", None, "older_than_seconds"),
    ("cleanup", {"error_if_tagged_old_versions": False}, "retain_versions"),
    ("cleanup", {"retain_versions": 0}, "retain_versions"),
    ("cleanup", {"retain_versions": "1"}, "retain_versions"),
    ("cleanup", {"older_than_seconds": -0.5}, "older_than_seconds"),
    ("cleanup", {"older_than_seconds": "1"}, "older_than_seconds"),
    ("cleanup", {"older_than_seconds": 1e300}, "older_than_seconds"),
    ("cleanup", {"older_than": "1d"}, "older_than"),
    ("cleanup", {"delete_unverified": True, "retain_versions": 1}, "delete_unverified"),
    ("create_scalar_index", {"column": "id"}, "operation"),
    ("Compact", {}, "operation"),
    (None, {}, "operation"),
    (7, {}, "operation"),
]


@pytest.fixture(scope="module")
def plain(service):
    return conditions.made(service.client(), conditions.fresh)


@pytest.mark.parametrize("operation, options, word", REFUSED)
def test_what_is_refused(client, plain, operation, options, word):
    body = {"operation": operation, "options": options}
    for door in ["preview", "jobs"]:
        answer = client.request("POST", maintenance.path(plain[0], door), body)
        assert refusal(answer) == INVALID_INPUT
        assert word in answer.json()["detail"]


def test_a_job_may_name_its_table(client):
    table, location = conditions.made(client, conditions.target)
    expected = maintenance.preview(client, table, "compact")
    # As the path does, or by its folder.
    for path, name in [(table, table), (table, location), (table, None), (location, location)]:
        body = {"operation": "compact", "table": name, "options": None}
        answer = client.request("POST", maintenance.path(path, "preview"), body)
        assert answer.status_code == 200, (path, name, answer.text)
        assert answer.json() == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"operation":"compact","option":{}}',
        b'{"operation":"compact","options":{},"job":1}',
        b'{"operation":"compact","table":7}',
        b'{"operation":"compact","table":"tests$another"}',
    ],
)
def test_a_body_that_is_no_job(client, plain, body):
    for door in ["preview", "jobs"]:
        answer = client.request("POST", maintenance.path(plain[0], door), body)
        assert refusal(answer) == INVALID_INPUT
    assert client.request("GET", maintenance.path(plain[0], "jobs")).json()["jobs"] == []
