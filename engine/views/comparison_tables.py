"""Column descriptions of the tables that compare runs, and the files into which they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.page_sizes import FIGURE_FORMAT, FigureFormat, laid_out_size
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.results.separated import DIGITS, write_separated
from proteoscope.engine.shared_names import distinct_names
from proteoscope.engine.views.comparison_drawings import (
    CURVES_SIZE,
    OVERLAPS_SIZE,
    SCORES_SIZE,
    compared_answers,
    draw_curves,
    draw_overlaps,
    draw_scores,
)
from proteoscope.engine.views.drawings import Drawing, PaperFigure
from proteoscope.engine.views.figure_files import save_figure
from proteoscope.engine.views.figure_layout import figure_at_width
from proteoscope.engine.views.run_comparison import LEVELS, RunComparison
from proteoscope.engine.views.spectrum_figures import mirror_figure
from proteoscope.engine.views.tables import TableSource

__all__ = ["MAXIMUM_MIRRORS", "comparison_files", "comparison_table", "write_comparison"]

MAXIMUM_MIRRORS = 10_000
"""Maximum number of figures of spectra with two answers."""
_ROWS = 1 << 16
_SPECTRUM = (
    Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=16),
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7, is_nullable=True),
)
_ITEMS: dict[str, tuple[Column, ...]] = {
    "spectra": (
        *_SPECTRUM,
        Column(
            "retention_time",
            "RT",
            "Retention time of the spectrum",
            "minutes",
            8,
            unit="s",
            is_shown=False,
            saved=".3f",
            is_nullable=True,
        ),
        Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4, is_shown=False, saved=".6f", is_nullable=True),
        Column(
            "difference",
            "Difference",
            "Difference between the runs: other peptide, other modifications, or other sites",
            width=16,
            is_nullable=True,
        ),
        Column(
            "differs_from",
            "Differs from",
            "Smallest q-value threshold at which two runs accept different peptides for the spectrum",
            "probability",
            10,
            is_nullable=True,
        ),
    ),
    "psms": (*_SPECTRUM, Column("peptide", "Peptide", "Peptide sequence with modifications, in ProForma", width=30)),
    "peptidoforms": (Column("peptide", "Peptide", "Peptide sequence with modifications, in ProForma", width=34),),
    "peptides": (Column("sequence", "Sequence", "Peptide sequence without modifications", width=34),),
    "groups": (
        Column("name", "Protein group", "Accessions of all proteins in the group, which contain the same peptides", width=28),
        Column("description", "Description", "Description of the first protein in the database", width=44, is_nullable=True),
    ),
    "proteins": (
        Column("name", "Protein", "Accession of the protein; for UniProt only the part between the bars, such as P02769", width=18),
        Column("accession", "In the database", "Accession in the first run that contains the protein", width=26),
    ),
}
_COUNTED = {"peptidoforms": "PSMs", "peptides": "PSMs", "groups": "peptides", "proteins": "peptides"}
_OVERLAPS = (
    Column("level", is_own_text=True),
    Column("runs", is_own_text=True),
    Column("n_runs", kind="integer"),
    Column("count", kind="integer"),
)
_COUNTS = (
    Column("level", is_own_text=True),
    Column("q_value", kind="number", saved=".4f"),
    Column("runs", is_own_text=True),
    Column("count", kind="integer"),
)
_RUNS = tuple(Column(name) for name in ("letter", "run", "search", "project", "version", "started", "said"))


def comparison_table(comparison: RunComparison, level: str) -> Table:
    """Return the description of a level's table: columns of the items, then columns of each run, whose names end with the run's symbol."""
    columns = list(_ITEMS[level])
    for symbol, label in zip(comparison.symbols, comparison.labels, strict=True):
        if level == "spectra":
            columns += [
                Column(f"peptide_{symbol}", f"{symbol} peptide", f"Peptide assigned by {label}", width=26, is_nullable=True),
                Column(f"charge_{symbol}", f"{symbol} z", f"Charge in {label}", "integer", 4, is_shown=False, is_nullable=True),
                Column(f"score_{symbol}", f"{symbol} score", f"Score in {label}", "number", 9, is_nullable=True),
            ]
        if level in _COUNTED:
            what = _COUNTED[level]
            columns.append(
                Column(f"n_{symbol}", f"{symbol} {what}", f"{what[0].upper()}{what[1:]} in {label}", "integer", 10, is_nullable=True)
            )
        columns.append(Column(f"q_value_{symbol}", f"{symbol} q-value", f"q-value in {label}", "probability", 10, is_nullable=True))
    return Table(level, next(compared.plural for compared in LEVELS if compared.name == level), tuple(columns))


def write_comparison(
    comparison: RunComparison,
    folder: Path,
    threshold: float,
    progress: Progress,
    *,
    n_mirrors: int = 10,
    spreadsheet_safe: bool = False,
    figures: FigureFormat = FIGURE_FORMAT,
) -> list[Path]:
    """Write the comparison of runs into a folder and return the paths.

    The files contain runs, parameters in which they differ, overlaps, counts by q-value, items that at least one run accepts at the
    threshold, disagreements and figures.

    Parameters
    ----------
    n_mirrors
        Number of spectra with two answers to draw as mirror plots, best first.
    figures
        Type, width and resolution of the figures.

    Raises
    ------
    StorageError
        If writing failed.
    InputError
        If a table is damaged.
    Cancelled
        If the user cancelled.
    """
    write = partial(write_separated, progress=progress, dialect=DIGITS, spreadsheet_safe=spreadsheet_safe)
    drawings = [*_drawings(comparison, threshold), *_mirrors(comparison, threshold, n_mirrors)]
    progress.stage("Writing the comparison", len(LEVELS) + len(drawings) + 5)
    write(folder / "runs.tsv", pa.table(_run_columns(comparison)), _RUNS)
    write(folder / "parameters.tsv", pa.table(_parameter_columns(comparison)), _parameter_table(comparison))
    write(folder / "overlaps.tsv", pa.table(_overlap_columns(comparison, threshold)), _OVERLAPS)
    write(folder / "counts.tsv", pa.table(_count_columns(comparison)), _COUNTS)
    for level in LEVELS:
        write(folder / f"{level.name}.tsv", _accepted(comparison, level.name, threshold), _saved_columns(comparison, level.name))
    source = comparison.source("spectra")
    columns = _saved_columns(comparison, "spectra")
    rows = source.rows(comparison.disagreement_conditions(threshold), [("differs_from", False)])
    write(folder / "disagreements.tsv", _batches(comparison, source, rows, columns, threshold), columns)
    source.close()
    written = [folder / name for name in comparison_files()]
    for figure in drawings:
        progress.check()
        written.append(folder / f"{figure.name}.{figures.type}")
        save_figure(written[-1], figure, figures.size, figures.dpi)
    return written


def comparison_files() -> tuple[str, ...]:
    """Return the file names of the tables that `write_comparison` writes."""
    return ("runs.tsv", "parameters.tsv", "overlaps.tsv", "counts.tsv", *(f"{level.name}.tsv" for level in LEVELS), "disagreements.tsv")


def _drawings(comparison: RunComparison, threshold: float) -> Iterator[PaperFigure]:
    for level in LEVELS:
        for name, page, draw in (("overlap", OVERLAPS_SIZE, draw_overlaps), ("counts", CURVES_SIZE, draw_curves)):
            yield PaperFigure(f"{name}-{level.name}", partial(_drawn, partial(draw, comparison, level, threshold), page))
    for first, second in combinations(range(len(comparison.runs)), 2):
        name = f"scores-{comparison.symbols[first]}-{comparison.symbols[second]}"
        yield PaperFigure(name, partial(_drawn, partial(draw_scores, comparison, (first, second), threshold), SCORES_SIZE))


def _drawn(draw: Callable[[float, float], Drawing], page: tuple[float, float], width: float | None) -> Drawing:
    return draw(*laid_out_size(page, width))


def _mirrors(comparison: RunComparison, threshold: float, n_mirrors: int) -> Iterator[PaperFigure]:
    source = comparison.source("spectra")
    rows = source.rows(comparison.disagreement_conditions(threshold), [("differs_from", False)], limit=n_mirrors)
    for position, row in enumerate(rows.tolist(), start=1):
        yield PaperFigure(f"mirror-{position}", partial(figure_at_width, mirror_figure(compared_answers(comparison, source, row))))
    source.close()


def _run_columns(comparison: RunComparison) -> dict[str, list[str]]:
    records = [run.run for run in comparison.runs]
    return {
        "letter": list(comparison.symbols),
        "run": [record.id for record in records],
        "search": [record.kind for record in records],
        "project": list(distinct_names([run.project.folder for run in comparison.runs])),
        "version": [record.version for record in records],
        "started": [record.started.isoformat() for record in records],
        "said": [record.message for record in records],
    }


def _parameter_table(comparison: RunComparison) -> tuple[Column, ...]:
    return tuple(Column(name) for name in ("parameter", "title", *comparison.symbols))


def _parameter_columns(comparison: RunComparison) -> dict[str, pa.Array]:
    columns = list(zip(*((row.name, row.title, *row.values) for row in comparison.parameters), strict=True))
    names = [column.name for column in _parameter_table(comparison)]
    return {name: pa.array(columns[at] if columns else [], pa.string()) for at, name in enumerate(names)}


def _overlap_columns(comparison: RunComparison, threshold: float) -> dict[str, Any]:
    result = [(level, intersection) for level in LEVELS for intersection in comparison.intersections(level.name, threshold)]
    return {
        "level": [level.name for level, _ in result],
        "runs": [comparison.names_of(intersection.runs) for _, intersection in result],
        "n_runs": [len(intersection.runs) for _, intersection in result],
        "count": [intersection.count for _, intersection in result],
    }


def _count_columns(comparison: RunComparison) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {name: [] for name in ("level", "q_value", "runs", "count")}
    for level in LEVELS:
        curves = comparison.curves(level.name)
        series = [*zip(comparison.symbols, curves.runs, strict=True), ("all", curves.shared), ("any", curves.combined)]
        for name, counts in series:
            columns["level"] += [level.name] * len(counts)
            columns["q_value"] += curves.q_value.tolist()
            columns["runs"] += [name] * len(counts)
            columns["count"] += counts.tolist()
    return columns


def _saved_columns(comparison: RunComparison, level: str) -> tuple[Column, ...]:
    """Return the columns of a level's file, including ``runs``, the symbols of the runs that accept the item."""
    found_by = Column("runs", meaning="Symbols (A, B, …) of the runs in which the item is accepted", is_own_text=True)
    columns = comparison_table(comparison, level).columns
    of_item = len(_ITEMS[level])
    return (*columns[:of_item], found_by, *columns[of_item:])


def _accepted(comparison: RunComparison, level: str, threshold: float) -> Iterator[pa.Table]:
    """Yield the items of a level that at least one run accepts, in chunks of rows."""
    source = comparison.source(level)
    rows = np.flatnonzero((comparison.accepted_from(level) <= threshold).any(1))
    yield from _batches(comparison, source, rows, _saved_columns(comparison, level), threshold)
    source.close()


def _batches(
    comparison: RunComparison, source: TableSource, rows: NDArray[np.int64], columns: Sequence[Column], threshold: float
) -> Iterator[pa.Table]:
    """Yield the given rows in chunks, with a column ``runs`` of the symbols of the runs that accept each item."""
    names = [column.name for column in columns if column.name != "runs"]
    for first in range(0, len(rows), _ROWS):
        some = rows[first : first + _ROWS]
        bits = (comparison.accepted_from(source.name)[some] <= threshold) @ (1 << np.arange(len(comparison.runs)))
        sets, of_row = np.unique(bits, return_inverse=True)
        texts = [comparison.names_of([run for run in range(len(comparison.runs)) if bits >> run & 1]) for bits in sets.tolist()]
        found_by = pa.array(texts, pa.string()).take(pa.array(of_row))
        yield source.values(some, names).append_column("runs", found_by)
