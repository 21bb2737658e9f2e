"""Results of searches for scripts: tables as Arrow, pandas or polars, counts, exports; and projects with their runs."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from proteoscope.engine import views
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, one_path, optional_package, progress_of
from proteoscope.engine.entry import ExportRequest, Search
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project, RunRecord
from proteoscope.engine.results.reader import stored_table
from proteoscope.engine.searches import check_threads, resume_run, search_of_kind

if TYPE_CHECKING:
    import pandas
    import polars

    from proteoscope.engine.parameters import SearchParameters
    from proteoscope.engine.results.columns import Column, Table
    from proteoscope.engine.views.finished_run import FinishedRun

__all__ = ["RESULT_CLASSES", "OpenProject", "Result"]

RESULT_CLASSES: dict[str, type[Result]] = {}
"""Class of the results of each search by its kind, which `proteoscope.engine.api.search_results` defines."""
_SHOWN_ROWS = 10


class OpenProject:
    """A project: its finished runs, the oldest first.

    `open_project` returns it. Iterating over it yields the result of each run.

    Attributes
    ----------
    path : Path
        Folder of the project.
    is_temporary : bool
        True if the folder is removed when the last result of the project is no longer used, or Python ends.
    """

    def __init__(self, path: Path, stack: ExitStack | None = None) -> None:
        self.path, self.is_temporary = path, stack is not None
        self._opened: dict[str, FinishedRun] = {}
        self._finalizer = weakref.finalize(self, _close, self._opened, stack, os.getpid())

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Ids of the finished runs, such as ``identify-0001``."""
        return tuple(record.id for record in self._records())

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Id, kind, status, times, device and message of all runs, including failed and stopped runs."""
        return tuple(self._project.runs())

    @property
    def resumable(self) -> tuple[str, ...]:
        """Ids of the stopped runs that `resume` can continue."""
        runs = self._project.resumable()
        return tuple(record.id for record in self.records if record.id in runs)

    def run(self, run_id: str = "") -> Result:
        """Return the result of a finished run, by default of the last finished run.

        Raises
        ------
        InputError
            If there is no such run.
        """
        record = next((record for record in reversed(self._records()) if run_id in ("", record.id)), None)
        if record is None:
            missing = f"holds no finished run {run_id!r:.100}" if run_id else "holds no finished run"
            raise InputError(self.path, missing, remedy=f"It holds {', '.join(self.run_ids[-10:]) or 'none'}")
        return RESULT_CLASSES[record.kind](self, record.id)

    def resume(self, run_id: str = "", *, device: str = "", threads: int | None = None, progress: OnProgress = None) -> Result:
        """Resume a run that was stopped, and return its result.

        Parameters
        ----------
        run_id : str
            Id of the run; by default the last one that can be resumed.
        device, threads, progress
            See `identify`; by default, device and threads are those of the stopped run.

        Raises
        ------
        InputError, ParameterError
            If there is no such run, or it cannot be resumed.
        """
        check_threads(threads)
        summary = resume_run(self.path, run_id, device=device, threads=threads, progress=progress_of(progress))
        assert summary.run_id is not None  # it has a project
        return self.run(summary.run_id)

    def close(self) -> None:
        """Close the tables; a temporary project is removed."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._records())

    def __iter__(self) -> Iterator[Result]:
        return (self.run(run_id) for run_id in self.run_ids)

    def __repr__(self) -> str:
        return f"OpenProject({str(self.path)!r}: {', '.join(self.run_ids) or 'no finished run'})"

    def _repr_html_(self) -> str:
        rows = [(record.id, search_of_kind(record.kind).name, record.message) for record in self._records()]
        page = views.html_pages
        content = page.rows_table(("Run", "Search", "Result"), rows) if rows else page.listed(["No finished run."])
        return page.section(str(self.path), content)

    def _records(self) -> list[RunRecord]:
        return [record for record in self._project.runs() if record.status == "done" and record.kind in RESULT_CLASSES]

    @cached_property
    def _project(self) -> Project:
        if self.is_temporary and not self._finalizer.alive:
            raise InputError(self.path, "the temporary project was removed", remedy="Search again, and name a folder to keep the results")
        return Project.open(self.path)

    def forget(self, run_id: str) -> None:
        """Close the tables of a run, which may have been replaced."""
        run = self._opened.pop(run_id, None)
        if run is not None:
            run.close()

    def delete(self, run_id: str) -> None:
        """Permanently remove a run that has ended from the project, with its results and its checkpoint.

        Raises
        ------
        InputError
            If there is no such run, or it has not ended.
        StorageError
            If writing fails.
        """
        if not isinstance(run_id, str):
            raise ParameterError(f"run_id = {run_id!r:.100}: expected the id of a run")
        self.forget(run_id)
        self._project.delete_run(run_id)
        self._project.remove_deleted([run_id])

    def _finished(self, run_id: str) -> FinishedRun:
        if run_id not in self._opened:
            self._opened[run_id] = views.finished_run.open_run(self._project, run_id)
        return self._opened[run_id]


def _close(opened: dict[str, FinishedRun], stack: ExitStack | None, process: int) -> None:
    """Close the tables and remove a temporary project; do nothing if this process is a fork of the one that opened them (`process`)."""
    if os.getpid() == process:
        for run in opened.values():
            run.close()
        opened.clear()
        if stack is not None:
            stack.close()


class Result:
    """Result of a finished run of a search.

    Attributes
    ----------
    project : OpenProject
        Project that holds the run and its tables.
    run_id : str
        Id of the run, such as ``identify-0001``.
    """

    kind: ClassVar[str]
    """Kind of the search, which is its command."""
    main_table: ClassVar[str] = ""
    """Name of the main table of the search; '' for the last table."""

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            RESULT_CLASSES[cls.kind] = cls

    def __init__(self, project: OpenProject, run_id: str) -> None:
        self.project, self.run_id = project, run_id

    @property
    def path(self) -> Path:
        """Folder of the project."""
        return self.project.path

    @property
    def search(self) -> Search:
        """Description of the search: inputs, options, columns and formats."""
        return search_of_kind(self.kind)

    @cached_property
    def record(self) -> dict[str, Any]:
        """Record of the run: versions, device, inputs with digests, parameters, counts, times and messages."""
        return self.project._project.record(self.run_id)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of searched items and of results, by name."""
        return dict(self.record.get("counts", {}))

    @property
    def certainty(self) -> dict[str, dict[str, float]]:
        """Accepted targets and decoys, and the 95 % interval of the false fraction of the targets, for each kind of result (``psms``)."""
        return dict(self.record.get("certainty") or {})

    @property
    def fdr(self) -> float | None:
        """Maximum false discovery rate of accepted results; None if the search has no such parameter."""
        fdr = self.finished.parameters.get("fdr")
        return None if fdr is None else float(fdr)

    @property
    def message(self) -> str:
        """Sentence with the numbers of results."""
        return self.finished.run.message

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages of the run, warnings first."""
        return self.finished.messages

    @property
    def parameters(self) -> SearchParameters:
        """Parameters of the run; see `SearchParameters.changed` for a copy with other values."""
        return self.search.model.checked(self.finished.parameters)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables of the run."""
        stored = {result.name for result in self.project._project.results(self.run_id)}
        return tuple(table.name for table in self.search.all_tables if table.name in stored)

    def table(self, name: str = "", *, accepted: bool = True, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table of the run.

        Parameters
        ----------
        name : str
            One of `tables`; by default the main table of the search.
        accepted : bool
            True to leave out decoys, and rows whose q-value is above the false discovery rate of the run, if the table has these columns.
        columns : sequence of str, optional
            Names of the columns; by default all, which `columns` describes.

        Returns
        -------
        pyarrow.Table
            Rows in the order of the file.

        Raises
        ------
        ParameterError
            If the run has no such table or column.
        InputError, StorageError
            If the table is missing or damaged.
        """
        described = self._described(name)
        names = _column_names(columns)
        if missing := [column for column in names or () if column not in described.by_name]:
            raise ParameterError(f"the table {described.name} has no column {missing[0]!r:.100}; it has {', '.join(described.by_name)}")
        with stored_table(self.project._project, self.run_id, described) as file:
            rows = file.read(names)
        return rows.take(self._accepted_rows(described)) if accepted and self._has_acceptance(described) else rows

    def columns(self, name: str = "") -> dict[str, str]:
        """Return the meaning of each column of a table, with its unit, by name."""
        return {column.name: _meaning(column) for column in self._described(name).by_name.values()}

    def to_pandas(self, name: str = "", *, accepted: bool = True, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """Return a table of the run as a DataFrame of pandas, which must be installed; see `table`."""
        optional_package("pandas", "to_pandas")
        return self.table(name, accepted=accepted, columns=columns).to_pandas()

    def to_polars(self, name: str = "", *, accepted: bool = True, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """Return a table of the run as a DataFrame of polars, which must be installed; see `table`."""
        library = optional_package("polars", "to_polars")
        return library.from_arrow(self.table(name, accepted=accepted, columns=columns))

    def export(
        self,
        path: PathLike,
        *,
        format: str = "",
        query: str = "",
        consensus: Literal["merged", "best"] = "merged",
        accepted_only: bool = False,
        spreadsheet_safe: bool = False,
        progress: OnProgress = None,
    ) -> list[Path]:
        """Write the results in a format, as ``proteoscope export`` does.

        Parameters
        ----------
        path : str or Path
            File, or folder of the formats that consist of several files.
        format : str
            One of ``[export.name for export in result.search.exports]``; by default the extension of `path` determines it.
        query : str
            For searches with queries, the name of the query whose hits are written; '' for all.
        consensus : str
            For spectral libraries, ``merged`` to average the spectra of an entry, or ``best`` to write the best spectrum.
        accepted_only : bool
            For ``tsv``, True to write only targets that are accepted at the false discovery rate of the run.
        spreadsheet_safe : bool
            For ``tsv``, True to put an apostrophe before texts that a spreadsheet would read as formulas.
        progress : callable, optional
            Receives each `ProgressEvent`.

        Returns
        -------
        list of Path
            Files that were written.

        Raises
        ------
        ParameterError
            If there is no such format.
        StorageError
            If writing fails.
        """
        target = one_path("path", path)
        choice("consensus", consensus, get_args(Literal["merged", "best"]))
        chosen = format or self.search.format_of(target.name)
        request = ExportRequest(self.run_id, chosen, target, spreadsheet_safe, query, consensus, accepted_only)
        return self.search.export(self.project._project, request, progress_of(progress))

    def report(self, folder: PathLike, *, progress: OnProgress = None) -> list[Path]:
        """Write an HTML page of the run and a methods paragraph for a paper, as ``proteoscope report`` does.

        Parameters
        ----------
        folder : str or Path
            Folder for the page, created if missing.
        progress : callable or Progress, optional
            Receives each `ProgressEvent`.

        Returns
        -------
        list of Path
            Page and paragraph, and pages to which the page links.

        Raises
        ------
        StorageError
            If writing fails.
        """
        out = one_path("folder", folder)
        report, pages = views.run_report.write_report_and_pages(
            self.project._project, self.finished.run, self.search, out, progress_of(progress)
        )
        return [*report, *pages]

    def close(self) -> None:
        """Close the tables; a temporary project is removed, with all of its runs."""
        self.project.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        """Return the function and arguments with which another process opens the result (for pickle).

        Raises
        ------
        ParameterError
            If the project is temporary, since its folder is removed with this process.
        """
        if self.project.is_temporary:
            raise ParameterError(f"{self.run_id} is in a temporary project, which other processes cannot use: name a folder with out=")
        return (_reopened, (type(self), self.path, self.run_id))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.run_id}: {self.message})"

    def _repr_html_(self) -> str:
        described, page = self._described(""), views.html_pages
        table = self.table()
        shown = [column for column in described.columns if column.title and column.name in table.column_names]
        rows = table.slice(0, _SHOWN_ROWS).select([column.name for column in shown]).to_pylist()
        return f"<p><b>{page.shown(repr(self))}</b></p>{page.result_rows(shown, rows, len(table))}"

    @property
    def finished(self) -> FinishedRun:
        """The run as an object that functions of `proteoscope.engine.views` accept, with its tables and settings."""
        return self.project._finished(self.run_id)

    def _described(self, name: str) -> Table:
        names = self.tables
        wanted = name or self.main_table or self.search.result_tables[-1].name
        if wanted not in names:
            raise ParameterError(f"{self.run_id} has no table {name!r:.100}; it has {', '.join(names)}")
        return next(table for table in self.search.all_tables if table.name == wanted)

    def _has_acceptance(self, described: Table) -> bool:
        return self.fdr is not None and "q_value" in described.by_name and described.name in self.finished.tables.paths

    def _accepted_rows(self, described: Table) -> Any:
        """Return the row numbers of the accepted rows of a table."""
        fdr = self.fdr
        assert fdr is not None  # as `_has_acceptance` requires
        conditions = [views.conditions.accepted_at(fdr, described.name)]
        if "is_decoy" in described.by_name:
            conditions.append(views.conditions.compares("is_decoy", "=", False))
        source = self.finished.tables.source(described.name)
        try:
            return source.rows(conditions)
        finally:
            source.close()


def _column_names(columns: object) -> list[str] | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, Sequence) or not all(isinstance(name, str) for name in columns):
        raise ParameterError(f"columns = {columns!r:.100}: expected names of columns")
    return list(columns)


def _meaning(column: Column) -> str:
    return f"{column.meaning or column.title}{f' ({column.unit})' if column.unit else ''}"


def _reopened(result: type[Result], project: Path, run_id: str) -> Result:
    """Open a result that another process has pickled."""
    return result(OpenProject(project), run_id)
