"""Figures of a quantification, for the window and for the export `figures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.files import atomic_file, storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import quantity_parts
from proteoscope.engine.quantification.results import TableParts, chunks_of
from proteoscope.engine.quantification.tables import CHANGES, PROTEINS, SAMPLES
from proteoscope.engine.results.columns import Table
from proteoscope.engine.results.counts import counted
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.views.drawings import (
    Axis,
    Drawing,
    Handle,
    Label,
    PaperFigure,
    Points,
    Shape,
    Stroke,
    draw_axes,
    shortened,
    text_width,
)
from proteoscope.engine.views.figure_files import save_figure
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.heat_map import draw_heat_map
from proteoscope.engine.views.html_pages import html_page, listed, result_rows, section, shown
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.quantities import PROTEINS_BY_SAMPLE, QuantityFilter, QuantityOverview, Volcano, with_tables_by_sample
from proteoscope.engine.views.quantity_drawings import draw_components, draw_correlations, draw_missing, draw_names
from proteoscope.engine.views.run_account import run_account
from proteoscope.engine.views.shown_peaks import UNMATCHED

__all__ = ["QUANTITY_FIGURES", "MakeDrawing", "QuantityFigure", "draw_volcano", "export_figures", "write_pages"]

_CANDIDATES = 80
"""Maximum number of named changes; the most significant changes are named, and names without space are omitted."""
_DOWN: Ink = 0
_UP: Ink = 1
_LEAST_Q_VALUE = 1e-4
"""Minimum q-value threshold that can be set by dragging; thresholds are rounded as in the fields of the window."""


def draw_volcano(
    volcano: Volcano, q_value: float, fold_change: float, width: float = 400.0, height: float = 320.0, font_size: float = 8.0
) -> Drawing:
    """Draw fold changes against p-values; changes are coloured and counted at both sides, and the most significant changes are named.

    A click on a dot selects its row in the table of changes. The thresholds `q_value` and `fold_change` are handles that can be dragged.
    """
    changed = volcano.changed(q_value, fold_change)
    up, down = changed & (volcano.fold_change > 0), changed & (volcano.fold_change < 0)
    title = f"{volcano.comparison}: {up.sum():,} up, {down.sum():,} down, of {counted(len(volcano), 'tested protein')}"
    widest = max(float(np.abs(volcano.fold_change).max(initial=1.0)) * 1.06, 1.0)
    highest = max(float(volcano.height.max(initial=1.0)) * 1.08, 1.0)
    counts = f"{down.sum():,} down", f"{up.sum():,} up"
    cuts = f"q-value ≤ {q_value:.3g}" + (f", |log2| ≥ {fold_change:.3g}" if fold_change else "")
    left, right, bottom = font_size * 2 + 30, width - font_size * 2, height - font_size * 4
    needed = text_width(cuts, font_size) + 2 * 1.2 * max(text_width(count, font_size) for count in counts) + 2 * font_size
    has_line = needed > right - left
    top = font_size * (6.0 if has_line else 4.6)
    area = (left, top, right, bottom)

    def across(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return left + (values + widest) / (2 * widest) * (right - left)

    def upwards(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return bottom - values / highest * (bottom - top)

    def q_value_of(y: float) -> float:
        return max(round(volcano.q_value_at((bottom - y) / (bottom - top) * highest), 4), _LEAST_Q_VALUE)

    def fold_change_of(x: float) -> float:
        return round(abs((x - left) / (right - left) * 2 - 1) * widest, 2)

    heading = f"{volcano.comparison}, {counted(len(volcano), 'tested protein')}"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(heading, width - 16, font_size), is_bold=True)]
    shapes += draw_axes(area, Axis(-widest, widest, "log2 fold change"), Axis(0, highest, "-log10 p-value"), font_size)
    # A threshold beyond all proteins is drawn at the edge, so that it can be dragged.
    y = float(upwards(np.array([min(max(volcano.height_at(q_value), 0.0), highest)]))[0])
    sides = sorted({-min(fold_change, widest), min(fold_change, widest)})
    lines = [float(across(np.array([side]))[0]) for side in sides]
    tip = f"Changes have at least this absolute log2 fold change, {fold_change:.2f}. Drag to move."
    handles = [Handle("q_value", y, left, right, False, q_value_of, f"Changes have at most this q-value, {q_value:.4g}. Drag to move.")]
    handles += [Handle("fold_change", x, top, bottom, True, fold_change_of, tip) for x in lines]
    shapes += [Stroke(left, y, right, y, "faint", 0.8, is_dashed=True)]
    shapes += [Stroke(x, top, x, bottom, "faint", 0.8, is_dashed=True) for x in lines]
    x_all, y_all = across(volcano.fold_change), upwards(volcano.height)
    dots: tuple[tuple[NDArray[np.bool_], Ink, float], ...] = ((~changed, Ion(UNMATCHED), 3.0), (down, _DOWN, 4.5), (up, _UP, 4.5))
    shapes += [Points(x_all[chosen], y_all[chosen], ink, size, volcano.row[chosen]) for chosen, ink, size in dots]
    surest = np.flatnonzero(changed)
    surest = surest[np.argsort(volcano.p_value[surest], kind="stable")][:_CANDIDATES]
    names = [volcano.label[row] for row in surest.tolist()]
    shapes += draw_names(names, x_all[surest], y_all[surest], np.column_stack((x_all, y_all)), area, font_size)
    over = top - font_size * 0.6
    shapes += [Label(left + 2, over, counts[0], ink=_DOWN, is_bold=True), Label(right - 2, over, counts[1], "end", _UP, is_bold=True)]
    shapes += [Label((left + right) / 2, over - (1.3 * font_size if has_line else 0), cuts, "middle", "faint")]
    return Drawing(width, height, title, tuple(shapes), font_size, tuple(handles))


_FONT_SIZE = 8.0

MakeDrawing = Callable[[float, float, float], Drawing]
"""Function that returns a drawing, given width, height and font size in points or pixels."""


@dataclass(frozen=True)
class QuantityFigure:
    """Figure of all proteins or samples of a quantification.

    Attributes
    ----------
    name
        Name of the exported files.
    title
        Description for screen readers.
    tab
        Title of the tab with the figure; figures of the same tab are shown next to each other.
    table
        Name of the table whose rows a click selects.
    size
        Width and height on a page, points.
    make
        Function that is called with the quantities and settings (comparison and thresholds), and returns a function that draws the figure,
        or None if there is no such figure for these quantities.
    is_by_comparison
        True if there is one figure per comparison.
    """

    name: str
    title: str
    tab: str
    table: str
    size: tuple[float, float]
    make: Callable[[QuantityOverview, QuantityFilter], MakeDrawing | None]
    is_by_comparison: bool = False


def _volcano(overview: QuantityOverview, chosen: QuantityFilter) -> MakeDrawing | None:
    volcano = overview.volcano_of(chosen.comparison)
    return None if volcano is None else lambda *size: draw_volcano(volcano, chosen.q_value, chosen.fold_change, *size)


QUANTITY_FIGURES = (
    QuantityFigure("volcano", "Volcano plot", "Volcano", CHANGES.name, (400.0, 320.0), _volcano, is_by_comparison=True),
    QuantityFigure(
        "heat-map",
        "Heat map",
        "Heat map",
        PROTEINS_BY_SAMPLE.name,
        (400.0, 480.0),
        lambda overview, _: lambda *size: draw_heat_map(overview.heat_map, overview.proteins, *size),
    ),
    QuantityFigure(
        "components",
        "Principal components",
        "Samples",
        SAMPLES.name,
        (320.0, 260.0),
        lambda overview, _: lambda *size: draw_components(overview.components, overview.proteins, *size),
    ),
    QuantityFigure(
        "correlations",
        "Correlation of samples",
        "Samples",
        SAMPLES.name,
        (320.0, 280.0),
        lambda overview, _: lambda *size: draw_correlations(overview.correlations, overview.proteins, *size),
    ),
    QuantityFigure(
        "missing-values",
        "Missing values",
        "Missing values",
        PROTEINS_BY_SAMPLE.name,
        (400.0, 320.0),
        lambda overview, _: lambda *size: draw_missing(overview.proteins, "proteins", *size),
    ),
)
"""All figures, in the order of the tabs."""


def export_figures(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export all figures of a run, some of them once per comparison (see `proteoscope.engine.entry.Search.export`)."""
    with open_run(project, request.run_id) as run:
        progress.stage("Reading the quantities")
        overview = with_tables_by_sample(run)
        q_value = float(run.parameters["change_fdr"]) if request.q_value is None else request.q_value
    figures = list(_figures(overview, q_value, request.fold_change))
    progress.stage("Drawing", len(figures))
    with storage_errors(request.target):
        request.target.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        written.append(request.target / f"{figure.name}.{request.figures.type}")
        save_figure(written[-1], figure, request.figures.size, request.figures.dpi)
        progress.advance()
    return written


def _figures(overview: QuantityOverview, q_value: float, fold_change: float) -> Iterator[PaperFigure]:
    comparisons = [volcano.comparison for volcano in overview.volcanos]
    for figure in QUANTITY_FIGURES:
        for number, comparison in enumerate(comparisons if figure.is_by_comparison else [None], start=1):
            make = figure.make(overview, QuantityFilter(q_value=q_value, fold_change=fold_change, comparison=comparison))
            if make is not None:
                name = f"{figure.name}-{number}" if figure.is_by_comparison and len(comparisons) > 1 else figure.name
                yield PaperFigure(name, partial(_drawn, make, figure.size))


def _drawn(make: MakeDrawing, page: tuple[float, float], width: float | None) -> Drawing:
    return make(*laid_out_size(page, width), _FONT_SIZE)


_MAXIMUM_ROWS = 500
_PAGE = "quantification.html"
_SHOWN = (SAMPLES, CHANGES, PROTEINS)


def write_pages(project: Project, run_id: str, folder: Path, progress: Progress) -> list[Path]:
    """Write the page ``quantification.html`` on a finished run into a folder, and return its path.

    Raises
    ------
    InputError, StorageError
        If the run's tables are missing or damaged, or writing failed.
    Cancelled
        If the user cancelled.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    progress.stage("Writing pages", 1)
    tables = quantity_parts(project, run_id)  # with manual corrections
    with open_run(project, run_id) as run:
        account = run_account(project, run.run, search_of_kind(run.run.kind))
        parts = [
            f"<h1>{shown(account.title)}</h1>",
            section("Messages", listed(run.messages) if run.messages else ""),
            *(section(table.title, _rows(tables[table.name], table)) for table in _SHOWN),
            section("Methods", f"<pre>{shown(account.methods, 20_000)}</pre>"),
        ]
        with atomic_file(folder / _PAGE) as file:
            file.write(html_page(account.title, parts).encode(errors="replace"))
    progress.advance(1)
    return [folder / _PAGE]


def _rows(parts: TableParts, table: Table) -> str:
    """Return the first rows of a table as HTML, or '' without rows."""
    n, rows = 0, list[dict[str, Any]]()
    for part in chunks_of(parts):
        columns = [column for column in table.columns if column.is_shown and column.name in part.column_names]
        rows += part.select([column.name for column in columns]).slice(0, _MAXIMUM_ROWS - len(rows)).to_pylist()
        n += len(part)
    return result_rows(columns, rows, n) if n else ""
