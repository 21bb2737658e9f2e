"""Runs of an experiment as tables for the window, and changes of their rows that can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.experiments.table import ExperimentRow, add_rows, read_experiment, write_experiment
from proteoscope.engine.files import is_there
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.project.paths import EXPERIMENT, inside
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.views.conditions import Condition, compares, text_in_columns

__all__ = [
    "EXPERIMENT_RUNS",
    "RUN_GROUPS",
    "STATUSES",
    "ExperimentState",
    "PlacedRows",
    "RunField",
    "change_experiment",
    "has_experiment",
    "read_experiment_state",
    "restore_rows",
    "run_conditions",
    "set_values",
]

RunField = Literal["sample", "condition"]
PlacedRows = tuple[tuple[int, ExperimentRow], ...]
"""Rows of an experiment with their positions in its table."""
STATUSES = ("done", "running", "failed", "cancelled", "queued", "not searched")
_MAXIMUM_CHARACTERS = 200

EXPERIMENT_RUNS = Table(
    "runs",
    "Runs",
    (
        Column("run", "Run", "Name of the run in the project", width=22),
        Column("sample", "Sample", "Name of the sample; files of one sample are its fractions", width=18),
        Column("condition", "Condition", "Name of the condition", width=14),
        Column("fraction", "Fraction", "Number of the fraction, from 1", "integer", 7),
        Column("replicate", "Replicate", "Number of the replicate, from 1", "integer", 8),
        Column("label", "Label", "Channel of an isobaric label", width=7, is_shown=False),
        Column("status", "Status", f"Status of the search: {', '.join(STATUSES)}", width=11),
        Column("message", "Result", "Result of the search, its progress, or the reason why it failed", width=44),
        Column("file", "File", "Name of the spectrum file", width=26, is_shown=False),
        Column("folder", "Folder", "Folder of the spectrum file", width=30, is_shown=False),
    ),
)
"""Table of the runs, with a row for each label channel."""
RUN_GROUPS = Table(
    "groups",
    "Groups",
    (
        Column("name", "Name", "Name of the sample or condition; empty for runs without one", width=16),
        Column("runs", "Runs", "Number of runs", "integer", 6),
        Column("done", "Done", "Number of finished runs", "integer", 6),
        Column("failed", "Failed", "Number of failed runs", "integer", 6),
    ),
)


@dataclass(frozen=True)
class ExperimentState:
    """Rows of an experiment with the status of each run.

    Attributes
    ----------
    rows : sequence of ExperimentRow
        Rows in the order of the table.
    status, messages : mapping of str to str
        By run: the status, and a text with the result of the run or the reason why it failed.
    kind : str
        Kind of search of the finished runs; '' if none is finished.
    """

    rows: Sequence[ExperimentRow]
    status: Mapping[str, str] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""

    @property
    def counts(self) -> Counter[str]:
        """Number of runs by status."""
        return Counter(self.status.values())

    def with_progress(self, progress: str) -> ExperimentState:
        """Return the state with the text `progress` as the message of the run that is being searched."""
        running = {run: progress for run, status in self.status.items() if status == "running"}
        return replace(self, messages={**self.messages, **running})

    def runs_table(self) -> pa.Table:
        """Return the rows as the table `EXPERIMENT_RUNS`."""
        columns = {name: [getattr(row, name) for row in self.rows] for name in ExperimentRow._fields if name not in ("file", "sha256")}
        columns["status"] = [self.status[row.run] for row in self.rows]
        columns["message"] = [self.messages.get(row.run, "") for row in self.rows]
        columns["file"] = [PurePath(row.file).name for row in self.rows]
        columns["folder"] = [str(PurePath(row.file).parent) for row in self.rows]
        return EXPERIMENT_RUNS.arrow(columns)

    def groups_table(self, by: RunField) -> pa.Table:
        """Return the samples or conditions as the table `RUN_GROUPS`, in the order of the experiment."""
        groups: dict[str, set[str]] = {}
        for row in self.rows:
            groups.setdefault(getattr(row, by), set()).add(row.run)
        counts = [Counter(self.status[run] for run in runs) for runs in groups.values()]
        return RUN_GROUPS.arrow(
            {
                "name": list(groups),
                "runs": [count.total() for count in counts],
                "done": [count["done"] for count in counts],
                "failed": [count["failed"] for count in counts],
            }
        )


def has_experiment(project: Project) -> bool:
    """Return True if a project has an experiment."""
    return is_there(inside(project.folder, EXPERIMENT))


def read_experiment_state(project: Project, failures: Mapping[str, str]) -> ExperimentState:
    """Return the rows of the experiment of a project and the status of its runs; without an experiment, there are no rows.

    Parameters
    ----------
    project : Project
        Project of the experiment.
    failures : mapping of str to str
        Reasons, by run, for failures that occurred before the project recorded the run, such as a changed file.

    Raises
    ------
    InputError, StorageError
        If the project or the table cannot be read.
    """
    if not has_experiment(project):
        return ExperimentState(())
    rows, records = read_experiment(project), {run.id: run for run in project.runs()}
    status = {row.run: records[row.run].status if row.run in records else "not searched" for row in rows}
    messages = {run: records[run].message for run in status if run in records}
    kinds = {records[run].kind for run, of_run in status.items() if of_run == "done"}
    for run, reason in failures.items():
        if status.get(run) == "not searched":
            status[run], messages[run] = "failed", reason
    return ExperimentState(rows, status, messages, next(iter(sorted(kinds)), ""))


def run_conditions(text: str, status: str | None) -> list[Condition]:
    """Return the conditions of a filter for runs: a text in any column and a status; '' and None mean no restriction."""
    conditions = text_in_columns(EXPERIMENT_RUNS.columns, text)
    return conditions if status is None else [*conditions, compares("status", "=", status)]


def change_experiment(
    project: Project, change: Callable[[list[ExperimentRow]], Sequence[ExperimentRow]]
) -> tuple[frozenset[str], PlacedRows, PlacedRows]:
    """Replace the rows of the experiment of a project by the rows that `change` returns.

    Returns
    -------
    frozenset of str, PlacedRows, PlacedRows
        Runs whose rows have changed, and their rows before and after, for `restore_rows`.

    Raises
    ------
    InputError
        If the experiment cannot be read, or the new rows contradict each other.
    StorageError
        If another process writes the project, or writing fails.
    """
    with project.writing("the experiment"):
        before = read_experiment(project)
        after, _ = add_rows(change(before), (), project, Progress())  # checks the rows
        write_experiment(project, after)
    runs = frozenset(row.run for row in {*before} ^ {*after})
    return runs, _placed(before, runs), _placed(after, runs)


def set_values(rows: Sequence[ExperimentRow], runs: Collection[str], name: RunField, text: str) -> list[ExperimentRow]:
    """Return the rows with a changed field: the sample of the given runs, or the condition of all runs that have the same samples as these.

    Raises
    ------
    ParameterError
        If the text is too long, or the name of a sample is empty.
    """
    text = " ".join(text.split())
    if len(text) > _MAXIMUM_CHARACTERS or not text.isprintable():
        raise ParameterError(f"a {name} may have up to {_MAXIMUM_CHARACTERS} printable characters")
    if name == "sample":
        if not text:
            raise ParameterError("a sample needs a name")
        return [row._replace(sample=text) if row.run in runs else row for row in rows]
    samples = {row.sample for row in rows if row.run in runs}
    return [row._replace(condition=text) if row.sample in samples else row for row in rows]


def restore_rows(rows: Sequence[ExperimentRow], runs: Collection[str], placed: PlacedRows) -> list[ExperimentRow]:
    """Return the rows with a change undone or redone: the rows of `runs` are removed, and those in `placed` inserted at their positions."""
    result = [row for row in rows if row.run not in runs]
    for position, row in placed:
        result.insert(position, row)
    return result


def _placed(rows: Sequence[ExperimentRow], runs: Collection[str]) -> PlacedRows:
    return tuple((position, row) for position, row in enumerate(rows) if row.run in runs)
