"""Tests that grids of characters and bars look the same in the window and on the page."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from PySide6.QtGui import QColor, QImage, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.views.drawings import Cells, Drawing
from proteoscope.engine.views.palette import PAPER, Palette, rgb_of
from proteoscope.engine.views.paper import png
from proteoscope.gui.alignment.alignment_plot import AlignmentPlot
from proteoscope.gui.alignment.stack_plot import StackPlot
from proteoscope.gui.plots.coverage_map import CoverageMap
from proteoscope.gui.plots.drawing_view import paint_drawing
from proteoscope.gui.plots.hit_bars import HitBars
from proteoscope.gui.plots.pileup_plot import PileupPlot
from proteoscope.gui.theme import Theme
from tests.engine.views import grid_examples

_BLOCK = 8
"""Pixels whose mean is compared, since characters are hinted on the screen only."""


def alignment() -> AlignmentPlot:
    view = AlignmentPlot()
    view.show_pair(grid_examples.pair())
    view.mark({3: (True, False), 4: (True, True)})
    return view


def stack() -> StackPlot:
    view = StackPlot()
    view.show_stack(grid_examples.stack())
    view.mark(1)
    return view


def coverage() -> CoverageMap:
    view = CoverageMap()
    view.show_coverage(grid_examples.coverage())
    view.mark(4)
    return view


def hits() -> HitBars:
    view = HitBars()
    view.show_bars(grid_examples.hits())
    view.mark(2)
    return view


def pile() -> PileupPlot:
    view, shown = PileupPlot(), grid_examples.pile()
    view.scroll_to(shown.text, 1, 60)
    view.show_pile(shown)
    view.show_features(grid_examples.features())
    view._later.stop()
    return view


def drawing_of(view: QWidget) -> Drawing:
    if isinstance(view, PileupPlot):
        assert view.sheet is not None
        return view.sheet.draw()
    assert isinstance(view, AlignmentPlot | StackPlot | CoverageMap | HitBars) and view.drawing is not None
    return view.drawing


def blocks(pixels: np.ndarray) -> np.ndarray:
    """Return the means (rows, columns, 3) of the blocks of an image."""
    rows, columns = (length // _BLOCK for length in pixels.shape[:2])
    cut = pixels[: rows * _BLOCK, : columns * _BLOCK].astype(float)
    return cut.reshape(rows, _BLOCK, columns, _BLOCK, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("make", [alignment, stack, coverage, hits, pile])
def test_alignment_and_coverage_are_equal_in_window_and_on_page(make: Callable[[], QWidget], qtbot: QtBot, theme: Theme) -> None:
    view = make()
    qtbot.addWidget(view)
    palette = QPalette(view.palette())
    roles = QPalette.ColorRole
    inks = {roles.Base: PAPER.background, roles.Text: PAPER.text, roles.PlaceholderText: PAPER.faint, roles.Mid: PAPER.grid}
    for role, colour in (inks | {roles.Highlight: PAPER.highlight, roles.HighlightedText: PAPER.highlighted}).items():
        palette.setColor(role, QColor(colour))
    view.setPalette(palette)
    view.resize(700, 400)
    with qtbot.waitExposed(view):
        view.show()
    shown = view if isinstance(view, PileupPlot) else view.viewport()  # type: ignore[attr-defined]
    image = shown.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    assert image.devicePixelRatio() == 1
    lines = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    screen = lines[:, : 3 * image.width()].reshape(image.height(), image.width(), 3)
    page = np.asarray(Image.open(BytesIO(png(drawing_of(view), 72))).convert("RGB"))
    height, width = (min(sizes) for sizes in zip(screen.shape[:2], page.shape[:2], strict=True))
    screen, page = screen[:height, :width], page[:height, :width]
    difference = np.abs(blocks(screen) - blocks(page)).max(axis=2)
    is_drawn = (blocks(screen) < 250).any(axis=2)
    assert is_drawn.mean() > 0.02
    assert difference[is_drawn].mean() < 18 and np.percentile(difference, 99.5) < 60
    # The same image shifted by a few pixels is different.
    moved = np.abs(blocks(screen) - blocks(np.roll(page, (6, 6), axis=(0, 1)))).max(axis=2)
    assert moved[is_drawn].mean() > 2 * difference[is_drawn].mean()


@pytest.mark.parametrize("palette", [PAPER, Palette("#000000", "#ffffff", "#e0e0e0", "#a6a6a6")], ids=["paper", "contrast"])
def test_cells_of_a_drawing_are_painted_in_their_colours(palette: Palette, qapp: QApplication) -> None:
    cells = Cells(0, 0, 40, 20, np.array([[1, 2]], np.uint8), (0, 1))
    image = QImage(40, 20, QImage.Format.Format_RGB32)
    image.fill(0)
    with QPainter(image) as painter:
        paint_drawing(painter, Drawing(40, 20, "Two cells", (cells,)), palette, qapp.font())
    assert [image.pixelColor(x, 10).getRgb()[:3] for x in (10, 30)] == [rgb_of(0, palette), rgb_of(1, palette)]
