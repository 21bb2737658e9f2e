"""Comparison of several runs: the spectra, peptides and proteins that each run finds, and the spectra with differing answers.

::

    with compare_runs([open_run("project", "identify-0001"), open_run("project", "identify-0002")]) as comparison:
        for found in comparison.intersections("peptides", 0.01):
            print(comparison.names_of(found.runs), found.count)

All runs with PSMs, peptides and protein groups can be compared, also runs of different searches.

* Spectra are equal if they have the same file (`proteoscope.engine.views.compared_items`) and scan number, or, if a run lacks scan numbers,
  the same name in the file. The answer of a run to a spectrum is its best target of rank 1.
* Peptides are equal if their residues are equal (isoleucine equals leucine); peptidoforms if their modifications also have equal masses
  (within 0.006 Da) and positions.
* Proteins are equal if their accessions are equal; UniProt identifiers (``sp|P02769|ALBU_BOVIN``) are reduced to the accession.
* PSMs are accepted by their q-values, peptides and peptidoforms by peptide q-values, proteins by the q-values of their groups. Results
  without q-values are accepted at every threshold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ParameterError, ProteoscopeError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import PEPTIDES, PROTEINS, PSMS
from proteoscope.engine.results.queries import identifier, is_out_of_memory, restrict_to_files
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.views.compared_items import ComparedFiles, make_tables, match_files
from proteoscope.engine.views.conditions import Condition, any_of, compares, is_missing
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.run_parameters import ParameterDifference, parameter_differences
from proteoscope.engine.views.tables import TableSource

if TYPE_CHECKING:
    import duckdb

    from proteoscope.engine.project import Project, RunRecord

__all__ = [
    "LEVELS",
    "MAXIMUM_RUNS",
    "Curves",
    "Intersection",
    "Level",
    "RunComparison",
    "ScorePairs",
    "check_number",
    "comparable_runs",
    "compare_runs",
    "has_matches",
]

MAXIMUM_RUNS = 12
_HIGHEST_Q_VALUE, _N_THRESHOLDS = 0.05, 101
_MEMORY = "4GB"


@dataclass(frozen=True)
class Level:
    """Level of a comparison: name of the table, and singular and plural of its items."""

    name: str
    singular: str
    plural: str


LEVELS = (
    Level("spectra", "identified spectrum", "identified spectra"),
    Level("psms", "PSM", "PSMs"),
    Level("peptidoforms", "peptidoform", "peptidoforms"),
    Level("peptides", "peptide", "peptides"),
    Level("groups", "protein group", "protein groups"),
    Level("proteins", "protein", "proteins"),
)
"""Levels of a comparison; spectra are compared regardless of their peptides, and PSMs are spectra with their peptides."""


@dataclass(frozen=True)
class Intersection:
    """Number of items that the runs with the indices `runs` (ascending) accept, and no other run."""

    runs: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Curves:
    """Numbers of items accepted at n q-value thresholds.

    Attributes
    ----------
    q_value
        Thresholds, ascending from 0, shape (n,), float64.
    runs
        Number of items accepted by each run, shape (runs, n), int64.
    shared
        Number of items accepted by all runs, shape (n,), int64.
    combined
        Number of items accepted by any run, shape (n,), int64.
    """

    q_value: NDArray[np.float64]
    runs: NDArray[np.int64]
    shared: NDArray[np.int64]
    combined: NDArray[np.int64]


@dataclass(frozen=True)
class ScorePairs:
    """Scores of the n spectra for which both of two runs have an answer; the arrays have shape (n,).

    Attributes
    ----------
    spectrum
        Rows of the table ``spectra``.
    first, second
        Scores that the two runs give to their answers.
    is_same
        True if both runs identify the same peptide.
    is_first, is_second
        True if the first or the second run accepts its answer.
    """

    spectrum: NDArray[np.int64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    is_same: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    is_second: NDArray[np.bool_]


def has_matches(tables: Collection[str]) -> bool:
    """Return True if a run has the tables of PSMs, peptides and protein groups."""
    return {PSMS.name, PEPTIDES.name, PROTEINS.name} <= set(tables)


def comparable_runs(project: Project) -> list[RunRecord]:
    """Return the finished runs of a project that can be compared, in order; tables are not read, since there may be thousands of runs."""
    tables: dict[str, set[str]] = {}
    for result in project.results():
        tables.setdefault(result.run, set()).add(result.name)
    return [run for run in project.runs() if run.status == "done" and has_matches(tables.get(run.id, ()))]


def check_number(n_runs: int) -> None:
    """Raise an error unless the number of runs can be compared.

    Raises
    ------
    ParameterError
        If there are too few or too many runs.
    """
    if not 2 <= n_runs <= MAXIMUM_RUNS:
        raise ParameterError(f"{n_runs:,} {'run is' if n_runs == 1 else 'runs are'} given; from 2 to {MAXIMUM_RUNS} can be compared")


class RunComparison:
    """Comparison of several runs, created by `compare_runs`.

    Attributes
    ----------
    runs
        Runs in the given order, which are closed with the comparison.
    symbols
        Symbols of the runs in column names: A, B, C …
    labels
        Display names of the runs: identifiers, with the project if there are several projects.
    files
        Spectrum files of the runs, with equal files matched.
    notes
        Remarks for the user.
    """

    def __init__(self, runs: Sequence[FinishedRun], connection: duckdb.DuckDBPyConnection, files: ComparedFiles) -> None:
        self.runs, self.files, self._connection = tuple(runs), files, connection
        self.symbols = tuple(ascii_uppercase[: len(runs)])
        projects = {run.project.folder for run in runs}
        self.labels = tuple(run.run.id if len(projects) == 1 else f"{run.project.folder.name}/{run.run.id}" for run in runs)
        self._accepted_from: dict[str, NDArray[np.float64]] = {}
        self._scores: dict[tuple[int, int], pa.Table] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tables and the runs."""
        self._connection.close()
        for run in self.runs:
            run.close()

    def source(self, level: str) -> TableSource:
        """Return the table of a level; its columns contain, for each run, a count and the threshold from which the item is accepted."""
        folder = self.runs[0].project.folder
        return TableSource(self._connection.cursor(), level, {level.name: folder for level in LEVELS})

    def spectrum_of(self, level: str, row: int) -> int:
        """Return the row in ``spectra`` of the spectrum of an item: that of its PSM, or of its best PSM, in the first run that has one.

        Raises
        ------
        ProteoscopeError
            If the item has no spectrum.
        """
        names = [f"psm_{symbol}" for symbol in self.symbols]
        with closing(self.source(level)) as items, closing(self.source("spectra")) as spectra:
            psms = items.row(row, names)
            for name in names:
                result = [] if psms[name] is None else spectra.rows([compares(name, "=", psms[name])], limit=1).tolist()
                if result:
                    return int(result[0])
        raise ProteoscopeError("No run has stored the spectrum of this item.")

    def names_of(self, runs: Sequence[int]) -> str:
        """Return the symbols of runs, given by index, as text such as ``A & C``."""
        return " & ".join(self.symbols[run] for run in runs)

    @cached_property
    def parameters(self) -> tuple[ParameterDifference, ...]:
        """Search, databases and parameters in which the runs differ."""
        return parameter_differences([run.run for run in self.runs], [run.project.inputs(run.run.id) for run in self.runs])

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the comparison, for the user."""
        notes = []
        if self.files.n_shared == 0:
            notes.append("The runs have no spectrum file in common, so that only peptides and proteins can be compared.")
        else:
            answers = np.isfinite(self.accepted_from("spectra"))
            if answers.any(0).sum() > 1 and not (answers.sum(1) > 1).any():
                notes.append(
                    "The runs have a spectrum file in common, but no spectra with the same scan number or name. If they name spectra "
                    "differently, spectra and PSMs cannot be compared, but peptides and proteins can."
                )
        if self.files.by_name:
            pairs = "; ".join(first if first == second else f"{first} and {second}" for first, second in self.files.by_name[:3])
            more = f" and {len(self.files.by_name) - 3} more" if len(self.files.by_name) > 3 else ""
            notes.append(f"Spectrum files compared as identical only because their names match: {pairs}{more}.")
        for label, run in zip(self.labels, self.runs, strict=True):
            rows = run.tables.source(PSMS.name)
            if not rows.count([compares("rank", "=", 1), compares("q_value", "<=", 1.0)]) and rows.count([compares("rank", "=", 1)]):
                notes.append(f"{label} has no q-values: all its matches are accepted at every threshold.")
        return tuple(notes)

    def accepted_from(self, level: str) -> NDArray[np.float64]:
        """Return the minimum threshold at which each run accepts each item, (items, runs), float64.

        The threshold is infinite for items that a run did not find.
        """
        if level not in self._accepted_from:
            names = [f"accepted_from_{symbol}" for symbol in self.symbols]
            source = self.source(level)
            table = source.query(f"SELECT {', '.join(map(identifier, names))} FROM {identifier(level)} ORDER BY file_row_number")
            source.close()
            columns = [table[name].fill_null(np.inf).to_numpy() for name in names]
            self._accepted_from[level] = np.column_stack(columns).reshape(-1, len(names))
        return self._accepted_from[level]

    def counts(self, level: str, threshold: float) -> NDArray[np.int64]:
        """Return the number of items that each run accepts, shape (runs,)."""
        n_accepted: NDArray[np.int64] = (self.accepted_from(level) <= threshold).sum(0)
        return n_accepted

    def intersections(self, level: str, threshold: float) -> tuple[Intersection, ...]:
        """Return each set of runs with the number of items that exactly these runs accept; the set with the most items comes first."""
        bits = (self.accepted_from(level) <= threshold) @ (1 << np.arange(len(self.runs)))
        sets, counts = np.unique(bits[bits > 0], return_counts=True)
        result = [
            Intersection(tuple(run for run in range(len(self.runs)) if bits >> run & 1), count)
            for bits, count in zip(sets.tolist(), counts.tolist(), strict=True)
        ]
        return tuple(sorted(result, key=lambda intersection: (-intersection.count, -len(intersection.runs), intersection.runs)))

    def conditions_of(self, runs: Sequence[int], threshold: float) -> list[Condition]:
        """Return the conditions that select items accepted by exactly the given runs."""
        conditions: list[Condition] = []
        for run, symbol in enumerate(self.symbols):
            name = f"accepted_from_{symbol}"
            conditions.append(
                compares(name, "<=", float(threshold)) if run in runs else any_of((compares(name, ">", float(threshold)), is_missing(name)))
            )
        return conditions

    def conditions_of_any(self, threshold: float) -> list[Condition]:
        """Return the conditions that select items accepted by any run."""
        return [any_of(tuple(compares(f"accepted_from_{symbol}", "<=", float(threshold)) for symbol in self.symbols))]

    def curves(self, level: str) -> Curves:
        """Return the numbers of items accepted at q-value thresholds up to 5 %."""
        accepted = self.accepted_from(level)
        thresholds = np.linspace(0, _HIGHEST_Q_VALUE, _N_THRESHOLDS)

        def up_to(values: NDArray[np.float64]) -> NDArray[np.int64]:
            return np.searchsorted(np.sort(values), thresholds, side="right")

        each = np.array([up_to(accepted[:, run]) for run in range(len(self.runs))])
        return Curves(thresholds, each, up_to(accepted.max(1)), up_to(accepted.min(1)))

    def scores(self, first: int, second: int, threshold: float) -> ScorePairs:
        """Return the scores of the spectra for which both of two runs (given by index) have an answer with a score."""
        if (first, second) not in self._scores:
            a, b = self.symbols[first], self.symbols[second]
            source = self.source("spectra")
            self._scores[first, second] = source.query(
                f"SELECT file_row_number AS row, score_{a} AS one, score_{b} AS two, sequence_{a} = sequence_{b} AS same "
                f"FROM spectra WHERE isfinite(score_{a}) AND isfinite(score_{b}) ORDER BY row"
            )
            source.close()
        table = self._scores[first, second]
        rows = table["row"].to_numpy()
        is_accepted = self.accepted_from("spectra")[rows] <= threshold
        first_score, second_score, same = (table[name].to_numpy() for name in ("one", "two", "same"))
        return ScorePairs(rows, first_score, second_score, same.astype(np.bool_), is_accepted[:, first], is_accepted[:, second])

    def disagreement_conditions(self, threshold: float) -> list[Condition]:
        """Return the conditions that select rows of ``spectra`` for which two runs accept different answers."""
        return [compares("differs_from", "<=", float(threshold))]


def compare_runs(runs: Sequence[FinishedRun], progress: Progress | None = None) -> RunComparison:
    """Compare finished runs; closing the comparison, or a failure, closes the runs.

    Parameters
    ----------
    progress
        Progress, which is checked for cancellation between tables.

    Raises
    ------
    ParameterError
        If there are fewer than two runs or too many, or if a run has no PSMs, peptides or protein groups.
    InputError
        If a table is damaged.
    ProteoscopeError
        If memory is insufficient.
    Cancelled
        If the user cancelled.
    """
    import duckdb  # slow to import: only sorted and filtered tables need it

    connection = None
    try:
        _check(runs)
        # No temporary directory: data that exceed memory must not be written to the current folder.
        settings = {"memory_limit": _MEMORY, "threads": max(1, available_threads() - 1), "temp_directory": ""}
        connection = duckdb.connect(config=settings)
        files = _match_files(runs)
        make_tables(connection, runs, files, progress or Progress())
        restrict_to_files(connection, ())
        return RunComparison(runs, connection, files)
    except BaseException as error:
        if connection is not None:
            connection.close()
        for run in runs:
            run.close()
        if isinstance(error, duckdb.Error) and is_out_of_memory(str(error)):
            raise ProteoscopeError(f"{_MEMORY} of memory is not enough to compare {len(runs)} runs; compare fewer") from error
        raise


def _check(runs: Sequence[FinishedRun]) -> None:
    check_number(len(runs))
    seen = set[tuple[Path, str]]()
    for run in runs:
        key = run.project.folder, run.run.id
        if key in seen:
            raise ParameterError(f"run '{run.run.id}' is given twice")
        seen.add(key)
        if not has_matches(tuple(run.tables.paths)):
            raise ParameterError(f"run '{run.run.id}' has no tables of PSMs, peptides and protein groups, which the comparison needs")


def _match_files(runs: Sequence[FinishedRun]) -> ComparedFiles:
    """Match the spectrum files in the PSM tables of the runs."""
    names, digests = [], []
    for run in runs:
        source = run.tables.source(PSMS.name)
        of_run = source.query("SELECT DISTINCT spectrum_file AS name FROM psms ORDER BY name")["name"].to_pylist()
        source.close()
        inputs = run.project.inputs(run.run.id)
        paths = [file.path for file in inputs]
        sha256_of = {
            name: file.sha256 for names in (map(str, paths), distinct_names(paths)) for name, file in zip(names, inputs, strict=True)
        }
        by_name: dict[str, list[str]] = {}
        for file in inputs:
            by_name.setdefault(file.path.name, []).append(file.sha256)
        for name in of_run:
            alike = by_name.get(Path(name).name, [])
            if name not in sha256_of and len(alike) == 1:
                sha256_of[name] = alike[0]
        names.append(of_run)
        digests.append({name: digest for name, digest in sha256_of.items() if digest})
    return match_files(names, digests)
