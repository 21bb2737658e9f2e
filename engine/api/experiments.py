"""Experiments of many runs for scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proteoscope.engine.api.arguments import OnProgress, PathLike, one_folder, one_path, progress_of
from proteoscope.engine.api.results import OpenProject, Result
from proteoscope.engine.api.searching import EstimateMade, IfBusy, is_estimating
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.experiments.estimating import estimate_experiment, keep_memory
from proteoscope.engine.experiments.running import RunOutcome, experiment_status, finished_rows, run_experiment, write_sdrf
from proteoscope.engine.experiments.table import (
    ExperimentRow,
    add_rows,
    change_experiment,
    describe_files,
    read_experiment,
    read_table,
    remove_runs,
)
from proteoscope.engine.project import Project, removed_if_unused
from proteoscope.engine.searches import EXPERIMENT_KINDS, Files, paths_of, search_of_kind, search_request

if TYPE_CHECKING:
    from proteoscope.engine.parameters import SearchParameters

__all__ = ["Experiment", "experiment"]


class Experiment:
    """An experiment of many runs in a project; `experiment` returns it.

    Attributes
    ----------
    path : Path
        Folder of the project.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows  # noqa: B018 - raises an error if there is no experiment

    @property
    def rows(self) -> tuple[ExperimentRow, ...]:
        """Runs, or label channels of runs, with their files and samples."""
        return tuple(read_experiment(self._project))

    @property
    def status(self) -> dict[str, str]:
        """Status of each run by its name, such as ``done``, ``failed`` or ``not searched``."""
        return experiment_status(self._project, self.rows)

    @property
    def results(self) -> dict[str, Result]:
        """Result of each finished run by its name."""
        project = OpenProject(self.path)
        return {run: project.run(run) for run, status in self.status.items() if status == "done"}

    def add(self, runs: Files, *, pattern: str = "", progress: OnProgress = None) -> int:
        """Add spectrum files, or finished runs of the project, and return the number of added runs.

        Parameters
        ----------
        runs : str, Path or iterable of these
            Spectrum files or a table, see `experiment`; or ids of finished runs of the project that have the same search as the runs of the
            experiment.
        pattern, progress
            See `experiment`.

        Raises
        ------
        InputError, ParameterError, StorageError
            See `experiment`.
        """
        project, reported = self._project, progress_of(progress)
        finished = {run.id for run in project.runs() if run.status == "done"}
        given = paths_of("runs", runs)
        ids = [str(path) for path in given if str(path) in finished and not path.exists()]
        new = _rows_of([path for path in given if str(path) not in ids], pattern, progress)
        joined = [*finished_rows(project, ids, self.rows), *new]
        return change_experiment(project, lambda rows: add_rows(rows, joined, project, reported), reported)

    def remove(self, runs: Files) -> None:
        """Remove runs, named by run or file; their results remain in the project.

        Raises
        ------
        InputError
            If there is no such run.
        """
        names = [str(path) for path in paths_of("runs", runs)]
        change_experiment(self._project, lambda rows: (remove_runs(rows, names), 0), progress_of(None))

    def run(
        self,
        search: Literal["identify", "modified", "library"] = "identify",
        *,
        database: Files = (),
        library: Files = (),
        parameters: SearchParameters | None = None,
        preset: PathLike | None = None,
        strict: bool = False,
        advice: Literal["brief", "full", "none"] = "brief",
        device: str = "auto",
        threads: int | None = None,
        memory_limit: int = 0,
        processes: int | None = None,
        if_busy: IfBusy = "refuse",
        progress: OnProgress = None,
        **settings: Any,
    ) -> tuple[RunOutcome, ...]:
        """Search each unfinished run separately, with the same parameters.

        Parameters
        ----------
        search : str
            Search of all runs.
        database, library : str, Path or iterable of these
            Protein sequences, and spectral libraries for the search ``library``.
        parameters, preset, strict, device, threads, if_busy, progress, **settings
            See `proteoscope.identify`.
        advice : str
            See `proteoscope.identify`; other searches have no advice.
        memory_limit : int
            Maximum memory of all processes together, in MB; smaller indexes are used if necessary. 0 for no limit.
        processes : int, optional
            Number of runs to search at the same time, each in a child process with its share of the threads. By default, half the number of
            threads, or 1 if `device` names a GPU.

        Returns
        -------
        tuple of RunOutcome
            Name, file, status (``done``, ``skipped`` if it was finished before, ``failed``) and message of each run.

        Raises
        ------
        ParameterError
            If an argument is wrong, the memory limit is too low, or finished runs have other parameters or databases.
        InputError, StorageError
            If a database cannot be used, or the results cannot be written. A spectrum file that cannot be used makes only its run fail.
        Cancelled
            If `progress` cancels; finished runs remain.
        """
        if search not in EXPERIMENT_KINDS:
            raise ParameterError(f"search = {search!r:.100}: expected one of {', '.join(EXPERIMENT_KINDS)}")
        if parameters is not None and preset is not None:
            raise ParameterError("parameters and preset are both given; give one of them, and single parameters by name")
        described, reported, rows = search_of_kind(search), progress_of(progress), self.rows
        if not rows:
            raise InputError(self.path, "has an experiment without runs", remedy="Add files")
        given = {"spectra": list(dict.fromkeys(row.file for row in rows)), "database": database, "library": library}
        names = {search_input.name for search_input in described.inputs}
        options = {"strict": strict, "advice": advice}
        request = search_request(
            search,
            {name: files for name, files in given.items() if name in names},
            progress=reported,
            project=self.path,
            preset=None if preset is None else str(one_path("preset", preset)),
            chosen=parameters,
            options={option.name: options[option.name] for option in described.options if option.name in options},
            device=device,
            threads=threads,
            waits=if_busy == "wait",
            **settings,
        )
        if processes is not None and processes < 1:
            raise ParameterError(f"processes = {processes}: expected 1 or more")
        request, n_processes = keep_memory(described, request, memory_limit, rows, self._project, processes)
        if is_estimating.get():
            raise EstimateMade(estimate_experiment(described, request, rows, self._project, n_processes))
        return tuple(run_experiment(described, request, rows, self._project, reported, n_processes))

    def export_sdrf(self, path: PathLike, values: Mapping[str, str] | None = None) -> list[str]:
        """Write the experiment as an SDRF-Proteomics table, and return the names of columns whose values are not available.

        Parameters
        ----------
        path : str or Path
            File to write.
        values : mapping of str to str, optional
            Values of columns for all rows, such as ``{"organism": "homo sapiens", "instrument": "Q Exactive"}``.

        Raises
        ------
        ParameterError, StorageError
            If a value is invalid, or the file cannot be written.
        """
        return write_sdrf(self._project, one_path("path", path), values or {})

    @property
    def _project(self) -> Project:
        return Project.open(self.path)

    def __len__(self) -> int:
        return len({row.run for row in self.rows})

    def __repr__(self) -> str:
        status = self.status.values()
        return f"Experiment({str(self.path)!r}: {len(status)} runs, {sum(state == 'done' for state in status)} done)"


def _rows_of(files: Iterable[Path], pattern: str, progress: OnProgress) -> list[ExperimentRow]:
    """Return a row for each spectrum file; if the only file is a table of runs, return its rows."""
    paths = list(files)
    if len(paths) == 1 and paths[0].suffix.lower() in (".tsv", ".txt"):
        if pattern:
            raise ParameterError(f"pattern = {pattern!r:.100}: is only for files; a table contains the samples")
        return read_table(paths[0], progress_of(progress))
    return describe_files(paths, pattern)


def experiment(project: PathLike, runs: Files | None = None, *, pattern: str = "", progress: OnProgress = None) -> Experiment:
    """Create an experiment of many runs, or open the experiment of a project.

    Parameters
    ----------
    project : str or Path
        Project folder; with `runs`, created if missing.
    runs : str, Path or iterable of these, optional
        Spectrum files; or one tab-separated table (``.tsv``) of runs or in SDRF-Proteomics format, see the page Experiments of many runs
        of the manual. By default, the experiment of the project is opened.
    pattern : str
        Regular expression for file names; its named groups are columns, such as ``(?P<condition>[a-z]+)_(?P<replicate>[0-9]+)``.
    progress : callable or Progress, optional
        See `identify`; it receives warnings about files that are left out because others have the same content.

    Returns
    -------
    Experiment

    Raises
    ------
    InputError
        If a file or table cannot be used, the project already has an experiment although `runs` is given, or it has none although `runs` is
        not given.
    ParameterError
        If an argument is wrong.
    StorageError
        If the project cannot be written.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> made = proteoscope.experiment("two_runs", [path("samples", "BSA1.mzML.gz"), path("samples", "BSA2.mzML.gz")])
    >>> made
    Experiment('two_runs': 2 runs, 0 done)
    >>> [(row.run, row.sample) for row in made.rows]
    [('BSA1', 'BSA1'), ('BSA2', 'BSA2')]
    """
    folder = one_folder("project", project)
    if runs is None:
        return Experiment(folder)
    new, reported = _rows_of(paths_of("runs", runs), pattern, progress), progress_of(progress)
    with removed_if_unused(folder):
        opened = Project.create_or_open(folder)
        change_experiment(opened, lambda _: add_rows([], new, opened, reported), reported, is_new=True)
    return Experiment(folder)
