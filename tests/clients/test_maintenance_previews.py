"""Previews against what pylance says of a table, and against what the same jobs then do to it."""

import lance
import numpy as np
import pyarrow as pa
import pytest

import conditions
import maintenance
import tables
from cases import INVALID_INPUT
from pictures import plan, stored
from service import refusal

NOTHING = {"files_added": 0, "files_removed": 0, "fragments_added": 0, "fragments_removed": 0}
LOSING = {conditions.zone_map: ["id_idx"]}


def foreseen(client, table, location, operation, options=None):
    """The preview, which writes nothing, and the result of the job."""
    before, version = tables.files(location), lance.dataset(location).version
    preview = maintenance.preview(client, table, operation, options)
    assert tables.files(location) == before
    assert preview["version"] == version
    return preview, maintenance.run(client, table, operation, options)


# Compaction


def kilobytes(location):
    """1000 rows of 40 kB."""
    values = np.random.default_rng(1).bytes(40_000_000)
    for start in range(0, 1000, 100):
        part = [values[row * 40_000 : (row + 1) * 40_000] for row in range(start, start + 100)]
        tables.append(location, pa.table({"id": range(start, start + 100), "value": part}))


def part_deletes(location):
    """0, 5, 20 and 50 of each hundred rows are deleted."""
    conditions.parts(location, 4, 200)
    lance.dataset(location).delete("(id >= 200 AND id < 210) OR (id >= 400 AND id < 440) OR id >= 700")


COMPACTIONS = [
    (conditions.fresh, {}, 0),
    (conditions.empty, {}, 0),
    (conditions.example, {}, 20),
    (conditions.example, {"target_rows_per_fragment": 300}, 20),
    (conditions.many_deletes, {}, 1),
    (conditions.many_deletes, {"materialize_deletions": False}, 0),
    (conditions.few_deletes, {}, 0),
    (conditions.few_deletes, {"materialize_deletions_threshold": 0.01}, 1),
    (conditions.all_deleted, {}, 0),
    (part_deletes, {"target_rows_per_fragment": 200}, 2),
    (part_deletes, {"target_rows_per_fragment": 200, "materialize_deletions_threshold": 0.3}, 1),
    (part_deletes, {"target_rows_per_fragment": 200, "materialize_deletions_threshold": -1}, 4),
    (part_deletes, {"target_rows_per_fragment": 200, "materialize_deletions_threshold": 2.5}, 0),
    (conditions.wide, {}, 5),
    (conditions.wide, {"target_rows_per_fragment": 40}, 5),
    (kilobytes, {"max_bytes_per_file": 10 << 20}, 10),
    (kilobytes, {"max_bytes_per_file": 20 << 20}, 10),
    (conditions.columns, {}, 2),
    (conditions.columns_of_full_fragments, {}, 0),
    (conditions.columns_of_full_fragments, {"materialize_deletions_threshold": -1}, 2),
    (conditions.zone_map, {}, 3),
    (conditions.tagged, {}, 2),
    (conditions.branched, {}, 3),
    (conditions.target, {}, 10),
    (conditions.target, {"target_rows_per_fragment": 700}, 10),
    (conditions.target, {"target_rows_per_fragment": 200}, 0),
    (conditions.budgets, {}, 6),
    (conditions.piled_up, {}, 0),
    (conditions.missing_indices, {}, 0),
]


@pytest.mark.parametrize("condition, options, rewritten", COMPACTIONS)
def test_compact(client, condition, options, rewritten):
    table, location = conditions.made(client, condition)
    before, shape = lance.dataset(location), tables.shape(location)
    fragments = [fragment.metadata for fragment in before.get_fragments()]
    rows = tables.digest(location)
    preview, result = foreseen(client, table, location, "compact", options)
    after = tables.shape(location)

    expected = plan(before, **{key: value for key, value in options.items() if key != "max_bytes_per_file"})
    assert preview["tasks_without_budget"] == expected.num_tasks()
    tasks = [task.fragments for task in expected.tasks][: preview["tasks"]]
    planned = [fragment for task in tasks for fragment in task]
    size, stored_rows = stored(planned), sum(fragment.physical_rows for fragment in fragments)
    assert {key: preview[key] for key in preview if key not in ("budgets", "options", "is_worthwhile")} == {
        "tasks": len(tasks),
        "tasks_without_budget": expected.num_tasks(),
        "fragments_rewritten": rewritten,
        "rows_rewritten": sum(fragment.num_rows for fragment in planned),
        "deleted_rows_dropped": shape.deleted - after.deleted,
        "bytes_rewritten": size,
        "version": shape.version,
        "bytes_per_row": stored(fragments) // stored_rows if stored_rows else None,
        "fragments_before": len(fragments),
        "fragments_after": len(after.fragments),
        "bytes_freed": 0,
        "bytes_freed_after_cleanup": size,
        "indices_losing_coverage": LOSING.get(condition, []),
    }
    assert preview["fragments_rewritten"] == result["fragments_removed"] == len(planned)
    added = preview["fragments_after"] - preview["fragments_before"] + rewritten
    assert added == result["fragments_added"]
    assert result["files_removed"] == sum(
        len(fragment.files) + (fragment.deletion_file is not None) for fragment in planned
    )
    assert tables.digest(location) == rows
    for name in preview["indices_losing_coverage"]:
        assert tables.index(location, name).num_rows_indexed == 0
    # What was deleted is gone from all fragments that were rewritten.
    kept = {fragment.id for fragment in fragments} - {fragment.id for fragment in planned}
    for fragment in lance.dataset(location).get_fragments():
        assert fragment.fragment_id in kept or fragment.num_deletions == 0
    if condition != conditions.budgets and options.get("materialize_deletions_threshold") != -1:
        again, result = foreseen(client, table, location, "compact", options)
        assert (again["tasks"], again["fragments_rewritten"], again["bytes_rewritten"]) == (0, 0, 0)
        assert again["fragments_after"] == again["fragments_before"]
        assert again["is_worthwhile"] is False
        assert result == NOTHING
        assert lance.dataset(location).version == after.version


def test_a_budget_for_each_run(client):
    table, location = conditions.made(client, conditions.budgets)
    for tasks, without, fragments, left in [(2, 3, 6, 6), (1, 1, 4, 3), (0, 0, 0, 3)]:
        preview, result = foreseen(client, table, location, "compact")
        assert (preview["tasks"], preview["tasks_without_budget"]) == (tasks, without)
        assert preview["fragments_rewritten"] == result["fragments_removed"] == fragments
        assert preview["fragments_after"] == len(tables.shape(location).fragments) == left
        budgets = preview["budgets"]
        values = {name: budget["value"] for name, budget in budgets.items()}
        assert values == {"max_source_fragments": 6, "max_source_rows": 100_000}
        assert all(f"lance.compaction.{name}" in budget["source"] for name, budget in budgets.items())
    # None is left that is smaller than the table wants.
    assert all(fragment.count_rows() >= 500 for fragment in lance.dataset(location).get_fragments())


@pytest.mark.parametrize(
    "budget, value", [("rows", 500), ("fragments", 2), ("bytes", 1000), ("rows", 0), ("bytes", "x")]
)
def test_a_budget_that_does_not_do(client, budget, value):
    name = f"max_source_{budget}"
    config = {f"compaction__{name}": value}
    table, location = conditions.made(client, lambda location: conditions.parts(location, 10, 200, **config))
    before = tables.files(location)
    answer = maintenance.ask_preview(client, table, "compact")
    assert refusal(answer) == INVALID_INPUT
    assert name in answer.json()["detail"]
    error = maintenance.fail(client, table, "compact")
    assert error["code"] == "invalid_input" and name in error["message"]
    assert tables.files(location) == before


def test_wide_rows_get_a_target(client):
    table, location = conditions.made(client, conditions.wide)
    preview = maintenance.preview(client, table, "compact", {"materialize_deletions": False})
    target = preview["options"].pop("target_rows_per_fragment")
    assert preview["options"] == {"materialize_deletions": False}
    assert preview["bytes_rewritten"] > 100 * conditions.WIDE
    assert target * preview["bytes_per_row"] <= 256 << 20 < (target + 1) * preview["bytes_per_row"]
    options = maintenance.preview(client, table, "compact")["options"]
    assert options == {"target_rows_per_fragment": target}
    # With these it has nothing else to say, and does as much.
    preview, result = foreseen(client, table, location, "compact", options)
    assert "options" not in preview and preview["is_worthwhile"]
    assert result["fragments_removed"] == 5 and result["fragments_added"] == 1
    # What the table itself is set to is no less.
    conditions.configure(location, compaction__target_rows_per_fragment=target)
    assert "options" not in maintenance.preview(client, table, "compact")


def test_a_target_ends_rewriting_everything_at_each_pass(client):
    table, location = client.new_table()
    rewritten = []
    for start in range(0, 120, 20):
        tables.append(location, conditions.wide_rows(start, start + 20))
        preview, _ = foreseen(client, table, location, "compact", {"target_rows_per_fragment": 40})
        rewritten.append(preview["rows_rewritten"])
    assert rewritten == [0, 40, 0, 40, 0, 40]
    assert tables.ids(location) == list(range(120))


def test_no_leftovers(client):
    table, location = conditions.made(client, lambda location: conditions.parts(location, 10, 200))
    options = {"target_rows_per_fragment": 500}
    preview, _ = foreseen(client, table, location, "compact", options)
    assert preview["fragments_after"] == 3
    assert [f.count_rows() for f in lance.dataset(location).get_fragments()] == [600, 600, 800]
    assert maintenance.preview(client, table, "compact", options)["tasks"] == 0
