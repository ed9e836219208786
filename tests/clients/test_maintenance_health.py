"""Health reports against what pylance says of the same tables, and what the advised jobs lead to."""

import lance
import pytest

import conditions
import maintenance
import tables
from pictures import lance_files, normal, picture

COMPACT = ("compaction", ("compact", {}))
OPTIMIZE = ("unindexed_rows", ("optimize_indices", {}))
MISSING = ("missing_files",)
EVERYTHING = {"materialize_deletions": True, "materialize_deletions_threshold": -1}


def update(*names):
    return "optimize_indices", {"index_names": list(names)}


def merge(name, segments):
    job = ("optimize_indices", {"index_names": [name], "num_indices_to_merge": segments})
    return "index_segments", job


# A table, and what is advised, again and again until nothing is: each time all of it is done.
CASES = [
    (conditions.fresh, [[]]),
    (conditions.example, [[OPTIMIZE, COMPACT], []]),
    (conditions.many_deletes, [[COMPACT], []]),
    (conditions.few_deletes, [[]]),
    (conditions.all_deleted, [[]]),
    (conditions.wide, [[("compaction", ("compact", {"target_rows_per_fragment": 1341}))], []]),
    (conditions.columns, [[COMPACT], []]),
    (conditions.columns_of_full_fragments, [[("column_files", ("compact", EVERYTHING))], []]),
    (conditions.unindexed, [[OPTIMIZE], [COMPACT], []]),
    (conditions.few_new, [[OPTIMIZE], [merge("vector_idx", 2)], [COMPACT], []]),
    (conditions.piled_up, [[merge("vector_idx", 5)], [COMPACT], []]),
    (
        conditions.piled_up_and_behind,
        [[merge("vector_idx", 3), ("unindexed_rows", update("id_idx"))], [COMPACT], []],
    ),
    (conditions.zone_map, [[(*COMPACT, update("id_idx"))], []]),
    (conditions.zone_map_behind, [[OPTIMIZE, (*COMPACT, update("id_idx"))], []]),
    (conditions.tagged, [[COMPACT], []]),
    (conditions.branched, [[COMPACT], []]),
    (conditions.target, [[COMPACT], []]),
    (conditions.budgets, [[COMPACT], [COMPACT], []]),
    (conditions.auto_cleanup, [[]]),
    (conditions.empty, [[]]),
    (conditions.empty_indexed, [[]]),
    (conditions.foreign, [[COMPACT], []]),
]
# Tables that no job heals: what is advised, and what is missing.
DAMAGED = [
    (conditions.corrupt, [COMPACT], [], 0),
    (conditions.missing_data, [MISSING], ["data"], 0),
    (conditions.missing_deletions, [MISSING], ["_deletions"], 0),
    (conditions.missing_indices, [MISSING], [], 2),
]


def named(cases):
    return [pytest.param(*case, id=case[0].__name__) for case in cases]


def checked(client, table, location, query=""):
    """The report, which is as pylance sees the table; and nothing is written for it."""
    before = tables.files(location)
    report = maintenance.health(client, table, query)
    assert tables.files(location) == before
    expected = picture(location)
    found = normal(report, location)
    missing = found.pop("missing", None)
    for key in found.keys() | expected.keys():
        assert found.get(key) == expected.get(key), key
    assert (missing is None) == ("check_files=true" not in query)
    return report


@pytest.mark.parametrize("condition, rounds", named(CASES))
def test_the_advice_leads_to_a_healthy_table(client, condition, rounds):
    table, location = conditions.made(client, condition)
    rows = tables.digest(location)
    for advice in rounds:
        report = checked(client, table, location)
        assert maintenance.jobs_of(report) == advice
        for _, *jobs in advice:
            for job in jobs:
                maintenance.run(client, table, *job)
    assert tables.digest(location) == rows
    report = checked(client, table, location, "check_files=true")
    assert report["missing"] == {"num_files": 0, "data_files": [], "index_folders": []}
    assert report["advice"] == []
    if report["num_rows"]:
        assert [index["num_unindexed_rows"] for index in report["indices"]] == [0] * len(report["indices"])
    if condition == conditions.foreign:
        assert all((tables.folder(location) / name).read_text() for name in conditions.FOREIGN)


@pytest.mark.parametrize("condition, advice, data, indices", named(DAMAGED))
def test_what_no_job_heals(client, condition, advice, data, indices):
    table, location = conditions.made(client, condition)
    report = checked(client, table, location, "check_files=true")
    assert maintenance.jobs_of(report) == advice
    missing = report["missing"]
    assert [name.split("/")[0] for name in missing["data_files"]] == data
    assert len(missing["index_folders"]) == indices
    assert all(name.startswith("_indices/") for name in missing["index_folders"])
    names = missing["data_files"] + missing["index_folders"]
    assert missing["num_files"] == len(names)
    assert not any((tables.folder(location) / name).exists() for name in names)
    # Files are looked for on request only.
    report = checked(client, table, location, "check_files=false")
    assert maintenance.jobs_of(report) == [found for found in advice if found != MISSING]


def test_a_corrupt_file_stops_only_what_needs_it(client):
    table, location = conditions.made(client, conditions.corrupt)
    file = tables.data_file(location, 1).name
    error = maintenance.fail(client, table, "compact")
    assert error["code"] == "internal" and f"data/{file}" in error["message"]
    conditions.configure(location, note=1)
    assert maintenance.run(client, table, "cleanup", {"retain_versions": 1})["old_versions"] == 1


def test_the_example_of_the_published_check(client):
    table, location = conditions.made(client, conditions.example)
    report = maintenance.health(client, table)
    expected = {
        "num_rows": 1714,
        "num_fragments": 20,
        "num_deleted_rows": 286,
        "small_fragment_threshold_rows": 1_048_576,
        "num_small_fragments": 20,
        "compaction_tasks": 2,
        "compaction_budget": {},
        "tags": {"keep": 1},
        "auto_cleanup": {},
        "branches": [],
    }
    assert {key: report[key] for key in expected} == expected
    index = {
        "name": "id_idx",
        "index_type": "BTree",
        "num_segments": 1,
        "num_rows_indexed": 1371,
        "num_unindexed_rows": 343,
        "loses_coverage_in_compaction": False,
    }
    assert report["indices"] == [index]
    numbers = [advice["numbers"] for advice in report["advice"]]
    assert numbers[0] == {"num_unindexed_rows": {"id_idx": 343}}
    assert numbers[1] == {
        "compaction_tasks": 2,
        "num_fragments": 20,
        "tasks": 2,
        "fragments_rewritten": 20,
        "fragments_added": 2,
        "rows_rewritten": 1714,
        "deleted_rows_dropped": 286,
        "bytes_rewritten": report["compaction"]["bytes_rewritten"],
    }
    # What is under one index segment becomes one fragment.
    maintenance.run(client, table, "optimize_indices")
    assert maintenance.health(client, table)["compaction_tasks"] == 1


def test_what_is_not_worth_it_is_not_advised(client):
    table, location = conditions.made(client, conditions.heavy)
    report = checked(client, table, location)
    assert report["compaction_tasks"] == 1 and report["advice"] == []
    assert report["compaction"]["is_worthwhile"] is False
    assert maintenance.preview(client, table, "compact")["is_worthwhile"] is False
    # With some more rows it is.
    for start in range(1, 3):
        tables.append(location, lance.dataset(location).take([start]))
    report = checked(client, table, location)
    (advice,) = maintenance.jobs_of(report)
    assert advice[0] == "compaction"
    maintenance.run(client, table, *advice[1])
    assert checked(client, table, location)["advice"] == []


def test_what_else_is_seen(client):
    for condition, key, expected in [
        (conditions.columns, "column_files", (22, 11, 2)),
        (conditions.fresh, "column_files", (1, 1, 0)),
        (conditions.empty, "column_files", (0, 0, 0)),
    ]:
        table, _ = conditions.made(client, condition)
        assert tuple(maintenance.health(client, table)[key].values()) == expected
    table, location = conditions.made(client, lambda location: conditions.parts(location, 2, 1000))
    tables.append(location, conditions.narrow(0, 10))
    found = maintenance.health(client, table)["fragment_sizes"]
    sizes = [(size["from_rows"], size["below_rows"], size["num_fragments"], size["num_rows"]) for size in found]
    assert sizes == [(1, 1000, 1, 10), (1000, 10_000, 2, 2000)]
    files = tables.files(location)
    assert sum(size["bytes"] for size in found) == sum(files[path] for path in files if path.startswith("data/"))


# Bytes


def test_bytes_that_a_cleanup_frees(client):
    table, location = conditions.made(client, conditions.piled_up)
    lance.dataset(location).delete("id < 100")
    maintenance.run(client, table, "compact")
    before = checked(client, table, location)["bytes"]
    assert before["total"] == sum(lance_files(location).values()) == before["live"] + before["reclaimable"]
    (advice,) = [a for a in maintenance.health(client, table, "reclaim=true")["advice"] if a["rule"] == "old_versions"]
    assert (advice["job"]["operation"], advice["job"]["options"]) == ("cleanup", {"retain_versions": 1})
    assert advice["numbers"]["reclaimable_bytes"] == before["reclaimable"] > 0
    result = maintenance.run(client, table, "cleanup", {"retain_versions": 1})
    assert result["bytes_removed"] == before["reclaimable"]
    report = checked(client, table, location, "reclaim=true")
    assert report["bytes"] == {"total": before["live"], "live": before["live"], "reclaimable": 0}
    assert "old_versions" not in [advice["rule"] for advice in report["advice"]]


def test_bytes_that_tags_and_branches_hold(client):
    table, location = conditions.made(client, conditions.tagged)
    maintenance.run(client, table, "compact")
    report = checked(client, table, location, "reclaim=true")
    assert [advice["rule"] for advice in report["advice"]] == ["old_versions"]
    assert report["advice"][0]["numbers"]["num_tags"] == 2
    # As it is advised it fails, and says what to do; then what is said to be reclaimable goes.
    error = maintenance.fail(client, table, "cleanup", report["advice"][0]["job"]["options"])
    assert error["code"] == "invalid_input" and "'new'" in error["message"] and "'old'" in error["message"]
    options = {"retain_versions": 1, "error_if_tagged_old_versions": False}
    removed = maintenance.run(client, table, "cleanup", options)["bytes_removed"]
    assert removed == report["bytes"]["reclaimable"] > 0
    assert tables.versions(location)[:2] == [1, 3]


def test_bytes_that_a_branch_holds(client):
    table, location = conditions.made(client, conditions.branch_alone)
    reclaimable = maintenance.health(client, table)["bytes"]["reclaimable"]
    removed = maintenance.run(client, table, "cleanup", {"retain_versions": 1})["bytes_removed"]
    branch = lance.dataset(location).checkout_version(("trial", None))
    assert branch.to_table()["id"].to_pylist() == list(range(200)) + list(range(50))
    assert removed == reclaimable > 0
    checked(client, table, location, "check_files=true")


def test_foreign_files_are_not_counted(client):
    table, location = conditions.made(client, conditions.fresh)
    before = maintenance.health(client, table, "check_files=true&reclaim=true")
    for name in [*conditions.FOREIGN, "a/tree/b.lance"]:
        path = tables.folder(location) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    after = maintenance.health(client, table, "check_files=true&reclaim=true")
    assert before["oldest_version"].pop("age_seconds") <= after["oldest_version"].pop("age_seconds")
    assert before == after
    # The folder of Lance's own versions is, and a file that no version needs.
    (tables.folder(location) / "data" / "left.lance").write_bytes(b"x" * 1000)
    found = maintenance.health(client, table)["bytes"]
    assert found["total"] - before["bytes"]["total"] == found["reclaimable"] == 1000


# Sections that fail


@pytest.mark.parametrize("value", ["x", "-1", "1.5"])
def test_a_section_that_fails_leaves_the_others(client, value):
    table, location = conditions.made(client, conditions.unindexed)
    conditions.configure(location, compaction__target_rows_per_fragment=value)
    report = maintenance.health(client, table, "check_files=true")
    failed = {"fragments", "compaction", "outlook"}
    assert set(report["errors"]) == failed
    assert all(value in text and "target_rows_per_fragment" in text for text in report["errors"].values())
    for absent in ["num_fragments", "num_small_fragments", "num_deleted_rows", "compaction_tasks", "compaction"]:
        assert absent not in report
    assert report["num_rows"] == 1600 and report["missing"]["num_files"] == 0
    assert report["bytes"]["total"] == sum(lance_files(location).values())
    assert maintenance.jobs_of(report) == [OPTIMIZE]
