"""What pylance says of a table, in the words of a health report."""

from datetime import datetime, timezone

import lance
from lance.optimize import Compaction

import tables

MIB = 1 << 20
ROWS = 1 << 20
BUDGETS = ["max_source_fragments", "max_source_rows", "max_source_bytes"]
SIZES = [0, 1, 1000, 10_000, 100_000, ROWS]
FOLDERS = ("_versions/", "_transactions/", "_deletions/", "_indices/", "_refs/", "tree/")
# What no version tracks and no cleanup removes.
KEPT = ("_refs/", "tree/", "_versions/latest_version_hint")


def picture(location: str) -> dict:
    """A report as it has to be, but for the advice and the age of the oldest version."""
    table = lance.dataset(location)
    config = table.config()
    threshold = int(config.get("lance.compaction.target_rows_per_fragment", 0)) or ROWS
    numbers = table.stats.dataset_stats(max_rows_per_group=threshold)
    fragments = [fragment.metadata for fragment in table.get_fragments()]
    oldest = min(table.versions(), key=lambda version: version["version"])
    tags = {name: tag["version"] for name, tag in table.tags.list().items()}
    report = {
        "table": location,
        "errors": {},
        "version": table.version,
        "num_rows": table.count_rows(),
        "num_fragments": numbers["num_fragments"],
        "num_deleted_rows": numbers["num_deleted_rows"],
        "small_fragment_threshold_rows": threshold,
        "num_small_fragments": numbers["num_small_files"],
        "compaction_tasks": plan(table).num_tasks(),
        "compaction_budget": {
            name: config[f"lance.compaction.{name}"]
            for name in BUDGETS
            if f"lance.compaction.{name}" in config
        },
        "num_versions": len(table.version_refs()),
        "tags": tags,
        "auto_cleanup": {key: value for key, value in config.items() if key.startswith("lance.auto_cleanup.")},
        "indices": [index(table, found) for found in table.describe_indices()],
        "branches": sorted(table.branches.list()),
        "oldest_version": {"version": oldest["version"]},
        "bytes": bytes_of(table, location, tags),
        "fragment_sizes": sizes(fragments),
        "column_files": {
            "num_files": sum(len(fragment.files) for fragment in fragments),
            "most_per_fragment": max((len(fragment.files) for fragment in fragments), default=0),
            "num_fragments_with_several": sum(len(fragment.files) > 1 for fragment in fragments),
        },
        "tasks": [],
    }
    rows = sum(fragment.physical_rows for fragment in fragments)
    if rows:
        report["average_row_bytes"] = stored(fragments) // rows
    return report | {"compaction": outlook(table, threshold, report.get("average_row_bytes", 0))}


def normal(report: dict, location: str) -> dict:
    """A report in the form of a picture: the age is checked and left out, and so is the advice."""
    report = {key: value for key, value in report.items() if key != "advice"}
    oldest = dict(report["oldest_version"])
    created = datetime.fromisoformat(oldest.pop("created_at").replace("Z", "+00:00"))
    first = min(lance.dataset(location).versions(), key=lambda version: version["version"])["timestamp"]
    # pylance's own is rounded.
    assert abs(created.timestamp() - first.timestamp()) < 0.001
    assert abs(datetime.now(timezone.utc).timestamp() - created.timestamp() - oldest.pop("age_seconds")) < 5
    return report | {"oldest_version": oldest}


def plan(table, **options):
    return Compaction.plan(table, options=dict.fromkeys(BUDGETS) | options)


def outlook(table, target: int, row_bytes: int) -> dict:
    """What the advised compaction does, with the target that it has for wide rows."""
    better = {}
    if target * row_bytes > 8 << 30:
        target = (256 << 20) // row_bytes
        better = {"target_rows_per_fragment": target}
    tasks = [task.fragments for task in plan(table, **better).tasks]
    fragments = [fragment for task in tasks for fragment in task]
    live = [sum(fragment.num_rows for fragment in task) for task in tasks]
    added = sum(max(1, rows // target) if rows else 0 for rows in live)
    deleted = sum(fragment.num_deletions for fragment in fragments)
    gone, rewritten = len(fragments) - added, stored(fragments)
    return better | {
        "tasks": len(tasks),
        "fragments_rewritten": len(fragments),
        "fragments_added": added,
        "rows_rewritten": sum(live),
        "deleted_rows_dropped": deleted,
        "bytes_rewritten": rewritten,
        "is_worthwhile": bool(fragments)
        and (deleted >= 0.1 * (sum(live) + deleted) > 0 or gone > 0 and rewritten // gone <= 64 * MIB),
    }


def index(table, found) -> dict:
    return {
        "name": found.name,
        "index_type": found.index_type,
        "num_segments": len(found.segments),
        "num_rows_indexed": found.num_rows_indexed,
        "num_unindexed_rows": table.count_rows() - found.num_rows_indexed,
        "loses_coverage_in_compaction": found.index_type in ("ZoneMap", "BloomFilter", "RTree", "Fm"),
    }


def stored(fragments) -> int:
    return sum(file.file_size_bytes for fragment in fragments for file in fragment.files)


def sizes(fragments) -> list[dict]:
    found = []
    for lower, upper in zip(SIZES, [*SIZES[1:], None]):
        within = [f for f in fragments if lower <= f.physical_rows and (upper is None or f.physical_rows < upper)]
        if within:
            size = {
                "from_rows": lower,
                "below_rows": upper,
                "num_fragments": len(within),
                "num_rows": sum(fragment.physical_rows for fragment in within),
                "bytes": stored(within),
            }
            found.append({key: value for key, value in size.items() if value is not None})
    return found


def lance_files(location: str) -> dict[str, int]:
    """Path and size of the files that Lance wrote."""
    return {
        path: size
        for path, size in tables.files(location).items()
        if path.startswith(FOLDERS) or path.startswith("data/") and path.endswith(".lance")
    }


def bytes_of(table, location: str, tags: dict) -> dict:
    """By the files that each version tracks."""
    tracked = {}
    for file in table.tracked_files().read_all().to_pylist():
        tracked.setdefault(file["version"], set()).add(file["path"])
    held = set().union(*(tracked.get(version, set()) for version in tags.values()))
    # What a branch began with it needs, but for the transaction: a cleanup removes that.
    for branch in table.branches.list().values():
        needed = tracked.get(branch["parent_version"], set())
        held |= {path for path in needed if not path.startswith("_transactions/")}
    files = lance_files(location)
    live = {path for path in files if path in tracked[table.version] or path.startswith(KEPT)}
    return {
        "total": sum(files.values()),
        "live": sum(files[path] for path in live),
        "reclaimable": sum(size for path, size in files.items() if path not in live | held),
    }
