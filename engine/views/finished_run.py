"""Finished run of a project whose tables are open.

::

    with open_run("project", "align-0001") as run:
        hits = run.tables.source("hits")
        table = hits.values(hits.rows([compares("e_value", "<=", 1e-3)]), ["query", "subject"])
"""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from proteoscope.engine.entry import Search
from proteoscope.engine.errors import InputError, ParameterError, ProteoscopeError
from proteoscope.engine.matches.pass_records import PassRecord, passes_of_run
from proteoscope.engine.project import Project, RowMark, RunRecord
from proteoscope.engine.project.digests import RecordedFiles
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.spectra.tables import SPECTRA
from proteoscope.engine.views.annotation import IonSettings, ions_looked_for
from proteoscope.engine.views.peaks import PeaksOfRun, open_peaks
from proteoscope.engine.views.tables import ResultTables

__all__ = ["FinishedRun", "open_finished_run", "open_run"]

_MATCHES, _MAP = "psms", "map"
"""Tables with the status of spectra: PSMs of a search, and the map of a run that explains spectra."""


@dataclass(frozen=True)
class FinishedRun:
    """Finished run that is opened for viewing.

    Attributes
    ----------
    project
        Project of the run.
    run
        Record of the run.
    tables
        Tables of the search and further stored tables, except peaks.
    parameters
        Parameter values by name, with defaults for parameters that were not recorded.
    inputs
        Kind and path of each input file.
    messages
        Logged messages, with warnings first.
    n_warnings
        Number of warnings among the messages.
    passes
        Search passes of a spectrum search.
    marks
        Stars and comments on rows by table name, as they were when the run was opened.
    """

    project: Project
    run: RunRecord
    tables: ResultTables
    parameters: dict[str, Any]
    inputs: tuple[tuple[str, Path], ...]
    messages: tuple[str, ...]
    passes: tuple[PassRecord, ...]
    marks: dict[str, dict[int, RowMark]] = field(default_factory=dict)
    n_warnings: int = 0
    _peaks: dict[tuple[str, str], PeaksOfRun] = field(default_factory=dict, repr=False, compare=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def fdr(self) -> float:
        """False discovery rate at which results are counted.

        Raises
        ------
        ParameterError
            If the search has no such parameter.
        """
        if "fdr" not in self.parameters:
            raise ParameterError(f"run '{self.run.id}' has no false discovery rate: its search has no such parameter")
        return float(self.parameters["fdr"])

    @property
    def ions(self) -> IonSettings | None:
        """Ion settings of a spectrum search; None if its parameters do not define ions."""
        return ions_looked_for(self.parameters)

    @property
    def spectra_run(self) -> str:
        """Identifier of the run that stores the spectra: this run, or the identification whose spectra it explains; '' if unknown."""
        if _MAP not in self.tables.paths:
            return self.run.id
        source = self.project.record(self.run.id).get("source_run")
        return source if isinstance(source, str) else ""

    @property
    def decoy_ratio(self) -> float:
        """Number of decoys per target in the database, as counted by the run; 1 if the run generated the decoys."""
        reported = self.project.record(self.run.id).get("decoy_ratio", 1.0)
        return float(reported) if isinstance(reported, int | float) and 0 < reported < float("inf") else 1.0

    @property
    def has_decoys(self) -> bool:
        """True if the matches of the run include decoys; imported results may have no decoys."""
        return self.project.record(self.run.id).get("has_decoys") is not False

    def peaks(self, table: str = "spectra", run_id: str = "") -> PeaksOfRun:
        """Return a reader of the peaks in a table of spectra, for use in one thread.

        The table belongs to the run `run_id` of the project, or to this run if `run_id` is ''.
        """
        key = run_id or self.run.id, table
        if key not in self._peaks:
            # If two threads run concurrently, both get the object that was stored first.
            self._peaks.setdefault(key, open_peaks(self.project, *key))
        return self._peaks[key]

    def check_input(self, path: Path) -> None:
        """Check that the run recorded an input file and that the file is unchanged.

        Call this before reading an input file, since a forged record could name any file.

        Raises
        ------
        InputError
            If the run did not record the file, or the file is missing or has changed.
        """
        self._recorded.check(path)

    @cached_property
    def _recorded(self) -> RecordedFiles:
        return RecordedFiles(self.project.inputs(self.run.id))

    def mark(self, table: str, row: int, mark: RowMark) -> None:
        """Set the star and comment of a row, in the project and in all open sources of the table.

        Raises
        ------
        InputError
            If there is no such row.
        ParameterError
            If the comment is too long.
        StorageError
            If writing failed.
        """
        self.project.set_row_mark(self.run.id, table, row, mark)
        self.tables.set_mark(table, row, mark)

    def close(self) -> None:
        """Close the files."""
        self.tables.close()
        for opened in self._peaks.values():
            opened.close()


def open_run(project: str | Path | Project, run_id: str | None = None) -> FinishedRun:
    """Open a finished run of any search, by default the last run of the project (see `open_finished_run`).

    Raises
    ------
    InputError, StorageError
        If there is no such run, or its tables are missing or damaged.
    ParameterError
        If this version of the program does not have the run's search.
    """
    opened = project if isinstance(project, Project) else Project.open(project)
    chosen = run_id or opened.latest()
    record = next((run for run in opened.runs() if run.id == chosen), None)
    if record is None:
        missing = "holds no finished run" if chosen is None else f"holds no run {chosen!r}"
        raise InputError(opened.folder, missing, remedy="Run a search first")
    return open_finished_run(opened, search_of_kind(record.kind), record.id)


def open_finished_run(project: Project, search: Search, run_id: str | None = None) -> FinishedRun:
    """Open a finished run, by default the last run of its search, after checking the digests of its files.

    Raises
    ------
    InputError, StorageError
        If there is no such run, or its tables are missing or damaged.
    """
    chosen = run_id or project.latest(search.kind)
    # This call comes first, since it raises an error if the run is missing.
    paths = {result_table.name: project.table(result_table.name, chosen) for result_table in search.result_tables}
    retained = {result.name for result in project.results(chosen)}
    # Peaks are large, and each section of their files has its own checksum.
    more = [
        all_table.name
        for all_table in search.all_tables
        if all_table.name in retained - paths.keys() and not {"mz", "intensity"} <= all_table.by_name.keys()
    ]
    paths |= {name: project.table(name, chosen) for name in more}
    record = next(run for run in project.runs() if run.id == chosen)
    stored = {name: field.default for name, field in search.model.model_fields.items()}
    stored |= search.recorded_parameters(project, record)
    inputs = tuple((file.kind, file.path) for file in project.inputs(record.id))
    # Warnings come first, so that they are visible.
    entries = sorted(project.log(record.id), key=lambda entry: entry.level == "info")
    messages = tuple(entry.text for entry in entries)
    n_warnings = sum(entry.level != "info" for entry in entries)
    passes = passes_of_run(project, record.id)
    described = {all_table.name: all_table for all_table in search.all_tables if all_table.name in paths}
    # The table of spectra is large, so it is opened on demand.
    later: dict[str, Path] = {}
    if SPECTRA.name in retained and _MATCHES in paths:
        later = _spectra(project, record.id)
    elif _MAP in paths:
        later = _spectra(project, str(project.record(record.id).get("source_run")))
    tables = ResultTables(paths, described, later)
    marks = {name: project.row_marks(record.id, name) for name, table in described.items() if table.takes_marks}
    for name, of_table in marks.items():
        tables.show_marks(name, of_table)
    return FinishedRun(project, record, tables, stored, inputs, messages, passes, marks, n_warnings)


def _spectra(project: Project, run_id: str) -> dict[str, Path]:
    """Return the path of a run's table of spectra, by the name of the table; {} if the file is missing.

    A missing file is reported later, when peaks are requested.
    """
    try:
        return {SPECTRA.name: project.table(SPECTRA.name, run_id, verify=False)}
    except ProteoscopeError:
        return {}
