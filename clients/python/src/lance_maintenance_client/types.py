"""What the service answers, as typed dictionaries: the JSON itself, so that whatever a later service
adds is there as well.

Times are texts in ISO 8601 with six digits of a second; sizes are in bytes.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Operation = Literal["compact", "optimize_indices", "cleanup"]
"""What can be submitted as a job."""

TaskType = Literal[
    "lance_compact",
    "lance_scalar_index",
    "lance_vector_index",
    "lance_optimize_indices",
    "lance_cleanup",
    "lance_backfill_column",
]
"""The types of task of the OSS API."""

FINAL_STATES = frozenset({"succeeded", "failed", "canceled"})
"""The states in which a job has ended."""

FINAL_STATUSES = frozenset({"completed", "failed"})
"""The statuses in which a task of the OSS API has ended."""


class Progress(TypedDict):
    """How far a job is: `percent` from 0 to 100, and what is being done, in words."""

    percent: int
    message: str


class JobError(TypedDict):
    """Why a job failed: a code as in `MaintenanceError.code`, and what is wrong and what to do."""

    code: str
    message: str


class _Job(TypedDict):
    job_id: str
    state: str
    operation: str
    options: dict[str, Any]
    task_id: str
    created_at: str
    started_at: str
    completed_at: str


class JobStatus(_Job, total=False):
    """A job.

    `state` is `queued`, `running`, `succeeded`, `failed` or `canceled`; the last three are final.
    `options` are those that were given at submit. `task_id` is its id in the OSS API. Times that are
    not yet are empty. `progress` is there once a worker has said so, `result` once the job has
    succeeded, `version` (of the table, afterwards) if the job makes one, `error` if it failed or was
    canceled.
    """

    progress: Progress
    result: dict[str, Any]
    version: int
    error: JobError


class _JobPage(TypedDict):
    jobs: list[JobStatus]


class JobPage(_JobPage, total=False):
    """Jobs of a table, newest first. `page_token` leads to the next page; absent on the last."""

    page_token: str


class AdvisedJob(TypedDict):
    """A job that can be submitted as it is."""

    operation: str
    options: dict[str, Any]


class _Advice(TypedDict):
    rule: str
    reason: str
    numbers: dict[str, Any]
    job: AdvisedJob | None


class Advice(_Advice, total=False):
    """One thing to do: the rule, the reason in words, the numbers that the rule looked at, the job
    that does it (`None` if no job does), and the job that is needed after it (`then`)."""

    then: AdvisedJob


class IndexHealth(TypedDict):
    """An index. `num_unindexed_rows` is `None` if the number of the table's rows is not known."""

    name: str
    index_type: str
    num_segments: int
    num_rows_indexed: int
    num_unindexed_rows: int | None
    loses_coverage_in_compaction: bool


class VersionAge(TypedDict):
    """A version, when it was made, and how many seconds ago that is."""

    version: int
    created_at: str
    age_seconds: int


class TableBytes(TypedDict):
    """How much a table takes, what its newest version needs of that, and what a cleanup of all other
    versions frees at most."""

    total: int
    live: int
    reclaimable: int


class _FragmentSizes(TypedDict):
    from_rows: int
    num_fragments: int
    num_rows: int
    bytes: int


class FragmentSizes(_FragmentSizes, total=False):
    """Fragments that hold from `from_rows` to less than `below_rows` rows; without the latter, from
    there on."""

    below_rows: int


class ColumnFiles(TypedDict):
    """Data files of all fragments, of the fragment that has most, and fragments that have several."""

    num_files: int
    most_per_fragment: int
    num_fragments_with_several: int


class _CompactionOutlook(TypedDict):
    tasks: int
    fragments_rewritten: int
    fragments_added: int
    rows_rewritten: int
    deleted_rows_dropped: int
    bytes_rewritten: int
    is_worthwhile: bool


class CompactionOutlook(_CompactionOutlook, total=False):
    """What the compaction that is advised would do. `target_rows_per_fragment` is there if it should
    be less than what the table is set to."""

    target_rows_per_fragment: int


class MissingFiles(TypedDict):
    """Files that the newest version needs and that are not there: how many, and the first hundred of
    each kind, relative to the table's folder."""

    num_files: int
    data_files: list[str]
    index_folders: list[str]


class OpenTask(TypedDict):
    """A job that waits or runs."""

    job_id: str
    operation: str
    state: str
    created_at: str


class _Health(TypedDict):
    table: str
    errors: dict[str, str]
    advice: list[Advice]


class HealthReport(_Health, total=False):
    """The health of a table. A section that could not be computed is absent, and `errors` says why
    under its name; `missing` is there on request only. `advice` says what to do, in this order."""

    version: int
    num_rows: int
    num_fragments: int
    num_deleted_rows: int
    small_fragment_threshold_rows: int
    num_small_fragments: int
    compaction_tasks: int
    compaction_budget: dict[str, str]
    num_versions: int
    tags: dict[str, int]
    auto_cleanup: dict[str, str]
    indices: list[IndexHealth]
    branches: list[str]
    oldest_version: VersionAge
    bytes: TableBytes
    average_row_bytes: int
    fragment_sizes: list[FragmentSizes]
    column_files: ColumnFiles
    compaction: CompactionOutlook
    missing: MissingFiles
    tasks: list[OpenTask]


Preview = dict[str, Any]
"""What a job would do; the keys depend on the operation. `options`, if there, are better for this
table than those of the job."""


class TaskError(TypedDict):
    """Why a task of the OSS API failed."""

    error: str
    code: int
    detail: str


class _TaskInfo(TypedDict):
    task_id: str
    task_type: str
    params: dict[str, Any]
    status: str
    created_at: str
    started_at: str
    completed_at: str
    result: dict[str, Any]
    error: TaskError | None


class TaskInfo(_TaskInfo, total=False):
    """A task of the OSS API. `status` is `submitted`, `running`, `completed` or `failed`; the last
    two are final. `progress` is there if it was asked for and a worker has said so."""

    progress: Progress


class RegisteredTable(TypedDict, total=False):
    """A table that is in the catalog now: where its folder is, and its properties."""

    location: str
    properties: dict[str, str]


class TableDescription(TypedDict, total=False):
    """A table of the catalog. `namespace` and `table` are its name, `location` is its folder's URI,
    `properties` hold `table_id` and `table_arn`."""

    namespace: list[str]
    table: str
    location: str
    properties: dict[str, str]
