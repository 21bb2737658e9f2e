"""Figures of the quality of the runs of an experiment, with one value per run in the order of the experiment, and their HTML page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Axis, Bar, Drawing, Label, Points, Scale, Shape, Sticks, draw_axes, shortened, svg, text_width
from proteoscope.engine.views.experiment_quality import QUALITY, QUALITY_NOTES, ProteinCounts, experiment_quality, protein_counts
from proteoscope.engine.views.experiment_runs import read_experiment_state
from proteoscope.engine.views.heat_map import draw_heat_map
from proteoscope.engine.views.html_pages import html_page, listed, result_rows, section, shown
from proteoscope.engine.views.quantities import Samples
from proteoscope.engine.views.quantity_clusters import MAXIMUM_ROWS, HeatMap, cluster_quantities
from proteoscope.engine.views.quantity_drawings import nothing_drawn, sample_foot, sample_names

__all__ = ["FIGURE_SIZE", "QUALITY_FIGURES", "QualityFigure", "cluster_proteins", "draw_protein_heat", "draw_quality", "write_quality_page"]

FIGURE_SIZE = (520.0, 250.0)
"""Width and height of a figure, points."""
_MAXIMUM_ROWS = 2000
_MAXIMUM_SEGMENTS = 12
"""Maximum number of condition bars below a figure; a bar marks consecutive runs of one condition."""


@dataclass(frozen=True)
class QualityFigure:
    """Figure of one property of the runs.

    Attributes
    ----------
    name, title, axis
        Name for file names, title, and title of the vertical axis.
    series
        Columns of `QUALITY` and their names in the legend.
    bars
        Names of two columns: lower and upper end of a vertical bar for each run; () for no bars.
    is_stacked
        True if the series are drawn as fractions of their sum, stacked on each other.
    scale, is_percent
        Properties of the vertical axis.
    """

    name: str
    title: str
    axis: str
    series: tuple[tuple[str, str], ...]
    bars: tuple[str, ...] = ()
    is_stacked: bool = False
    scale: Scale = "linear"
    is_percent: bool = False


QUALITY_FIGURES = (
    QualityFigure(
        "identifications",
        "Identifications at 1 % FDR within each run",
        "Number",
        (("psms", "PSMs"), ("peptides", "peptides"), ("proteins", "protein groups")),
        scale="logarithmic",
    ),
    QualityFigure(
        "mass-errors",
        "Median mass error, with quartiles",
        "Error (ppm)",
        (("mass_error", ""),),
        ("mass_error_low", "mass_error_high"),
    ),
    QualityFigure("drift", "Retention drift against the medians of shared peptides", "Drift (s)", (("drift", ""),)),
    QualityFigure("missed-cleavages", "PSMs with missed cleavages", "Percentage of PSMs", (("missed_cleavages", ""),), is_percent=True),
    QualityFigure(
        "charges",
        "Charges of the PSMs",
        "Percentage of PSMs",
        (("charge_1", "1"), ("charge_2", "2"), ("charge_3", "3"), ("charge_4", "4 or more")),
        is_stacked=True,
        is_percent=True,
    ),
    QualityFigure("intensity", "Median sum of the intensities of a spectrum", "Intensity", (("intensity", ""),), scale="logarithmic"),
    QualityFigure("depth", "Spectra and PSMs", "Number", (("spectra", "spectra"), ("psms", "PSMs")), scale="logarithmic"),
)
"""Figures of the page on quality, in order."""


def draw_quality(
    figure: QualityFigure, quality: pa.Table, width: float = FIGURE_SIZE[0], height: float = FIGURE_SIZE[1], font_size: float = 8.0
) -> Drawing:
    """Draw a figure of the quality of runs; a click on a dot selects the row of its run."""
    values = {name: _values(quality, name) for name in (*(name for name, _ in figure.series), *figure.bars)}
    drawn = np.concatenate(list(values.values()))
    drawn = drawn[np.isfinite(drawn) & ((drawn > 0) | (figure.scale == "linear"))]
    if not len(drawn):
        return nothing_drawn(figure.title, "No finished run has values.", width, height, font_size)
    runs = _runs(quality)
    foot = sample_foot(runs, font_size)
    left, right = font_size * 2 + 40, width - font_size * 2
    top, bottom = font_size * (4.6 if len(figure.series) > 1 else 3.2), height - foot
    step = (right - left) / len(quality)
    x: NDArray[np.float64] = np.asarray(left + (np.arange(len(quality)) + 0.5) * step, np.float64)
    axis = _axis(figure, drawn)
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(figure.title, width - 16, font_size), is_bold=True)]
    shapes += _legend(figure, font_size)
    shapes += [
        shape
        for shape in draw_axes((left, top, right, bottom), Axis(0, 1), axis, font_size, has_x_numbers=False)
        if not _is_x_tick(shape, bottom)
    ]

    def place(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return bottom - axis.shares(numbers) * (bottom - top)

    if figure.is_stacked:
        _stack(shapes, figure, values, x, max(step - 1, step / 2), place)
    else:
        if figure.bars:
            low, high = (values[name] for name in figure.bars)
            has = np.isfinite(low) & np.isfinite(high)
            shapes.append(Sticks(x[has], place(low[has]), place(high[has]), "faint", 0.8))
        rows, size = np.arange(len(quality)), min(5.0, max(2.0, step))
        for ink, (name, _) in enumerate(figure.series):
            has = np.isfinite(values[name]) & ((values[name] > 0) | (figure.scale == "linear"))
            shapes.append(Points(x[has], place(values[name][has]), ink, size, rows[has]))
    shapes += sample_names(runs, x, bottom, foot, font_size)
    return Drawing(width, height, figure.title, tuple(shapes), font_size)


def draw_protein_heat(
    counts: ProteinCounts, heat: HeatMap | None, width: float = 520.0, height: float = 480.0, font_size: float = 8.0
) -> Drawing:
    """Draw the heat map of proteins by runs; a click on a cell selects the row of its protein in `counts`."""
    if heat is None:
        return nothing_drawn(
            "Heat map of proteins by runs", "At least two finished runs that share two proteins are needed.", width, height, font_size
        )
    empty = ("",) * len(counts.proteins)
    state = np.zeros(counts.log2.shape, np.int8)
    samples = Samples(counts.runs, counts.conditions, counts.proteins, empty, counts.log2, state, counts.proteins)
    return draw_heat_map(heat, samples, width, height, font_size, columns="runs")


def cluster_proteins(counts: ProteinCounts) -> HeatMap | None:
    """Return the clustered heat map of the counts, or None if there are too few runs or groups to cluster."""
    heat = cluster_quantities(counts.log2)
    return None if heat is None else HeatMap(heat.rows, heat.columns, heat.values, heat.row_tree, heat.column_tree, counts.n_eligible)


def write_quality_page(project: Project, path: Path, progress: Progress) -> int:
    """Write the quality of the finished runs of an experiment as one HTML file, and return the number of runs.

    Raises
    ------
    InputError, StorageError
        If the project has no experiment, a table is missing or damaged, or writing fails.
    """
    quality, kind = experiment_quality(project, progress), read_experiment_state(project, {}).kind
    counts = protein_counts(project, MAXIMUM_ROWS, progress)
    progress.stage("Drawing")
    heat = cluster_proteins(counts)
    drawings = [draw_quality(figure, quality) for figure in QUALITY_FIGURES] + [draw_protein_heat(counts, heat)]
    figures = "".join(f"<figure>{svg(drawing).decode()}</figure>" for drawing in drawings)
    title = f"Quality of the experiment {project.folder.name}"
    rows = quality.slice(0, _MAXIMUM_ROWS).to_pylist()
    notes = (
        "Error rates hold within each run.",
        "The retention drift of a run is the median difference between retention times of its peptides and their medians over all runs.",
        "The heat map shows log2 of the number of PSMs of each protein group per thousand PSMs of the run.",
        *([QUALITY_NOTES[kind]] if kind in QUALITY_NOTES else []),
    )
    parts = [
        f"<h1>{shown(title)}</h1><p>{shown(counted(len(quality), 'finished run'))}</p>",
        section("Figures", figures),
        section("Runs", result_rows(QUALITY.columns, rows, len(quality))),
        section("Notes", listed(notes)),
    ]
    with atomic_file(path) as file:
        file.write(html_page(title, parts).encode(errors="replace"))
    return len(quality)


def _values(quality: pa.Table, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = quality[name].cast(pa.float64()).to_numpy()
    return values


def _runs(quality: pa.Table) -> Samples:
    """Return the runs as samples without quantities, so that names and conditions can be drawn below a figure.

    Conditions are '' if runs of the same condition form more than `_MAXIMUM_SEGMENTS` bars.
    """
    names, conditions = (tuple(quality[name].to_pylist()) for name in ("run", "condition"))
    n_segments = 1 + sum(before != after for before, after in pairwise(conditions))
    marked = conditions if n_segments <= _MAXIMUM_SEGMENTS else ("",) * len(names)
    return Samples(names, marked, (), (), np.empty((0, len(names))), np.empty((0, len(names)), np.int8), ())


def _axis(figure: QualityFigure, drawn: NDArray[np.float64]) -> Axis:
    if figure.is_stacked:
        return Axis(0, 1, figure.axis, is_percent=True)
    low, high = float(drawn.min()), float(drawn.max())
    if figure.scale == "logarithmic":
        return Axis(low / 1.3, high * 1.3, figure.axis, scale="logarithmic")
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 1.0
    return Axis(0.0 if figure.is_percent else low - margin, high + margin, figure.axis, is_percent=figure.is_percent)


def _legend(figure: QualityFigure, font_size: float) -> list[Shape]:
    shapes: list[Shape] = []
    at = 8.0
    for ink, (_, name) in enumerate(figure.series):
        if name:
            shapes += [Bar(at, font_size * 3.3 - 5, 6, 6, ink, is_round=not figure.is_stacked), Label(at + 10, font_size * 3.3, name)]
            at += text_width(name, font_size) + 26
    return shapes


def _stack(
    shapes: list[Shape],
    figure: QualityFigure,
    values: dict[str, NDArray[np.float64]],
    x: NDArray[np.float64],
    width: float,
    place: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> None:
    """Append the series of each run as fractions of their sum, stacked on each other."""
    parts = np.array([values[name] for name, _ in figure.series])
    total = parts.sum(axis=0)
    ends = np.vstack((np.zeros(len(x)), np.cumsum(parts, axis=0) / np.maximum(total, 1)))
    for ink in range(len(parts)):
        has = parts[ink] > 0
        shapes.append(Sticks(x[has], place(ends[ink][has]), place(ends[ink + 1][has]), ink, width))


def _is_x_tick(shape: Shape, bottom: float) -> bool:
    """Return True for the ticks below a figure, which has names instead."""
    return getattr(shape, "y1", None) == bottom and getattr(shape, "x1", 0) == getattr(shape, "x2", 1)
