"""Figures of a quantification, for the window and for the export `figures`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.files import storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.tables import CHANGES, SAMPLES
from proteoscope.engine.views.drawings import Drawing, PaperFigure
from proteoscope.engine.views.figure_files import save_figure
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.heat_map import draw_heat_map
from proteoscope.engine.views.quantities import PROTEINS_BY_SAMPLE, QuantityFilter, QuantityOverview, with_tables_by_sample
from proteoscope.engine.views.quantity_drawings import draw_components, draw_correlations, draw_missing
from proteoscope.engine.views.volcano_drawing import draw_volcano

__all__ = ["QUANTITY_FIGURES", "MakeDrawing", "QuantityFigure", "export_figures"]

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
        Function that returns the function which draws the figure, given the quantities and settings (comparison and thresholds); None if
        the figure does not apply.
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
