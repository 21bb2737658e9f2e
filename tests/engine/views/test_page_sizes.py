"""Tests that figures of each kind fit a journal's columns, with readable texts, and that their files have the size and resolution."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image as Picture

from proteoscope.engine.command_line.main import main
from proteoscope.engine.page_sizes import DPI, MINIMUM_FONT, ONE_COLUMN, OWN_WIDTH, PAGE_SIZES, TWO_COLUMNS, laid_out_size
from proteoscope.engine.project import Project
from proteoscope.engine.views.alignment_drawing import draw_alignment
from proteoscope.engine.views.annotation import annotate_match
from proteoscope.engine.views.coverage_drawing import draw_coverage
from proteoscope.engine.views.drawings import Clip, Drawing, Label, PaperFigure, Shape
from proteoscope.engine.views.figure_files import page_drawing, save_figure
from proteoscope.engine.views.figure_layout import figure_at_width
from proteoscope.engine.views.heat_map import draw_heat_map
from proteoscope.engine.views.hit_drawing import draw_hits
from proteoscope.engine.views.pileup_drawing import draw_pileup
from proteoscope.engine.views.quantities import principal_components, sample_correlations
from proteoscope.engine.views.quantity_clusters import cluster_quantities
from proteoscope.engine.views.quantity_drawings import draw_components, draw_correlations, draw_missing
from proteoscope.engine.views.quantity_figures import draw_volcano
from proteoscope.engine.views.spectrum_figures import spectrum_figure
from proteoscope.engine.views.stack_drawing import draw_stack
from tests.engine.views import grid_examples
from tests.engine.views.quantity_projects import quantified_project
from tests.engine.views.test_annotation import ROW, SETTINGS, synthetic_peaks
from tests.engine.views.test_heat_map import random_log2, samples_of
from tests.engine.views.test_volcano_drawing import random_volcano

SAMPLES = samples_of(random_log2(30, 6))
DRAWN: dict[str, Callable[[float, float], Drawing]] = {
    "volcano": partial(draw_volcano, random_volcano(), 0.01, 1.0),
    "heat map": partial(draw_heat_map, cluster_quantities(SAMPLES.log2), SAMPLES),
    "components": partial(draw_components, principal_components(SAMPLES), SAMPLES),
    "correlations": partial(draw_correlations, sample_correlations(SAMPLES), SAMPLES),
    "missing": partial(draw_missing, SAMPLES, "proteins"),
}
FIGURES: dict[str, Callable[[float | None], Drawing]] = {
    "spectrum": partial(figure_at_width, spectrum_figure(annotate_match(ROW, synthetic_peaks(), SETTINGS, "scan 7"))),
    "alignment": partial(draw_alignment, grid_examples.pair(), None),
    "stack": partial(draw_stack, grid_examples.stack(), None),
    "coverage": lambda width: draw_coverage(grid_examples.coverage(), width=width),
    "hits": lambda width: draw_hits(grid_examples.hits(), width=width),
    "pile-up": lambda width: draw_pileup(grid_examples.pile(), grid_examples.features(), width=width),
    **{name: lambda width, draw=draw: draw(*laid_out_size((400.0, 320.0), width)) for name, draw in DRAWN.items()},  # type: ignore[misc]
}


def flat(shapes: tuple[Shape, ...]) -> list[Shape]:
    return [inner for shape in shapes for inner in (shape.shapes if isinstance(shape, Clip) else (shape,))]


@pytest.mark.parametrize("size", PAGE_SIZES, ids=lambda size: size.name)
@pytest.mark.parametrize("name", FIGURES)
def test_figures_have_journal_column_width_and_legible_text(name, size):
    drawing = page_drawing(PaperFigure(name, FIGURES[name]), size)
    if size.width is not None:
        assert drawing.width == pytest.approx(size.width)
        assert drawing.height <= 700
    labels = [shape for shape in flat(drawing.shapes) if isinstance(shape, Label) and shape.text.strip()]
    assert labels and min(label.size for label in labels) * drawing.font_size >= MINIMUM_FONT - 1e-9
    # No text starts or ends beyond the page.
    assert all(-1 <= label.x <= drawing.width + 1 and -1 <= label.y <= drawing.height + 1 for label in labels)


@pytest.mark.parametrize(("size", "millimetres"), [(ONE_COLUMN, 85.0), (TWO_COLUMNS, 178.0)])
def test_figure_files_state_their_size_in_millimetres(size, millimetres, tmp_path: Path):
    figure = PaperFigure("volcano", FIGURES["volcano"])
    for ending in ("svg", "pdf", "png"):
        save_figure(tmp_path / f"volcano.{ending}", figure, size)
    width, height = re.findall(r'<svg [^>]*width="([\d.]+)mm" height="([\d.]+)mm"', (tmp_path / "volcano.svg").read_text())[0]
    assert float(width) == pytest.approx(millimetres, abs=0.01)
    page = pypdfium2.PdfDocument(tmp_path / "volcano.pdf")[0].get_size()
    assert [length * 25.4 / 72 for length in page] == pytest.approx([millimetres, float(height)], abs=0.01)
    with Picture.open(tmp_path / "volcano.png") as picture:
        assert picture.info["dpi"] == pytest.approx((DPI, DPI), abs=0.02) and DPI == 300
        assert picture.size == pytest.approx([millimetres / 25.4 * 300, float(height) / 25.4 * 300], abs=1)
    # The resolution is a chunk of the file, in pixels per metre.
    raw = (tmp_path / "volcano.png").read_bytes()
    at = raw.index(b"pHYs")
    assert int.from_bytes(raw[at + 4 : at + 8], "big") == int.from_bytes(raw[at + 8 : at + 12], "big") == 11811 and raw[at + 12] == 1


def test_figure_files_have_the_requested_width_and_resolution(tmp_path: Path):
    save_figure(tmp_path / "one.png", PaperFigure("hits", FIGURES["hits"]), OWN_WIDTH, 150)
    with Picture.open(tmp_path / "one.png") as picture:
        assert picture.width == pytest.approx(1000, abs=1) and picture.info["dpi"] == pytest.approx((150, 150), abs=0.02)


def test_export_command_writes_figures_with_the_given_thresholds(tmp_path: Path):
    project: Project = quantified_project(tmp_path / "project")
    base = ["export", str(project.folder), "--format", "figures", "--out"]
    assert main([*base, str(tmp_path / "svg"), "--q-value", "0.05", "--fold-change", "1"]) == 0
    names = {"volcano", "heat-map", "components", "correlations", "missing-values"}
    assert {path.name for path in (tmp_path / "svg").iterdir()} == {f"{name}.svg" for name in names}
    text = (tmp_path / "svg" / "volcano.svg").read_text()
    # Two proteins were planted 8 times higher, and two 8 times lower.
    assert ">2 up<" in text and ">2 down<" in text and "q-value ≤ 0.05, |log2| ≥ 1" in text and 'width="178mm"' in text
    assert main([*base, str(tmp_path / "png"), "--figure-type", "png", "--figure-width", "one-column", "--dpi", "600"]) == 0
    with Picture.open(tmp_path / "png" / "heat-map.png") as picture:
        assert picture.width == pytest.approx(85 / 25.4 * 600, abs=1) and picture.info["dpi"] == pytest.approx((600, 600), abs=0.02)
    for wrong in (["--dpi", "5"], ["--q-value", "2"], ["--fold-change", "-1"]):
        assert main([*base, str(tmp_path / "wrong"), *wrong]) != 0
    assert main(["export", str(project.folder), "--format", "tsv", "--out", str(tmp_path / "wrong"), "--q-value", "0.1"]) != 0
    assert not (tmp_path / "wrong").exists()
