"""Comparison of runs for scripts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from proteoscope.engine import project as project_package
from proteoscope.engine import views
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, number, one_path, progress_of
from proteoscope.engine.api.results import OpenProject, Result
from proteoscope.engine.api.search_results import open_project
from proteoscope.engine.api.searching import ProjectLike
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project

if TYPE_CHECKING:
    from proteoscope.engine.views.run_comparison import RunComparison

__all__ = ["Comparison", "compare"]


class Comparison:
    """Comparison of the spectra, peptides and proteins that each run identifies.

    Attributes
    ----------
    comparison : RunComparison
        Curves, scores and conditions, for figures.
    threshold : float
        Maximum q-value of accepted items.
    """

    def __init__(self, comparison: RunComparison, threshold: float) -> None:
        self.comparison, self.threshold = comparison, threshold

    @property
    def runs(self) -> dict[str, str]:
        """Name of each run by its symbol (A, B, ...), which the columns of the tables use."""
        return dict(zip(self.comparison.symbols, self.comparison.labels, strict=True))

    @property
    def parameters(self) -> dict[str, dict[str, str]]:
        """Settings in which the runs differ (search, parameters, inputs except spectra): by name, the value of each run (by its symbol)."""
        return {row.name: dict(zip(self.comparison.symbols, row.values, strict=True)) for row in self.comparison.parameters}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the comparison."""
        return self.comparison.notes

    @property
    def overlaps(self) -> pa.Table:
        """Table of the numbers of items (``count``) of each ``level`` that are accepted in all of the ``runs`` and in no other run."""
        levels = [level.name for level in views.run_comparison.LEVELS]
        overlaps = [(level, overlap) for level in levels for overlap in self.comparison.intersections(level, self.threshold)]
        return pa.table(
            {
                "level": [level for level, _ in overlaps],
                "runs": [self.comparison.names_of(overlap.runs) for _, overlap in overlaps],
                "count": [overlap.count for _, overlap in overlaps],
            }
        )

    def table(self, level: str = "peptides") -> pa.Table:
        """Return the table of the items of a level that are accepted in at least one run.

        Parameters
        ----------
        level : str
            ``spectra``, ``psms``, ``peptidoforms``, ``peptides``, ``groups`` or ``proteins``.

        Raises
        ------
        ParameterError
            If there is no such level.
        """
        choice("level", level, tuple(level.name for level in views.run_comparison.LEVELS))
        columns = [column.name for column in views.comparison_tables.comparison_table(self.comparison, level).columns]
        source = self.comparison.source(level)
        try:
            return source.columns(columns, self.comparison.conditions_of_any(self.threshold))
        finally:
            source.close()

    def write(self, folder: PathLike, *, mirrors: int = 10, progress: OnProgress = None) -> list[Path]:
        """Write tables and figures into a folder, as ``proteoscope compare`` does, and return the files.

        Parameters
        ----------
        folder : str or Path
            Folder, created if missing.
        mirrors : int
            Maximum number of figures; each shows a spectrum to which two runs assign different peptides.
        progress : callable or Progress, optional
            Receives each `ProgressEvent`.

        Raises
        ------
        StorageError
            If writing fails.
        """
        out, n_mirrors = one_path("folder", folder), int(number("mirrors", mirrors, 0, views.comparison_tables.MAXIMUM_MIRRORS))
        outputs = project_package.outputs
        outputs.check_folder_of_outputs(out)
        outputs.check_outputs([out / name for name in views.comparison_tables.comparison_files()], [], None)
        write = views.comparison_tables.write_comparison
        return write(self.comparison, out, self.threshold, progress_of(progress), n_mirrors=n_mirrors)

    def close(self) -> None:
        """Close the tables."""
        self.comparison.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        counts = self.comparison.counts("peptides", self.threshold).tolist()
        shown = ", ".join(f"{symbol} {name}: {count:,} peptides" for (symbol, name), count in zip(self.runs.items(), counts, strict=True))
        return f"Comparison({shown})"

    def _repr_html_(self) -> str:
        page, table = views.html_pages, self.overlaps
        rows = [list(row.values()) for row in table.to_pylist()]
        return f"<p><b>{page.shown(repr(self))}</b></p>{page.rows_table(table.column_names, rows)}"


def compare(*runs: ProjectLike, threshold: float = 0.01, progress: OnProgress = None) -> Comparison:
    """Compare finished runs: which spectra, peptides and proteins each identifies, and for which spectra they disagree.

    Parameters
    ----------
    *runs : Result, OpenProject, str or Path
        Results of searches that identify peptides. For a project, all of its comparable runs are used.
    threshold : float
        Maximum q-value of accepted items.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    Comparison
        Overlaps, and the items of each level.

    Raises
    ------
    ParameterError
        If there are fewer than two runs or too many, or a run has no PSMs.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> results, spectra = path("samples", "BSA1_comet.pep.xml.gz"), path("samples", "BSA1.mzML.gz")
    >>> first = proteoscope.import_results(results, spectra, preset="low-resolution")
    >>> second = proteoscope.import_results(results, spectra, preset="low-resolution", fdr=0.05)
    >>> proteoscope.compare(first, second, threshold=0.05).overlaps["runs"].to_pylist()[0]
    'A & B'
    """
    q_value = float(number("threshold", threshold, 0, 1))
    chosen = [place for given in runs for place in _runs_of(given)]
    views.run_comparison.check_number(len(chosen))
    with ExitStack() as stack:
        opened = [views.finished_run.open_run(project, run_id) for project, run_id in chosen]
        for run in opened:
            stack.callback(run.close)
        comparison = views.run_comparison.compare_runs(opened, progress_of(progress))
        stack.pop_all()
    return Comparison(comparison, q_value)


def _runs_of(given: ProjectLike) -> list[tuple[Project, str]]:
    """Return the project and the id of each run of an argument."""
    if isinstance(given, Result):
        return [(Project.open(given.path), given.run_id)]
    folder = given.path if isinstance(given, OpenProject) else open_project(given).path
    project = Project.open(folder)
    return [(project, run.id) for run in views.run_comparison.comparable_runs(project)]
