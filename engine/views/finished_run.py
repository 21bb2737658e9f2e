"""A finished run of a project, its tables open to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.entry import Search
from engine.matches.search_passes import SearchPass, passes_of_run
from engine.project import Project, RunRecord
from engine.views.tables import ResultTables

__all__ = ["FinishedRun", "open_finished_run"]


@dataclass(frozen=True)
class FinishedRun:
    """A run that is looked at.

    Attributes
    ----------
    run : its record. tables : those that were asked for.
    parameters : by name, with the defaults for those that its version did not have.
    inputs : kind and path of each file that it read. messages : what it said, warnings first.
    passes : how it searched, of a search of spectra in proteins.
    """

    run: RunRecord
    tables: ResultTables
    parameters: dict[str, Any]
    inputs: tuple[tuple[str, Path], ...]
    messages: tuple[str, ...]
    passes: tuple[SearchPass, ...]

    def close(self) -> None:
        """Let the files go."""
        self.tables.close()


def open_finished_run(
    project: Project, search: Search, run_id: str | None, *, more: Sequence[str] = (), optional: Sequence[str] = ()
) -> FinishedRun:
    """Open a finished run, the last one of its search where `run_id` is None. Checks the files' digests, hence takes its time.

    Parameters
    ----------
    more : tables that it must have besides those of the search. optional : tables that it may have.

    Raises
    ------
    InputError, StorageError : there is none, or its tables are missing or damaged.
    """
    chosen = run_id or project.latest(search.kind)
    # Asked for first: where there is no such run, this says so.
    paths = {name: project.table(name, chosen) for name in (*(one.name for one in search.result_tables), *more)}
    kept = {one.name for one in project.results(chosen)}
    paths |= {name: project.table(name, chosen) for name in optional if name in kept}
    record = next(run for run in project.runs() if run.id == chosen)
    stored = {name: field.default for name, field in search.model.model_fields.items()}
    stored |= search.model.with_current_names(record.parameters)
    inputs = tuple((one.kind, one.path) for one in project.inputs(record.id))
    # What the user must know stands first, where there is room for it.
    entries = sorted(project.log(record.id), key=lambda entry: entry.level == "info")
    messages = tuple(entry.text for entry in entries)
    passes = passes_of_run(project, record.id)
    described = {one.name: one for one in search.all_tables if one.name in paths}
    return FinishedRun(record, ResultTables(paths, described), stored, inputs, messages, passes)
